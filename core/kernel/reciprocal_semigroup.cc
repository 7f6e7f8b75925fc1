#include <cmath>
#include <memory>

#include "core/base/portable_math.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/domain.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {
namespace {

// Immutable. Features exp(-w . x / bandwidth), w exponential (Yang, Sindhwani, Fan, Avron & Mahoney
// 2014). Their variance is below 1, large only against a tiny k.
class ReciprocalSemigroup final : public Kernel {
 public:
  explicit ReciprocalSemigroup(double bandwidth) : Kernel(bandwidth) {}
  double Evaluate(Point x, Point y) const override {
    double product = 1;
    for (size_t j = 0; j < x.size(); ++j) product *= bandwidth() / (x[j] + y[j] + bandwidth());
    return product;
  }
  double Distance(Point x, Point y) const override { return 2 * CommonSum(x, y); }
  FeatureSpec features() const override {
    return {.form = FeatureForm::kExponential, .law = SpectralLaw::kExponential};
  }
  bool takes_any_input() const override { return false; }
  absl::Status CheckInput(std::span<const float> values) const override {
    return CheckNonNegative("reciprocal_semigroup", values);
  }
};

}  // namespace

KernelEntry ReciprocalSemigroupKernel() {
  return {.doc = {.name = "reciprocal_semigroup",
                  .doc = "product over coordinates of bandwidth / (x_j + x'_j + bandwidth), for "
                         "counts or shares",
                  .parameters = kInputUnitParameters,
                  .source = "Yang, Sindhwani, Fan, Avron & Mahoney, CVPR 2014"},
          .inputs = kNonNegative,
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
            return std::make_unique<ReciprocalSemigroup>(parameters.at("bandwidth"));
          }};
}

}  // namespace kernelstream
