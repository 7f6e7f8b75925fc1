#include "core/base/quantile.h"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>

namespace kernelstream {

double NormalQuantile(double u) {
  using boost::math::policies::policy;
  using boost::math::policies::promote_double;
  const double v = std::min(u, 1 - u);
  const double size =
      std::numbers::sqrt2 * boost::math::erfc_inv(2 * v, policy<promote_double<false>>());
  return u < 0.5 ? -size : size;
}

double CauchyQuantile(double u) {
  const double v = std::min(u, 1 - u);
  const double size =
      v < 0.25 ? 1 / std::tan(std::numbers::pi * v) : std::tan(std::numbers::pi * (0.5 - v));
  return u < 0.5 ? -size : size;
}

}  // namespace kernelstream
