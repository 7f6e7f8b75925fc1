#include <algorithm>
#include <vector>

#include "core/base/portable_math.h"
#include "core/loss/loss.h"

namespace kernelstream {
namespace {

constexpr double kLargestConstant = 10;

// The derivative of a convex loss is non-decreasing in the score: bisection.
double BestScalar(const Loss& loss, std::span<const double> targets,
                  std::span<const double> weights) {
  double low = -kLargestConstant, high = kLargestConstant;
  for (int i = 0; i < 60; ++i) {
    const double score = (low + high) / 2;
    double sum = 0;
    for (size_t r = 0; r < targets.size(); ++r) {
      double derivative = 0;
      loss.Derivative({&score, 1}, targets[r], {&derivative, 1});
      sum += weights[r] * derivative;
    }
    if (sum == 0) return score;
    (sum < 0 ? low : high) = score;
  }
  return (low + high) / 2;
}

}  // namespace

void Loss::BestConstant(std::span<const double> targets, std::span<const double> weights,
                        std::span<double> out) const {
  if (task() != Task::kMulticlass) {
    out[0] = BestScalar(*this, targets, weights);
    return;
  }
  // Log shares, with one row's worth of doubt spread over the classes.
  std::vector<double> share(out.size(), 1.0 / static_cast<double>(out.size()));
  for (size_t r = 0; r < targets.size(); ++r) share[static_cast<size_t>(targets[r])] += weights[r];
  double mean = 0;
  for (size_t k = 0; k < out.size(); ++k) {
    out[k] = PortableLog(share[k]);
    mean += out[k] / static_cast<double>(out.size());
  }
  for (double& score : out) score = std::clamp(score - mean, -kLargestConstant, kLargestConstant);
}

}  // namespace kernelstream
