// Symmetric positive definite matrices of features: accumulate, factor, solve. Vectorised like
// simd.h, with the same layout of features and the same promise: equal bits on all targets with
// fused multiply-add, in the order of operations given here.
//
// TRIANGLES. A symmetric matrix or its Cholesky factor, [16 P, 16 P], is stored by panels of rows:
// panel p holds columns 0 ... 16 (p + 1) - 1 of rows 16 p ... 16 p + 15 as [column][16 rows] and
// starts at TriangleSize(p). The last 16 columns of a panel are its diagonal square.
//
// Thread-safe: pure functions of their arguments. Pointers need no alignment. Nothing allocates.
#ifndef KERNELSTREAM_CORE_SIMD_TRIANGLE_H_
#define KERNELSTREAM_CORE_SIMD_TRIANGLE_H_

#include <cstddef>

#include "core/simd/simd.h"

namespace kernelstream {

constexpr size_t TriangleSize(size_t num_panels) {
  return kPanelWidth * kPanelWidth * num_panels * (num_panels + 1) / 2;
}

// triangle(i, j) += sum over rows r = 0, 1, ... of features(r, i) * features(r, j): the sum starts
// at 0 and runs by fused multiply-add in float32, in row order, and is then added in float64.
// features: [num_panels][rows][16]; rows <= 1024. Relative error of the sum <= 6.5e-5 * sum |terms|
// (measured 1e-6 at 256 rows). The diagonal squares are written whole.
void AddFeatureProducts(const float* features, size_t num_panels, size_t rows, double* triangle);

// Cholesky: A = L L' in place, float64. The diagonal squares of the result hold the INVERSE of L's
// squares, which is all that solving needs. False, with the contents lost, if A is not positive
// definite to rounding. L L' = A to 1e-14 * 16 P * trace(A) / (16 P), element by element.
bool FactorTriangle(size_t num_panels, double* triangle);

// features := L^-1 features for every row, float32. factor: as FactorTriangle leaves it, rounded to
// float32. features: [num_panels][rows][16]. Row r's result does not depend on the other rows.
void SolveTriangle(const float* factor, size_t num_panels, size_t rows, float* features);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_SIMD_TRIANGLE_H_
