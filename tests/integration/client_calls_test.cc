// The unary calls of the client library against the fake server.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/include/kernelstream/client.h"
#include "client/src/convert.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_server.h"

namespace kernelstream::client {
namespace {

using support::FaultPoint;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    ConnectOptions options;
    options.wait = [this](absl::Duration wait) { waits_.push_back(wait); };
    options.max_attempts = 4;
    client_ = Client::Connect(server_.address(), options).value();
  }

  static std::vector<Row> Rows(std::vector<std::vector<float>> values) {
    std::vector<Row> rows;
    for (std::vector<float>& row_values : values) {
      Row& row = rows.emplace_back();
      row.features = DenseFeatures{std::move(row_values)};
      row.target = 1.0;
    }
    return rows;
  }

  support::FakeServer server_;
  std::vector<absl::Duration> waits_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, ConfigComesBackAsItWasGiven) {
  ModelConfig config;
  config.loss = {.name = "logistic", .parameters = {{"a", 1.5}}, .terms = {}};
  const Component rest = {.name = "product", .parameters = {}, .terms = {{1, {"cauchy", {}, {}}}}};
  config.kernel = {.name = "sum",
                   .parameters = {{"bandwidth", 0.5}},
                   .terms = {{2, {"gaussian", {{"bandwidth", 3}}, {}}}, {0.25, rest}}};
  config.update_rule = {.name = "newest_block", .parameters = {{"theta", 2}}, .terms = {}};
  config.dimension = 7;
  config.standardize = Standardize::kOff;
  config.input_offsets = {1, 2};
  config.input_scales = {3, 4};
  config.target_offsets = {5};
  config.target_scales = {6};
  config.labels = {"no", "yes"};
  config.max_labels = 10;
  config.l2_penalty = 0;
  config.averaging = Averaging::kUniform;
  config.seed = 0;
  config.sampler = "iid";
  config.batch_rows = 32;
  config.max_batch_delay = absl::Milliseconds(1500);
  config.block_features = 16;
  config.max_features = 1024;
  config.when_full = WhenFull::kFreeze;
  config.warmup_rows = 100;
  config.variance.method = VarianceMethod::kExact;
  config.variance.features = 512;
  config.variance.noise_variance = 0.5;
  config.variance.coverage = 0.8;
  config.candidates = {.bandwidth_scales = {0.5, 1}, .step_constants = {0.1}};
  config.input_metric = InputMetric::kDiagonal;
  config.feature_form = FeatureForm::kSingle;
  config.replay = {.ratio = 2, .reservoir_rows = 500, .order = StreamOrder::kOrdered};
  config.memory_mib = 64;
  const CreatedModel created = client_->CreateModel("m", config).value();
  EXPECT_TRUE(created.created);
  const ModelConfig& back = created.model.config;
  EXPECT_EQ(back.loss.parameters.at("a"), 1.5);
  EXPECT_EQ(back.kernel.parameters.at("bandwidth"), 0.5);
  ASSERT_EQ(back.kernel.terms.size(), 2u);
  EXPECT_EQ(back.kernel.terms[0].weight, 2);
  EXPECT_EQ(back.kernel.terms[0].component.parameters.at("bandwidth"), 3);
  EXPECT_EQ(back.kernel.terms[1].weight, 0.25);
  EXPECT_EQ(back.kernel.terms[1].component.terms.at(0).component.name, "cauchy");
  EXPECT_EQ(back.update_rule.name, "newest_block");
  EXPECT_EQ(back.dimension, 7u);
  EXPECT_EQ(back.standardize, Standardize::kOff);
  EXPECT_THAT(back.input_offsets, ElementsAre(1, 2));
  EXPECT_THAT(back.input_scales, ElementsAre(3, 4));
  EXPECT_THAT(back.target_offsets, ElementsAre(5));
  EXPECT_THAT(back.target_scales, ElementsAre(6));
  EXPECT_THAT(back.labels, ElementsAre("no", "yes"));
  EXPECT_EQ(back.max_labels, 10u);
  EXPECT_EQ(back.l2_penalty, 0.0);
  EXPECT_EQ(back.averaging, Averaging::kUniform);
  EXPECT_EQ(back.seed, 0u);
  EXPECT_EQ(back.sampler, "iid");
  EXPECT_EQ(back.batch_rows, 32u);
  EXPECT_EQ(back.max_batch_delay, absl::Milliseconds(1500));
  EXPECT_EQ(back.block_features, 16u);
  EXPECT_EQ(back.max_features, 1024u);
  EXPECT_EQ(back.when_full, WhenFull::kFreeze);
  EXPECT_EQ(back.warmup_rows, 100u);
  EXPECT_EQ(back.variance.method, VarianceMethod::kExact);
  EXPECT_EQ(back.variance.features, 512u);
  EXPECT_EQ(back.variance.noise_variance, 0.5);
  EXPECT_EQ(back.variance.coverage, 0.8);
  EXPECT_THAT(back.candidates.bandwidth_scales, ElementsAre(0.5, 1));
  EXPECT_THAT(back.candidates.step_constants, ElementsAre(0.1));
  EXPECT_EQ(back.input_metric, InputMetric::kDiagonal);
  EXPECT_EQ(back.feature_form, FeatureForm::kSingle);
  EXPECT_EQ(back.replay.ratio, 2u);
  EXPECT_EQ(back.replay.reservoir_rows, 500u);
  EXPECT_EQ(back.replay.order, StreamOrder::kOrdered);
  EXPECT_EQ(back.memory_mib, 64u);
  EXPECT_EQ(created.model.phase, Phase::kWarmingUp);
  EXPECT_EQ(created.model.create_time, absl::FromUnixSeconds(1'700'000'000));
  EXPECT_FALSE(client_->CreateModel("m", config)->created);
  config.seed = 1;
  EXPECT_TRUE(absl::IsAlreadyExists(client_->CreateModel("m", config).status()));
}

TEST_F(ClientTest, ServerMessagesAndDetailsComeThrough) {
  ModelConfig config;
  config.loss.name = "logistics";
  const absl::Status status = client_->CreateModel("m", config).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "unknown loss \"logistics\"; known: logistic, square");
  EXPECT_TRUE(status.GetPayload(kErrorDetailsUrl).has_value());
  EXPECT_TRUE(waits_.empty());
}

TEST_F(ClientTest, ListFollowsPages) {
  for (const char* name : {"a", "b", "c"}) server_.AddModel(name);
  const std::vector<ModelInfo> models = client_->ListModels().value();
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].name, "a");
  EXPECT_EQ(models[2].name, "c");
}

TEST_F(ClientTest, DeleteWhoseAnswerWasLostIsDone) {
  server_.AddModel("m");
  server_.Inject(FaultPoint::kCall);
  EXPECT_TRUE(client_->DeleteModel("m").ok());
  EXPECT_TRUE(absl::IsNotFound(client_->DeleteModel("m")));
}

TEST_F(ClientTest, UnavailableIsTriedAgainWithLongerWaits) {
  server_.AddModel("m");
  for (int i = 0; i < 3; ++i) server_.Inject(FaultPoint::kCall);
  EXPECT_TRUE(client_->GetModel("m").ok());
  ASSERT_EQ(waits_.size(), 3u);
  EXPECT_LT(waits_[0], waits_[2]);
  for (int i = 0; i < 4; ++i) server_.Inject(FaultPoint::kCall);
  EXPECT_TRUE(absl::IsUnavailable(client_->GetModel("m").status()));
}

TEST_F(ClientTest, UpdateWhoseAnswerWasLostIsLearnedOnce) {
  server_.AddModel("m");
  server_.Inject(FaultPoint::kAfterLog);
  const UpdateResult result = client_->Update("m", Rows({{1, 2}, {3, 4}})).value();
  EXPECT_TRUE(result.duplicate);
  EXPECT_EQ(result.rows_accepted, 2u);
  EXPECT_EQ(server_.Log("m").size(), 2u);
}

TEST_F(ClientTest, UpdateReportsRefusedRowsByPosition) {
  server_.AddModel("m");
  const UpdateResult result = client_->Update("m", Rows({{1, 2}, {3}, {4, 5}})).value();
  EXPECT_EQ(result.rows_accepted, 2u);
  ASSERT_EQ(result.rejected.size(), 1u);
  EXPECT_EQ(result.rejected[0].row, 1u);
}

TEST_F(ClientTest, EveryKindOfTargetArrivesInAMatrixAndInSamples) {
  server_.AddModel("m");
  const std::vector<Target> targets = {std::monostate(),
                                       2.5,
                                       "yes",
                                       Population::kNumerator,
                                       Population::kDenominator,
                                       std::vector<double>{1, -2, 3}};
  for (const Target& target : targets) {
    std::vector<Row> rows = Rows({{1, 2}, {3, 4}});
    for (Row& row : rows) row.target = target;
    const size_t before = server_.Log("m").size();
    ASSERT_TRUE(client_->Update("m", rows).ok());
    rows[0].weight = 1;  // travels as samples
    ASSERT_TRUE(client_->Update("m", rows).ok());
    const std::vector<support::LoggedRow> log = server_.Log("m");
    ASSERT_EQ(log.size(), before + 4);
    EXPECT_EQ(log[before + 1].sample.SerializeAsString(),
              log[before + 3].sample.SerializeAsString());
    const v1::Sample& sample = log[before + 1].sample;
    switch (target.index()) {
      case 0:
        EXPECT_EQ(sample.target_case(), v1::Sample::TARGET_NOT_SET);
        break;
      case 1:
        EXPECT_EQ(sample.value(), 2.5);
        break;
      case 2:
        EXPECT_EQ(sample.label(), "yes");
        break;
      case 3:
        EXPECT_EQ(sample.population(), std::get<Population>(target) == Population::kNumerator
                                           ? v1::POPULATION_NUMERATOR
                                           : v1::POPULATION_DENOMINATOR);
        break;
      default:
        EXPECT_THAT(sample.vector().values(), ::testing::ElementsAre(1, -2, 3));
    }
  }
}

TEST_F(ClientTest, UpdateTakesOneKindOfIdentity) {
  UpdateOptions options;
  options.request_id = "r";
  options.producer_id = "p";
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Update("m", Rows({{1}}), options).status()));
  options.request_id.clear();
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Update("m", Rows({{1}}), options).status()));
}

TEST_F(ClientTest, PredictsDenseSparseAndMatrixAlike) {
  server_.AddModel("m");
  std::vector<Row> rows = Rows({{1, 2}, {3, -4}});
  PredictOptions options;
  options.outputs = {PredictionOutput::kScore, PredictionOutput::kLabel,
                     PredictionOutput::kProbabilities};
  const PredictResult dense = client_->Predict("m", rows, options).value();
  ASSERT_EQ(dense.predictions.size(), 2u);
  EXPECT_THAT(dense.predictions[0].scores, ElementsAre(3));
  EXPECT_EQ(dense.predictions[1].label, "-1");
  ASSERT_EQ(dense.predictions[0].probabilities.size(), 2u);
  EXPECT_EQ(dense.model_uid, "uid-m");
  rows[1].features = SparseFeatures{{0, 1}, {3, -4}};
  const PredictResult mixed = client_->Predict("m", rows, options).value();
  EXPECT_EQ(mixed.predictions[1].scores, dense.predictions[1].scores);
  const std::vector<float> values = {1, 2, 3, -4};
  const PredictResult matrix =
      client_->Predict("m", Matrix{.rows = 2, .dimension = 2, .values = values}, options).value();
  EXPECT_EQ(matrix.predictions[0].scores, dense.predictions[0].scores);
  EXPECT_TRUE(absl::IsInvalidArgument(
      client_->Predict("m", Matrix{.rows = 3, .dimension = 2, .values = values}).status()));
}

TEST_F(ClientTest, AStreamGivesTheAnswersOfPredict) {
  server_.AddModel("m");
  server_.AddModel("regression", "square");
  PredictOptions likely, uncertain;
  likely.outputs = {PredictionOutput::kScore, PredictionOutput::kLabel,
                    PredictionOutput::kProbabilities};
  uncertain.outputs = {PredictionOutput::kValue, PredictionOutput::kVariance,
                       PredictionOutput::kPredictionInterval};
  for (const auto& [model, options] : {std::pair("m", likely), {"regression", uncertain}}) {
    std::vector<Row> rows = Rows({{1, 2}, {3, -4}, {20, 1}});
    const std::vector<Prediction> want = client_->Predict(model, rows, options)->predictions;
    auto stream = client_->OpenPredictStream(model, options).value();
    ASSERT_TRUE(stream->Send(rows).ok());  // travels as a matrix
    const std::vector<float> values = {1, 2, 3, -4, 20, 1};
    ASSERT_TRUE(stream->Send(Matrix{.rows = 3, .dimension = 2, .values = values}).ok());
    rows[1].features = SparseFeatures{{0, 1}, {3, -4}};
    ASSERT_TRUE(stream->Send(rows).ok());
    EXPECT_EQ(stream->pending(), 3u);
    while (stream->pending() > 0) {
      const PredictResult result = stream->Next().value();
      EXPECT_EQ(result.model_uid, absl::StrCat("uid-", model));
      ASSERT_EQ(result.predictions.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ(ToProto(result.predictions[i]).SerializeAsString(),
                  ToProto(want[i]).SerializeAsString());
      }
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(stream->Next().status()));
    EXPECT_TRUE(
        absl::IsInvalidArgument(stream->Send(Matrix{.rows = 3, .dimension = 3, .values = values})));
  }
}

// Fills the window, then takes and sends in turn.
TEST_F(ClientTest, AStreamOfPredictionsOutlivesConnections) {
  server_.AddModel("m");
  auto stream = client_->OpenPredictStream("m").value();
  server_.Inject(FaultPoint::kBeforeLog, 4);
  server_.Inject(FaultPoint::kBeforeLog, 9, grpc::StatusCode::ABORTED);
  server_.Inject(FaultPoint::kAfterAck, 15, grpc::StatusCode::OK);
  float sent = 0, taken = 0;
  while (taken < 40) {
    while (sent < 40 && stream->pending() < 6) {
      if (sent == 30) {
        server_.Stop();
        server_.Start();
      }
      ASSERT_TRUE(stream->Send(Rows({{++sent}})).ok());
    }
    const absl::StatusOr<PredictResult> result = stream->Next();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(result->predictions[0].scores, ElementsAre(++taken));
  }
  EXPECT_EQ(server_.faults_left(), 0u);
  EXPECT_GE(waits_.size(), 4u);
}

TEST_F(ClientTest, TheFirstFailureEndsAStreamOfPredictionsAfterTheAnswersBefore) {
  server_.AddModel("m");
  server_.Inject(FaultPoint::kBeforeLog, 2, grpc::StatusCode::INVALID_ARGUMENT);
  auto stream = client_->OpenPredictStream("m").value();
  for (int i = 0; i < 5; ++i) stream->Send(Rows({{1}})).IgnoreError();
  EXPECT_TRUE(stream->Next().ok());
  EXPECT_TRUE(stream->Next().ok());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(absl::IsInvalidArgument(stream->Next().status()));
  EXPECT_TRUE(absl::IsInvalidArgument(stream->Send(Rows({{1}}))));
  EXPECT_TRUE(waits_.empty());

  stream = client_->OpenPredictStream("none").value();
  stream->Send(Rows({{1}})).IgnoreError();
  EXPECT_TRUE(absl::IsNotFound(stream->Next().status()));

  // max_attempts is 4.
  stream = client_->OpenPredictStream("m").value();
  for (int i = 0; i < 4; ++i) server_.Inject(FaultPoint::kBeforeLog);
  stream->Send(Rows({{1}})).IgnoreError();
  EXPECT_TRUE(absl::IsUnavailable(stream->Next().status()));
  EXPECT_EQ(waits_.size(), 3u);

  stream = client_->OpenPredictStream("m").value();
  stream->Cancel();
  EXPECT_TRUE(absl::IsCancelled(stream->Send(Rows({{1}}))));
  EXPECT_TRUE(absl::IsCancelled(stream->Next().status()));
}

TEST_F(ClientTest, EvaluatesAllRowsOfASource) {
  server_.AddModel("m");
  int calls = 0;
  const EvaluateResult result = client_
                                    ->Evaluate("m",
                                               [&]() -> absl::StatusOr<std::vector<Row>> {
                                                 if (++calls > 3) return std::vector<Row>();
                                                 return Rows({{1}, {-1}});
                                               })
                                    .value();
  EXPECT_EQ(result.rows, 6u);
  EXPECT_EQ(result.metrics.at("error_rate"), 0.5);
  ASSERT_EQ(result.classes.size(), 1u);
  EXPECT_EQ(result.classes[0].label, "1");
  EXPECT_EQ(result.classes[0].weight, 6);
  EXPECT_EQ(result.classes[0].recall, 0.5);
  EXPECT_TRUE(absl::IsNotFound(client_->Evaluate("none", Rows({{1}})).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Evaluate("m", std::vector<Row>()).status()));
}

TEST_F(ClientTest, SourceErrorsEndAnEvaluation) {
  server_.AddModel("m");
  const absl::Status status = client_
                                  ->Evaluate("m",
                                             []() -> absl::StatusOr<std::vector<Row>> {
                                               return absl::DataLossError("the file is damaged");
                                             })
                                  .status();
  EXPECT_EQ(status.message(), "the file is damaged");
}

TEST_F(ClientTest, CatalogueHasDefaultsWhereThereAreSome) {
  const std::vector<ComponentInfo> kernels = client_->ListKernels().value();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].inputs, "any");
  ASSERT_EQ(kernels[0].parameters.size(), 1u);
  EXPECT_FALSE(kernels[0].parameters[0].default_value.has_value());
  EXPECT_EQ(client_->ListLosses()->size(), 2u);
  const std::vector<ComponentInfo> samplers = client_->ListSamplers().value();
  ASSERT_EQ(samplers.size(), 1u);
  EXPECT_THAT(samplers[0].kernels, ::testing::ElementsAre("gaussian", "matern"));
}

TEST(Client, SaysWhichAddressCannotBeReached) {
  std::string address;
  {
    support::FakeServer server;
    address = server.address();
  }
  ConnectOptions options;
  options.connect_timeout = absl::Milliseconds(50);
  const absl::Status status = Client::Connect(address, options).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(address));
  EXPECT_THAT(std::string(status.message()), HasSubstr("check that kernelstream-server runs"));
  EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect("").status()));
}

}  // namespace
}  // namespace kernelstream::client
