#include <cmath>
#include <memory>

#include "core/base/portable_math.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/domain.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {
namespace {

double RootSum(Point x, Point y) {
  double sum = 0;
  for (size_t j = 0; j < x.size(); ++j) sum += std::sqrt(x[j] + y[j]);
  return sum;
}

// Immutable. Features exp(-w . x / bandwidth), w Levy (Yang, Sindhwani, Fan, Avron & Mahoney 2014).
// Their variance is below 1, large only against a tiny k.
class ExponentialSemigroup final : public Kernel {
 public:
  explicit ExponentialSemigroup(double bandwidth) : Kernel(bandwidth) {}
  double Evaluate(Point x, Point y) const override {
    return PortableExp(-RootSum(x, y) / std::sqrt(bandwidth()));
  }
  double Distance(Point x, Point y) const override { return RootSum(x, y) * RootSum(x, y); }
  FeatureSpec features() const override {
    return {.form = FeatureForm::kExponential, .law = SpectralLaw::kLevy};
  }
  bool takes_any_input() const override { return false; }
  absl::Status CheckInput(std::span<const float> values) const override {
    return CheckNonNegative("exponential_semigroup", values);
  }
};

}  // namespace

KernelEntry ExponentialSemigroupKernel() {
  return {.doc = {.name = "exponential_semigroup",
                  .doc = "exp(-beta sum over coordinates of sqrt(x_j + x'_j)), beta = 1 / "
                         "sqrt(bandwidth), for counts or shares",
                  .parameters = kInputUnitParameters,
                  .source = "Yang, Sindhwani, Fan, Avron & Mahoney, CVPR 2014"},
          .inputs = kNonNegative,
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
            return std::make_unique<ExponentialSemigroup>(parameters.at("bandwidth"));
          }};
}

}  // namespace kernelstream
