#include <cmath>
#include <memory>

#include "core/base/portable_math.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/domain.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {
namespace {

// Immutable. Frequencies over log(x) have density sech(pi w) (Vedaldi & Zisserman 2012).
class Chi2 final : public Kernel {
 public:
  explicit Chi2(double bandwidth) : Kernel(bandwidth) {}
  double Evaluate(Point x, Point y) const override {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) {
      const double total = x[j] + y[j];
      if (total > 0) sum += 2 * x[j] * y[j] / total;
    }
    return sum / bandwidth();
  }
  double Distance(Point x, Point y) const override { return CommonSum(x, y); }
  FeatureSpec features() const override {
    return {.form = FeatureForm::kLinear,
            .law = SpectralLaw::kRademacher,
            .transform = InputTransform::kAdditive,
            .additive_law = SpectralLaw::kSech};
  }
  bool is_homogeneous() const override { return true; }
  bool takes_any_input() const override { return false; }
  absl::Status CheckInput(std::span<const float> values) const override {
    return CheckNonNegative("chi2", values);
  }
};

}  // namespace

KernelEntry Chi2Kernel() {
  return {.doc = {.name = "chi2",
                  .doc = "sum over coordinates of 2 x_j x'_j / (x_j + x'_j) / bandwidth, for "
                         "counts or shares: one smooth curve for each coordinate",
                  .parameters = kInputUnitParameters},
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
            return std::make_unique<Chi2>(parameters.at("bandwidth"));
          }};
}

}  // namespace kernelstream
