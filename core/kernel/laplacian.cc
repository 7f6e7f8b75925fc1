#include <cmath>
#include <memory>

#include "core/base/portable_math.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {
namespace {

// Immutable. Frequencies are Cauchy: Rahimi & Recht 2007, figure 1. Their tails are heavy: a
// coordinate beyond W (in units of 1 / bandwidth) has probability (2 / pi) / W; its phase is then
// known to W * |x| * 2^-24 only. Training and prediction use the same bits, so such a feature is
// one more fixed function of x; the bias of the kernel is at most 2 P(phase lost) < 1e-6 per
// coordinate.
class Laplacian final : public Kernel {
 public:
  explicit Laplacian(double bandwidth) : Kernel(bandwidth) {}
  double Evaluate(std::span<const double> x, std::span<const double> y) const override {
    return PortableExp(-AbsoluteDistance(x, y) / bandwidth());
  }
  double Distance(std::span<const double> x, std::span<const double> y) const override {
    return AbsoluteDistance(x, y);
  }
  FeatureSpec features() const override { return {.law = SpectralLaw::kCauchy}; }
};

}  // namespace

KernelEntry LaplacianKernel() {
  return {.doc = {.name = "laplacian",
                  .doc = "exp(-|x - x'|_1 / bandwidth), |.|_1 the sum of absolute differences: "
                         "rough functions, edges",
                  .parameters = kBandwidthParameters,
                  .source = "Rahimi & Recht, NIPS 2007"},
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
            return std::make_unique<Laplacian>(parameters.at("bandwidth"));
          }};
}

}  // namespace kernelstream
