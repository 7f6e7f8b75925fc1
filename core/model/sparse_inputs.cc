#include "core/model/sparse_inputs.h"

#include <algorithm>
#include <cstdint>

#include "core/model/scaling.h"

namespace kernelstream {
namespace {

// Values of a run: as many as leave the frequencies of one panel in the second-level cache.
constexpr size_t kRunValues = 16384;

// A multiply-add of a row without its zeros takes as long as this many of a dense one, and of many
// rows, which share the frequencies they read (measured, see tests/bench/README.md).
constexpr size_t kWorkOfNonZero = 5, kWorkOfNonZeroOfMany = 8;
constexpr size_t kManyRows = 16;
// Narrower rows are evaluated as fast with their zeros.
constexpr size_t kFewestInputs = 32;

// Coordinates of all rows, value by value.
struct Ids {
  std::vector<uint64_t> of_values;

  // Those that occur in values [begin, end), increasing.
  std::vector<uint64_t> Among(size_t begin, size_t end) const {
    std::vector<uint64_t> ids(of_values.begin() + static_cast<std::ptrdiff_t>(begin),
                              of_values.begin() + static_cast<std::ptrdiff_t>(end));
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  }
};

void AddValue(uint64_t id, float value, SparseRows& rows, Ids& ids) {
  if (value == 0) return;
  ids.of_values.push_back(id);
  rows.values.push_back(std::clamp(value, -kRawInputClip, kRawInputClip));
}

void AddRow(const RowView& row, SparseRows& rows, Ids& ids) {
  for (size_t i = 0; i < row.values.size(); ++i) {
    AddValue(row.sparse ? row.indices[i] : i, row.values[i], rows, ids);
  }
  rows.begins.push_back(rows.values.size());
}

void AddRun(size_t begin, size_t end, size_t num_rows, const Ids& ids, SparseRows& rows) {
  SparseRows::Run run = {.num_rows = num_rows, .ids = ids.Among(begin, end)};
  for (size_t i = begin; i < end; ++i) {
    const auto at = std::lower_bound(run.ids.begin(), run.ids.end(), ids.of_values[i]);
    rows.places.push_back(static_cast<uint32_t>(at - run.ids.begin()));
  }
  rows.runs.push_back(std::move(run));
}

}  // namespace

SparseRows MakeSparseRows(size_t count, absl::FunctionRef<RowView(size_t)> row) {
  SparseRows rows;
  Ids ids;
  for (size_t i = 0; i < count; ++i) AddRow(row(i), rows, ids);
  size_t first = 0;
  for (size_t i = 1; i <= count; ++i) {
    if (i < count && rows.begins[i + 1] - rows.begins[first] <= kRunValues) continue;
    AddRun(rows.begins[first], rows.begins[i], i - first, ids, rows);
    first = i;
  }
  return rows;
}

bool TakeNonZeros(ConstMatrixView x, SparseRows& rows) {
  if (x.cols < kFewestInputs) return false;
  rows = {};
  const size_t work = x.rows < kManyRows ? kWorkOfNonZero : kWorkOfNonZeroOfMany;
  const size_t most = x.rows * x.cols / work;
  std::vector<uint32_t> columns;
  std::vector<uint32_t> place_of(x.cols, 0);  // 1 for columns that occur, then its place
  for (size_t r = 0; r < x.rows; ++r) {
    const std::span<const float> row = x.row(r);
    for (size_t j = 0; j < x.cols; ++j) {
      if (row[j] == 0) continue;
      columns.push_back(static_cast<uint32_t>(j));
      rows.values.push_back(row[j]);
      place_of[j] = 1;
    }
    if (rows.values.size() > most) return false;
    rows.begins.push_back(rows.values.size());
  }
  // One run, so that frequencies that are not kept are drawn once for all rows, as for dense ones.
  SparseRows::Run run = {.num_rows = x.rows, .ids = {}};
  for (size_t j = 0; j < x.cols; ++j) {
    if (place_of[j] == 0) continue;
    place_of[j] = static_cast<uint32_t>(run.ids.size());
    run.ids.push_back(j);
  }
  rows.places.reserve(columns.size());
  for (const uint32_t column : columns) rows.places.push_back(place_of[column]);
  rows.runs.push_back(std::move(run));
  return true;
}

InputsView WithoutZeros(InputsView x, const FeatureSpec& spec, SparseRows& memory) {
  const bool can = x.sparse == nullptr && spec.takes_sparse_rows();
  return can && TakeNonZeros(x.dense, memory) ? InputsView(memory) : x;
}

CompactRows MakeCompactRows(const SampleBatch& rows, size_t max_values) {
  SparseRows sparse;
  Ids ids;
  for (size_t i = 0; i < rows.size(); ++i) AddRow(rows.row(i), sparse, ids);
  size_t count = rows.size();
  std::vector<uint64_t> columns = ids.Among(0, ids.of_values.size());
  while (count > 1 && count * columns.size() > max_values) {
    count /= 2;
    columns = ids.Among(0, sparse.begins[count]);
  }
  if (columns.empty()) columns.push_back(0);
  CompactRows compact;
  compact.values.assign(count * columns.size(), 0.0f);
  for (size_t r = 0; r < count; ++r) {
    for (size_t i = sparse.begins[r]; i < sparse.begins[r + 1]; ++i) {
      const auto at = std::lower_bound(columns.begin(), columns.end(), ids.of_values[i]);
      compact.values[r * columns.size() + static_cast<size_t>(at - columns.begin())] =
          sparse.values[i];
    }
  }
  compact.x = {compact.values.data(), count, columns.size()};
  return compact;
}

}  // namespace kernelstream
