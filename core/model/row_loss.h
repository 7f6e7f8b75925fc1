// The loss of a row with one or several targets.
#ifndef KERNELSTREAM_CORE_MODEL_ROW_LOSS_H_
#define KERNELSTREAM_CORE_MODEL_ROW_LOSS_H_

#include <algorithm>
#include <span>

#include "core/loss/loss.h"

namespace kernelstream {

// scores: one per output. targets, as the loss sees them: one; or one per output for a regression
// with several outputs, each of which has a loss of its own.

// Mean over the outputs that have a target of their own.
inline double RowValue(const Loss& loss, std::span<const double> scores,
                       std::span<const double> targets) {
  if (targets.size() == 1) return loss.Value(scores, targets[0]);
  double sum = 0;
  for (size_t k = 0; k < targets.size(); ++k) sum += loss.Value(scores.subspan(k, 1), targets[k]);
  return sum / static_cast<double>(targets.size());
}

// As Loss::Misfit, which is its value for losses that several outputs have.
inline double RowMisfit(const Loss& loss, std::span<const double> scores,
                        std::span<const double> targets) {
  return targets.size() == 1 ? loss.Misfit(scores, targets[0]) : RowValue(loss, scores, targets);
}

// Each output's derivative of its own loss. out: one per output.
inline void RowDerivative(const Loss& loss, std::span<const double> scores,
                          std::span<const double> targets, std::span<double> out) {
  if (targets.size() == 1) return loss.Derivative(scores, targets[0], out);
  for (size_t k = 0; k < targets.size(); ++k) {
    loss.Derivative(scores.subspan(k, 1), targets[k], out.subspan(k, 1));
  }
}

// Largest over the outputs that have a target of their own.
inline double RowCurvature(const Loss& loss, std::span<const double> scores,
                           std::span<const double> targets) {
  if (targets.size() == 1) return loss.CurvatureAt(scores, targets[0]);
  double most = 0;
  for (size_t k = 0; k < targets.size(); ++k) {
    most = std::max(most, loss.CurvatureAt(scores.subspan(k, 1), targets[k]));
  }
  return most;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_ROW_LOSS_H_
