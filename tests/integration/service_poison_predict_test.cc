// Bad rows and requests for predictions: the right code, the right field, no half answers.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(PoisonedPredict, NamesTheFirstBadRowAndAnswersNone) {
  InProcessServer server;
  server->Create("m", SmallConfig("hinge"));
  v1::PredictRequest request;
  request.set_model("m");
  for (int i = 0; i < 4; ++i) *request.add_instances() = NumberedSample(i).features();
  request.mutable_instances(3)->mutable_dense()->set_values(1, kNan);
  v1::PredictResponse response;
  grpc::Status status = server->Predict(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "instances[3].dense.values[1]");
  request.mutable_instances(2)->clear_dense();
  status = server->Predict(request, &response);
  EXPECT_EQ(FieldOf(status), "instances[2]");

  request.clear_instances();
  status = server->Predict(request, &response);
  EXPECT_EQ(FieldOf(status), "instances");
  *request.add_instances() = NumberedSample(1).features();
  for (const auto output : {v1::PREDICTION_OUTPUT_VALUE, v1::PREDICTION_OUTPUT_PROBABILITIES,
                            v1::PREDICTION_OUTPUT_UNSPECIFIED}) {
    request.clear_outputs();
    request.add_outputs(v1::PREDICTION_OUTPUT_SCORE);
    request.add_outputs(output);
    status = server->Predict(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(status), "outputs[1]");
  }
}

// A kernel without a bound, and a row that passes every check of its values.
TEST(PoisonedPredict, ARowWhoseFeaturesOverflowIsRefusedAndLearningIsNotHarmed) {
  InProcessServer server;
  v1::ModelConfig config = SmallConfig("square");
  config.mutable_kernel()->set_name("polynomial");
  (*config.mutable_kernel()->mutable_parameters())["degree"] = 4;
  config.mutable_input()->set_standardize(v1::STANDARDIZE_OFF);
  server->Create("m", config);
  v1::UpdateRequest update;
  update.set_model("m");
  for (const v1::Sample& row : NumberedSamples(1, 160)) *update.add_samples() = row;
  *update.add_samples() = DenseSample({1e14f, -1e14f}, 1);
  for (const v1::Sample& row : NumberedSamples(161, 15)) *update.add_samples() = row;
  v1::UpdateResponse updated;
  ASSERT_TRUE(server->Update(update, &updated).ok());
  server->WaitForSequence("m", 176);

  const v1::Features good = NumberedSample(1).features();
  const v1::Features huge = DenseSample({1e14f, -1e14f}, 0).features();
  v1::PredictRequest request;
  request.set_model("m");
  *request.add_instances() = good;
  v1::PredictResponse response;
  ASSERT_TRUE(server->Predict(request, &response).ok());
  EXPECT_TRUE(std::isfinite(response.predictions(0).value()));
  *request.add_instances() = huge;
  grpc::Status status = server->Predict(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "instances[1]");
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("overflow under kernel \"polynomial\""));

  PredictSession stream(*server.operator->());
  v1::StreamPredictRequest matrix;
  matrix.set_model("m");
  *matrix.mutable_matrix() =
      AsMatrix({NumberedSample(1), DenseSample({1e14f, -1e14f}, 0)}, /*with_targets=*/false);
  stream.Send(matrix);
  status = stream.Finish();
  EXPECT_EQ(FieldOf(status), "matrix.values");
  EXPECT_EQ(stream.answers(), 0u);

  grpc::ClientContext context;
  v1::EvaluateResponse evaluation;
  auto writer = server->predictions->Evaluate(&context, &evaluation);
  v1::EvaluateRequest rows;
  rows.set_model("m");
  *rows.add_samples() = NumberedSample(1);
  *rows.add_samples() = DenseSample({1e14f, -1e14f}, 0);
  writer->Write(rows);
  writer->WritesDone();
  EXPECT_EQ(FieldOf(writer->Finish()), "samples[1].features");
}

// Squares of features that are still finite.
TEST(PoisonedPredict, AVarianceIsAFiniteNumberOrAnError) {
  InProcessServer server;
  v1::ModelConfig config = SmallConfig("square");
  config.mutable_kernel()->set_name("polynomial");
  (*config.mutable_kernel()->mutable_parameters())["degree"] = 4;
  config.mutable_input()->set_standardize(v1::STANDARDIZE_OFF);
  config.mutable_variance()->set_method(v1::VARIANCE_METHOD_EXACT);
  server->Create("m", config);
  v1::UpdateRequest update;
  update.set_model("m");
  for (const v1::Sample& row : NumberedSamples(1, 176)) *update.add_samples() = row;
  v1::UpdateResponse updated;
  ASSERT_TRUE(server->Update(update, &updated).ok());
  server->WaitForSequence("m", 176);

  int refused = 0;
  for (const float size : {1.0f, 1e3f, 1e6f, 1e9f, 1e12f}) {
    v1::PredictRequest request;
    request.set_model("m");
    *request.add_instances() = DenseSample({size, -size}, 0).features();
    request.add_outputs(v1::PREDICTION_OUTPUT_VALUE);
    request.add_outputs(v1::PREDICTION_OUTPUT_VARIANCE);
    request.add_outputs(v1::PREDICTION_OUTPUT_PREDICTION_INTERVAL);
    v1::PredictResponse response;
    const grpc::Status status = server->Predict(request, &response);
    if (status.ok()) {
      const v1::Prediction& answer = response.predictions(0);
      EXPECT_TRUE(std::isfinite(answer.value())) << size;
      EXPECT_TRUE(std::isfinite(answer.variance())) << size;
      EXPECT_TRUE(std::isfinite(answer.interval().low())) << size;
      EXPECT_TRUE(std::isfinite(answer.interval().high())) << size;
    } else {
      ++refused;
      EXPECT_EQ(FieldOf(status), "instances[0]") << size;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 5);
}

// What a request of StreamPredict can have wrong, each after a good one.
TEST(PoisonedPredictStream, TheFirstBadRequestEndsItWithItsFieldAndEarlierOnesAreAnswered) {
  InProcessServer server;
  server->Create("m", SmallConfig("hinge"));
  const v1::Features row = NumberedSample(1).features();
  struct Case {
    const char* what;
    std::function<void(v1::StreamPredictRequest&)> make;
    const char* field;  // "": NOT_FOUND
  };
  const auto set_matrix = [](v1::StreamPredictRequest& r, uint32_t rows, uint32_t dimension,
                             const std::vector<float>& values) {
    r.mutable_matrix()->set_rows(rows);
    r.mutable_matrix()->set_dimension(dimension);
    r.mutable_matrix()->set_values(values.data(), values.size() * sizeof(float));
  };
  const std::vector<Case> cases = {
      {"empty", [](auto& r) { r.Clear(); }, "model"},
      {"no rows", [](auto&) {}, "instances"},
      {"unknown model",
       [&](auto& r) {
         r.set_model("n");
         *r.add_instances() = row;
       },
       ""},
      {"NaN",
       [&](auto& r) {
         for (int i = 0; i < 3; ++i) *r.add_instances() = row;
         r.mutable_instances(2)->mutable_dense()->set_values(1, kNan);
       },
       "instances[2].dense.values[1]"},
      {"Inf in a matrix",
       [&](auto& r) {
         set_matrix(r, 2, 2, {0, 0, 0, kInfinity});
       },
       "matrix.values[3]"},
      {"1e38 in a matrix",
       [&](auto& r) {
         set_matrix(r, 1, 2, {1e38f, 0});
       },
       "matrix.values[0]"},
      {"wrong dimension",
       [&](auto& r) {
         set_matrix(r, 1, 3, {0, 0, 0});
       },
       "matrix.dimension"},
      {"matrix without rows", [&](auto& r) { set_matrix(r, 0, 2, {}); }, "matrix.rows"},
      {"matrix size mismatch", [&](auto& r) { set_matrix(r, 1u << 31, 1u << 31, {0}); },
       "matrix.values"},
      {"targets",
       [&](auto& r) {
         set_matrix(r, 1, 2, {0, 0});
         r.mutable_matrix()->add_targets(1);
       },
       "matrix.targets"},
      {"both",
       [&](auto& r) {
         *r.add_instances() = row;
         set_matrix(r, 1, 2, {0, 0});
       },
       "instances"},
      {"unknown output",
       [&](auto& r) {
         *r.add_instances() = row;
         r.add_outputs(v1::PREDICTION_OUTPUT_SCORE);
         r.add_outputs(static_cast<v1::PredictionOutput>(77));
       },
       "outputs[1]"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    v1::StreamPredictRequest good, bad;
    good.set_model("m");
    one.make(bad = good);
    *good.add_instances() = row;
    PredictSession stream(*server.operator->());
    for (const auto& request : {good, bad, good}) stream.Send(request);
    const grpc::Status status = stream.Finish();
    EXPECT_EQ(status.error_code(), std::string(one.field).empty()
                                       ? grpc::StatusCode::NOT_FOUND
                                       : grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(status), one.field);
    EXPECT_EQ(stream.answers(), 1u);
  }
}

}  // namespace
}  // namespace kernelstream::support
