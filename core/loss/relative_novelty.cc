#include <algorithm>
#include <memory>

#include "core/base/portable_math.h"
#include "core/loss/loss.h"
#include "core/loss/target_checks.h"

namespace kernelstream {
namespace {

constexpr ParameterDoc kRelativeNoveltyParameters[] = {
    {.name = "rho",
     .doc = "ratios below exp(-rho) are not told apart: the score goes to 0 there",
     .min = -10,
     .max = 10,
     .default_value = 1.0},
};

// Least curvature of a proximal step, as for density_ratio: .03 to .3 were worse at every step
// constant.
constexpr double kSmallestNoveltyCurvature = 1;

// Immutable. The linear form: the score is the ratio itself. Convex, with a derivative of at most
// exp(rho), where the exponential form is neither convex nor has a minimum.
class RelativeNovelty final : public Loss {
 public:
  explicit RelativeNovelty(double rho)
      : rho_(rho), steepest_(PortableExp(rho)), smallest_ratio_(PortableExp(-rho)) {}
  Task task() const override { return Task::kDensityRatio; }
  double Value(std::span<const double> scores, double target) const override {
    if (target < 0) return std::max(0.0, scores[0]);
    if (scores[0] <= smallest_ratio_) return -steepest_ * scores[0];
    return -1 - rho_ - PortableLog(scores[0]);
  }
  void Derivative(std::span<const double> scores, double target,
                  std::span<double> out) const override {
    if (target < 0) {
      out[0] = scores[0] > 0 ? 1 : 0;
    } else {
      out[0] = scores[0] <= smallest_ratio_ ? -steepest_ : -1 / scores[0];
    }
  }
  // As for density_ratio; here the score is the ratio, not its logarithm.
  double Misfit(std::span<const double> scores, double target) const override {
    const double ratio = std::max(smallest_ratio_, scores[0]);
    return PortableLog1p(target > 0 ? 1 / ratio : ratio);
  }
  double curvature() const override { return steepest_ * steepest_; }
  double CurvatureAt(std::span<const double> scores, double target) const override {
    if (target < 0) return kSmallestNoveltyCurvature;
    if (scores[0] <= smallest_ratio_) return std::max(kSmallestNoveltyCurvature, curvature());
    return std::max(kSmallestNoveltyCurvature, 1 / (scores[0] * scores[0]));
  }
  absl::Status CheckTarget(double target) const override {
    return CheckBinaryTarget("relative_novelty", target);
  }

 private:
  double rho_, steepest_, smallest_ratio_;
};

}  // namespace

LossEntry RelativeNoveltyLoss() {
  return {.doc = {.name = "relative_novelty",
                  .doc = "rows of the population p that are rare under p compared with q: max(0, "
                         "score) for rows of the denominator q; for those of the numerator p -1 - "
                         "rho - log(score), its tangent below exp(-rho); the score is the ratio p "
                         "/ q, near 0 where it is below exp(-rho)",
                  .parameters = kRelativeNoveltyParameters},
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Loss> {
            return std::make_unique<RelativeNovelty>(parameters.at("rho"));
          }};
}

}  // namespace kernelstream
