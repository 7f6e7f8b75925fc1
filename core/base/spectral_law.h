// The one-dimensional laws from which frequencies are drawn.
#ifndef KERNELSTREAM_CORE_BASE_SPECTRAL_LAW_H_
#define KERNELSTREAM_CORE_BASE_SPECTRAL_LAW_H_

namespace kernelstream {

// Law of one coordinate of a frequency at unit bandwidth; coordinates are independent.
// kNormal: N(0, 1) (Gaussian kernel). kCauchy: Cauchy(0, 1) (Laplacian kernel).
enum class SpectralLaw { kNormal, kCauchy };

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_SPECTRAL_LAW_H_
