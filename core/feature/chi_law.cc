#include "core/feature/chi_law.h"

#include <cmath>
#include <memory>

#include "core/base/philox.h"
#include "core/base/portable_math.h"
#include "core/base/quantile.h"

namespace kernelstream {
namespace {

// Beyond the normal quantile of 2^-24.
constexpr double kEnd = 5.45;

// Distribution function of the normal law: its quantile, inverted by bisection.
double NormalProbability(double z) {
  double low = 0, high = 1;
  for (int i = 0; i < 64; ++i) {
    const double middle = (low + high) / 2;
    (NormalQuantile(middle) < z ? low : high) = middle;
  }
  return (low + high) / 2;
}

// cos(pi t), 0 <= t <= 1, from the half angle's tangent.
double CosPi(double t) {
  if (t == 1) return -1;
  const double tangent = t < 0.5 ? PortableTanPi(t / 2) : 1 / PortableTanPi((1 - t) / 2);
  return (1 - tangent * tangent) / (1 + tangent * tangent);
}

}  // namespace

ChiLaw::ChiLaw(size_t dimension) : dimension_(dimension) {
  std::array<double, kTerms> values;
  constexpr auto kCount = static_cast<double>(kTerms);
  for (size_t i = 0; i < kTerms; ++i) {
    const double z = kEnd * CosPi((static_cast<double>(i) + 0.5) / kCount);
    values[i] = ChiQuantile(static_cast<double>(dimension), NormalProbability(z));
  }
  for (size_t k = 0; k < kTerms; ++k) {
    double sum = 0;
    for (size_t i = 0; i < kTerms; ++i) {
      // cos(pi k (i + 1/2) / n), its angle reduced exactly in quarters of 1 / n.
      const size_t turns = k * (2 * i + 1) % (4 * kTerms);
      const double half = static_cast<double>(turns) / (2 * kCount);
      sum += values[i] * CosPi(half <= 1 ? half : 2 - half);
    }
    terms_[k] = sum * (k == 0 ? 1 : 2) / kCount;
  }
  while (used_ > 1 && std::abs(terms_[used_ - 1]) < 1e-10) --used_;
}

double ChiLaw::Quantile(double u) const {
  const double x = NormalQuantile(u) / kEnd;
  double b1 = 0, b2 = 0;
  for (size_t k = used_ - 1; k > 0; --k) {
    const double b0 = 2 * x * b1 - b2 + terms_[k];
    b2 = b1;
    b1 = b0;
  }
  return x * b1 - b2 + terms_[0];
}

double FrequencyNorm(const ChiLaw& law, uint64_t seed, uint64_t index) {
  const PhiloxBlock words =
      Philox4x32(StreamCounter(RandomStream::kFrequencyNorm, index, 0), PhiloxKey(seed));
  return law.Quantile(double{UniformFloat(words[0])});
}

const ChiLaw& ThreadChiLaw(size_t dimension) {
  thread_local std::unique_ptr<const ChiLaw> law;
  if (law == nullptr || law->dimension() != dimension) {
    law = std::make_unique<const ChiLaw>(dimension);
  }
  return *law;
}

}  // namespace kernelstream
