#include <algorithm>
#include <cmath>
#include <memory>

#include "core/loss/loss.h"
#include "core/loss/target_checks.h"

namespace kernelstream {
namespace {

constexpr ParameterDoc kEpsilonInsensitiveParameters[] = {
    {.name = "epsilon",
     .doc = "residuals up to this, in target_scale (the targets' interquartile range / 1.349), are "
            "free",
     .min = 0,
     .max = 1e3,
     .default_value = 0.1},
};

// Bounds of the curvature of a proximal step.
constexpr double kSmallestTubeCurvature = 0.1, kLargestTubeCurvature = 10;

// Immutable. epsilon 0: the absolute deviation. The second derivative is 0 almost everywhere. The
// proximal step uses the curvature of the parabola that touches the loss at the score and lies
// above it elsewhere (absolute: 1 / |residual|). Measured on four sets (one pass, with and without
// 1 % of wild targets): mean absolute errors 1 to 11 % below those of a constant 1.
class EpsilonInsensitive final : public Loss {
 public:
  EpsilonInsensitive(absl::string_view name, double epsilon) : name_(name), epsilon_(epsilon) {}
  Task task() const override { return Task::kRegression; }
  double Value(std::span<const double> scores, double target) const override {
    return std::max(0.0, std::abs(scores[0] - target) - epsilon_);
  }
  void Derivative(std::span<const double> scores, double target,
                  std::span<double> out) const override {
    const double residual = scores[0] - target;
    out[0] = residual > epsilon_ ? 1 : residual < -epsilon_ ? -1 : 0;
  }
  double curvature() const override { return 1; }
  bool is_robust() const override { return true; }
  double CurvatureAt(std::span<const double> scores, double target) const override {
    const double residual = std::abs(scores[0] - target);
    const double to_kink = std::abs(residual - epsilon_);
    const double width = residual > epsilon_ ? std::min(residual, 2 * to_kink) : 2 * to_kink;
    return 1 / std::clamp(width, 1 / kLargestTubeCurvature, 1 / kSmallestTubeCurvature);
  }
  absl::Status CheckTarget(double target) const override {
    return CheckNumberTarget(name_, target);
  }

 private:
  absl::string_view name_;
  double epsilon_;
};

}  // namespace

LossEntry EpsilonInsensitiveLoss() {
  return {.doc = {.name = "epsilon_insensitive",
                  .doc = "max(0, |r| - epsilon), r = score - target: regression, support vectors; "
                         "derivative sign(r) where |r| > epsilon, else 0; the prediction is near "
                         "the median of the target",
                  .parameters = kEpsilonInsensitiveParameters},
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Loss> {
            return std::make_unique<EpsilonInsensitive>("epsilon_insensitive",
                                                        parameters.at("epsilon"));
          }};
}

LossEntry AbsoluteLoss() {
  return {.doc = {.name = "absolute",
                  .doc = "|r|, r = score - target: regression; derivative sign(r), 0 at 0; the "
                         "prediction is the median of the target",
                  .parameters = {}},
          .make = [](const ParameterMap&) -> std::unique_ptr<const Loss> {
            return std::make_unique<EpsilonInsensitive>("absolute", 0);
          }};
}

}  // namespace kernelstream
