// How good predictions are, task by task, counted row after row.
#ifndef KERNELSTREAM_CORE_MODEL_TASK_METRICS_H_
#define KERNELSTREAM_CORE_MODEL_TASK_METRICS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/loss/loss.h"
#include "core/model/validation.h"

namespace kernelstream {

inline constexpr size_t kCalibrationBins = 15;
// Bins of the score histogram that AUC is computed from; they are equally wide in
// score / (1 + |score|), so 1 / 256 near score 0. Two rows in one bin count as a tie: the error of
// the AUC is at most half the share of pairs that share a bin.
inline constexpr size_t kScoreBins = 512;

// What is left of the weight of old rows when `rows` more arrive after `rows_before`:
// exp(-rows / n), n = rows_before kept within [256, 4096].
double RecentDecay(uint64_t rows_before, size_t rows);

// Sums over rows, each times its weight. What a task does not use stays empty. Size: three numbers
// per class, four per output, 1024 for two labels.
struct MetricSums {
  uint64_t rows = 0;        // ever added; never decayed
  double weight = 0;        // of all rows
  double unknown_rows = 0;  // rows, not weights
  double known_weight = 0;  // of rows whose label the model knows
  double loss = 0;          // of known rows, as are all that follow but the predicted classes
  double log_loss = 0;
  double wrong = 0;  // unknown labels included; novelty: below the threshold
  std::vector<double> class_actual, class_predicted, class_correct;  // [class]
  std::vector<double> bin_weight, bin_probability, bin_correct;      // [kCalibrationBins]
  std::vector<double> first_scores, second_scores;  // [kScoreBins], of the first and second label
  // [output], of standardised targets: errors, the running mean, the spread around it.
  std::vector<double> squared, absolute, pinball, target_mean, target_spread;
  double interval_weight = 0, covered = 0, width = 0, interval_pinball = 0;
  std::array<double, 2> population_weight{}, population_loss{};  // denominator, numerator

  bool operator==(const MetricSums&) const = default;
};

// True if lists that belong together are equally long, and bins as many as they are here: a saved
// one that is not cannot be added to.
bool IsConsistent(const MetricSums& sums);

// What is kept of the served predictions; part of the trainer's state.
struct TaskMetricsState {
  MetricSums recent;  // decayed by RecentDecay
  MetricSums total;

  bool operator==(const TaskMetricsState&) const = default;
};

// Where a row's target is expected to be, in standardised target units; not finite: none for the
// row.
struct ScoreInterval {
  double low = 0, high = 0;
  double coverage = 0.9;  // share of rows it is meant to hold, half of the others on each side
};

// Adds rows to one set of sums.
// scores: [rows][outputs], before the link, finite. weights: [rows], > 0. targets: as the loss sees
// them (kNovelty: the threshold; kDensityRatio: +1 or -1), one per row, or [rows][outputs] for a
// regression with several outputs, whose loss is that of one output, averaged over them. NaN: a
// label the model does not know; so is an index beyond the outputs. intervals: [rows] or empty; one
// output only.
void AddToMetricSums(const Loss& loss, std::span<const double> scores,
                     std::span<const double> targets, std::span<const double> weights,
                     std::span<const ScoreInterval> intervals, MetricSums& sums);

// The same to both versions, as one mini-batch: the recent sums decay first. rows = 0 changes
// nothing.
void AddToTaskMetrics(const Loss& loss, std::span<const double> scores,
                      std::span<const double> targets, std::span<const double> weights,
                      std::span<const ScoreInterval> intervals, TaskMetricsState& state);
inline void AddToTaskMetrics(const Loss& loss, std::span<const double> scores,
                             std::span<const double> targets, std::span<const double> weights,
                             TaskMetricsState& state) {
  AddToTaskMetrics(loss, scores, targets, weights, {}, state);
}

// target_scales: one standard deviation in target units, one for all outputs or one per output;
// read by regressions only.
TaskMetrics MetricsOf(const Loss& loss, const MetricSums& sums,
                      std::span<const double> target_scales);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_TASK_METRICS_H_
