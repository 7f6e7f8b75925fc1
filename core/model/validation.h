// Predict-then-learn losses.
#ifndef KERNELSTREAM_CORE_MODEL_VALIDATION_H_
#define KERNELSTREAM_CORE_MODEL_VALIDATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace kernelstream {

// Of one class, rows counted by weight; shares are 0 where nothing is divided.
struct ClassMetrics {
  double weight = 0;     // of its rows
  double precision = 0;  // share of its rows among those predicted as it
  double recall = 0;     // share of its rows predicted as it
  double f1 = 0;         // harmonic mean of both
};

// How good predictions were: everything that one task has a metric for. Absent: the task has no
// such metric, or there was nothing to compute it from. Rows count with their weight. NamedMetrics
// gives names and definitions.
struct TaskMetrics {
  uint64_t rows = 0;
  uint64_t unknown_label_rows = 0;
  std::optional<double> loss;
  std::optional<double> error_rate, log_loss, auc, f1, macro_f1, calibration_error;
  std::optional<double> mean_squared_error, mean_absolute_error, r2, pinball_loss;
  std::optional<double> interval_coverage, interval_width, interval_pinball_loss;
  std::optional<double> fraction_below_threshold;
  std::optional<double> divergence;
  std::vector<ClassMetrics> classes;  // by label index; classification
};

struct NamedMetric {
  absl::string_view name;  // as on the wire
  double value = 0;
};

// The metrics that are there, in the order of reading; classes are left out. The one list of names:
//   loss                      mean loss; of standardised targets, mean over outputs, for regression
//   error_rate                share of wrong labels
//   log_loss                  mean of -log of the label's probability, which is taken as >= 1e-15
//   auc                       two labels: probability that a row of the second label scores above a
//                             row of the first, ties counting half
//   f1                        two labels: F1 of the second
//   macro_f1                  mean F1 of the classes that have rows or were predicted
//   calibration_error         sum over 15 equal bins of the predicted label's probability, of the
//                             bin's share of rows times |share right - mean probability|
//   mean_squared_error, mean_absolute_error
//                             in target units; several outputs: mean over them
//   r2                        1 - squared error / spread of the targets; mean over outputs that
//   vary pinball_loss              quantile loss at its level, in target units interval_coverage
//   share of rows whose target is in the prediction interval interval_width            mean width
//   of the interval, target units interval_pinball_loss     mean of the pinball losses of both
//   ends, each at its level fraction_below_threshold  novelty: share of rows that score below the
//   threshold divergence                between the populations: how far the mean loss of both
//   together is
//                             below that of the best constant score (Kullback-Leibler for
//                             density_ratio)
//   unknown_label_rows        rows with a label the model does not know: errors, in no loss
std::vector<NamedMetric> NamedMetrics(const TaskMetrics& metrics);

// Errors of rows that were predicted before they were learned, by what was served then. See the
// wire's ValidationMetrics.
struct ValidationMetrics {
  // Copies out of `recent` and `total`; 0 where these have none.
  double recent_loss = 0, mean_loss = 0;
  double recent_error_rate = 0, mean_error_rate = 0;
  double recent_squared_error = 0, mean_squared_error = 0;
  uint64_t rows = 0;
  TaskMetrics recent, total;  // decayed, and since the first step
};

// Where a target lies with the configured coverage. Target units.
struct PredictionInterval {
  double low = 0, high = 0;
};

// What a user reads of one row's scores.
struct Prediction {
  std::vector<double> scores;
  std::string label;                  // classification
  std::vector<double> probabilities;  // one per known label, where the loss has them
  // Regression: the first target in its units. Novelty: score - threshold, below 0 for novel rows.
  // Density ratio: log of the ratio.
  double value = 0;
  std::vector<double> values;  // regression: all targets, in their units
  // Of the function, without the noise, target units squared; where the config has a method that
  // knows it.
  std::optional<double> variance;
  std::optional<PredictionInterval> interval;  // where the config has a method
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_VALIDATION_H_
