// Rows on their way from the wire to the log and the trainer.
#ifndef KERNELSTREAM_CORE_MODEL_SAMPLE_BATCH_H_
#define KERNELSTREAM_CORE_MODEL_SAMPLE_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace kernelstream {

// One row's inputs, in memory somebody else owns. Dense: values[j] is input j. Sparse: values[i] is
// input indices[i], indices strictly increasing, everything else 0.
struct RowView {
  bool sparse = false;
  std::span<const float> values;
  std::span<const uint64_t> indices;
  // Sparse: the indices are hashes of names (core/base/named_input.h).
  bool named = false;

  // Smallest number of inputs that holds the row: values.size(), or the largest index + 1, which
  // has to be below 2^64.
  size_t MinDimension() const {
    if (!sparse) return values.size();
    return indices.empty() ? 0 : size_t{indices.back()} + 1;
  }
};

enum class TargetKind : uint8_t { kNone, kValue, kLabel, kVector, kPopulation };

// Which of two populations a row was drawn from. Density ratios are numerator / denominator.
enum class Population : uint8_t { kNumerator, kDenominator };

// A target as it was sent. Members other than the kind's own have their defaults.
struct TargetView {
  TargetKind kind = TargetKind::kNone;
  double value = 0;                // kValue
  absl::string_view label;         // kLabel
  std::span<const double> values;  // kVector: one per output
  Population population = Population::kNumerator;

  static TargetView Number(double value) {
    return {TargetKind::kValue, value, {}, {}, Population::kNumerator};
  }
  static TargetView Label(absl::string_view label) {
    return {TargetKind::kLabel, 0, label, {}, Population::kNumerator};
  }
  static TargetView Vector(std::span<const double> values) {
    return {TargetKind::kVector, 0, {}, values, Population::kNumerator};
  }
  static TargetView Of(Population population) {
    return {TargetKind::kPopulation, 0, {}, {}, population};
  }
};

// Thread-compatible. Any number of rows, dense and sparse mixed, with targets and weights, in a few
// flat arrays: no allocation per row.
class SampleBatch {
 public:
  // Dense rows of `dimension` values each, 1 or more, that stay where they are and must outlive the
  // batch and its copies. Nothing can be added to such a batch or dropped from it; Clear makes it
  // one like others. values: [rows, dimension].
  static SampleBatch ViewOf(std::span<const float> values, size_t dimension);

  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  void Clear();
  // Room for so many more rows, with so many values in all.
  void Reserve(size_t rows, size_t values);

  // Adds a row with no target and weight 1. Returns its values, to be filled in by the caller;
  // the pointer is good until the next change.
  float* AddDense(size_t num_values);
  void AddDense(std::span<const float> values);
  void AddSparse(std::span<const uint64_t> indices, std::span<const float> values);
  // The same, named.
  void AddNamed(std::span<const uint64_t> indices, std::span<const float> values);
  // About the row added last; a target takes the place of the one before it.
  void SetTarget(double value);
  void SetLabel(absl::string_view label);
  void SetTargets(std::span<const double> values);
  void SetPopulation(Population population);
  void SetWeight(float weight);
  // Copies row i of another batch to the end of this one.
  void AppendRow(const SampleBatch& from, size_t i);
  // Drops the row added last.
  void RemoveLast();

  RowView row(size_t i) const;
  TargetView target(size_t i) const;
  float weight(size_t i) const { return rows_[i].weight; }
  // Memory held by rows, roughly.
  size_t bytes() const;

 private:
  struct Row {
    size_t values_begin, values_count;
    size_t indices_begin;
    double target;
    size_t target_begin;   // of a label in labels_, of a vector in target_values_
    uint32_t target_size;  // likewise
    float weight;
    bool sparse, named;
    TargetKind kind;
    Population population;
  };
  // Where values_begin counts from.
  const float* values() const { return viewed_ != nullptr ? viewed_ : values_.data(); }
  void AddRow(size_t num_values);
  // Takes the last row's target away.
  Row& WithoutTarget();

  std::vector<Row> rows_;
  std::vector<float> values_;
  const float* viewed_ = nullptr;
  std::vector<uint64_t> indices_;
  std::string labels_;
  std::vector<double> target_values_;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_SAMPLE_BATCH_H_
