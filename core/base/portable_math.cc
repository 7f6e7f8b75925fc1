#include "core/base/portable_math.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kernelstream {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// log 2 in two parts; the first has 32 bits, so that an exponent times it is exact.
constexpr double kLog2High = 0x1.62e42feep-1;
constexpr double kLog2Low = 0x1.a39ef35793c76p-33;

constexpr int kMantissaBits = 52;
constexpr int kExponentBias = 1023;
constexpr uint64_t kSqrtHalfBits = 0x3FE6A09E667F3BCDu;

// 2^k, -1022 <= k <= 1023.
double PowerOfTwo(int k) {
  return std::bit_cast<double>(static_cast<uint64_t>(k + kExponentBias) << kMantissaBits);
}

// x = 2^exponent * mantissa, mantissa in [sqrt(1/2), sqrt(2)). x is positive and finite.
struct Split {
  double mantissa;
  double exponent;
};
Split SplitExponent(double x) {
  int64_t exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    exponent = -54;
  }
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const int64_t shift = static_cast<int64_t>(bits - kSqrtHalfBits) >> kMantissaBits;
  const uint64_t mantissa = bits - (static_cast<uint64_t>(shift) << kMantissaBits);
  return {std::bit_cast<double>(mantissa), static_cast<double>(exponent + shift)};
}

// exponent * log 2 + log(1 + f) + tail, for 1 + f in [sqrt(1/2), sqrt(2)) and a tiny tail.
// With s = f / (2 + f): log(1 + f) = 2 atanh(s) = 2 s + s r(s^2), r(z) = 2 (z/3 + z^2/5 + ...). As
// 2 s = f - s f, and s f = h - s h with h = f^2 / 2, the rounding of s reaches only the small
// terms: log(1 + f) = f - (h - s (h + r)).
double AddLog(double exponent, double f, double tail) {
  const double s = f / (2 + f);
  const double z = s * s;
  double r = 0;  // z <= 0.0295: the first neglected term is below 2^-62
  for (int n = 23; n >= 3; n -= 2) r = z * (r + 2.0 / n);
  const double h = 0.5 * f * f;
  return exponent * kLog2High + (f - (h - (s * (h + r) + (exponent * kLog2Low + tail))));
}

}  // namespace

double PortableExp(double x) {
  if (x != x) return x;
  if (x > 709.79) return kInfinity;
  if (x < -745.14) return 0;
  const double scaled = x * 0x1.71547652b82fep+0;  // x / log 2
  const int k = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  // x - k log 2 = high - low, at most 0.3466.
  const double high = x - k * kLog2High;
  const double low = k * kLog2Low;
  const double r = high - low;
  // exp(r) = 1 + r + r^2 (1/2! + r/3! + ...); the first neglected term is below 2^-61.
  constexpr double kInverseFactorial[] = {1.0 / 2,
                                          1.0 / 6,
                                          1.0 / 24,
                                          1.0 / 120,
                                          1.0 / 720,
                                          1.0 / 5040,
                                          1.0 / 40320,
                                          1.0 / 362880,
                                          1.0 / 3628800,
                                          1.0 / 39916800,
                                          1.0 / 479001600,
                                          1.0 / 6227020800.0,
                                          1.0 / 87178291200.0};
  double p = 0;
  for (int n = 12; n >= 0; --n) p = p * r + kInverseFactorial[n];
  const double lost = (high - r) - low;  // rounding of r
  const double value = 1 + (r + (r * r * p + lost));
  if (k > 1023) return value * 0x1p1023 * PowerOfTwo(k - 1023);
  if (k < -1022) return value * PowerOfTwo(k + 64) * 0x1p-64;
  return value * PowerOfTwo(k);
}

double PortableLog(double x) {
  if (x != x) return x;
  if (x < 0) return kNan;
  if (x == 0) return -kInfinity;
  if (x == kInfinity) return x;
  const Split split = SplitExponent(x);
  return AddLog(split.exponent, split.mantissa - 1, 0);
}

double PortableLog1p(double x) {
  if (x != x) return x;
  if (x < -1) return kNan;
  if (x == -1) return -kInfinity;
  if (x == kInfinity) return x;
  if (x > -0x1p-54 && x < 0x1p-54) return x;  // keeps subnormals and the sign of zero
  if (x > -0.29 && x < 0.41) return AddLog(0, x, 0);
  const double u = 1 + x;
  const double lost = x > 1 ? 1 - (u - x) : x - (u - 1);
  const Split split = SplitExponent(u);
  return AddLog(split.exponent, split.mantissa - 1, lost / u);
}

double PortableSoftplus(double x) {
  return std::max(0.0, x) + PortableLog1p(PortableExp(-std::abs(x)));
}

double PortableTanPi(double x) {
  // Taylor series of sin(pi x) / x and cos(pi x) in x^2 <= 1/16.
  constexpr double kSine[] = {0x1.921fb54442d18p+1,  -0x1.4abbce625be53p+2, 0x1.466bc6775aae2p+1,
                              -0x1.32d2cce62bd86p-1, 0x1.50783487ee782p-4,  -0x1.e3074fde8871fp-8,
                              0x1.e8f434d018d63p-12, -0x1.6fadb9f155744p-16};
  constexpr double kCosine[] = {
      0x1.0000000000000p+0,  -0x1.3bd3cc9be45dep+2,  0x1.03c1f081b5ac4p+2,
      -0x1.55d3c7e3cbffap+0, 0x1.e1f506891babbp-3,   -0x1.a6d1f2a204a8cp-6,
      0x1.f9d38a3763cc3p-10, -0x1.b6e24f44b128fp-14, 0x1.20c62c2f2d7f5p-18};
  const double z = x * x;
  double sine = 0, cosine = 0;
  for (int n = 7; n >= 0; --n) sine = sine * z + kSine[n];
  for (int n = 8; n >= 0; --n) cosine = cosine * z + kCosine[n];
  return x * sine / cosine;
}

double PortableAtan2(double y, double x) {
  constexpr double kQuarterPi = 0x1.921fb54442d18p-1;
  if (x == 0 && y == 0) return 0;
  const double t = y < x ? y / x : x / y;
  // atan(t) = pi / 4 + atan((t - 1) / (t + 1)): |s| <= tan(pi / 8).
  const bool is_large = t > 0x1.a82799fcef32cp-2;
  const double s = is_large ? (t - 1) / (t + 1) : t;
  const double z = -s * s;
  double sum = 0;  // the first neglected term is below 2^-57
  for (int n = 43; n >= 3; n -= 2) sum = z * (sum + 1.0 / n);
  const double angle = (s + s * sum) + (is_large ? kQuarterPi : 0);
  return y < x ? angle : 2 * kQuarterPi - angle;
}

double PortableLogGamma(double x) {
  // Gamma(x) = Gamma(x + n) / (x (x + 1) ... (x + n - 1)); Stirling's series from 15 on.
  double product = 1;
  while (x < 15) product *= x, x += 1;
  constexpr double kStirling[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                  1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  const double inverse = 1 / x, square = inverse * inverse;
  double series = 0;
  for (int n = 7; n >= 0; --n) series = series * square + kStirling[n];
  constexpr double kHalfLogTwoPi = 0x1.d67f1c864beb5p-1;
  return (x - 0.5) * PortableLog(x) - x + kHalfLogTwoPi + series * inverse - PortableLog(product);
}

}  // namespace kernelstream
