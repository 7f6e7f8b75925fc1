// Projections on structured frequencies in O(n log n) for n of them.
#ifndef KERNELSTREAM_CORE_SIMD_HADAMARD_H_
#define KERNELSTREAM_CORE_SIMD_HADAMARD_H_

#include <cstddef>
#include <cstdint>

#include "core/base/matrix_view.h"

namespace kernelstream {

// The draws of `size` frequencies, size a power of two and at least 16: frequency i is row i of
//   diag(scales) H diag(gains) P H diag(signs),
// H the Walsh-Hadamard matrix with entries +-1, (P v)_i = v[places[i]]. Arrays of `size`.
struct HadamardGroup {
  size_t size = 0;
  const float* signs = nullptr;     // -1 or +1
  const int32_t* places = nullptr;  // a permutation of 0 ... size - 1
  const float* gains = nullptr;
  const float* scales = nullptr;
};

inline constexpr size_t kHadamardScratch = 8;

// Projections of rows, x.cols <= size, on frequencies 16 first_panel ... 16 (first_panel +
// num_panels) - 1 of the group: frequency 16 (first_panel + p) + l of row r goes to out[p][16 r +
// l]. scratch: kHadamardScratch size floats. Sums are butterflies over index bits 0, 1, 2, ... (a + b, a - b), so
// all targets give the same bits, also those without fused multiply-add. Error of a projection
// <= 2e-7 log2(size) times the scale, the length of x and the sum of squares' root of the gains,
// times sqrt(size).
void HadamardProjections(const HadamardGroup& group, ConstMatrixView x, size_t first_panel,
                         size_t num_panels, float* scratch, float* const* out);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_SIMD_HADAMARD_H_
