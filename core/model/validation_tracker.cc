#include "core/model/validation_tracker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/model/row_loss.h"
#include "core/model/task_metrics.h"

namespace kernelstream {
namespace {

bool IsWrong(const Loss& loss, std::span<const double> scores, double target) {
  if (loss.task() == Task::kBinary) return (scores[0] > 0) != (target > 0);
  const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
  return static_cast<double>(best) != target;
}

}  // namespace

void AddToValidation(const Loss& loss, std::span<const double> scores,
                     std::span<const double> targets, std::span<const double> weights,
                     ValidationState& state) {
  const size_t rows = weights.size();
  const size_t per_row = targets.size() / rows;
  const size_t outputs = scores.size() / rows;
  const double decay = RecentDecay(state.rows, rows);
  DecayedMean* const means[] = {&state.recent_loss, &state.recent_errors, &state.recent_squares};
  for (DecayedMean* mean : means) {
    mean->sum *= decay;
    mean->weight *= decay;
  }
  for (size_t i = 0; i < rows; ++i) {
    const auto row = scores.subspan(i * outputs, outputs);
    const auto row_targets = targets.subspan(i * per_row, per_row);
    const double value = RowValue(loss, row, row_targets);
    double squares = 0;
    for (size_t k = 0; loss.task() == Task::kRegression && k < per_row; ++k) {
      const double residual = row[k] - row_targets[k];
      squares += residual * residual / static_cast<double>(per_row);
    }
    const double wrong = HasLabels(loss.task()) && IsWrong(loss, row, row_targets[0]) ? 1 : 0;
    const double errors[] = {value, wrong, squares};
    for (size_t m = 0; m < 3; ++m) {
      means[m]->sum += weights[i] * errors[m];
      means[m]->weight += weights[i];
    }
    state.total_loss += value;
    state.total_errors += wrong;
    state.total_squares += squares;
  }
  state.rows += rows;
}

ValidationMetrics ServedValidation(TaskMetrics recent, TaskMetrics total) {
  ValidationMetrics metrics;
  metrics.recent_loss = recent.loss.value_or(0);
  metrics.mean_loss = total.loss.value_or(0);
  metrics.recent_error_rate = recent.error_rate.value_or(0);
  metrics.mean_error_rate = total.error_rate.value_or(0);
  metrics.recent_squared_error = recent.mean_squared_error.value_or(0);
  metrics.mean_squared_error = total.mean_squared_error.value_or(0);
  metrics.rows = total.rows;
  metrics.recent = std::move(recent);
  metrics.total = std::move(total);
  return metrics;
}

double RecentLoss(const ValidationState& state) {
  return state.rows == 0 ? std::numeric_limits<double>::infinity() : state.recent_loss.Mean();
}

}  // namespace kernelstream
