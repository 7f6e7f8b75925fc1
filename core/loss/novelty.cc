#include <algorithm>
#include <cmath>
#include <memory>

#include "core/loss/loss.h"
#include "core/loss/target_checks.h"

namespace kernelstream {
namespace {

constexpr ParameterDoc kNoveltyParameters[] = {
    {.name = "fraction",
     .doc = "share of rows to find novel; the threshold is kept where that many score below it",
     .min = 1e-3,
     .max = 1 - 1e-3,
     .default_value = 0.1},
};

// Weight of rows over which threshold and spread forget. Short, because scores grow for as long as
// a model learns and the threshold must keep up; sampling noise then moves the share of novel rows
// by about .01.
constexpr double kWindow = 512;
// Of scores, for the first steps.
constexpr double kSmallestSpread = 1e-3;
// The objective has no minimum without a penalty. A penalty only sets the scale of the scores, and
// how long they grow: with this one, for some thousand rows.
constexpr double kLeastPenalty = 0.01;

// Immutable. The second derivative is 0 almost everywhere; the proximal step uses 1.
class Novelty final : public Loss {
 public:
  explicit Novelty(double fraction) : fraction_(fraction) {}
  Task task() const override { return Task::kNovelty; }
  double Value(std::span<const double> scores, double target) const override {
    return std::max(0.0, target - scores[0]) - fraction_ * target;
  }
  void Derivative(std::span<const double> scores, double target,
                  std::span<double> out) const override {
    out[0] = scores[0] < target ? -1 : 0;
  }
  double curvature() const override { return 1; }
  absl::Status CheckTarget(double target) const override {
    return CheckNumberTarget("novelty", target);
  }

  // value += step_size (fraction - share of rows that score below it), the paper's update: a
  // stochastic approximation of the fraction-quantile. The best step size after n rows is 1 / (n
  // density at the quantile), and that density is near / spread, both taken from earlier rows:
  //   step_size = batch's weight / min(n, kWindow) * spread / max(near, fraction (1 - fraction)),
  // less where the step would be longer than one spread.
  NoveltyThreshold NextThreshold(const NoveltyThreshold& threshold, std::span<const double> scores,
                                 std::span<const double> weights) const override {
    const double unit = std::max(threshold.spread, kSmallestSpread);
    double total = 0, below = 0, spread = 0, near = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      const double distance = std::abs(scores[i] - threshold.value);
      total += weights[i];
      spread += weights[i] * distance;
      if (scores[i] < threshold.value) below += weights[i];
      if (distance < unit / 2) near += weights[i];
    }
    NoveltyThreshold next = threshold;
    next.rows += total;
    const double share = std::min(1.0, total / std::min(next.rows, kWindow));
    const double gain = share / std::max(threshold.near, fraction_ * (1 - fraction_));
    next.value += unit * std::clamp(gain * (fraction_ - below / total), -1.0, 1.0);
    next.spread += share * (spread / total - threshold.spread);
    next.near += share * (near / total - threshold.near);
    return next;
  }
  double least_l2_penalty() const override { return kLeastPenalty; }

 private:
  double fraction_;
};

}  // namespace

LossEntry NoveltyLoss() {
  return {.doc = {.name = "novelty",
                  .doc = "max(0, threshold - score) - fraction threshold: rows have no target; a "
                         "row that scores below the threshold, which is learned too, is novel; one "
                         "row in four only serves to choose the threshold; "
                         "derivative -1 there, else 0",
                  .parameters = kNoveltyParameters},
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Loss> {
            return std::make_unique<Novelty>(parameters.at("fraction"));
          }};
}

}  // namespace kernelstream
