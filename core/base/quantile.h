// Inverse cumulative distribution functions in float64, one function per law. The references
// against which faster ones are tested, and the source for draws too rare to vectorise.
//
// u in (0, 1). Relative error <= 2e-15, also in the tails and around u = 1/2 (tests/golden).
// They call the C library, so the last bit may differ between machines: nothing that must replay
// bit-equal is drawn with them (core/simd has its own).
#ifndef KERNELSTREAM_CORE_BASE_QUANTILE_H_
#define KERNELSTREAM_CORE_BASE_QUANTILE_H_

namespace kernelstream {

// N(0, 1).
double NormalQuantile(double u);

// Cauchy(0, 1): tan(pi (u - 1/2)).
double CauchyQuantile(double u);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_QUANTILE_H_
