#include "core/model/linear_solve.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>

namespace kernelstream {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Eigen chooses block sizes, and with them the order of sums, from the sizes of the caches it
// finds. Fixed sizes give fixed bits.
bool FixBlockSizes() {
  Eigen::setCpuCacheSizes(32 << 10, 256 << 10, 2 << 20);
  return true;
}

}  // namespace

void SolvePositiveDefinite(size_t n, size_t columns, std::span<double> a,
                           std::span<double> right_sides) {
  static const bool fixed = FixBlockSizes();
  static_cast<void>(fixed);
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::Map<Matrix> matrix(a.data(), size, size);
  Eigen::Map<Matrix> x(right_sides.data(), size, static_cast<Eigen::Index>(columns));
  const double trace = matrix.trace();
  double raise = 1e-12 * trace / static_cast<double>(n);
  Eigen::LLT<Matrix> cholesky(matrix);
  while (cholesky.info() != Eigen::Success) {
    matrix.diagonal().array() += raise;
    raise *= 10;
    cholesky.compute(matrix);
  }
  cholesky.solveInPlace(x);
}

}  // namespace kernelstream
