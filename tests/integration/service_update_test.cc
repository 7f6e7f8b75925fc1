// Learning over a real connection: acks, exactly once, back-pressure, cancelling, evaluation.
#include <sched.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

using ::testing::HasSubstr;

v1::StreamUpdateRequest::Batch Batch(uint64_t first, uint64_t count, bool numbered = false) {
  v1::StreamUpdateRequest::Batch batch;
  for (const v1::Sample& row : NumberedSamples(first, count)) *batch.add_samples() = row;
  if (numbered) batch.set_producer_sequence(first);
  return batch;
}

v1::UpdateRequest Rows(const std::string& model, uint64_t first, uint64_t count) {
  v1::UpdateRequest request;
  request.set_model(model);
  for (const v1::Sample& row : NumberedSamples(first, count)) *request.add_samples() = row;
  return request;
}

TEST(OnlineUpdateService, StreamUnaryAndMatrixGiveTheSameModel) {
  InProcessServer server;
  constexpr uint64_t kRows = 480;
  for (const char* name : {"unary", "stream", "matrix", "singly"}) {
    server->Create(name, SmallConfig("logistic"));
  }
  v1::UpdateResponse response;
  ASSERT_TRUE(server->Update(Rows("unary", 1, kRows), &response).ok());
  EXPECT_EQ(response.sequence(), kRows);

  StreamSession stream(*server.operator->(), OpenStream("stream", "p"));
  stream.Opened();
  for (uint64_t first = 1; first <= kRows; first += 48) stream.Send(Batch(first, 48, true));
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_EQ(stream.acks().size(), kRows / 48);

  v1::UpdateRequest matrix;
  matrix.set_model("matrix");
  *matrix.mutable_matrix() = AsMatrix(NumberedSamples(1, kRows), /*with_targets=*/true);
  ASSERT_TRUE(server->Update(matrix, &response).ok());

  StreamSession singly(*server.operator->(), OpenStream("singly", ""));
  singly.Opened();
  std::thread writer([&singly] {
    for (uint64_t row = 1; row <= kRows; ++row) singly.Send(Batch(row, 1));
    singly.HalfClose();
  });
  for (uint64_t row = 1; row <= kRows; ++row) {
    const auto ack = singly.ReadAck();
    ASSERT_TRUE(ack.has_value());
    EXPECT_EQ(ack->next_producer_sequence(), row + 1);
    EXPECT_EQ(ack->sequence(), row);
  }
  writer.join();

  std::map<std::string, std::string> fingerprints;
  for (const char* name : {"unary", "stream", "matrix", "singly"}) {
    server->WaitForSequence(name, kRows);
    const v1::ModelState state = server->Get(name).state();
    EXPECT_EQ(state.rows_learned(), kRows);
    EXPECT_EQ(state.phase(), v1::PHASE_LEARNING);
    fingerprints[name] = state.fingerprint();
  }
  EXPECT_EQ(fingerprints["unary"].size(), 32u);
  EXPECT_EQ(fingerprints["stream"], fingerprints["unary"]);
  EXPECT_EQ(fingerprints["matrix"], fingerprints["unary"]);
  EXPECT_EQ(fingerprints["singly"], fingerprints["unary"]);
}

TEST(OnlineUpdateService, AppliedRowsAreInTheNextPrediction) {
  InProcessServer server;
  v1::ModelConfig config = SmallConfig("square");
  config.mutable_max_batch_delay()->set_seconds(0);
  server->Create("m", config);
  v1::UpdateRequest update = Rows("m", 1, 100);
  update.set_ack(v1::ACK_LEVEL_APPLIED);
  v1::UpdateResponse response;
  ASSERT_TRUE(server->Update(update, &response).ok());
  EXPECT_EQ(response.rows_accepted(), 100u);
  v1::PredictRequest predict;
  predict.set_model("m");
  *predict.add_instances() = NumberedSample(1).features();
  v1::PredictResponse prediction;
  ASSERT_TRUE(server->Predict(predict, &prediction).ok());
  EXPECT_GE(prediction.sequence(), response.sequence());
  EXPECT_GE(prediction.step(), response.step());
  ASSERT_EQ(prediction.predictions_size(), 1);
  EXPECT_EQ(prediction.predictions(0).scores_size(), 1);

  // Durable only: min_sequence waits for the rows.
  update = Rows("m", 101, 50);
  ASSERT_TRUE(server->Update(update, &response).ok());
  predict.set_min_sequence(response.sequence());
  ASSERT_TRUE(server->Predict(predict, &prediction).ok());
  EXPECT_GE(prediction.sequence(), 150u);
}

// What a person would pin, or wonder about, is in the answer: of all outputs, and of the learner
// that is served.
TEST(ModelService, ReportsEverythingThatWasChosen) {
  InProcessServer server;
  const auto resolved = [&](const std::string& name, const v1::UpdateRequest& rows) {
    v1::UpdateResponse response;
    const grpc::Status status = server->Update(rows, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    server->WaitForSequence(name, response.sequence());
    return server->Get(name).state().resolved();
  };
  server->Create("two", SmallConfig("square"));
  v1::UpdateRequest rows = Rows("two", 1, 320);
  for (v1::Sample& row : *rows.mutable_samples()) {
    const double target = row.value();
    row.mutable_vector()->add_values(target);
    row.mutable_vector()->add_values(100 + 10 * target);
  }
  const v1::ResolvedConfig two = resolved("two", rows);
  ASSERT_EQ(two.target_offsets_size(), 2);
  ASSERT_EQ(two.target_scales_size(), 2);
  EXPECT_EQ(two.target_offsets(0), two.target_offset());
  EXPECT_EQ(two.target_scales(0), two.target_scale());
  EXPECT_NEAR(two.target_scales(1), 10 * two.target_scales(0), 1e-6);
  ASSERT_EQ(two.input_scales_size(), static_cast<int>(two.dimension()));
  ASSERT_EQ(two.input_offsets_size(), two.input_scales_size());
  // All of it can be given in turn, and gives the same predictions.
  v1::ModelConfig again = server->Get("two").config();
  *again.mutable_input()->mutable_offsets() = two.input_offsets();
  *again.mutable_input()->mutable_scales() = two.input_scales();
  *again.mutable_target_offsets() = two.target_offsets();
  *again.mutable_target_scales() = two.target_scales();
  server->Create("again", again);
  v1::UpdateRequest same = rows;
  same.set_model("again");
  const v1::ResolvedConfig pinned = resolved("again", same);
  EXPECT_EQ(pinned.DebugString(), two.DebugString());
  // A list is short however many inputs its models have.
  grpc::ClientContext context;
  v1::ListModelsResponse listed;
  ASSERT_TRUE(server->models->ListModels(&context, {}, &listed).ok());
  for (const v1::Model& model : listed.models()) {
    EXPECT_EQ(model.state().resolved().input_scales_size(), 0) << model.name();
    EXPECT_EQ(model.config().input().scales_size(), 0) << model.name();
    EXPECT_GT(model.state().frequencies().bytes(), 0u) << model.name();
    EXPECT_EQ(model.state().frequencies().kept_bytes(), model.state().frequencies().bytes());
    EXPECT_EQ(model.state().resolved().target_scales_size(), 2) << model.name();
  }
  size_t served = 0;
  for (const v1::CandidateReport& candidate : two.candidates()) {
    if (!candidate.served()) continue;
    ++served;
    EXPECT_EQ(two.served_bandwidth(), candidate.bandwidth());
    EXPECT_EQ(two.served_step_constant(), candidate.step_constant());
    EXPECT_EQ(two.served_metric(), candidate.metric());
  }
  EXPECT_EQ(served, 1u);

  server->Create("novel", SmallConfig("novelty"));
  rows = Rows("novel", 1, 320);
  for (v1::Sample& row : *rows.mutable_samples()) row.clear_target();
  EXPECT_GT(resolved("novel", rows).threshold(), 0);
}

TEST(PredictionService, MinSequenceThatIsNotReachedInTimeSaysHowFarItIs) {
  InProcessServer server;
  server->Create("m", SmallConfig("square"));
  v1::UpdateResponse response;
  ASSERT_TRUE(server->Update(Rows("m", 1, 5), &response).ok());
  v1::PredictRequest predict;
  predict.set_model("m");
  predict.set_min_sequence(5);  // not a full mini-batch, so not for an hour
  *predict.add_instances() = NumberedSample(1).features();
  v1::PredictResponse prediction;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
  const grpc::Status status = server->predictions->Predict(&context, predict, &prediction);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("min_sequence 5"));

  // A caller that goes away is forgotten; the model goes on.
  grpc::ClientContext cancelled;
  std::thread canceller([&cancelled] { cancelled.TryCancel(); });
  EXPECT_EQ(server->predictions->Predict(&cancelled, predict, &prediction).error_code(),
            grpc::StatusCode::CANCELLED);
  canceller.join();
  ASSERT_TRUE(server->Update(Rows("m", 6, 11), &response).ok());
  server->WaitForSequence("m", 16);
}

TEST(OnlineUpdateService, ARepeatedRequestIdIsLearnedOnceAlsoAfterARestart) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  v1::UpdateRequest update = Rows("m", 1, 16);
  update.set_request_id("once");
  v1::UpdateResponse first, second, third;
  ASSERT_TRUE(server->Update(update, &first).ok());
  EXPECT_FALSE(first.duplicate());
  ASSERT_TRUE(server->Update(update, &second).ok());
  server.Restart();
  server->WaitForSequence("m", 16);
  ASSERT_TRUE(server->Update(update, &third).ok());
  for (const v1::UpdateResponse& again : {second, third}) {
    EXPECT_TRUE(again.duplicate());
    EXPECT_EQ(again.sequence(), first.sequence());
    EXPECT_EQ(again.rows_accepted(), 16u);
  }
  EXPECT_EQ(server->Get("m").state().rows_learned(), 16u);
}

TEST(OnlineUpdateService, AProducerResumesWhereTheLogEndsAndGapsAreRefused) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  {
    StreamSession stream(*server.operator->(), OpenStream("m", "p"));
    EXPECT_EQ(stream.Opened().next_producer_sequence(), 1u);
    stream.Send(Batch(1, 10));
    stream.Send(Batch(11, 10));
    ASSERT_TRUE(stream.Finish().ok());
  }
  server.Restart();
  server->WaitForSequence("m", 16);
  {
    StreamSession stream(*server.operator->(), OpenStream("m", "p"));
    EXPECT_EQ(stream.Opened().next_producer_sequence(), 21u);
    stream.Send(Batch(11, 20, true));  // ten of them known
    const auto ack = stream.ReadAck();
    ASSERT_TRUE(ack.has_value());
    EXPECT_EQ(ack->next_producer_sequence(), 31u);
    EXPECT_EQ(ack->sequence(), 30u);
    stream.Send(Batch(40, 1, true));
    const grpc::Status gap = stream.Finish();
    EXPECT_EQ(gap.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(gap.error_message(), HasSubstr("31"));
  }
  v1::UpdateRequest update = Rows("m", 25, 8);
  update.set_producer_id("p");
  update.set_producer_sequence(25);
  v1::UpdateResponse response;
  ASSERT_TRUE(server->Update(update, &response).ok());
  EXPECT_EQ(response.rows_accepted(), 2u);
  EXPECT_EQ(response.next_producer_sequence(), 33u);
  server->WaitForSequence("m", 32);
  EXPECT_EQ(server->Get("m").state().rows_learned(), 32u);

  // The same rows in one piece give the same model.
  server->Create("whole", SmallConfig("logistic"));
  ASSERT_TRUE(server->Update(Rows("whole", 1, 32), &response).ok());
  server->WaitForSequence("whole", 32);
  EXPECT_EQ(server->Get("m").state().fingerprint(), server->Get("whole").state().fingerprint());
}

TEST(OnlineUpdateService, SendersThatContradictThemselvesAreTold) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  struct Case {
    const char* field;
    std::function<void(v1::UpdateRequest&)> change;
  };
  const std::vector<Case> cases = {
      {"request_id", [](auto& r) { r.set_request_id("a"), r.set_producer_id("b"); }},
      {"request_id", [](auto& r) { r.set_request_id(std::string(129, 'a')); }},
      {"producer_id", [](auto& r) { r.set_producer_id(std::string(129, 'a')); }},
      {"producer_sequence", [](auto& r) { r.set_producer_sequence(1); }},
      {"producer_sequence", [](auto& r) { r.set_producer_id("p"); }},
      {"producer_sequence",
       [](auto& r) { r.set_producer_id("p"), r.set_producer_sequence(UINT64_MAX); }},
      {"ack", [](auto& r) { r.set_ack(static_cast<v1::AckLevel>(9)); }},
      {"model", [](auto& r) { r.clear_model(); }},
  };
  for (const Case& one : cases) {
    v1::UpdateRequest request = Rows("m", 1, 2);
    one.change(request);
    v1::UpdateResponse response;
    const grpc::Status status = server->Update(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(status), one.field) << status.error_message();
  }
}

// A queue of 64 rows, which is also a mini-batch: it is cut early once somebody was refused.
TEST(OnlineUpdateService, AFullQueueRefusesCallsAndHoldsStreamsBack) {
  server::HostingOptions hosting;
  hosting.max_pending_rows = 64;
  InProcessServer server(hosting);
  v1::ModelConfig config = SmallConfig("logistic");
  config.set_batch_rows(64);
  server->Create("m", config);
  v1::UpdateResponse response;
  ASSERT_TRUE(server->Update(Rows("m", 1, 48), &response).ok());
  const grpc::Status full = server->Update(Rows("m", 49, 30), &response);
  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  google::rpc::RetryInfo retry;
  EXPECT_TRUE(FindDetail(DetailsOf(full), &retry));
  const grpc::Status never = server->Update(Rows("m", 49, 65), &response);
  EXPECT_EQ(never.error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  // The stream's first batch waits if it does not fit yet, and is taken when there is room.
  StreamSession stream(*server.operator->(), OpenStream("m", "p"));
  EXPECT_EQ(stream.Opened().max_in_flight_rows(), 16u);
  stream.Send(Batch(49, 32));
  while (!server->Update(Rows("m", 1, 16), &response).ok()) sched_yield();
  const auto ack = stream.ReadAck();
  ASSERT_TRUE(ack.has_value());
  // The call's 16 rows or the stream's 32 first: that is open. Neither is lost.
  EXPECT_TRUE(ack->sequence() == 80 || ack->sequence() == 96) << ack->sequence();
  // Many more rows than the queue holds go through it.
  std::thread writer([&stream] {
    for (int i = 0; i < 200; ++i) stream.Send(Batch(1, 16));
    stream.HalfClose();
  });
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(stream.ReadAck().has_value()) << i;
  writer.join();
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(stream.acks().back().sequence(), 96u + 200 * 16);
}

TEST(OnlineUpdateService, CancellingAtAnyPointHarmsNothing) {
  server::HostingOptions hosting;
  hosting.max_pending_rows = 64;
  InProcessServer server(hosting);
  server->Create("m", SmallConfig("logistic"));
  for (int batches = 0; batches < 40; ++batches) {
    Connection connection(server.address());
    StreamSession stream(connection,
                         OpenStream("m", absl::StrCat("p", batches), v1::ACK_LEVEL_APPLIED));
    if (batches % 3 != 0) stream.Opened();
    for (int i = 0; i < batches % 7; ++i) stream.Send(Batch(1, 11));
    if (batches % 2 == 0) stream.HalfClose();
    stream.Cancel();
    stream.Finish();
  }
  // Still there, and the queue's room was given back.
  StreamSession stream(*server.operator->(), OpenStream("m", "last"));
  stream.Opened();
  for (int i = 0; i < 20; ++i) {
    stream.Send(Batch(1, 16));
    ASSERT_TRUE(stream.ReadAck().has_value());
  }
  EXPECT_TRUE(stream.Finish().ok());
}

TEST(OnlineUpdateService, ACallerThatDoesNotReadIsNotReadFrom) {
  InProcessServer server;
  v1::ModelConfig config = SmallConfig("logistic");
  config.set_batch_rows(1);
  server->Create("m", config);
  StreamSession stream(*server.operator->(), OpenStream("m", ""));
  stream.Opened();
  // Acks pile up to a bound, then the writer is held back by flow control until they are read.
  static constexpr int kBatches = 20000;
  absl::Notification written;
  std::thread writer([&] {
    for (int i = 0; i < kBatches; ++i) stream.Send(Batch(1, 1));
    written.Notify();
  });
  int acks = 0;
  while (acks < kBatches && stream.ReadAck().has_value()) ++acks;
  written.WaitForNotification();
  writer.join();
  EXPECT_EQ(acks, kBatches);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST(OnlineUpdateService, EightStreamsAtOnceLoseNothing) {
  InProcessServer server;
  v1::ModelConfig config = SmallConfig("logistic");
  config.mutable_max_batch_delay()->set_seconds(0);
  server->Create("m", config);
  static constexpr uint64_t kStreams = 8, kBatches = 40, kRows = 13;
  std::vector<std::thread> senders;
  for (uint64_t s = 0; s < kStreams; ++s) {
    senders.emplace_back([&server, s] {
      Connection connection(server.address());
      StreamSession stream(connection,
                           OpenStream("m", absl::StrCat("p", s), v1::ACK_LEVEL_APPLIED));
      stream.Opened();
      for (uint64_t b = 0; b < kBatches; ++b) stream.Send(Batch(1 + b * kRows, kRows));
      EXPECT_TRUE(stream.Finish().ok());
      EXPECT_EQ(stream.acks().size(), kBatches);
    });
  }
  std::thread reader([&server] {
    Connection connection(server.address());
    v1::PredictRequest request;
    request.set_model("m");
    *request.add_instances() = NumberedSample(1).features();
    uint64_t last_step = 0;
    for (int i = 0; i < 200; ++i) {
      v1::PredictResponse response;
      const grpc::Status status = connection.Predict(request, &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_GE(response.step(), last_step);
      last_step = response.step();
    }
  });
  for (std::thread& sender : senders) sender.join();
  reader.join();
  const v1::ModelState state = server->Get("m").state();
  EXPECT_EQ(state.rows_learned(), kStreams * kBatches * kRows);
  EXPECT_EQ(state.sequence(), kStreams * kBatches * kRows);
}

TEST(PredictionService, EvaluateGivesTheDocumentedMetricsOfOneSnapshot) {
  InProcessServer server;
  v1::UpdateResponse updated;
  for (const char* loss : {"logistic", "hinge", "square"}) {
    server->Create(loss, SmallConfig(loss));
    ASSERT_TRUE(server->Update(Rows(loss, 1, 1600), &updated).ok());
    server->WaitForSequence(loss, 1600);
    grpc::ClientContext context;
    v1::EvaluateResponse response;
    auto writer = server->predictions->Evaluate(&context, &response);
    for (int message = 0; message < 3; ++message) {
      v1::EvaluateRequest request;
      if (message == 0) request.set_model(loss);
      for (const v1::Sample& row : NumberedSamples(5000 + 100 * message, 100)) {
        *request.add_samples() = row;
      }
      writer->Write(request);
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.rows(), 300u);
    EXPECT_EQ(response.sequence(), 1600u);
    const std::map<std::string, double> metrics(response.metrics().begin(),
                                                response.metrics().end());
    std::vector<std::string> names;
    for (const auto& [name, value] : metrics) names.push_back(name);
    if (std::string(loss) == "square") {
      EXPECT_THAT(
          names, ::testing::ElementsAre("loss", "mean_absolute_error", "mean_squared_error", "r2"));
      EXPECT_GT(metrics.at("r2"), 0.3);
    } else if (std::string(loss) == "logistic") {
      EXPECT_THAT(names, ::testing::ElementsAre("auc", "calibration_error", "error_rate", "f1",
                                                "log_loss", "loss", "macro_f1"));
      EXPECT_NEAR(metrics.at("log_loss"), metrics.at("loss"), 1e-9);
    } else {
      EXPECT_THAT(names, ::testing::ElementsAre("auc", "error_rate", "f1", "loss", "macro_f1"));
    }
    if (metrics.contains("error_rate")) {
      EXPECT_LT(metrics.at("error_rate"), 0.2);
      EXPECT_GT(metrics.at("auc"), 0.85);
      ASSERT_EQ(response.classes_size(), 2);
      EXPECT_EQ(response.classes(1).label(), "1");
      EXPECT_EQ(response.classes(1).f1(), metrics.at("f1"));
      EXPECT_EQ(response.classes(0).weight() + response.classes(1).weight(), 300);
    }
  }
}

// Two normal populations of means 1 and -1, two inputs: a divergence of 4.
TEST(PredictionService, TheDivergenceOfADensityRatioIsEvaluatedAndInTheModelsState) {
  InProcessServer server;
  server->Create("ratio", SmallConfig("density_ratio"));
  Random random(17);
  const auto rows = [&random](auto& request, size_t count) {
    request.set_model("ratio");
    for (size_t i = 0; i < count; ++i) {
      const bool is_p = i % 2 == 0;
      std::vector<float> x(2);
      for (float& value : x) value = static_cast<float>((is_p ? 1 : -1) + random.Normal());
      v1::Sample& sample = *request.add_samples() = DenseSample(x, 0);
      sample.set_population(is_p ? v1::POPULATION_NUMERATOR : v1::POPULATION_DENOMINATOR);
    }
  };
  v1::UpdateRequest update;
  rows(update, 2000);
  v1::UpdateResponse updated;
  const grpc::Status learned = server->Update(update, &updated);
  ASSERT_TRUE(learned.ok()) << learned.error_message();
  server->WaitForSequence("ratio", 2000);
  grpc::ClientContext context;
  v1::EvaluateResponse evaluated;
  auto writer = server->predictions->Evaluate(&context, &evaluated);
  v1::EvaluateRequest request;
  rows(request, 1000);
  writer->Write(request);
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  const v1::ValidationMetrics validation = server->Get("ratio").state().validation();
  for (const auto& values : {evaluated.metrics(), validation.recent().values()}) {
    ASSERT_TRUE(values.contains("divergence"));
    EXPECT_GT(values.at("divergence"), 1);
    EXPECT_LT(values.at("divergence"), 6);
  }
}

TEST(PredictionService, EvaluateNamesItsBadRows) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  const auto evaluate = [&server](const std::vector<v1::EvaluateRequest>& requests) {
    grpc::ClientContext context;
    v1::EvaluateResponse response;
    auto writer = server->predictions->Evaluate(&context, &response);
    for (const v1::EvaluateRequest& request : requests) writer->Write(request);
    writer->WritesDone();
    return writer->Finish();
  };
  v1::EvaluateRequest request;
  EXPECT_EQ(FieldOf(evaluate({})), "samples");
  EXPECT_EQ(FieldOf(evaluate({request})), "model");
  request.set_model("m");
  EXPECT_EQ(FieldOf(evaluate({request})), "samples");
  *request.add_samples() = NumberedSample(1);
  *request.add_samples() = DenseSample({1, 2, 3}, 1);
  EXPECT_EQ(FieldOf(evaluate({request})), "samples[1].features.dense.values");
  request.mutable_samples(1)->mutable_features()->mutable_dense()->mutable_values()->RemoveLast();
  EXPECT_TRUE(evaluate({request}).ok());
  request.mutable_samples(1)->clear_target();
  EXPECT_EQ(FieldOf(evaluate({request})), "samples[1].value");
}

TEST(PredictionService, LargeRequestsGiveTheSameAnswersAsSmallOnes) {
  InProcessServer server;
  server->Create("m", SmallConfig("softmax"));
  v1::UpdateResponse updated;
  ASSERT_TRUE(server->Update(Rows("m", 1, 640), &updated).ok());
  server->WaitForSequence("m", 640);
  constexpr uint64_t kRows = 3000;  // well beyond what is evaluated inline
  v1::PredictRequest large;
  large.set_model("m");
  for (const auto output : {v1::PREDICTION_OUTPUT_SCORE, v1::PREDICTION_OUTPUT_LABEL,
                            v1::PREDICTION_OUTPUT_PROBABILITIES}) {
    large.add_outputs(output);
  }
  v1::PredictRequest matrix = large;
  *matrix.mutable_matrix() = AsMatrix(NumberedSamples(1, kRows), /*with_targets=*/false);
  for (const v1::Sample& row : NumberedSamples(1, kRows)) *large.add_instances() = row.features();
  v1::PredictResponse answer, from_matrix;
  ASSERT_TRUE(server->Predict(large, &answer).ok());
  ASSERT_TRUE(server->Predict(matrix, &from_matrix).ok());
  EXPECT_EQ(answer.SerializeAsString(), from_matrix.SerializeAsString());
  for (const int row : {0, 1, 1500, 2999}) {
    v1::PredictRequest one = large;
    one.clear_instances();
    *one.add_instances() = large.instances(row);
    v1::PredictResponse small;
    ASSERT_TRUE(server->Predict(one, &small).ok());
    EXPECT_EQ(small.predictions(0).SerializeAsString(),
              answer.predictions(row).SerializeAsString());
    double sum = 0;
    for (const auto& probability : small.predictions(0).probabilities()) sum += probability.value();
    EXPECT_NEAR(sum, 1, 1e-9);
  }
}

}  // namespace
}  // namespace kernelstream::support
