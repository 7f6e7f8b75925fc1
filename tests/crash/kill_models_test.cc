// Models with everything a model can carry under kill -9: candidates, learned metrics, averages, a
// reservoir that turns over, drift, variance, thresholds, labels that appear.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/crash/kills.h"

namespace kernelstream::support {
namespace {

// Generations come at 2048, 4096 and 8192 rows, and all but the best go at 12288.
uint64_t RowsFor(uint64_t kills) { return kBatchRows * (780 + 5 * kills); }
constexpr uint64_t kDriftRow = 5000;

std::vector<float> InputsOf(uint64_t number) {
  return std::get<client::DenseFeatures>(NumberedRow(number).features).values;
}

// In [-1, 1), independent of the inputs.
double NoiseOf(uint64_t number) { return InputsOf(number + (uint64_t{1} << 40))[0]; }

// The sign changes once.
client::Row RegressionRow(uint64_t number) {
  client::Row row = NumberedRow(number);
  const std::vector<float> x = InputsOf(number);
  const double value = std::sin(3 * x[0]) + 0.2 * x[1];
  row.target = (number < kDriftRow ? value : -value) + 0.2 * NoiseOf(number);
  return row;
}

client::Row SeveralTargetsRow(uint64_t number) {
  client::Row row = RegressionRow(number);
  const double value = std::get<double>(row.target);
  row.target = std::vector<double>{value, value * value, 1 - value};
  return row;
}

// One more label every 700 rows.
client::Row LabelledRow(uint64_t number) {
  client::Row row = NumberedRow(number);
  const uint64_t labels = std::min<uint64_t>(3 + number / 700, 12);
  const double share = (InputsOf(number)[0] + 1) / 2;
  row.target = absl::StrCat("label ", static_cast<uint64_t>(share * static_cast<double>(labels)));
  return row;
}

client::Row PopulationRow(uint64_t number) {
  client::Row row = NumberedRow(number);
  const bool numerator = NoiseOf(number) > 0;
  if (numerator) std::get<client::DenseFeatures>(row.features).values[0] += 0.5f;
  row.target = numerator ? client::Population::kNumerator : client::Population::kDenominator;
  return row;
}

client::Row UnlabelledRow(uint64_t number) {
  client::Row row = NumberedRow(number);
  row.target = std::monostate();
  return row;
}

// Named inputs, some of which never come again.
client::Row NamedRow(uint64_t number) {
  client::Row row = NumberedRow(number);
  const std::vector<float> x = InputsOf(number);
  row.features =
      client::NamedFeatures{.numbers = {{"first", x[0]}, {absl::StrCat("only in ", number), 0.1}},
                            .categories = {{"second", x[1] > 0 ? "above" : "below"}}};
  return row;
}

v1::ModelConfig HashedConfig() {
  v1::ModelConfig config = SmallConfig("logistic");
  config.mutable_input()->clear_dimension();
  config.mutable_input()->set_hashed(true);
  return config;
}

v1::ModelConfig WithVariance(v1::VarianceMethod method) {
  v1::ModelConfig config = SmallConfig("square");
  config.mutable_variance()->set_method(method);
  config.mutable_variance()->set_features(64);
  return config;
}

// Regressions with every other state of a variance, and every other way to learn.
std::vector<Subject> OtherRegressions() {
  const std::vector<v1::PredictionOutput> interval = {v1::PREDICTION_OUTPUT_VALUE,
                                                      v1::PREDICTION_OUTPUT_PREDICTION_INTERVAL};
  std::vector<v1::PredictionOutput> all = interval;
  all.push_back(v1::PREDICTION_OUTPUT_VARIANCE);
  v1::ModelConfig points = WithVariance(v1::VARIANCE_METHOD_TEST_POINTS);
  for (const float x : {-0.5f, 0.5f}) {
    v1::TestPoint* point = points.mutable_variance()->add_test_points();
    point->add_values(x);
    point->add_values(0.25f);
  }
  v1::ModelConfig ordered = SmallConfig("huber");
  ordered.mutable_replay()->set_order(v1::STREAM_ORDER_ORDERED);
  std::vector<Subject> subjects = {
      {"quantile_pair", WithVariance(v1::VARIANCE_METHOD_QUANTILE_PAIR), RegressionRow, interval},
      {"operator", WithVariance(v1::VARIANCE_METHOD_OPERATOR), RegressionRow, all},
      {"test_points", points, RegressionRow, all},
      {"ordered", ordered, RegressionRow, {}}};
  for (const char* rule : {"newest_block", "block_newton"}) {
    v1::ModelConfig config = SmallConfig("square");
    config.mutable_update_rule()->set_name(rule);
    subjects.push_back({rule, config, RegressionRow, {}});
  }
  return subjects;
}

std::vector<Subject> Subjects() {
  v1::ModelConfig square = WithVariance(v1::VARIANCE_METHOD_EXACT);
  square.mutable_replay()->set_ratio(2);
  square.mutable_replay()->set_reservoir_rows(256);
  v1::ModelConfig softmax = SmallConfig("softmax");
  softmax.mutable_replay()->set_reservoir_rows(512);
  v1::ModelConfig targets = SmallConfig("square");
  targets.mutable_replay()->set_ratio(1);
  return {{"square",
           square,
           RegressionRow,
           {v1::PREDICTION_OUTPUT_VALUE, v1::PREDICTION_OUTPUT_VARIANCE,
            v1::PREDICTION_OUTPUT_PREDICTION_INTERVAL}},
          {"softmax",
           softmax,
           LabelledRow,
           {v1::PREDICTION_OUTPUT_SCORE, v1::PREDICTION_OUTPUT_LABEL,
            v1::PREDICTION_OUTPUT_PROBABILITIES}},
          {"targets", targets, SeveralTargetsRow, {}},
          {"novelty", SmallConfig("novelty"), UnlabelledRow, {}},
          {"density_ratio", SmallConfig("density_ratio"), PopulationRow, {}},
          {"hashed", HashedConfig(), NamedRow, {}}};
}

// Outcomes of the undisturbed models.
std::vector<Outcome> ExpectUndisturbed(const std::vector<Subject>& subjects, const KillPlan& plan) {
  const std::vector<Outcome> outcomes = StreamThroughKills(subjects, plan);
  std::vector<Outcome> expected = StreamUndisturbed(subjects, plan.rows);
  for (size_t i = 0; i < subjects.size(); ++i) {
    SCOPED_TRACE(subjects[i].name);
    ExpectEqual(outcomes[i], expected[i]);
  }
  return expected;
}

TEST_F(KillTest, ModelsOfEveryKindAreTheUndisturbedOnes) {
  const std::vector<Outcome> expected =
      ExpectUndisturbed(Subjects(), {kills_, seed_, RowsFor(kills_)});
  // That there was something to lose.
  const v1::ModelState& square = expected[0].state;
  EXPECT_GE(square.drift_reports(), 1u);
  EXPECT_TRUE(std::any_of(square.resolved().candidates().begin(),
                          square.resolved().candidates().end(),
                          [](const v1::CandidateReport& c) { return c.generation() > 4; }));
  EXPECT_EQ(square.resolved().variance().method(), v1::VARIANCE_METHOD_EXACT);
  EXPECT_EQ(square.resolved().variance().features(), 64u);
  EXPECT_GT(square.resolved().variance().noise_variance(), 0);
  for (const v1::Prediction& prediction : expected[0].predictions.predictions()) {
    EXPECT_GT(prediction.variance(), 0);
    EXPECT_LT(prediction.interval().low(), prediction.interval().high());
  }
  EXPECT_EQ(expected[1].state.resolved().labels_size(), 12);
  EXPECT_NE(expected[3].predictions.predictions(0).value(),
            expected[3].predictions.predictions(0).scores(0));  // the threshold is off 0
}

TEST_F(KillTest, RegressionsOfEveryMethodAreTheUndisturbedOnes) {
  constexpr uint64_t kSteps = 300;  // past the first generation and the change of sign
  const std::vector<Subject> subjects = OtherRegressions();
  const std::vector<Outcome> expected =
      ExpectUndisturbed(subjects, {kills_, seed_, kBatchRows * (kSteps + 5 * kills_)});
  for (size_t i = 0; i < 2; ++i) {
    SCOPED_TRACE(subjects[i].name);
    for (const v1::Prediction& prediction : expected[i].predictions.predictions()) {
      EXPECT_LT(prediction.interval().low(), prediction.interval().high());
    }
  }
}

}  // namespace
}  // namespace kernelstream::support
