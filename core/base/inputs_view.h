// Rows of inputs that somebody else owns: all values, or those that are not zero.
#ifndef KERNELSTREAM_CORE_BASE_INPUTS_VIEW_H_
#define KERNELSTREAM_CORE_BASE_INPUTS_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/matrix_view.h"

namespace kernelstream {

// Most values of a row; of a sparse row whose indices are hashes, most that are not zero.
inline constexpr uint32_t kMaxInputDimension = 65536;

// Thread-compatible. Rows without their zeros; coordinates are any numbers below 2^64. Rows come in
// runs, so that what is made for the coordinates of one run fits in the caches.
struct SparseRows {
  struct Run {
    size_t num_rows = 0;
    std::vector<uint64_t> ids;  // coordinates of the run's rows, increasing
  };
  std::vector<Run> runs;
  // Row r has the values [begins[r], begins[r + 1]), value i at coordinate ids[places[i]] of the
  // row's run, places increasing within a row.
  std::vector<size_t> begins = {0};
  std::vector<uint32_t> places;
  std::vector<float> values;

  size_t rows() const { return begins.size() - 1; }
  std::span<const float> row_values(size_t r) const {
    return {values.data() + begins[r], begins[r + 1] - begins[r]};
  }
  std::span<const uint32_t> row_places(size_t r) const {
    return {places.data() + begins[r], begins[r + 1] - begins[r]};
  }
};

// One or the other. Owns nothing.
struct InputsView {
  size_t rows = 0;
  ConstMatrixView dense;
  const SparseRows* sparse = nullptr;  // null: dense

  InputsView() = default;
  InputsView(ConstMatrixView x) : rows(x.rows), dense(x) {}        // NOLINT: as an argument
  InputsView(const SparseRows& x) : rows(x.rows()), sparse(&x) {}  // NOLINT: likewise
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_INPUTS_VIEW_H_
