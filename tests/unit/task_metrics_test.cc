#include "core/model/task_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/base/component.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kOneScale[] = {1};

std::unique_ptr<const Loss> Make(const std::string& name) {
  ComponentConfig config{name, {}};
  auto loss = MakeLoss(config);
  EXPECT_TRUE(loss.ok()) << loss.status();
  return *std::move(loss);
}

// Rows whose scores say something about their targets, in batches of uneven sizes.
struct Rows {
  std::vector<double> scores, targets, weights;
  size_t outputs = 1;
  std::span<const double> score(size_t i) const {
    return std::span(scores).subspan(i * outputs, outputs);
  }
};

Rows BinaryRows(size_t count, uint64_t seed) {
  Random random(seed);
  Rows rows;
  for (size_t i = 0; i < count; ++i) {
    const double target = random.Uniform() < 0.3 ? 1 : -1;
    rows.targets.push_back(target);
    rows.scores.push_back(target * 0.8 + 1.5 * random.Normal());
    rows.weights.push_back(random.Uniform(0.2, 3));
  }
  return rows;
}

Rows ClassRows(size_t count, size_t classes, uint64_t seed) {
  Random random(seed);
  Rows rows;
  rows.outputs = classes;
  for (size_t i = 0; i < count; ++i) {
    const auto target = static_cast<size_t>(random.Below(classes - 1));  // the last one has no row
    rows.targets.push_back(static_cast<double>(target));
    for (size_t k = 0; k < classes; ++k) {
      rows.scores.push_back((k == target ? 1.0 : 0.0) + random.Normal() - (k == 3 ? 1 : 0));
    }
    rows.weights.push_back(random.Uniform(0.2, 3));
  }
  return rows;
}

Rows ValueRows(size_t count, size_t outputs, uint64_t seed) {
  Random random(seed);
  Rows rows;
  rows.outputs = outputs;
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < outputs; ++k) {
      rows.targets.push_back(5 + static_cast<double>(k) + random.Normal());
      rows.scores.push_back(rows.targets.back() + 0.3 * random.Normal());
    }
    rows.weights.push_back(random.Uniform(0.2, 3));
  }
  return rows;
}

constexpr size_t kBatchRows = 37;

// One span of rows [first, first + count) of what has `width` values per row.
std::span<const double> Part(const std::vector<double>& values, size_t width, size_t first,
                             size_t count) {
  return std::span(values).subspan(first * width, count * width);
}

TaskMetricsState InBatches(const Loss& loss, const Rows& rows, size_t target_width = 1) {
  TaskMetricsState state;
  for (size_t first = 0; first < rows.weights.size(); first += kBatchRows) {
    const size_t count = std::min(kBatchRows, rows.weights.size() - first);
    AddToTaskMetrics(loss, Part(rows.scores, rows.outputs, first, count),
                     Part(rows.targets, target_width, first, count),
                     Part(rows.weights, 1, first, count), state);
  }
  return state;
}

// Weights as the decayed sums should have them: what the batches after a row's own have left.
std::vector<double> DecayedWeights(const Rows& rows) {
  std::vector<double> weights = rows.weights;
  for (size_t first = 0; first < weights.size(); first += kBatchRows) {
    const size_t count = std::min(kBatchRows, weights.size() - first);
    const double window = std::clamp(static_cast<double>(first), 256.0, 4096.0);
    for (size_t i = 0; i < first; ++i) weights[i] *= std::exp(-static_cast<double>(count) / window);
  }
  return weights;
}

double Sum(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

// Both versions against `expect(weights, metrics)`.
template <typename Expect>
void ForBothVersions(const Loss& loss, const Rows& rows, const TaskMetricsState& state,
                     std::span<const double> scales, Expect expect) {
  {
    SCOPED_TRACE("since the start");
    expect(rows.weights, MetricsOf(loss, state.total, scales));
  }
  SCOPED_TRACE("recent");
  expect(DecayedWeights(rows), MetricsOf(loss, state.recent, scales));
}

double Sigmoid(double score) { return 1 / (1 + std::exp(-score)); }

double AucByPairs(const Rows& rows, const std::vector<double>& weights) {
  double pairs = 0, won = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    for (size_t j = 0; j < weights.size(); ++j) {
      if (rows.targets[i] < 0 || rows.targets[j] > 0) continue;
      const double weight = weights[i] * weights[j];
      pairs += weight;
      if (rows.scores[i] > rows.scores[j]) won += weight;
      if (rows.scores[i] == rows.scores[j]) won += weight / 2;
    }
  }
  return won / pairs;
}

TEST(TaskMetrics, BinaryEqualTheirDefinitions) {
  const auto loss = Make("logistic");
  const Rows rows = BinaryRows(1500, 11);
  ForBothVersions(*loss, rows, InBatches(*loss, rows), kOneScale,
                  [&](const std::vector<double>& weights, const TaskMetrics& metrics) {
                    double wrong = 0, log_loss = 0, actual = 0, predicted = 0, both = 0;
                    std::vector<double> bin_error(15, 0.0);
                    for (size_t i = 0; i < weights.size(); ++i) {
                      const bool positive = rows.targets[i] > 0, says = rows.scores[i] > 0;
                      const double p = Sigmoid(rows.scores[i]);
                      wrong += positive != says ? weights[i] : 0;
                      log_loss -= weights[i] * std::log(positive ? p : 1 - p);
                      actual += positive ? weights[i] : 0;
                      predicted += says ? weights[i] : 0;
                      both += positive && says ? weights[i] : 0;
                      const double sure = std::max(p, 1 - p);
                      bin_error[std::min<size_t>(14, static_cast<size_t>(sure * 15))] +=
                          weights[i] * ((positive == says ? 1 : 0) - sure);
                    }
                    double calibration = 0;
                    for (const double error : bin_error) calibration += std::abs(error);
                    const double weight = Sum(weights);
                    const double f1 = 2 * both / (actual + predicted);
                    const double right_first = weight - wrong - both;
                    const double first_f1 =
                        2 * right_first / ((weight - actual) + (weight - predicted));
                    EXPECT_NEAR(*metrics.error_rate, wrong / weight, 1e-12);
                    EXPECT_NEAR(*metrics.log_loss, log_loss / weight, 1e-12);
                    EXPECT_NEAR(*metrics.loss, log_loss / weight, 1e-12);
                    EXPECT_NEAR(*metrics.calibration_error, calibration / weight, 1e-12);
                    EXPECT_NEAR(*metrics.f1, f1, 1e-12);
                    EXPECT_NEAR(*metrics.macro_f1, (f1 + first_f1) / 2, 1e-12);
                    ASSERT_EQ(metrics.classes.size(), 2u);
                    EXPECT_NEAR(metrics.classes[1].weight, actual, 1e-9);
                    EXPECT_NEAR(metrics.classes[1].precision, both / predicted, 1e-12);
                    EXPECT_NEAR(metrics.classes[1].recall, both / actual, 1e-12);
                    EXPECT_NEAR(*metrics.auc, AucByPairs(rows, weights), 1e-3);
                    EXPECT_EQ(metrics.rows, rows.weights.size());
                    EXPECT_FALSE(metrics.mean_squared_error.has_value());
                  });
}

TEST(TaskMetrics, AucIsOffByAtMostHalfThePairsThatShareABin) {
  const auto loss = Make("hinge");
  for (const double spread : {1e-3, 1.0, 1e3}) {
    Rows rows = BinaryRows(600, 12);
    for (double& score : rows.scores) score *= spread;
    MetricSums sums;
    AddToMetricSums(*loss, rows.scores, rows.targets, rows.weights, {}, sums);
    double shared = 0, first = 0, second = 0;
    for (size_t bin = 0; bin < kScoreBins; ++bin) {
      shared += sums.first_scores[bin] * sums.second_scores[bin];
      first += sums.first_scores[bin];
      second += sums.second_scores[bin];
    }
    EXPECT_NEAR(*MetricsOf(*loss, sums, kOneScale).auc, AucByPairs(rows, rows.weights),
                shared / (first * second) / 2 + 1e-12)
        << spread;
  }
}

TEST(TaskMetrics, ClassesEqualTheirDefinitions) {
  constexpr size_t kClasses = 7;
  const auto loss = Make("softmax");
  const Rows rows = ClassRows(1200, kClasses, 13);
  ForBothVersions(*loss, rows, InBatches(*loss, rows), kOneScale,
                  [&](const std::vector<double>& weights, const TaskMetrics& metrics) {
                    double wrong = 0, log_loss = 0;
                    std::vector<double> actual(kClasses, 0.0), predicted = actual, both = actual;
                    std::vector<double> bin_error(15, 0.0);
                    for (size_t i = 0; i < weights.size(); ++i) {
                      const auto scores = rows.score(i);
                      const auto label = static_cast<size_t>(rows.targets[i]);
                      const auto says = static_cast<size_t>(
                          std::max_element(scores.begin(), scores.end()) - scores.begin());
                      double total = 0;
                      for (const double score : scores) total += std::exp(score);
                      log_loss -= weights[i] * std::log(std::exp(scores[label]) / total);
                      actual[label] += weights[i];
                      predicted[says] += weights[i];
                      (label == says ? both[label] : wrong) += weights[i];
                      const double sure = std::exp(scores[says]) / total;
                      bin_error[std::min<size_t>(14, static_cast<size_t>(sure * 15))] +=
                          weights[i] * ((label == says ? 1 : 0) - sure);
                    }
                    double calibration = 0, macro = 0;
                    for (const double error : bin_error) calibration += std::abs(error);
                    ASSERT_EQ(metrics.classes.size(), kClasses);
                    for (size_t k = 0; k < kClasses; ++k) {
                      const double f1 = 2 * both[k] / (actual[k] + predicted[k]);
                      macro += f1 / kClasses;
                      EXPECT_NEAR(metrics.classes[k].f1, f1, 1e-12) << k;
                    }
                    EXPECT_NEAR(*metrics.error_rate, wrong / Sum(weights), 1e-12);
                    EXPECT_NEAR(*metrics.log_loss, log_loss / Sum(weights), 1e-11);
                    EXPECT_NEAR(*metrics.calibration_error, calibration / Sum(weights), 1e-11);
                    EXPECT_NEAR(*metrics.macro_f1, macro, 1e-12);
                    EXPECT_EQ(metrics.classes[kClasses - 1].recall, 0);
                    EXPECT_FALSE(metrics.auc.has_value());
                    EXPECT_FALSE(metrics.f1.has_value());
                  });
}

TEST(TaskMetrics, ClassesGrowAsLabelsAreDiscovered) {
  const auto loss = Make("softmax");
  TaskMetricsState state;
  const double weight[] = {1};
  for (size_t classes = 1; classes <= 40; ++classes) {
    std::vector<double> scores(classes, 0.0);
    scores[classes - 1] = 1;
    const double target[] = {static_cast<double>(classes - 1)};
    AddToTaskMetrics(*loss, scores, target, weight, state);
  }
  const TaskMetrics metrics = MetricsOf(*loss, state.total, kOneScale);
  ASSERT_EQ(metrics.classes.size(), 40u);
  EXPECT_EQ(*metrics.error_rate, 0);
  EXPECT_EQ(*metrics.macro_f1, 1);
}

TEST(TaskMetrics, AnUnknownLabelIsAnErrorAndInNoLoss) {
  for (const std::string name : {"logistic", "softmax"}) {
    const auto loss = Make(name);
    const std::vector<double> scores =
        name == "softmax" ? std::vector<double>{2, -1, 2, -1} : std::vector<double>{-2, -2};
    const double target_of_first = name == "softmax" ? 0 : -1;
    const double targets[] = {target_of_first, kNan}, weights[] = {1, 3};
    MetricSums sums;
    AddToMetricSums(*loss, scores, targets, weights, {}, sums);
    const TaskMetrics metrics = MetricsOf(*loss, sums, kOneScale);
    EXPECT_EQ(metrics.unknown_label_rows, 1u) << name;
    EXPECT_DOUBLE_EQ(*metrics.error_rate, 0.75) << name;
    EXPECT_DOUBLE_EQ(*metrics.loss,
                     loss->Value(std::span(scores).first(scores.size() / 2), target_of_first));
    EXPECT_DOUBLE_EQ(metrics.classes[0].precision, 0.25) << name;
  }
}

TEST(TaskMetrics, RegressionEqualsItsDefinitionsInTargetUnits) {
  const auto loss = Make("square");
  for (const size_t outputs : {1, 3}) {
    const Rows rows = ValueRows(900, outputs, 14);
    const std::vector<double> scales =
        outputs == 1 ? std::vector<double>{2.5} : std::vector<double>{2.5, 0.1, 40};
    ForBothVersions(
        *loss, rows, InBatches(*loss, rows, outputs), scales,
        [&](const std::vector<double>& weights, const TaskMetrics& metrics) {
          const double weight = Sum(weights), count = static_cast<double>(outputs);
          double squared = 0, absolute = 0, r2 = 0, value = 0;
          for (size_t k = 0; k < outputs; ++k) {
            double mean = 0, spread = 0, missed = 0;
            for (size_t i = 0; i < weights.size(); ++i) {
              mean += weights[i] * rows.targets[i * outputs + k] / weight;
            }
            for (size_t i = 0; i < weights.size(); ++i) {
              const double target = rows.targets[i * outputs + k];
              const double error = rows.scores[i * outputs + k] - target;
              missed += weights[i] * error * error;
              absolute += weights[i] * std::abs(error) * scales[k];
              spread += weights[i] * (target - mean) * (target - mean);
            }
            squared += missed * scales[k] * scales[k];
            value += missed / 2;
            r2 += (1 - missed / spread) / count;
          }
          EXPECT_NEAR(*metrics.loss, value / weight / count, 1e-12);
          EXPECT_NEAR(*metrics.mean_squared_error / (squared / weight / count), 1, 1e-12);
          EXPECT_NEAR(*metrics.mean_absolute_error / (absolute / weight / count), 1, 1e-12);
          EXPECT_NEAR(*metrics.r2, r2, 1e-11);
          EXPECT_FALSE(metrics.error_rate.has_value());
          EXPECT_FALSE(metrics.interval_coverage.has_value());
          EXPECT_TRUE(metrics.classes.empty());
        });
  }
}

TEST(TaskMetrics, PinballLossIsTheQuantileLossInTargetUnits) {
  ComponentConfig config{"quantile", {{"level", 0.9}}};
  const auto loss = *MakeLoss(config);
  const std::vector<double> scores = {1, 2}, targets = {3, 1}, weights = {1, 3};
  MetricSums sums;
  AddToMetricSums(*loss, scores, targets, weights, {}, sums);
  const double scale[] = {20};
  const TaskMetrics metrics = MetricsOf(*loss, sums, scale);
  EXPECT_NEAR(*metrics.pinball_loss, 20 * (0.9 * 2 + 3 * 0.1 * 1) / 4, 1e-12);
  EXPECT_FALSE(MetricsOf(*Make("square"), sums, scale).interval_coverage.has_value());
}

TEST(TaskMetrics, EqualTargetsHaveNoR2) {
  const auto loss = Make("square");
  const std::vector<double> scores(50, 0.7), targets(50, 0.1), weights(50, 0.3);
  MetricSums sums;
  AddToMetricSums(*loss, scores, targets, weights, {}, sums);
  const TaskMetrics metrics = MetricsOf(*loss, sums, kOneScale);
  EXPECT_FALSE(metrics.r2.has_value());
  EXPECT_NEAR(*metrics.mean_absolute_error, 0.6, 1e-12);
}

TEST(TaskMetrics, IntervalsCountWhatTheyCover) {
  const auto loss = Make("square");
  const std::vector<double> scores = {0, 0, 0, 0}, targets = {0.5, 2, -3, 9};
  const std::vector<double> weights = {1, 2, 1, 5};
  const std::vector<ScoreInterval> intervals = {
      {-1, 1, 0.8}, {-1, 2, 0.8}, {-1, 1, 0.8}, {kNan, kNan, 0.8}};  // the last row has none
  TaskMetricsState state;
  AddToTaskMetrics(*loss, scores, targets, weights, intervals, state);
  const double scale[] = {10};
  const TaskMetrics metrics = MetricsOf(*loss, state.total, scale);
  EXPECT_DOUBLE_EQ(*metrics.interval_coverage, 3.0 / 4);
  EXPECT_DOUBLE_EQ(*metrics.interval_width, 10 * (2 + 2 * 3 + 2) / 4.0);
  // Levels .1 and .9. Row 1: (.1 * 1.5, .1 * .5); row 2: (.1 * 3, 0); row 3: (.9 * 2, .1 * 4).
  EXPECT_NEAR(*metrics.interval_pinball_loss,
              10 * (0.5 * (0.15 + 0.05) + 2 * 0.5 * 0.3 + 0.5 * (1.8 + 0.4)) / 4, 1e-12);
}

// max(0, threshold - score) - threshold / 10.
class Novelty final : public Loss {
 public:
  Task task() const override { return Task::kNovelty; }
  double Value(std::span<const double> scores, double threshold) const override {
    return std::max(0.0, threshold - scores[0]) - 0.1 * threshold;
  }
  void Derivative(std::span<const double> scores, double threshold,
                  std::span<double> out) const override {
    out[0] = scores[0] < threshold ? -1 : 0;
  }
  double curvature() const override { return 1; }
  absl::Status CheckTarget(double) const override { return absl::OkStatus(); }
};

// exp(score) in the denominator, -score in the numerator.
class Ratio final : public Loss {
 public:
  Task task() const override { return Task::kDensityRatio; }
  double Value(std::span<const double> scores, double target) const override {
    return target > 0 ? -scores[0] : std::exp(scores[0]);
  }
  void Derivative(std::span<const double> scores, double target,
                  std::span<double> out) const override {
    out[0] = target > 0 ? -1 : std::exp(scores[0]);
  }
  double curvature() const override { return 1; }
  absl::Status CheckTarget(double) const override { return absl::OkStatus(); }
};

TEST(TaskMetrics, NoveltyCountsTheRowsBelowTheThresholdOfTheirTime) {
  const Novelty loss;
  const std::vector<double> scores = {0.1, 0.3, 0.5, 0.7}, thresholds = {0.2, 0.2, 0.6, 0.6};
  const std::vector<double> weights = {1, 2, 3, 2};
  MetricSums sums;
  AddToMetricSums(loss, scores, thresholds, weights, {}, sums);
  const TaskMetrics metrics = MetricsOf(loss, sums, kOneScale);
  EXPECT_DOUBLE_EQ(*metrics.fraction_below_threshold, 0.5);
  EXPECT_TRUE(metrics.loss.has_value());
  EXPECT_FALSE(metrics.error_rate.has_value());
}

// Normal populations of means 1 and 0: log ratio x - 1/2, divergence 1/2.
TEST(TaskMetrics, DivergenceOfTheTrueRatioIsThatOfKullbackAndLeibler) {
  const Ratio loss;
  constexpr uint64_t kSeed = 16;
  Random random(kSeed);
  Rows rows;
  for (int i = 0; i < 40000; ++i) {
    const double target = i % 4 == 0 ? 1 : -1;  // not as many of both
    const double x = random.Normal() + (target > 0 ? 1 : 0);
    rows.targets.push_back(target);
    rows.scores.push_back(x - 0.5);
    rows.weights.push_back(random.Uniform(0.5, 1.5));
  }
  const TaskMetricsState state = InBatches(loss, rows);
  EXPECT_NEAR(*MetricsOf(loss, state.total, kOneScale).divergence, 0.5, 0.05) << kSeed;
  EXPECT_NEAR(*MetricsOf(loss, state.recent, kOneScale).divergence, 0.5, 0.15) << kSeed;
  // A constant score tells nothing apart.
  std::fill(rows.scores.begin(), rows.scores.end(), 0.0);
  EXPECT_NEAR(*MetricsOf(loss, InBatches(loss, rows).total, kOneScale).divergence, 0, 1e-9);
  // Nor does one population alone.
  MetricSums one;
  AddToMetricSums(loss, std::vector<double>{1}, std::vector<double>{1}, std::vector<double>{1}, {},
                  one);
  EXPECT_FALSE(MetricsOf(loss, one, kOneScale).divergence.has_value());
}

TEST(TaskMetrics, RecentForgetsWhatTotalKeeps) {
  const auto loss = Make("hinge");
  const std::vector<double> weights(64, 1.0), targets(64, 1.0);
  const std::vector<double> bad(64, -1.0), good(64, 1.0);
  TaskMetricsState state;
  for (int i = 0; i < 1000; ++i) AddToTaskMetrics(*loss, bad, targets, weights, state);
  for (int i = 0; i < 1000; ++i) AddToTaskMetrics(*loss, good, targets, weights, state);
  EXPECT_DOUBLE_EQ(*MetricsOf(*loss, state.total, kOneScale).error_rate, 0.5);
  EXPECT_NEAR(*MetricsOf(*loss, state.recent, kOneScale).error_rate, std::exp(-64000 / 4096.0),
              1e-8);
}

TEST(TaskMetrics, AreAbsentBeforeTheFirstRow) {
  for (const LossEntry& entry : LossRegistry()) {
    const auto loss = Make(std::string(entry.doc.name));
    TaskMetricsState state;
    AddToTaskMetrics(*loss, {}, {}, {}, state);
    EXPECT_TRUE(NamedMetrics(MetricsOf(*loss, state.total, kOneScale)).empty()) << entry.doc.name;
    EXPECT_TRUE(state == TaskMetricsState());
  }
}

TEST(TaskMetrics, AreNamedInTheOrderOfReading) {
  const auto loss = Make("hinge");
  const Rows rows = BinaryRows(50, 15);
  MetricSums sums;
  AddToMetricSums(*loss, rows.scores, rows.targets, rows.weights, {}, sums);
  std::vector<std::string> names;
  for (const NamedMetric& metric : NamedMetrics(MetricsOf(*loss, sums, kOneScale))) {
    names.emplace_back(metric.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "error_rate", "auc", "f1", "macro_f1"}));
}

}  // namespace
}  // namespace kernelstream
