#include <algorithm>
#include <memory>

#include "core/loss/loss.h"
#include "core/loss/target_checks.h"

namespace kernelstream {
namespace {

// Immutable. The second derivative is 0 almost everywhere; the proximal step uses 1, as for a hinge
// smoothed over one unit.
class Hinge final : public Loss {
 public:
  Task task() const override { return Task::kBinary; }
  double Value(std::span<const double> scores, double target) const override {
    return std::max(0.0, 1 - target * scores[0]);
  }
  void Derivative(std::span<const double> scores, double target,
                  std::span<double> out) const override {
    out[0] = target * scores[0] < 1 ? -target : 0;
  }
  double curvature() const override { return 1; }
  absl::Status CheckTarget(double target) const override {
    return CheckBinaryTarget("hinge", target);
  }
};

}  // namespace

LossEntry HingeLoss() {
  return {.doc = {.name = "hinge",
                  .doc = "max(0, 1 - y score), y = -1 or +1: two labels, a support vector machine; "
                         "derivative -y where "
                         "y score < 1, else 0; no probabilities",
                  .parameters = {}},
          .make = [](const ParameterMap&) -> std::unique_ptr<const Loss> {
            return std::make_unique<Hinge>();
          }};
}

}  // namespace kernelstream
