#include "core/model/task_metrics.h"

#include <algorithm>
#include <cmath>

#include "core/base/portable_math.h"

namespace kernelstream {
namespace {

constexpr double kShortestWindow = 256, kLongestWindow = 4096;
// A probability of zero, as a logarithm can take it.
constexpr double kSmallestProbability = 1e-15;
// Decayed sums below this are dropped: subnormal numbers are slow.
constexpr double kSmallestSum = 1e-30;

void Grow(std::vector<double>& values, size_t size) {
  if (values.size() < size) values.resize(size, 0.0);
}

void Decay(double factor, std::vector<double>& values) {
  for (double& value : values) value = value < kSmallestSum ? 0 : value * factor;
}

void Decay(double factor, MetricSums& sums) {
  for (double* value :
       {&sums.weight, &sums.unknown_rows, &sums.known_weight, &sums.loss, &sums.log_loss,
        &sums.wrong, &sums.interval_weight, &sums.covered, &sums.width, &sums.interval_pinball,
        &sums.population_weight[0], &sums.population_weight[1], &sums.population_loss[0],
        &sums.population_loss[1]}) {
    *value *= factor;
  }
  for (std::vector<double>* values :
       {&sums.class_actual, &sums.class_predicted, &sums.class_correct, &sums.bin_weight,
        &sums.bin_probability, &sums.bin_correct, &sums.first_scores, &sums.second_scores,
        &sums.squared, &sums.absolute, &sums.pinball, &sums.target_spread}) {
    Decay(factor, *values);
  }
}

size_t ScoreBin(double score) {
  const double place = score / (1 + std::abs(score));  // -1 to 1
  const auto bin = static_cast<size_t>((place + 1) * (kScoreBins / 2));
  return std::min(bin, kScoreBins - 1);
}

double Pinball(double level, double difference) {
  return std::max(level * difference, (level - 1) * difference);
}

// Row by row, with the vectors that a task needs already sized.
class Adder {
 public:
  Adder(const Loss& loss, size_t outputs, MetricSums& sums)
      : loss_(loss), outputs_(outputs), sums_(sums) {
    if (loss.task() == Task::kBinary) {
      Grow(sums.first_scores, kScoreBins);
      Grow(sums.second_scores, kScoreBins);
      SizeClasses(2);
    } else if (loss.task() == Task::kMulticlass) {
      SizeClasses(outputs);
    } else if (loss.task() == Task::kRegression) {
      for (std::vector<double>* values :
           {&sums.squared, &sums.absolute, &sums.target_mean, &sums.target_spread}) {
        Grow(*values, outputs);
      }
      if (loss.quantile_level() > 0 || !sums.pinball.empty()) Grow(sums.pinball, outputs);
    }
  }

  void AddClass(std::span<const double> scores, double target, double weight) {
    const bool binary = loss_.task() == Task::kBinary;
    const size_t predicted =
        binary
            ? (scores[0] > 0 ? 1 : 0)
            : static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    sums_.class_predicted[predicted] += weight;
    if (std::isnan(target) || (!binary && target >= static_cast<double>(outputs_))) {
      sums_.unknown_rows += 1;
      sums_.wrong += weight;
      return;
    }
    const size_t label = binary ? (target > 0 ? 1 : 0) : static_cast<size_t>(target);
    const bool correct = predicted == label;
    AddKnown(loss_.Value(scores, target), weight);
    sums_.class_actual[label] += weight;
    if (correct) {
      sums_.class_correct[label] += weight;
    } else {
      sums_.wrong += weight;
    }
    if (binary) {
      (label == 1 ? sums_.second_scores : sums_.first_scores)[ScoreBin(scores[0])] += weight;
    }
    if (!loss_.has_probabilities()) return;
    loss_.Probabilities(scores, probabilities_);
    sums_.log_loss -= weight * PortableLog(std::max(probabilities_[label], kSmallestProbability));
    const double probability = probabilities_[predicted];
    const size_t bin =
        std::min(static_cast<size_t>(probability * kCalibrationBins), kCalibrationBins - 1);
    sums_.bin_weight[bin] += weight;
    sums_.bin_probability[bin] += weight * probability;
    if (correct) sums_.bin_correct[bin] += weight;
  }

  void AddValues(std::span<const double> scores, std::span<const double> targets, double weight) {
    double loss = 0;
    const double share = weight / (sums_.known_weight + weight);
    for (size_t k = 0; k < outputs_; ++k) {
      const double value = loss_.Value(scores.subspan(k, 1), targets[k]);
      const double residual = scores[k] - targets[k];
      loss += value;
      sums_.squared[k] += weight * residual * residual;
      sums_.absolute[k] += weight * std::abs(residual);
      if (!sums_.pinball.empty()) sums_.pinball[k] += weight * value;
      // Running mean and spread of weighted values: West 1979.
      const double step = targets[k] - sums_.target_mean[k];
      sums_.target_mean[k] += step * share;
      sums_.target_spread[k] += weight * step * (targets[k] - sums_.target_mean[k]);
    }
    AddKnown(loss / static_cast<double>(outputs_), weight);
  }

  void AddInterval(const ScoreInterval& interval, double target, double weight) {
    if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return;
    const double below = (1 - interval.coverage) / 2;
    sums_.interval_weight += weight;
    if (interval.low <= target && target <= interval.high) sums_.covered += weight;
    sums_.width += weight * (interval.high - interval.low);
    sums_.interval_pinball +=
        weight *
        (Pinball(below, target - interval.low) + Pinball(1 - below, target - interval.high)) / 2;
  }

  void AddKnown(double loss, double weight) {
    sums_.known_weight += weight;
    sums_.loss += weight * loss;
  }

 private:
  void SizeClasses(size_t classes) {
    for (std::vector<double>* values :
         {&sums_.class_actual, &sums_.class_predicted, &sums_.class_correct}) {
      Grow(*values, classes);
    }
    if (!loss_.has_probabilities()) return;
    probabilities_.resize(classes);
    for (std::vector<double>* values :
         {&sums_.bin_weight, &sums_.bin_probability, &sums_.bin_correct}) {
      Grow(*values, kCalibrationBins);
    }
  }

  const Loss& loss_;
  const size_t outputs_;
  MetricSums& sums_;
  std::vector<double> probabilities_;
};

void FillClasses(const MetricSums& sums, TaskMetrics& metrics) {
  double total_f1 = 0, seen = 0;
  for (size_t c = 0; c < sums.class_actual.size(); ++c) {
    const double actual = sums.class_actual[c], predicted = sums.class_predicted[c];
    const double correct = sums.class_correct[c];
    ClassMetrics& out = metrics.classes.emplace_back();
    out.weight = actual;
    if (predicted > 0) out.precision = correct / predicted;
    if (actual > 0) out.recall = correct / actual;
    if (actual + predicted > 0) {
      out.f1 = 2 * correct / (actual + predicted);
      total_f1 += out.f1;
      seen += 1;
    }
  }
  if (seen > 0) metrics.macro_f1 = total_f1 / seen;
}

void FillClassification(const Loss& loss, const MetricSums& sums, TaskMetrics& metrics) {
  metrics.unknown_label_rows = static_cast<uint64_t>(sums.unknown_rows + 0.5);
  if (sums.weight > 0) metrics.error_rate = sums.wrong / sums.weight;
  FillClasses(sums, metrics);
  if (sums.known_weight > 0 && loss.has_probabilities()) {
    metrics.log_loss = sums.log_loss / sums.known_weight;
    double error = 0;
    for (size_t bin = 0; bin < sums.bin_weight.size(); ++bin) {
      error += std::abs(sums.bin_correct[bin] - sums.bin_probability[bin]);
    }
    metrics.calibration_error = error / sums.known_weight;
  }
  if (loss.task() != Task::kBinary) return;
  if (metrics.classes.size() == 2) metrics.f1 = metrics.classes[1].f1;
  double pairs = 0, first = 0, second = 0;
  for (size_t bin = 0; bin < sums.first_scores.size(); ++bin) {
    pairs += sums.second_scores[bin] * (first + 0.5 * sums.first_scores[bin]);
    first += sums.first_scores[bin];
    second += sums.second_scores[bin];
  }
  if (first > 0 && second > 0) metrics.auc = pairs / (first * second);
}

void FillRegression(const MetricSums& sums, std::span<const double> scales, TaskMetrics& metrics) {
  const size_t outputs = sums.squared.size();
  if (outputs == 0 || !(sums.known_weight > 0)) return;
  double squared = 0, absolute = 0, pinball = 0, r2 = 0, varying = 0;
  for (size_t k = 0; k < outputs; ++k) {
    const double scale = scales.size() == 1 ? scales[0] : scales[k];
    squared += sums.squared[k] * scale * scale;
    absolute += sums.absolute[k] * scale;
    if (!sums.pinball.empty()) pinball += sums.pinball[k] * scale;
    if (sums.target_spread[k] > 0) {
      r2 += 1 - sums.squared[k] / sums.target_spread[k];
      varying += 1;
    }
  }
  const double count = sums.known_weight * static_cast<double>(outputs);
  metrics.mean_squared_error = squared / count;
  metrics.mean_absolute_error = absolute / count;
  if (!sums.pinball.empty()) metrics.pinball_loss = pinball / count;
  if (varying > 0) metrics.r2 = r2 / varying;
  if (sums.interval_weight > 0) {
    metrics.interval_coverage = sums.covered / sums.interval_weight;
    metrics.interval_width = sums.width / sums.interval_weight * scales[0];
    metrics.interval_pinball_loss = sums.interval_pinball / sums.interval_weight * scales[0];
  }
}

void FillDensityRatio(const Loss& loss, const MetricSums& sums, TaskMetrics& metrics) {
  const auto& weight = sums.population_weight;
  if (!(weight[0] > 0 && weight[1] > 0)) return;
  // Of populations that are the same nothing is better than a constant.
  constexpr double kPopulations[] = {-1, 1}, kEqually[] = {1, 1};
  double constant[1];
  loss.BestConstant(kPopulations, kEqually, constant);
  metrics.divergence = loss.Value(constant, -1) + loss.Value(constant, 1) -
                       sums.population_loss[0] / weight[0] - sums.population_loss[1] / weight[1];
}

}  // namespace

bool IsConsistent(const MetricSums& sums) {
  const auto both = [](size_t a, size_t b, size_t bins) { return a == b && (a == 0 || a == bins); };
  return sums.class_actual.size() == sums.class_predicted.size() &&
         sums.class_actual.size() == sums.class_correct.size() &&
         both(sums.bin_weight.size(), sums.bin_probability.size(), kCalibrationBins) &&
         sums.bin_weight.size() == sums.bin_correct.size() &&
         both(sums.first_scores.size(), sums.second_scores.size(), kScoreBins) &&
         sums.squared.size() == sums.absolute.size() &&
         sums.squared.size() == sums.target_mean.size() &&
         sums.squared.size() == sums.target_spread.size() &&
         (sums.pinball.empty() || sums.pinball.size() == sums.squared.size());
}

double RecentDecay(uint64_t rows_before, size_t rows) {
  const double window =
      std::clamp(static_cast<double>(rows_before), kShortestWindow, kLongestWindow);
  return PortableExp(-static_cast<double>(rows) / window);
}

void AddToMetricSums(const Loss& loss, std::span<const double> scores,
                     std::span<const double> targets, std::span<const double> weights,
                     std::span<const ScoreInterval> intervals, MetricSums& sums) {
  const size_t rows = weights.size();
  if (rows == 0) return;
  const size_t outputs = scores.size() / rows;
  Adder adder(loss, outputs, sums);
  for (size_t i = 0; i < rows; ++i) {
    const auto row = scores.subspan(i * outputs, outputs);
    const double weight = weights[i];
    if (loss.task() == Task::kRegression) {
      adder.AddValues(row, targets.subspan(i * outputs, outputs), weight);
      if (!intervals.empty()) adder.AddInterval(intervals[i], targets[i], weight);
    } else if (HasLabels(loss.task())) {
      adder.AddClass(row, targets[i], weight);
    } else if (loss.task() == Task::kNovelty) {
      adder.AddKnown(loss.Value(row, targets[i]), weight);
      if (row[0] < targets[i]) sums.wrong += weight;
    } else {
      const double value = loss.Value(row, targets[i]);
      adder.AddKnown(value, weight);
      const size_t population = targets[i] > 0 ? 1 : 0;
      sums.population_weight[population] += weight;
      sums.population_loss[population] += weight * value;
    }
    sums.weight += weight;
  }
  sums.rows += rows;
}

void AddToTaskMetrics(const Loss& loss, std::span<const double> scores,
                      std::span<const double> targets, std::span<const double> weights,
                      std::span<const ScoreInterval> intervals, TaskMetricsState& state) {
  Decay(RecentDecay(state.recent.rows, weights.size()), state.recent);
  AddToMetricSums(loss, scores, targets, weights, intervals, state.recent);
  AddToMetricSums(loss, scores, targets, weights, intervals, state.total);
}

TaskMetrics MetricsOf(const Loss& loss, const MetricSums& sums,
                      std::span<const double> target_scales) {
  TaskMetrics metrics;
  metrics.rows = sums.rows;
  if (sums.known_weight > 0) metrics.loss = sums.loss / sums.known_weight;
  if (loss.task() == Task::kRegression) {
    FillRegression(sums, target_scales, metrics);
  } else if (HasLabels(loss.task())) {
    FillClassification(loss, sums, metrics);
  } else if (loss.task() == Task::kNovelty) {
    if (sums.known_weight > 0) {
      metrics.fraction_below_threshold = sums.wrong / sums.known_weight;
    }
  } else {
    FillDensityRatio(loss, sums, metrics);
  }
  return metrics;
}

std::vector<NamedMetric> NamedMetrics(const TaskMetrics& metrics) {
  const std::pair<absl::string_view, const std::optional<double>*> all[] = {
      {"loss", &metrics.loss},
      {"error_rate", &metrics.error_rate},
      {"log_loss", &metrics.log_loss},
      {"auc", &metrics.auc},
      {"f1", &metrics.f1},
      {"macro_f1", &metrics.macro_f1},
      {"calibration_error", &metrics.calibration_error},
      {"mean_squared_error", &metrics.mean_squared_error},
      {"mean_absolute_error", &metrics.mean_absolute_error},
      {"r2", &metrics.r2},
      {"pinball_loss", &metrics.pinball_loss},
      {"interval_coverage", &metrics.interval_coverage},
      {"interval_width", &metrics.interval_width},
      {"interval_pinball_loss", &metrics.interval_pinball_loss},
      {"fraction_below_threshold", &metrics.fraction_below_threshold},
      {"divergence", &metrics.divergence},
  };
  std::vector<NamedMetric> named;
  for (const auto& [name, value] : all) {
    if (value->has_value()) named.push_back({name, **value});
  }
  if (metrics.unknown_label_rows > 0) {
    named.push_back({"unknown_label_rows", static_cast<double>(metrics.unknown_label_rows)});
  }
  return named;
}

}  // namespace kernelstream
