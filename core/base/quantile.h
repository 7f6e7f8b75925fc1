// Inverse cumulative distribution functions in float64, one function per law. The references
// against which the faster ones of core/simd are tested, and the source for draws too rare to
// vectorise.
//
// u in (0, 1). Relative error <= 4e-15 where nothing else is said, also in the tails and around
// u = 1/2 (tests/golden). Made of portable_math and square roots: the same bits on every machine.
// Source of the laws: core/kernel, at the kernel that uses each.
#ifndef KERNELSTREAM_CORE_BASE_QUANTILE_H_
#define KERNELSTREAM_CORE_BASE_QUANTILE_H_

namespace kernelstream {

// N(0, 1). u >= 1e-300.
double NormalQuantile(double u);

// Cauchy(0, 1): tan(pi (u - 1/2)).
double CauchyQuantile(double u);

// Density exp(-|w|) / 2.
double LaplaceQuantile(double u);

// Density sech(pi w), w real: log(tan(pi u / 2)) / pi.
double SechQuantile(double u);

// Density sech(pi w) / (log(2) (1 + 4 w^2)), w real. Relative error <= 2e-13; constant beyond
// |w| = 12.4 (u < 2e-18).
double JensenShannonQuantile(double u);

// Density exp(-w), w > 0, from its upper end: -log(u).
double ExponentialQuantile(double u);

// Density exp(-1 / (4 w)) / (2 sqrt(pi) w^(3/2)), w > 0; Laplace transform exp(-sqrt(s)).
// 1 / (2 z^2) with z the normal quantile of u / 2.
double LevyQuantile(double u);

// Density w^(shape - 1) exp(-w) / Gamma(shape), w > 0. shape in [0.01, 1000]. Relative error
// <= 1e-12 * max(1, 1 / shape); 0 where w is below the smallest float64. A few microseconds.
double GammaQuantile(double shape, double u);

// Length of a vector of `dimension` independent normals.
double ChiQuantile(double dimension, double u);

// -1 or +1.
double RademacherQuantile(double u);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_QUANTILE_H_
