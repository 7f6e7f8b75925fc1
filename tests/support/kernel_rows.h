// Rows that suit a kernel, for tests of every kernel of the registry.
#ifndef KERNELSTREAM_TESTS_SUPPORT_KERNEL_ROWS_H_
#define KERNELSTREAM_TESTS_SUPPORT_KERNEL_ROWS_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/kernel/kernel.h"
#include "core/model/sample_batch.h"
#include "tests/support/random.h"

namespace kernelstream {

struct KernelRows {
  SampleBatch rows;
  // Mean squared error of the best constant.
  double target_variance = 0;
};

// `count` dense rows of `dim` inputs: normal, or squares of normals with a scale for each column
// where the kernel does not take any input. Targets: a smooth function of the first two that has
// its mean on the way.
inline KernelRows RowsFor(const Kernel& kernel, size_t count, size_t dim, uint64_t seed) {
  KernelRows made;
  Random random(seed);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < count; ++i) {
    float* x = made.rows.AddDense(dim);
    for (size_t j = 0; j < dim; ++j) {
      const double z = random.Normal();
      const double scale = 1 + 20.0 * static_cast<double>(j);
      x[j] = static_cast<float>(kernel.takes_any_input() ? z : scale * z * z);
    }
    const double y = kernel.takes_any_input() ? std::sin(x[0]) + x[1] / 2
                                              : std::sqrt(x[0]) - std::sqrt(x[1] / 21) / 2;
    made.rows.SetTarget(y);
    sum += y, squares += y * y;
  }
  const auto n = static_cast<double>(count);
  made.target_variance = squares / n - sum / n * (sum / n);
  return made;
}

// A row of `dim` inputs that the kernel refuses for the last of them; empty if it takes any.
inline std::vector<float> RefusedRow(const Kernel& kernel, size_t dim) {
  std::vector<float> x(dim, 0.5f);
  for (const float value : {-0.25f, -0.5f, -1e6f}) {
    x.back() = value;
    if (!kernel.CheckInput(x).ok()) return x;
  }
  return {};
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_SUPPORT_KERNEL_ROWS_H_
