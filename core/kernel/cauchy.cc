#include <cmath>
#include <memory>

#include "core/base/portable_math.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {
namespace {

// Immutable. Frequencies are Laplace: Rahimi & Recht 2007, figure 1.
class Cauchy final : public Kernel {
 public:
  explicit Cauchy(double bandwidth) : Kernel(bandwidth) {}
  double Evaluate(Point x, Point y) const override {
    double product = 1;
    for (size_t j = 0; j < x.size(); ++j) {
      const double r = (x[j] - y[j]) / bandwidth();
      product *= 1 / (1 + r * r);
    }
    return product;
  }
  double Distance(Point x, Point y) const override { return std::sqrt(SquaredDistance(x, y)); }
  FeatureSpec features() const override { return {.law = SpectralLaw::kLaplace}; }
};

}  // namespace

KernelEntry CauchyKernel() {
  return {.doc = {.name = "cauchy",
                  .doc = "product over coordinates of 1 / (1 + ((x_j - x'_j) / bandwidth)^2): "
                         "smooth, with a longer reach than gaussian",
                  .parameters = kBandwidthParameters,
                  .source = "Rahimi & Recht, NIPS 2007"},
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
            return std::make_unique<Cauchy>(parameters.at("bandwidth"));
          }};
}

}  // namespace kernelstream
