// Small dense systems.
#ifndef KERNELSTREAM_CORE_MODEL_LINEAR_SOLVE_H_
#define KERNELSTREAM_CORE_MODEL_LINEAR_SOLVE_H_

#include <cstddef>
#include <span>

namespace kernelstream {

// Solves A x = b for a symmetric positive definite A [n, n] (overwritten) and `columns` right-hand
// sides, b and x in right_sides [n][columns]. Cholesky in float64. Where rounding leaves A not
// positive definite, its diagonal is raised until it is. Same bits on every machine for the same
// binary. All values finite.
void SolvePositiveDefinite(size_t n, size_t columns, std::span<double> a,
                           std::span<double> right_sides);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_LINEAR_SOLVE_H_
