#include <algorithm>
#include <memory>

#include "core/base/portable_math.h"
#include "core/loss/loss.h"
#include "core/loss/target_checks.h"

namespace kernelstream {
namespace {

// Immutable.
class Softmax final : public Loss {
 public:
  Task task() const override { return Task::kMulticlass; }
  double Value(std::span<const double> scores, double target) const override {
    const size_t y = static_cast<size_t>(target);
    const size_t top =
        static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    double others = 0;  // of exp(score - largest), the largest itself (exactly 1) left out
    for (size_t k = 0; k < scores.size(); ++k) {
      if (k != top) others += PortableExp(scores[k] - scores[top]);
    }
    return (scores[top] - scores[y]) + PortableLog1p(others);
  }
  void Derivative(std::span<const double> scores, double target,
                  std::span<double> out) const override {
    const size_t y = static_cast<size_t>(target);
    Probabilities(scores, out);
    // The sum of the other probabilities keeps its digits where 1 - P(y) would lose them.
    double others = 0;
    for (size_t k = 0; k < out.size(); ++k) {
      if (k != y) others += out[k];
    }
    out[y] = -others;
  }
  double curvature() const override { return 0.5; }
  absl::Status CheckTarget(double target) const override {
    return CheckClassTarget("softmax", target);
  }
  bool has_probabilities() const override { return true; }
  void Probabilities(std::span<const double> scores, std::span<double> out) const override {
    const double top = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (size_t k = 0; k < scores.size(); ++k) {
      out[k] = PortableExp(scores[k] - top);
      sum += out[k];
    }
    for (double& p : out) p /= sum;
  }
};

}  // namespace

LossEntry SoftmaxLoss() {
  return {.doc = {.name = "softmax",
                  .doc = "log(sum of exp(scores)) - score of the label: two or more labels, with "
                         "probabilities; labels are "
                         "discovered as they appear",
                  .parameters = {}},
          .make = [](const ParameterMap&) -> std::unique_ptr<const Loss> {
            return std::make_unique<Softmax>();
          }};
}

}  // namespace kernelstream
