#include <cmath>
#include <memory>

#include "core/base/portable_math.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {
namespace {

// Immutable. Frequencies are normal: Rahimi & Recht 2007, figure 1.
class Gaussian final : public Kernel {
 public:
  explicit Gaussian(double bandwidth) : Kernel(bandwidth) {}
  double Evaluate(std::span<const double> x, std::span<const double> y) const override {
    return PortableExp(-SquaredDistance(x, y) / (2 * bandwidth() * bandwidth()));
  }
  double Distance(std::span<const double> x, std::span<const double> y) const override {
    return std::sqrt(SquaredDistance(x, y));
  }
  FeatureSpec features() const override { return {.law = SpectralLaw::kNormal}; }
  bool is_gaussian() const override { return true; }
};

}  // namespace

KernelEntry GaussianKernel() {
  return {.doc = {.name = "gaussian",
                  .doc = "exp(-|x - x'|^2 / (2 bandwidth^2)), |.| the Euclidean norm: smooth "
                         "functions; the usual first choice",
                  .parameters = kBandwidthParameters,
                  .source = "Rahimi & Recht, NIPS 2007"},
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
            return std::make_unique<Gaussian>(parameters.at("bandwidth"));
          }};
}

}  // namespace kernelstream
