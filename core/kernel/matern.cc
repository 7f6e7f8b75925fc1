#include <algorithm>
#include <cmath>
#include <memory>

#include "core/base/portable_math.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {
namespace {

constexpr ParameterDoc kMaternParameters[] = {
    {.name = "nu",
     .doc = "smoothness: functions have nu - 1/2 derivatives or so; 0.5 is exp(-|x - x'| / "
            "bandwidth), large values come near to gaussian. Frequencies are cut at 2^14 times "
            "normal ones: below 0.05 that would change the kernel everywhere, and above 1000 it is "
            "gaussian to three digits",
     .min = 0.05,
     .max = 1000,
     .default_value = 1.5},
    kBandwidth,
    kBandwidthScale,
};

// log of 2^(1 - nu) / Gamma(nu) s^nu times the integrand of
// K_nu(s) = integral over t > 0 of exp(-s cosh(t)) cosh(nu t).
struct Integrand {
  double nu, s, log_factor;
  double operator()(double t) const {
    const double growth = PortableExp(t);
    const double decay = -s * (growth + 1 / growth) / 2 + log_factor;
    return (PortableExp(decay + nu * t) + PortableExp(decay - nu * t)) / 2;
  }
};

// The power series around s = 0 (DLMF 10.25.2 and 10.27.4), without the powers from s^(2 nu) on.
// s^nu below 1e-299, so what is left out is far below a rounding error.
double MaternNearZero(double nu, double s) {
  double sum = 1, term = 1;
  for (double k = 1; k < nu && std::abs(term) > 1e-17; k += 1) {
    term *= s * s / (4 * k * (k - nu));
    sum += term;
  }
  return sum;
}

// 2^(1 - nu) / Gamma(nu) s^nu K_nu(s), by the trapezoidal rule, which converges exponentially: the
// integrand is analytic and vanishes with all derivatives. Relative error below 1e-12 for nu <= 10,
// below 1e-11 for nu <= 1000.
double MaternOf(double nu, double s) {
  if (s == 0 || -nu * PortableLog(s) > 690) return MaternNearZero(nu, s);
  if (s > 800 + nu) return 0;
  const double log_factor =
      (1 - nu) * 0x1.62e42fefa39efp-1 - PortableLogGamma(nu) + nu * PortableLog(s);
  const Integrand integrand = {nu, s, log_factor};
  // The peak is where s sinh(t) = nu and at least 1 / sqrt(s + nu) wide.
  const double ratio = nu / s;
  const double peak = PortableLog(ratio + std::sqrt(ratio * ratio + 1));
  const double h = std::min(0.12, 0.6 / std::sqrt(s + nu));
  double sum = 0;
  const auto first = std::floor(peak / h);
  for (double i = first; i >= 0; i -= 1) {
    const double value = integrand(i * h) * (i == 0 ? 0.5 : 1);
    sum += value;
    if (value < sum * 1e-19) break;
  }
  for (double i = first + 1;; i += 1) {
    const double value = integrand(i * h);
    sum += value;
    if (value <= sum * 1e-19) break;
  }
  return sum * h;
}

// Immutable. Frequencies are Student t with 2 nu degrees of freedom: normal coordinates times one
// sqrt(nu / g), g gamma(nu), for each feature (Rasmussen & Williams 2006, eq. 4.15). The factor is
// at most 2^14, so that phases keep their bits: for smaller nu the kernel of points nearer than
// about 1e-4 bandwidths is off by at most P(factor > 2^14), about 2^(-28 nu); it is exact at x =
// x'.
class Matern final : public Kernel {
 public:
  Matern(double nu, double bandwidth) : Kernel(bandwidth), nu_(nu) {}
  double Evaluate(Point x, Point y) const override {
    const double s = std::sqrt(2 * nu_) * Distance(x, y) / bandwidth();
    if (nu_ == 0.5) return PortableExp(-s);
    if (nu_ == 1.5) return (1 + s) * PortableExp(-s);
    if (nu_ == 2.5) return (1 + s + s * s / 3) * PortableExp(-s);
    return MaternOf(nu_, s);
  }
  double Distance(Point x, Point y) const override { return std::sqrt(SquaredDistance(x, y)); }
  FeatureSpec features() const override { return {.radial = RadialLaw::kStudent, .shape = nu_}; }

 private:
  double nu_;
};

}  // namespace

KernelEntry MaternKernel() {
  return {
      .doc = {.name = "matern",
              .doc = "2^(1 - nu) / Gamma(nu) s^nu K_nu(s), s = sqrt(2 nu) |x - x'| / bandwidth: "
                     "functions of a chosen smoothness",
              .parameters = kMaternParameters,
              .source = "Rasmussen & Williams 2006, eq. 4.14 and 4.15"},
      .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
        return std::make_unique<Matern>(parameters.at("nu"), parameters.at("bandwidth"));
      }};
}

}  // namespace kernelstream
