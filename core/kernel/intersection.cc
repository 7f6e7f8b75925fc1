#include <algorithm>
#include <cmath>
#include <memory>

#include "core/base/portable_math.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/domain.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {
namespace {

// Immutable. Frequencies over log(x) are Cauchy of width 1/2 (Vedaldi & Zisserman 2012).
class Intersection final : public Kernel {
 public:
  explicit Intersection(double bandwidth) : Kernel(bandwidth) {}
  double Evaluate(Point x, Point y) const override {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) {
      sum += std::min(x[j], y[j]);
    }
    return sum / bandwidth();
  }
  double Distance(Point x, Point y) const override { return CommonSum(x, y); }
  FeatureSpec features() const override {
    return {.form = FeatureForm::kLinear,
            .law = SpectralLaw::kRademacher,
            .transform = InputTransform::kAdditive,
            .additive_law = SpectralLaw::kCauchy};
  }
  bool is_homogeneous() const override { return true; }
  bool takes_any_input() const override { return false; }
  absl::Status CheckInput(std::span<const float> values) const override {
    return CheckNonNegative("intersection", values);
  }
};

}  // namespace

KernelEntry IntersectionKernel() {
  return {.doc = {.name = "intersection",
                  .doc = "sum over coordinates of min(x_j, x'_j) / bandwidth, for counts or "
                         "shares: one rough curve for each coordinate",
                  .parameters = kInputUnitParameters},
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
            return std::make_unique<Intersection>(parameters.at("bandwidth"));
          }};
}

}  // namespace kernelstream
