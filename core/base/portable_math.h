// Elementary functions with the same bits on every machine: only +, -, *, / and bit operations, in
// a fixed order. The C library picks other code on CPUs with fused multiply-add, so its last bit
// differs between machines; training must not.
//
// exp, log, log1p: error below 1 ulp (measured 0.86, 0.80, 0.80), below 1.5 ulp where exp is
// subnormal. NaN gives NaN; the ends as the C library: exp(-inf) = 0, exp(> 709.78) = inf, log(0) =
// -inf, log(< 0) = NaN, log1p(-1) = -inf. Needs -ffp-contract=off and SSE2 or better (no x87): the
// build sees to both.
#ifndef KERNELSTREAM_CORE_BASE_PORTABLE_MATH_H_
#define KERNELSTREAM_CORE_BASE_PORTABLE_MATH_H_

namespace kernelstream {

double PortableExp(double x);
double PortableLog(double x);
// log(1 + x), accurate for small x too.
double PortableLog1p(double x);
// log(1 + exp(x)), x finite, without overflow. Error below 3 ulp.
double PortableSoftplus(double x);

// tan(pi x), |x| <= 1/4. Error below 3 ulp.
double PortableTanPi(double x);
// Angle of the point (x, y), x >= 0, y >= 0: 0 to pi/2; 0 for (0, 0). Error below 3 ulp.
double PortableAtan2(double y, double x);
// log(Gamma(x)), x > 0. Absolute error <= 2e-14 * max(1, |value|).
double PortableLogGamma(double x);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_PORTABLE_MATH_H_
