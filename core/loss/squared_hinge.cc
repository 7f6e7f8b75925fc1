#include <algorithm>
#include <memory>

#include "core/loss/loss.h"
#include "core/loss/target_checks.h"

namespace kernelstream {
namespace {

// Immutable.
class SquaredHinge final : public Loss {
 public:
  Task task() const override { return Task::kBinary; }
  double Value(std::span<const double> scores, double target) const override {
    const double missing = std::max(0.0, 1 - target * scores[0]);
    return missing * missing / 2;
  }
  void Derivative(std::span<const double> scores, double target,
                  std::span<double> out) const override {
    out[0] = target * scores[0] < 1 ? scores[0] - target : 0;  // target^2 = 1
  }
  double curvature() const override { return 1; }
  absl::Status CheckTarget(double target) const override {
    return CheckBinaryTarget("squared_hinge", target);
  }
};

}  // namespace

LossEntry SquaredHingeLoss() {
  return {.doc = {.name = "squared_hinge",
                  .doc = "max(0, 1 - y score)^2 / 2, y = -1 or +1: two labels, a smooth support "
                         "vector machine; no probabilities",
                  .parameters = {}},
          .make = [](const ParameterMap&) -> std::unique_ptr<const Loss> {
            return std::make_unique<SquaredHinge>();
          }};
}

}  // namespace kernelstream
