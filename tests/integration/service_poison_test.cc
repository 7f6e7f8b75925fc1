// Bad input of every kind, over a real connection: the right code, the right field, and no harm to
// the rows beside it.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

v1::Sample SparseSample(const std::vector<uint64_t>& indices, const std::vector<float>& values) {
  v1::Sample sample;
  v1::SparseVector* sparse = sample.mutable_features()->mutable_sparse();
  sparse->mutable_indices()->Add(indices.begin(), indices.end());
  sparse->mutable_values()->Add(values.begin(), values.end());
  sample.set_value(1);
  return sample;
}

v1::Sample WithWeight(v1::Sample sample, double weight) {
  sample.set_weight(weight);
  return sample;
}

v1::Sample WithLabel(v1::Sample sample, const std::string& label) {
  sample.set_label(label);
  return sample;
}

struct BadRow {
  const char* what;
  v1::Sample sample;
  const char* field;    // relative to the row
  const char* message;  // a part of it
};

std::vector<BadRow> BadRows() {
  const v1::Sample good = NumberedSample(1);
  v1::Sample no_features, no_target = good;
  no_features.set_value(1);
  no_target.clear_target();
  return {
      {"NaN", DenseSample({0, kNan}, 1), "features.dense.values[1]", "nan"},
      {"+Inf", DenseSample({kInfinity, 0}, 1), "features.dense.values[0]", "inf"},
      {"-Inf", DenseSample({-kInfinity, 0}, 1), "features.dense.values[0]", "-inf"},
      {"1e38", DenseSample({1e38f, 0}, 1), "features.dense.values[0]", "1e+38"},
      {"too few values", DenseSample({1}, 1), "features.dense.values",
       "takes 2 values per row; this row has 1"},
      {"too many values", DenseSample({1, 2, 3}, 1), "features.dense.values", "this row has 3"},
      {"no values", DenseSample({}, 1), "features.dense.values", "no values"},
      {"NaN target", DenseSample({0, 0}, kNan), "value", "nan"},
      {"unknown label", WithLabel(good, "maybe"), "label",
       "\"maybe\" is not one of the model's labels: no, yes"},
      {"empty label", WithLabel(good, ""), "label", "expected 1 to 256"},
      {"long label", WithLabel(good, std::string(257, 'x')), "label", "257 bytes"},
      {"negative weight", WithWeight(good, -1), "weight", "-1"},
      {"zero weight", WithWeight(good, 0), "weight", "above 0"},
      {"NaN weight", WithWeight(good, kNan), "weight", "nan"},
      {"huge weight", WithWeight(good, 1e7), "weight", "at most"},
      {"unsorted indices", SparseSample({1, 0}, {1, 1}), "features.sparse.indices[1]",
       "strictly increasing"},
      {"duplicate indices", SparseSample({1, 1}, {1, 1}), "features.sparse.indices[1]",
       "strictly increasing"},
      {"index out of range", SparseSample({2}, {1}), "features.sparse.indices[0]", "0 to 1"},
      {"huge index", SparseSample({uint64_t{1} << 40}, {1}), "features.sparse.indices[0]",
       "out of range"},
      {"more indices than values", SparseSample({0, 1}, {1}), "features.sparse.values",
       "1 values for 2"},
      {"NaN in sparse", SparseSample({0}, {kNan}), "features.sparse.values[0]", "nan"},
      {"no features", no_features, "features", "no features"},
      {"no target", no_target, "value", "no target"},
  };
}

v1::ModelConfig LabelledConfig() {
  v1::ModelConfig config = SmallConfig("logistic");
  config.add_labels("no");
  config.add_labels("yes");
  return config;
}

// Good rows carry labels.
std::vector<v1::Sample> GoodRows(uint64_t first, uint64_t count) {
  std::vector<v1::Sample> rows = NumberedSamples(first, count);
  for (v1::Sample& row : rows) row.set_label(row.value() > 0 ? "yes" : "no");
  return rows;
}

void UpdateDurably(Connection& connection, const std::string& model,
                   const std::vector<v1::Sample>& rows) {
  v1::UpdateRequest request;
  request.set_model(model);
  for (const v1::Sample& row : rows) *request.add_samples() = row;
  v1::UpdateResponse response;
  const grpc::Status status = connection.Update(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
}

TEST(PoisonedStream, BadRowsAreNamedAndTheirNeighboursAreLearnedAsIfTheyHadBeenAlone) {
  InProcessServer server;
  server->Create("clean", LabelledConfig());
  server->Create("poisoned", LabelledConfig());
  constexpr uint64_t kRows = 320;
  const std::vector<v1::Sample> good = GoodRows(1, kRows);
  UpdateDurably(*server.operator->(), "clean", good);

  const std::vector<BadRow> bad = BadRows();
  const v1::StreamUpdateRequest::Open open = OpenStream("poisoned", "p");
  StreamSession stream(*server.operator->(), open);
  EXPECT_EQ(stream.Opened().next_producer_sequence(), 1u);
  // Batches of five rows, the third of which is bad as long as there are bad ones.
  uint64_t next_good = 0, number = 1;
  size_t next_bad = 0;
  struct Expected {
    uint64_t number;
    std::string field;
    const BadRow* row;
  };
  std::vector<Expected> expected;
  while (next_good < kRows) {
    v1::StreamUpdateRequest::Batch batch;
    while (batch.samples_size() < 5 && next_good < kRows) {
      if (batch.samples_size() == 2 && next_bad < bad.size()) {
        expected.push_back(
            {number + 2, absl::StrCat("batch.samples[2].", bad[next_bad].field), &bad[next_bad]});
        *batch.add_samples() = bad[next_bad++].sample;
      } else {
        *batch.add_samples() = good[next_good++];
      }
    }
    number += static_cast<uint64_t>(batch.samples_size());
    ASSERT_TRUE(stream.Send(batch));
  }
  ASSERT_EQ(next_bad, bad.size());
  const grpc::Status end = stream.Finish();
  ASSERT_TRUE(end.ok()) << end.error_message();
  EXPECT_EQ(stream.acks().back().next_producer_sequence(), number);
  EXPECT_EQ(stream.acks().back().sequence(), kRows);

  size_t seen = 0;
  for (const auto& ack : stream.acks()) {
    for (const v1::RejectedSample& rejected : ack.rejected()) {
      ASSERT_LT(seen, expected.size());
      const Expected& want = expected[seen++];
      SCOPED_TRACE(want.row->what);
      EXPECT_EQ(rejected.producer_sequence(), want.number);
      EXPECT_EQ(rejected.status().code(), grpc::StatusCode::INVALID_ARGUMENT);
      EXPECT_EQ(FieldOf(rejected.status()), want.field);
      EXPECT_THAT(rejected.status().message(), HasSubstr(want.row->message));
    }
  }
  EXPECT_EQ(seen, expected.size());

  server->WaitForSequence("clean", kRows);
  server->WaitForSequence("poisoned", kRows);
  const v1::ModelState clean = server->Get("clean").state();
  const v1::ModelState poisoned = server->Get("poisoned").state();
  EXPECT_EQ(poisoned.rows_learned(), kRows);
  EXPECT_EQ(poisoned.rows_rejected(), bad.size());
  EXPECT_EQ(poisoned.fingerprint(), clean.fingerprint());
}

// The first target decides the kind: a stray text takes no place away from the second number.
TEST(PoisonedUpdate, OneTextLabelAmongNumbersHarmsItsRowOnly) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  v1::UpdateRequest request;
  request.set_model("m");
  *request.add_samples() = DenseSample({0, 1}, 1);
  *request.add_samples() = WithLabel(DenseSample({0, 2}, 1), "a");
  for (int i = 0; i < 3; ++i) *request.add_samples() = DenseSample({0, 3}, -1);
  v1::UpdateResponse response;
  const grpc::Status status = server->Update(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.rows_accepted(), 4u);
  ASSERT_EQ(response.rejected_size(), 1);
  EXPECT_EQ(response.rejected(0).producer_sequence(), 1u);
  EXPECT_EQ(FieldOf(response.rejected(0).status()), "samples[1].label");
}

TEST(PoisonedUpdate, ARowAloneFailsTheCallWithItsField) {
  InProcessServer server;
  server->Create("m", LabelledConfig());
  for (const BadRow& bad : BadRows()) {
    SCOPED_TRACE(bad.what);
    v1::UpdateRequest request;
    request.set_model("m");
    *request.add_samples() = bad.sample;
    v1::UpdateResponse response;
    const grpc::Status status = server->Update(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(status), absl::StrCat("samples[0].", bad.field));
    EXPECT_THAT(status.error_message(), HasSubstr(bad.message));
  }
  EXPECT_EQ(server->Get("m").state().sequence(), 0u);
}

TEST(PoisonedUpdate, ACallWithoutARowIsToldSo) {
  InProcessServer server;
  server->Create("m", LabelledConfig());
  v1::UpdateRequest request;
  v1::UpdateResponse response;
  grpc::Status status = server->Update(request, &response);  // an empty message
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  request.set_model("m");
  status = server->Update(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "samples");
  EXPECT_THAT(status.error_message(), HasSubstr("there are no rows; send at least one"));
  request.mutable_matrix()->set_dimension(2);
  status = server->Update(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "matrix.rows");
  const v1::ModelState state = server->Get("m").state();
  EXPECT_EQ(state.sequence(), 0u);
  EXPECT_EQ(state.rows_rejected(), 0u);
}

// Nobody said how wide rows are, and sparse rows came first: a dense row that is narrower than what
// they use must not decide it, or every row after it would be refused.
TEST(PoisonedUpdate, AShortDenseRowDoesNotNarrowAModelOfSparseRows) {
  InProcessServer server;
  v1::ModelConfig config = SmallConfig("logistic");
  config.mutable_input()->set_dimension(0);
  server->Create("wide", config);
  std::vector<v1::Sample> sparse;
  for (uint32_t i = 0; i < 208; ++i) {  // whole mini-batches
    sparse.push_back(SparseSample({i % 7, 20 + i % 103}, {1, -1}));
    sparse.back().set_value(i % 2 == 0 ? 1 : -1);
  }
  v1::UpdateRequest first;
  first.set_model("wide");
  first.set_ack(v1::ACK_LEVEL_APPLIED);
  for (const v1::Sample& row : sparse) *first.add_samples() = row;
  v1::UpdateResponse learned;
  ASSERT_EQ(server->Update(first, &learned).error_message(), "");
  const std::vector<float> full(123, 0.5f), wider(130, 0.5f);
  const auto update = [&](const v1::Sample& sample) {
    v1::UpdateRequest request;
    request.set_model("wide");
    *request.add_samples() = sample;
    v1::UpdateResponse response;
    return server->Update(request, &response);
  };
  const auto predict = [&](const v1::Sample& sample) {
    v1::PredictRequest request;
    request.set_model("wide");
    *request.add_instances() = sample.features();
    v1::PredictResponse response;
    grpc::ClientContext context;
    return server->predictions->Predict(&context, request, &response);
  };
  const auto expect_refused = [&](const std::vector<float>& values, const std::string& message) {
    const grpc::Status status = update(DenseSample(values, 1));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(message));
    EXPECT_EQ(FieldOf(status), "samples[0].features.dense.values");
    EXPECT_EQ(FieldOf(predict(DenseSample({1, 2}, 1))), "instances[0].dense.values");
  };
  expect_refused({1, 2}, "indices up to 122; this row has 2 values");
  for (const v1::Sample& good : {sparse[0], DenseSample(full, 1), DenseSample(wider, 1),
                                 sparse[102], SparseSample({140}, {1})}) {
    EXPECT_EQ(update(good).error_message(), "");
    EXPECT_EQ(predict(good).error_message(), "");
  }
  expect_refused(wider, "indices up to 140; this row has 130 values");
  server.Restart();
  expect_refused({1, 2}, "indices up to 140; this row has 2 values");
  EXPECT_EQ(update(sparse[0]).error_message(), "");
  EXPECT_EQ(update(SparseSample({150}, {1})).error_message(), "");
}

TEST(PoisonedUpdate, MatrixRowsAreNamedByTheirPlaceInTheMatrix) {
  InProcessServer server;
  server->Create("m", LabelledConfig());
  v1::UpdateRequest request;
  request.set_model("m");
  const std::vector<float> values = {0.5f, 0.5f, kNan, 0.5f, 0.5f, 0.5f};
  request.mutable_matrix()->set_rows(3);
  request.mutable_matrix()->set_dimension(2);
  request.mutable_matrix()->set_values(values.data(), values.size() * sizeof(float));
  for (const char* label : {"yes", "no", "neither"}) request.mutable_matrix()->add_labels(label);
  v1::UpdateResponse response;
  const grpc::Status status = server->Update(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.rows_accepted(), 1u);
  ASSERT_EQ(response.rejected_size(), 2);
  EXPECT_EQ(response.rejected(0).producer_sequence(), 1u);
  EXPECT_EQ(FieldOf(response.rejected(0).status()), "matrix.values[2]");
  EXPECT_EQ(response.rejected(1).producer_sequence(), 2u);
  EXPECT_EQ(FieldOf(response.rejected(1).status()), "matrix.labels[2]");

  request.mutable_matrix()->set_dimension(3);
  const grpc::Status mismatch = server->Update(request, &response);
  EXPECT_EQ(mismatch.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(mismatch), "matrix.values");
}

// What makes no sense as a message ends the stream, after the acks of what came before.
TEST(PoisonedStream, BadMessagesEndTheStreamAndWhatCameBeforeIsAcknowledged) {
  InProcessServer server;
  server->Create("m", LabelledConfig());
  struct Case {
    const char* what;
    std::function<void(v1::StreamUpdateRequest&)> make;
    const char* field;
  };
  const std::vector<Case> cases = {
      {"zero rows", [](v1::StreamUpdateRequest& r) { r.mutable_batch(); }, "batch.samples"},
      {"empty message", [](v1::StreamUpdateRequest&) {}, "batch"},
      {"open twice", [](v1::StreamUpdateRequest& r) { r.mutable_open()->set_model("m"); }, "open"},
      {"matrix without rows",
       [](v1::StreamUpdateRequest& r) { r.mutable_batch()->mutable_matrix()->set_dimension(2); },
       "batch.matrix.rows"},
      {"matrix size mismatch",
       [](v1::StreamUpdateRequest& r) {
         v1::SampleMatrix* matrix = r.mutable_batch()->mutable_matrix();
         matrix->set_rows(1u << 31);
         matrix->set_dimension(1u << 31);
         matrix->set_values("1234");
       },
       "batch.matrix.values"},
      {"both samples and matrix",
       [](v1::StreamUpdateRequest& r) {
         *r.mutable_batch()->add_samples() = NumberedSample(1);
         r.mutable_batch()->mutable_matrix()->set_rows(1);
       },
       "batch.samples"},
  };
  uint64_t rows = 0;
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    const v1::StreamUpdateRequest::Open open = OpenStream("m");
    StreamSession stream(*server.operator->(), open);
    stream.Opened();
    v1::StreamUpdateRequest::Batch good;
    for (const v1::Sample& row : GoodRows(1, 3)) *good.add_samples() = row;
    stream.Send(good);
    rows += 3;
    v1::StreamUpdateRequest bad;
    one.make(bad);
    stream.SendRaw(bad);
    const grpc::Status status = stream.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_EQ(FieldOf(status), one.field);
    ASSERT_EQ(stream.acks().size(), 1u);
    EXPECT_EQ(stream.acks()[0].sequence(), rows);
  }
}

TEST(PoisonedStream, FirstMessageHasToBeOpen) {
  InProcessServer server;
  Connection& connection = *server.operator->();
  grpc::ClientContext context;
  auto stream = connection.updates->StreamUpdate(&context);
  v1::StreamUpdateRequest request;
  *request.mutable_batch()->add_samples() = NumberedSample(1);
  stream->Write(request);
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "open");
}

TEST(PoisonedStream, FailStreamPolicyLearnsNothingOfTheBatch) {
  InProcessServer server;
  server->Create("m", LabelledConfig());
  v1::StreamUpdateRequest::Open open = OpenStream("m", "p");
  open.set_on_bad_sample(v1::BAD_SAMPLE_POLICY_FAIL_STREAM);
  StreamSession stream(*server.operator->(), open);
  stream.Opened();
  v1::StreamUpdateRequest::Batch batch;
  for (const v1::Sample& row : GoodRows(1, 4)) *batch.add_samples() = row;
  stream.Send(batch);
  *batch.mutable_samples(1) = DenseSample({kNan, 0}, 1);
  stream.Send(batch);
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "batch.samples[1].features.dense.values[0]");
  ASSERT_EQ(stream.acks().size(), 1u);
  EXPECT_EQ(stream.acks()[0].sequence(), 4u);

  StreamSession again(*server.operator->(), open);
  EXPECT_EQ(again.Opened().next_producer_sequence(), 5u);
  EXPECT_TRUE(again.Finish().ok());
}

TEST(PoisonedStream, ABatchWithNoGoodRowIsAcknowledgedWithItsReasons) {
  InProcessServer server;
  server->Create("m", LabelledConfig());
  for (const char* producer : {"", "p"}) {
    const v1::StreamUpdateRequest::Open open = OpenStream("m", producer);
    StreamSession stream(*server.operator->(), open);
    stream.Opened();
    v1::StreamUpdateRequest::Batch bad, good;
    *bad.add_samples() = DenseSample({kNan, 0}, 1);
    *bad.add_samples() = DenseSample({0}, 1);
    for (const v1::Sample& row : GoodRows(1, 2)) *good.add_samples() = row;
    stream.Send(bad);
    stream.Send(good);
    EXPECT_TRUE(stream.Finish().ok());
    ASSERT_EQ(stream.acks().size(), 2u);
    EXPECT_EQ(stream.acks()[0].next_producer_sequence(), 3u);
    ASSERT_EQ(stream.acks()[0].rejected_size(), 2);
    EXPECT_EQ(stream.acks()[0].rejected(1).producer_sequence(), 2u);
    EXPECT_EQ(stream.acks()[1].next_producer_sequence(), 5u);
  }
}

// Sends bytes that no generated client would send.
grpc::Status CallWithBytes(Connection& connection, const std::string& method,
                           const std::string& bytes) {
  grpc::GenericStub stub(connection.channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

TEST(PoisonedBytes, WhatIsNoMessageIsAnInvalidArgument) {
  InProcessServer server;
  for (const char* method :
       {"kernelstream.v1.ModelService/CreateModel", "kernelstream.v1.ModelService/GetModel",
        "kernelstream.v1.OnlineUpdateService/Update",
        "kernelstream.v1.OnlineUpdateService/StreamUpdate",
        "kernelstream.v1.PredictionService/Predict",
        "kernelstream.v1.PredictionService/StreamPredict",
        "kernelstream.v1.PredictionService/Evaluate"}) {
    const grpc::Status status = CallWithBytes(*server.operator->(), absl::StrCat("/", method),
                                              "\xff\xff\xff not a message");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("are not an encoded kernelstream.v1.")) << method;
  }
}

TEST(PoisonedBytes, ALabelThatIsNotUtf8HarmsItsRowOnly) {
  InProcessServer server;
  server->Create("m", LabelledConfig());
  v1::UpdateRequest request;
  request.set_model("m");
  for (const v1::Sample& row : GoodRows(1, 3)) *request.add_samples() = row;
  request.mutable_samples(1)->set_label("@@@");
  std::string bytes = request.SerializeAsString();
  bytes.replace(bytes.find("@@@"), 3, "\xc3\x28\xff");
  const grpc::Status status =
      CallWithBytes(*server.operator->(), "/kernelstream.v1.OnlineUpdateService/Update", bytes);
  EXPECT_TRUE(status.ok()) << status.error_message();
  const v1::ModelState state = server->Get("m").state();
  EXPECT_EQ(state.rows_pending() + state.rows_learned(), 2u);
  EXPECT_EQ(state.rows_rejected(), 1u);
}

TEST(MessageLimit, LargerMessagesAreRefusedWithTheLimitAndTheFlag) {
  InProcessServer server({}, /*max_message_mib=*/1);
  server->Create("m", LabelledConfig());
  v1::SampleMatrix matrix;
  matrix.set_rows(655360);
  matrix.set_dimension(2);
  matrix.set_values(std::string(5 << 20, '\0'));
  v1::UpdateRequest update;
  update.set_model("m");
  *update.mutable_matrix() = matrix;
  v1::UpdateResponse response;
  const auto check = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), HasSubstr("--max_message_mib=1"));
    google::rpc::RetryInfo retry;
    EXPECT_FALSE(FindDetail(DetailsOf(status), &retry));
  };
  check(server->Update(update, &response));

  v1::PredictRequest predict;
  predict.set_model("m");
  *predict.mutable_matrix() = matrix;
  v1::PredictResponse prediction;
  check(server->Predict(predict, &prediction));

  PredictSession predictions(*server.operator->());
  v1::StreamPredictRequest piece;
  piece.set_model("m");
  *piece.add_instances() = NumberedSample(1).features();
  predictions.Send(piece);
  piece.clear_instances();
  *piece.mutable_matrix() = matrix;
  predictions.Send(piece);
  check(predictions.Finish());
  EXPECT_EQ(predictions.answers(), 1u);

  const v1::StreamUpdateRequest::Open open = OpenStream("m");
  StreamSession stream(*server.operator->(), open);
  EXPECT_EQ(stream.Opened().max_message_bytes(), 1u << 20);
  v1::StreamUpdateRequest::Batch batch;
  for (const v1::Sample& row : GoodRows(1, 2)) *batch.add_samples() = row;
  stream.Send(batch);
  batch.clear_samples();
  *batch.mutable_matrix() = matrix;
  stream.Send(batch);
  check(stream.Finish());
  EXPECT_EQ(stream.acks().size(), 1u);
}

TEST(UnknownNames, ListTheKnownOnes) {
  InProcessServer server;
  server->Create("churn", SmallConfig("logistic"));
  v1::PredictRequest predict;
  predict.set_model("chrun");
  *predict.add_instances() = NumberedSample(1).features();
  v1::PredictResponse response;
  const grpc::Status missing = server->Predict(predict, &response);
  EXPECT_EQ(missing.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(missing.error_message(), HasSubstr("churn"));
  google::rpc::ResourceInfo resource;
  ASSERT_TRUE(FindDetail(DetailsOf(missing), &resource));
  EXPECT_EQ(resource.resource_name(), "chrun");

  struct Case {
    std::function<void(v1::ModelConfig&)> change;
    const char* field;
    const char* known;
  };
  const std::vector<Case> cases = {
      {[](auto& c) { c.mutable_loss()->set_name("logistik"); }, "config.loss.name", "logistic"},
      {[](auto& c) { c.clear_loss(); }, "config.loss.name", "logistic"},
      {[](auto& c) { c.mutable_kernel()->set_name("rbf"); }, "config.kernel.name", "gaussian"},
      {[](auto& c) { (*c.mutable_kernel()->mutable_parameters())["sigma"] = 1; },
       "config.kernel.parameters[sigma]", "bandwidth"},
      {[](auto& c) { (*c.mutable_kernel()->mutable_parameters())["bandwidth"] = -1; },
       "config.kernel.parameters[bandwidth]", "expected"},
      {[](auto& c) { c.mutable_update_rule()->set_name("sgd"); }, "config.update_rule.name",
       "proximal"},
      {[](auto& c) { c.set_batch_rows(100000); }, "config.batch_rows", "1024"},
      {[](auto& c) { c.set_sampler("sobol"); }, "config.sampler", "iid"},
      {[](auto& c) { c.set_averaging(static_cast<v1::Averaging>(77)); }, "config.averaging", "77"},
      {[](auto& c) { c.mutable_input()->set_dimension(1 << 20); }, "config.input.dimension",
       "65536"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.field);
    v1::ModelConfig config = SmallConfig("logistic");
    one.change(config);
    const grpc::Status status = server->TryCreate("other", config);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(status), one.field) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(one.known));
  }
  for (const std::string& name :
       {std::string(), std::string("../etc"), std::string("a b"), std::string(129, 'a')}) {
    const grpc::Status status = server->TryCreate(name, SmallConfig("logistic"));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
    EXPECT_EQ(FieldOf(status), "name");
  }
}

}  // namespace
}  // namespace kernelstream::support
