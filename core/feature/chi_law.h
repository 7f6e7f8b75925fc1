// Lengths of normal vectors, many at a time.
#ifndef KERNELSTREAM_CORE_FEATURE_CHI_LAW_H_
#define KERNELSTREAM_CORE_FEATURE_CHI_LAW_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace kernelstream {

// Immutable. The quantile of the chi law of `dimension` degrees of freedom (1 to 65536), as a
// polynomial in the normal quantile: absolute error <= 1e-7 for u in [2^-24, 1 - 2^-24]. Making one
// takes about a millisecond at most.
class ChiLaw {
 public:
  explicit ChiLaw(size_t dimension);
  size_t dimension() const { return dimension_; }
  double Quantile(double u) const;

 private:
  static constexpr size_t kTerms = 56;
  size_t dimension_;
  size_t used_ = kTerms;  // the others are too small to matter
  std::array<double, kTerms> terms_ = {};
};

// Length of frequency `index` of `seed`, as if it were a vector of `law.dimension()` normals: the
// quantile of UniformFloat(word 0 of counter (kFrequencyNorm, index)).
double FrequencyNorm(const ChiLaw& law, uint64_t seed, uint64_t index);

// The law of this thread for `dimension`, kept until another dimension is asked for.
const ChiLaw& ThreadChiLaw(size_t dimension);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_CHI_LAW_H_
