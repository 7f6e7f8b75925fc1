// The one-dimensional laws from which frequencies are drawn.
#ifndef KERNELSTREAM_CORE_BASE_SPECTRAL_LAW_H_
#define KERNELSTREAM_CORE_BASE_SPECTRAL_LAW_H_

namespace kernelstream {

// Law of one coordinate of a frequency at unit bandwidth; coordinates are independent. Densities
// and inverse distribution functions: core/base/quantile.h.
enum class SpectralLaw {
  kNormal,
  kCauchy,
  kLaplace,
  kSech,
  kJensenShannon,
  kExponential,
  kLevy,
  kRademacher,
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_SPECTRAL_LAW_H_
