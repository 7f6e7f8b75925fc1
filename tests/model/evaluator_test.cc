#include "core/model/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/model/model_support.h"

namespace kernelstream {
namespace {

Ref<Snapshot> Learned(const std::string& loss, size_t rows) {
  const ModelConfig config = SmallConfig(loss);
  const auto trainer = MakeTrainer(config);
  Feed(*trainer, config, MakeRows(loss, rows, 3, 21), 0, rows);
  return trainer->MakeSnapshot();
}

TEST(Evaluator, AucIsExactWithTiesCountingHalf) {
  const Ref<Snapshot> snapshot = Learned("logistic", 640);
  const SampleBatch base = MakeRows("logistic", 300, 3, 22);
  SampleBatch rows = base;
  for (size_t i = 0; i < 300; i += 3) rows.AppendRow(base, i);  // ties
  for (size_t i = 0; i < 40; ++i) {
    rows.AddDense(base.row(i).values);  // ties between the labels
    rows.SetTarget(-base.target(i).value);
    rows.SetWeight(2.5);
  }
  std::vector<double> scores(rows.size());
  snapshot->Score(rows, Inline(), scores.data());
  double pairs = 0, won = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < rows.size(); ++j) {
      if (rows.target(i).value < 0 || rows.target(j).value > 0) continue;
      const double weight = double{rows.weight(i)} * rows.weight(j);
      pairs += weight;
      if (scores[i] > scores[j]) won += weight;
      if (scores[i] == scores[j]) won += weight / 2;
    }
  }
  Evaluator evaluator;
  SampleBatch part;
  for (size_t i = 0; i < rows.size(); ++i) {
    part.AppendRow(rows, i);
    if (part.size() == 97 || i + 1 == rows.size()) {
      EXPECT_EQ(evaluator.Add(*snapshot, part, Inline()), std::nullopt);
      part.Clear();
    }
  }
  EXPECT_EQ(evaluator.rows(), rows.size());
  EXPECT_NEAR(*evaluator.Metrics(*snapshot).auc, won / pairs, 1e-12);
}

TEST(Evaluator, RegressionIsInTargetUnits) {
  const Ref<Snapshot> snapshot = Learned("square", 640);
  const SampleBatch rows = MakeRows("square", 200, 3, 23);
  std::vector<double> scores(rows.size());
  snapshot->Score(rows, Inline(), scores.data());
  double squared = 0, absolute = 0, mean = 0, spread = 0;
  for (size_t i = 0; i < rows.size(); ++i) mean += rows.target(i).value / 200;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double error = snapshot->Link({&scores[i], 1}).value - rows.target(i).value;
    squared += error * error;
    absolute += std::abs(error);
    spread += (rows.target(i).value - mean) * (rows.target(i).value - mean);
  }
  Evaluator evaluator;
  evaluator.Add(*snapshot, rows, Inline());
  const TaskMetrics metrics = evaluator.Metrics(*snapshot);
  EXPECT_NEAR(*metrics.mean_squared_error, squared / 200, 1e-12);
  EXPECT_NEAR(*metrics.mean_absolute_error, absolute / 200, 1e-12);
  EXPECT_NEAR(*metrics.r2, 1 - squared / spread, 1e-12);
}

TEST(Evaluator, IntervalsOfTheSnapshotAreCounted) {
  ModelConfig config = SmallConfig("square");
  config.variance.method = VarianceMethod::kExact;
  config.variance.features = 256;
  config.variance.coverage = 0.8;
  const auto trainer = MakeTrainer(config);
  Feed(*trainer, config, MakeRows("square", 1280, 3, 21), 0, 1280);
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  const SampleBatch rows = MakeRows("square", 400, 3, 25);
  std::vector<double> scores(rows.size());
  std::vector<RowUncertainty> uncertainty(rows.size());
  snapshot->Score(rows, Inline(), scores.data());
  snapshot->Assess(rows, Inline(), uncertainty.data());
  double covered = 0, width = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    Prediction prediction = snapshot->Link({&scores[i], 1});
    snapshot->AddUncertainty(uncertainty[i], prediction);
    const double target = rows.target(i).value;
    covered += prediction.interval->low <= target && target <= prediction.interval->high ? 1 : 0;
    width += prediction.interval->high - prediction.interval->low;
  }
  Evaluator evaluator(config.variance.coverage);
  evaluator.Add(*snapshot, rows, Inline());
  const TaskMetrics metrics = evaluator.Metrics(*snapshot);
  EXPECT_NEAR(*metrics.interval_coverage, covered / 400, 1e-12);
  EXPECT_NEAR(*metrics.interval_width, width / 400, 1e-9);
  EXPECT_NEAR(*metrics.interval_coverage, 0.8, 0.15);
  EXPECT_GT(*metrics.interval_pinball_loss, 0);
}

TEST(Evaluator, SeveralTargetsAreAveragedInTheirUnits) {
  ModelConfig config = SmallConfig("square");
  const auto make = [](size_t count, uint64_t seed) {
    const SampleBatch one = MakeRows("square", count, 3, seed);
    SampleBatch rows;
    for (size_t i = 0; i < count; ++i) {
      rows.AddDense(one.row(i).values);
      rows.SetTargets(std::vector<double>{one.target(i).value, 100 - 20 * one.target(i).value});
    }
    return rows;
  };
  const auto trainer = MakeTrainer(config);
  Feed(*trainer, config, make(640, 26), 0, 640);
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  const SampleBatch rows = make(100, 27);
  std::vector<double> scores(rows.size() * 2);
  snapshot->Score(rows, Inline(), scores.data());
  double squared = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Prediction prediction = snapshot->Link({&scores[2 * i], 2});
    for (size_t k = 0; k < 2; ++k) {
      const double error = prediction.values[k] - rows.target(i).values[k];
      squared += error * error / 200;
    }
  }
  Evaluator evaluator;
  evaluator.Add(*snapshot, rows, Inline());
  EXPECT_NEAR(*evaluator.Metrics(*snapshot).mean_squared_error / squared, 1, 1e-9);
}

TEST(Evaluator, ALabelTheModelHasNotSeenIsAnError) {
  const Ref<Snapshot> snapshot = Learned("softmax", 320);
  SampleBatch rows = MakeRows("softmax", 99, 3, 24);
  rows.AddDense(std::vector<float>{0, 0, 0});
  rows.SetLabel("unheard of");
  Evaluator known, all;
  SampleBatch without = rows;
  without.RemoveLast();
  known.Add(*snapshot, without, Inline());
  all.Add(*snapshot, rows, Inline());
  const TaskMetrics before = known.Metrics(*snapshot), after = all.Metrics(*snapshot);
  EXPECT_EQ(after.unknown_label_rows, 1u);
  EXPECT_EQ(before.unknown_label_rows, 0u);
  EXPECT_EQ(*after.log_loss, *before.log_loss);
  EXPECT_NEAR(*after.error_rate, (*before.error_rate * 99 + 1) / 100, 1e-12);
  EXPECT_EQ(after.classes.size(), 3u);
}

}  // namespace
}  // namespace kernelstream
