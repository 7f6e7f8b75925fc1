#include <cmath>
#include <memory>

#include "core/base/portable_math.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"
#include "core/kernel/skewed.h"

namespace kernelstream {
namespace {

// Immutable. Frequencies over log(x + offset) are Cauchy of width 1/2.
class SkewedIntersection final : public SkewedKernel {
 public:
  explicit SkewedIntersection(const ParameterMap& parameters)
      : SkewedKernel("skewed_intersection", parameters) {}
  double Evaluate(Point x, Point y) const override {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) sum += std::abs(LogRatio(x[j], y[j]));
    return PortableExp(-sum / (2 * bandwidth()));
  }
  double Distance(Point x, Point y) const override {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) sum += std::abs(LogRatio(x[j], y[j]));
    return sum / 2;
  }
  FeatureSpec features() const override {
    return {.law = SpectralLaw::kCauchy,
            .transform = InputTransform::kLog,
            .frequency_scale = 0.5,
            .shift = offset()};
  }
};

}  // namespace

KernelEntry SkewedIntersectionKernel() {
  return {
      .doc = {.name = "skewed_intersection",
              .doc = "exp(-|l|_1 / (2 bandwidth)), l_j = log((x_j + offset) / (x'_j + offset)), "
                     "for counts or shares: rough in the logarithms; bandwidth 1 is the product of "
                     "min(r_j, 1 / r_j), r_j^2 = (x_j + offset) / (x'_j + offset)",
              .parameters = kSkewedParameters,
              .source = "Li, Ionescu & Sminchisescu 2010"},
      .inputs = kAboveOffset,
      .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
        return std::make_unique<SkewedIntersection>(parameters);
      },
      .choose = &ChooseOffset};
}

}  // namespace kernelstream
