// StreamPredict over a real connection: order, the same bits as Predict, waiting, cancelling,
// back-pressure, models that go away, a server that stops.
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kLarge = 3000;  // rows, well beyond what is evaluated on gRPC's threads

v1::StreamPredictRequest Instances(const std::string& model, uint64_t first, uint64_t count) {
  v1::StreamPredictRequest request;
  request.set_model(model);
  for (const v1::Sample& row : NumberedSamples(first, count)) {
    *request.add_instances() = row.features();
  }
  return request;
}

v1::StreamPredictRequest MatrixOf(const std::string& model, uint64_t first, uint64_t count) {
  v1::StreamPredictRequest request;
  request.set_model(model);
  *request.mutable_matrix() = AsMatrix(NumberedSamples(first, count), /*with_targets=*/false);
  return request;
}

void Learn(Connection& connection, const std::string& model, uint64_t first, uint64_t count) {
  v1::UpdateRequest request;
  request.set_model(model);
  for (const v1::Sample& row : NumberedSamples(first, count)) *request.add_samples() = row;
  v1::UpdateResponse response;
  const grpc::Status status = connection.Update(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
}

// Whether a row of the columns says what a prediction says.
void ExpectRow(const v1::PredictionMatrix& columns, int row, const v1::Prediction& want) {
  const auto part = [&](const google::protobuf::RepeatedField<double>& column) {
    const int width = column.size() / static_cast<int>(columns.rows());
    return std::vector<double>(column.begin() + row * width, column.begin() + (row + 1) * width);
  };
  EXPECT_THAT(part(columns.scores()), ::testing::ElementsAreArray(want.scores()));
  if (!columns.label_indices().empty()) {
    EXPECT_EQ(columns.labels(static_cast<int>(columns.label_indices(row))), want.label());
  }
  const std::vector<double> probabilities = part(columns.probabilities());
  ASSERT_EQ(probabilities.size(), static_cast<size_t>(want.probabilities_size()));
  for (int k = 0; k < want.probabilities_size(); ++k) {
    EXPECT_EQ(columns.labels(k), want.probabilities(k).label());
    EXPECT_EQ(probabilities[static_cast<size_t>(k)], want.probabilities(k).value());
  }
  if (const std::vector<double> values = part(columns.values()); !values.empty()) {
    EXPECT_EQ(values[0], want.value());
    if (want.values_size() > 0) {
      EXPECT_THAT(values, ::testing::ElementsAreArray(want.values()));
    }
  }
  if (!columns.variances().empty()) {
    EXPECT_EQ(std::isnan(columns.variances(row)), !want.has_variance());
    if (want.has_variance()) {
      EXPECT_EQ(columns.variances(row), want.variance());
    }
  }
  if (!columns.interval_lows().empty()) {
    EXPECT_EQ(std::isnan(columns.interval_lows(row)), !want.has_interval());
    if (want.has_interval()) {
      EXPECT_EQ(columns.interval_lows(row), want.interval().low());
      EXPECT_EQ(columns.interval_highs(row), want.interval().high());
    }
  }
}

// Requests small and large, as instances and as matrices, answered with what Predict says about the
// same rows.
void ExpectSameAsPredict(Connection& connection, const std::string& model,
                         const std::vector<v1::PredictionOutput>& outputs) {
  SCOPED_TRACE(model);
  std::vector<v1::StreamPredictRequest> requests = {
      Instances(model, 1, 1),         MatrixOf(model, 2, 1),   MatrixOf(model, 3, kLarge),
      Instances(model, 5000, kLarge), Instances(model, 10, 2), MatrixOf(model, 20, 256)};
  PredictSession stream(connection);
  for (v1::StreamPredictRequest& request : requests) {
    for (const v1::PredictionOutput output : outputs) request.add_outputs(output);
    ASSERT_TRUE(stream.Send(request));
  }
  for (const v1::StreamPredictRequest& request : requests) {
    const auto answer = stream.Read();
    ASSERT_TRUE(answer.has_value());
    v1::PredictRequest same;
    ASSERT_TRUE(same.ParseFromString(request.SerializeAsString()));
    v1::PredictResponse want;
    ASSERT_TRUE(connection.Predict(same, &want).ok());
    EXPECT_EQ(answer->step(), want.step());
    EXPECT_EQ(answer->sequence(), want.sequence());
    EXPECT_EQ(answer->num_features(), want.num_features());
    EXPECT_EQ(answer->model_uid(), want.model_uid());
    ASSERT_EQ(answer->has_matrix(), request.has_matrix());
    if (!request.has_matrix()) {
      ASSERT_EQ(answer->predictions_size(), want.predictions_size());
      for (int i = 0; i < want.predictions_size(); ++i) {
        EXPECT_EQ(answer->predictions(i).SerializeAsString(),
                  want.predictions(i).SerializeAsString());
      }
      continue;
    }
    EXPECT_TRUE(answer->predictions().empty());
    ASSERT_EQ(static_cast<int>(answer->matrix().rows()), want.predictions_size());
    for (int i = 0; i < want.predictions_size(); ++i) {
      ExpectRow(answer->matrix(), i, want.predictions(i));
    }
  }
  const grpc::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(stream.answers(), requests.size());
}

TEST(StreamPredict, AnswersInOrderWithTheBitsOfPredict) {
  InProcessServer server;
  v1::ModelConfig variance = SmallConfig("square");
  variance.mutable_variance()->set_method(v1::VARIANCE_METHOD_EXACT);
  variance.mutable_variance()->set_features(64);
  const std::vector<v1::PredictionOutput> uncertain = {
      v1::PREDICTION_OUTPUT_SCORE, v1::PREDICTION_OUTPUT_VALUE, v1::PREDICTION_OUTPUT_VARIANCE,
      v1::PREDICTION_OUTPUT_PREDICTION_INTERVAL};
  const std::vector<v1::PredictionOutput> likely = {v1::PREDICTION_OUTPUT_PROBABILITIES,
                                                    v1::PREDICTION_OUTPUT_LABEL};
  server->Create("variance", variance);
  for (const char* loss : {"square", "logistic", "softmax"})
    server->Create(loss, SmallConfig(loss));
  // Twice: before the models have met a row, and when they have learned.
  for (const uint64_t rows : {0, 640}) {
    for (const char* model : {"variance", "square", "logistic", "softmax"}) {
      if (rows == 0) continue;
      Learn(*server.operator->(), model, 1, rows);
      server->WaitForSequence(model, rows);
    }
    ExpectSameAsPredict(*server.operator->(), "square", {});
    ExpectSameAsPredict(*server.operator->(), "logistic", {});
    ExpectSameAsPredict(*server.operator->(), "logistic", likely);
    ExpectSameAsPredict(*server.operator->(), "softmax", {});
    ExpectSameAsPredict(*server.operator->(), "softmax", likely);
    ExpectSameAsPredict(*server.operator->(), "variance", uncertain);
  }
}

TEST(StreamPredict, SeveralTargetsAreColumnsOfTheirOwn) {
  InProcessServer server;
  server->Create("m", SmallConfig("square"));
  v1::UpdateRequest update;
  update.set_model("m");
  for (v1::Sample row : NumberedSamples(1, 64)) {
    const auto& x = row.features().dense().values();
    const double sum = x.Get(0) + x.Get(1), difference = x.Get(0) - x.Get(1);
    row.clear_target();
    row.mutable_vector()->add_values(sum);
    row.mutable_vector()->add_values(difference);
    *update.add_samples() = row;
  }
  v1::UpdateResponse updated;
  const grpc::Status status = server->Update(update, &updated);
  ASSERT_TRUE(status.ok()) << status.error_message();
  server->WaitForSequence("m", 64);
  ExpectSameAsPredict(*server.operator->(), "m", {});
}

TEST(StreamPredict, LaterAnswersSeeTheModelLearn) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  PredictSession stream(*server.operator->());
  uint64_t before = 0;
  for (uint64_t round = 1; round <= 5; ++round) {
    Learn(*server.operator->(), "m", 1 + 64 * (round - 1), 64);
    v1::StreamPredictRequest request = MatrixOf("m", 1, 4);
    request.set_min_sequence(64 * round);
    ASSERT_TRUE(stream.Send(request));
    const auto answer = stream.Read();
    ASSERT_TRUE(answer.has_value());
    EXPECT_GE(answer->sequence(), 64 * round);
    EXPECT_GT(answer->step(), before);
    before = answer->step();
  }
  EXPECT_TRUE(stream.Finish().ok());
}

TEST(StreamPredict, ARequestThatWaitsKeepsItsPlace) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  PredictSession stream(*server.operator->());
  v1::StreamPredictRequest waits = Instances("m", 1, 3);
  waits.set_min_sequence(64);
  ASSERT_TRUE(stream.Send(waits));
  ASSERT_TRUE(stream.Send(Instances("m", 1, 2)));
  Learn(*server.operator->(), "m", 1, 64);
  const auto first = stream.Read(), second = stream.Read();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->predictions_size(), 3);
  EXPECT_EQ(first->sequence(), 64u);
  EXPECT_EQ(second->predictions_size(), 2);
  EXPECT_TRUE(stream.Finish().ok());

  PredictSession late(*server.operator->(), absl::Seconds(1));
  waits.set_min_sequence(65);
  ASSERT_TRUE(late.Send(waits));
  const grpc::Status status = late.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("min_sequence 65"));
}

TEST(StreamPredict, AModelDeletedInMidStreamIsNotFoundFromThenOn) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  PredictSession stream(*server.operator->());
  ASSERT_TRUE(stream.Send(MatrixOf("m", 1, 8)));
  ASSERT_TRUE(stream.Read().has_value());
  // One that waits for a row, and then for ever.
  v1::StreamPredictRequest waits = Instances("m", 1, 1);
  waits.set_min_sequence(1);
  PredictSession waiting(*server.operator->());
  ASSERT_TRUE(waiting.Send(Instances("m", 1, 1)));
  ASSERT_TRUE(waiting.Send(waits));
  ASSERT_TRUE(waiting.Read().has_value());
  {
    grpc::ClientContext context;
    v1::DeleteModelRequest request;
    request.set_name("m");
    v1::DeleteModelResponse response;
    ASSERT_TRUE(server->models->DeleteModel(&context, request, &response).ok());
  }
  EXPECT_EQ(waiting.Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  ASSERT_TRUE(stream.Send(MatrixOf("m", 1, 8)));
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  google::rpc::ResourceInfo resource;
  ASSERT_TRUE(FindDetail(DetailsOf(status), &resource));
  EXPECT_EQ(resource.resource_name(), "m");
  EXPECT_EQ(stream.answers(), 1u);
}

TEST(StreamPredict, NoRequestsIsNoError) {
  InProcessServer server;
  PredictSession stream(*server.operator->());
  EXPECT_TRUE(stream.Finish().ok());
}

TEST(StreamPredict, CancellingAtAnyPointHarmsNothing) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  Learn(*server.operator->(), "m", 1, 64);
  server->WaitForSequence("m", 64);
  v1::StreamPredictRequest waits = Instances("m", 1, 1);
  waits.set_min_sequence(1000);
  for (int i = 0; i < 40; ++i) {
    Connection connection(server.address());
    PredictSession stream(connection);
    for (int k = 0; k < i % 7; ++k) {
      stream.Send(k % 2 == 0 ? MatrixOf("m", 1, kLarge) : Instances("m", 1, 2));
    }
    if (i % 5 == 0) stream.Send(waits);
    if (i % 3 == 0 && i % 7 > 0) stream.Read();
    if (i % 2 == 0) stream.HalfClose();
    stream.Cancel();
    stream.Finish();
  }
  ExpectSameAsPredict(*server.operator->(), "m", {});
}

TEST(StreamPredict, ACallerThatDoesNotReadIsNotReadFrom) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  PredictSession stream(*server.operator->());
  // Answers pile up to a bound, then the writer is held back by flow control until they are read.
  static constexpr int kRequests = 4000;
  const v1::StreamPredictRequest request = MatrixOf("m", 1, 256);
  std::thread writer([&] {
    for (int i = 0; i < kRequests; ++i) stream.Send(request);
    stream.HalfClose();
  });
  int answers = 0;
  while (stream.Read().has_value()) ++answers;
  writer.join();
  EXPECT_EQ(answers, kRequests);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST(StreamPredict, StreamsSideBySideGetTheirOwnAnswers) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  static constexpr uint64_t kStreams = 6, kRequests = 60;
  std::vector<std::thread> callers;
  for (uint64_t s = 0; s < kStreams; ++s) {
    callers.emplace_back([&server, s] {
      Connection connection(server.address());
      PredictSession stream(connection);
      std::thread writer([&stream, s] {
        for (uint64_t i = 0; i < kRequests; ++i) {
          stream.Send(i % 3 == 0 ? MatrixOf("m", 1, 1 + (s + i * 37) % kLarge)
                                 : Instances("m", 1, 1 + (s + i) % 5));
        }
        stream.HalfClose();
      });
      for (uint64_t i = 0; i < kRequests; ++i) {
        const auto answer = stream.Read();
        ASSERT_TRUE(answer.has_value());
        if (i % 3 == 0) {
          EXPECT_EQ(answer->matrix().rows(), 1 + (s + i * 37) % kLarge);
        } else {
          EXPECT_EQ(static_cast<uint64_t>(answer->predictions_size()), 1 + (s + i) % 5);
        }
      }
      writer.join();
      EXPECT_TRUE(stream.Finish().ok());
    });
  }
  Learn(*server.operator->(), "m", 1, 640);
  for (std::thread& caller : callers) caller.join();
}

TEST(StreamPredict, AServerThatStopsAnswersWhatItReadAndEndsTheStream) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  Connection other(server.address());
  PredictSession idle(*server.operator->()), busy(other);
  ASSERT_TRUE(idle.Send(Instances("m", 1, 1)));
  ASSERT_TRUE(idle.Read().has_value());
  std::thread writer([&busy] {
    const v1::StreamPredictRequest request = MatrixOf("m", 1, kLarge);
    while (busy.Send(request)) {
    }
  });
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(busy.Read().has_value());
  absl::Duration stop_took;
  std::thread stopper([&server, &stop_took] { stop_took = server.TimeToStop(); });
  while (busy.Read().has_value()) {
  }
  writer.join();
  stopper.join();
  for (PredictSession* stream : {&idle, &busy}) {
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
    google::rpc::RetryInfo retry;
    // Whoever goes on sending may be too slow to hear it: then the status is gRPC's own.
    const std::string& message = status.error_message();
    const bool cut_off = stream == &busy && (absl::StrContains(message, "reset by peer") ||
                                             absl::StrContains(message, "Broken pipe") ||
                                             absl::StrContains(message, "Socket closed"));
    EXPECT_TRUE(cut_off || FindDetail(DetailsOf(status), &retry)) << status.error_message();
  }
  // The server left callers time to hear it.
  EXPECT_GE(stop_took, absl::Milliseconds(100));
}

}  // namespace
}  // namespace kernelstream::support
