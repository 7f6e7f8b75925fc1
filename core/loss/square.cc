#include <memory>

#include "core/loss/loss.h"
#include "core/loss/target_checks.h"

namespace kernelstream {
namespace {

// Immutable.
class Square final : public Loss {
 public:
  Task task() const override { return Task::kRegression; }
  double Value(std::span<const double> scores, double target) const override {
    const double residual = scores[0] - target;
    return residual * residual / 2;
  }
  void Derivative(std::span<const double> scores, double target,
                  std::span<double> out) const override {
    out[0] = scores[0] - target;
  }
  double curvature() const override { return 1; }
  absl::Status CheckTarget(double target) const override {
    return CheckNumberTarget("square", target);
  }
};

}  // namespace

LossEntry SquareLoss() {
  return {
      .doc = {.name = "square",
              .doc = "(score - target)^2 / 2: regression; the prediction is the mean of the target",
              .parameters = {}},
      .make = [](const ParameterMap&) -> std::unique_ptr<const Loss> {
        return std::make_unique<Square>();
      }};
}

}  // namespace kernelstream
