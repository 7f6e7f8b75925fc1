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

std::vector<Subject> Subjects() {
  v1::ModelConfig square = SmallConfig("square");
  square.mutable_replay()->set_ratio(2);
  square.mutable_replay()->set_reservoir_rows(256);
  square.mutable_variance()->set_method(v1::VARIANCE_METHOD_EXACT);
  square.mutable_variance()->set_features(64);
  v1::ModelConfig softmax = SmallConfig("softmax");
  softmax.mutable_replay()->set_reservoir_rows(512);
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
          {"novelty", SmallConfig("novelty"), UnlabelledRow, {}},
          {"density_ratio", SmallConfig("density_ratio"), PopulationRow, {}},
          {"hashed", HashedConfig(), NamedRow, {}}};
}

TEST_F(KillTest, ModelsOfEveryKindAreTheUndisturbedOnes) {
  const std::vector<Subject> subjects = Subjects();
  const KillPlan plan = {kills_, seed_, RowsFor(kills_)};
  const std::vector<Outcome> outcomes = StreamThroughKills(subjects, plan);
  const std::vector<Outcome> expected = StreamUndisturbed(subjects, plan.rows);
  for (size_t i = 0; i < subjects.size(); ++i) {
    SCOPED_TRACE(subjects[i].name);
    ExpectEqual(outcomes[i], expected[i]);
  }
  // That there was something to lose.
  const v1::ModelState& square = expected[0].state;
  EXPECT_GE(square.drift_reports(), 1u);
  EXPECT_TRUE(std::any_of(square.resolved().candidates().begin(),
                          square.resolved().candidates().end(),
                          [](const v1::CandidateReport& c) { return c.generation() > 4; }));
  for (const v1::Prediction& prediction : expected[0].predictions.predictions()) {
    EXPECT_GT(prediction.variance(), 0);
    EXPECT_LT(prediction.interval().low(), prediction.interval().high());
  }
  EXPECT_EQ(expected[1].state.resolved().labels_size(), 12);
  EXPECT_NE(expected[2].predictions.predictions(0).value(),
            expected[2].predictions.predictions(0).scores(0));  // the threshold is off 0
}

}  // namespace
}  // namespace kernelstream::support
