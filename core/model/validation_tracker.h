// Bookkeeping of predict-then-learn errors.
#ifndef KERNELSTREAM_CORE_MODEL_VALIDATION_TRACKER_H_
#define KERNELSTREAM_CORE_MODEL_VALIDATION_TRACKER_H_

#include <span>

#include "core/loss/loss.h"
#include "core/model/trainer_state.h"
#include "core/model/validation.h"

namespace kernelstream {

// Adds one mini-batch's errors. scores: [rows][num_outputs]; targets as the loss sees them, [rows]
// or [rows][num_outputs]; weights > 0. Decay per row is 1 / n, n the rows seen so far, kept within
// [256, 4096].
void AddToValidation(const Loss& loss, std::span<const double> scores,
                     std::span<const double> targets, std::span<const double> weights,
                     ValidationState& state);

// What describes a model whose served predictions had these errors.
ValidationMetrics ServedValidation(TaskMetrics recent, TaskMetrics total);

// Mean recent loss; infinity before the first row.
double RecentLoss(const ValidationState& state);

// ratio * loss. Of a loss below 0, what is as much better (ratio < 1) or worse (ratio > 1) than it:
// density ratios have losses of either sign.
inline double TimesLoss(double ratio, double loss) {
  return loss >= 0 ? ratio * loss : loss / ratio;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_VALIDATION_TRACKER_H_
