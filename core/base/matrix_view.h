// Views of float32 matrices that somebody else owns.
#ifndef KERNELSTREAM_CORE_BASE_MATRIX_VIEW_H_
#define KERNELSTREAM_CORE_BASE_MATRIX_VIEW_H_

#include <cstddef>
#include <span>

namespace kernelstream {

// Row-major [rows, cols], float32. Row r starts at data + r * stride; stride >= cols, in floats.
// A view owns nothing: the memory must outlive it.
struct ConstMatrixView {
  const float* data = nullptr;
  size_t rows = 0;
  size_t cols = 0;
  size_t stride = 0;

  ConstMatrixView() = default;
  ConstMatrixView(const float* d, size_t r, size_t c) : data(d), rows(r), cols(c), stride(c) {}
  ConstMatrixView(const float* d, size_t r, size_t c, size_t s)
      : data(d), rows(r), cols(c), stride(s) {}

  std::span<const float> row(size_t r) const { return {data + r * stride, cols}; }
  // Rows [first, first + count).
  ConstMatrixView Rows(size_t first, size_t count) const {
    return {data + first * stride, count, cols, stride};
  }
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_MATRIX_VIEW_H_
