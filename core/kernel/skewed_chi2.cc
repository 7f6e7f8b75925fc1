#include <cmath>
#include <memory>

#include "core/base/portable_math.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"
#include "core/kernel/skewed.h"

namespace kernelstream {
namespace {

// Immutable. Frequencies over log(x + offset) have density sech(pi w) (Li, Ionescu & Sminchisescu
// 2010).
class SkewedChi2 final : public SkewedKernel {
 public:
  explicit SkewedChi2(const ParameterMap& parameters) : SkewedKernel("skewed_chi2", parameters) {}
  double Evaluate(Point x, Point y) const override {
    double product = 1;
    for (size_t j = 0; j < x.size(); ++j) {
      const double e = PortableExp(-std::abs(LogRatio(x[j], y[j])) / (2 * bandwidth()));
      product *= 2 * e / (1 + e * e);
    }
    return product;
  }
  double Distance(Point x, Point y) const override {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) sum += LogRatio(x[j], y[j]) * LogRatio(x[j], y[j]);
    return std::sqrt(sum) / 2;
  }
  FeatureSpec features() const override {
    return {.law = SpectralLaw::kSech, .transform = InputTransform::kLog, .shift = offset()};
  }
};

}  // namespace

KernelEntry SkewedChi2Kernel() {
  return {.doc = {.name = "skewed_chi2",
                  .doc = "product over coordinates of sech(l_j / (2 bandwidth)), l_j = log((x_j + "
                         "offset) / (x'_j + offset)), for counts or shares: smooth in the "
                         "logarithms; bandwidth 1 is the kernel of Li, Ionescu and Sminchisescu",
                  .parameters = kSkewedParameters,
                  .source = "Li, Ionescu & Sminchisescu 2010"},
          .inputs = kAboveOffset,
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
            return std::make_unique<SkewedChi2>(parameters);
          },
          .choose = &ChooseOffset};
}

}  // namespace kernelstream
