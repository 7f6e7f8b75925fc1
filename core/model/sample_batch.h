// Rows on their way from the wire to the log and the trainer.
#ifndef KERNELSTREAM_CORE_MODEL_SAMPLE_BATCH_H_
#define KERNELSTREAM_CORE_MODEL_SAMPLE_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
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

namespace sample_batch_internal {

// What a batch holds.
struct Columns {
  // Where a row's inputs are.
  struct Place {
    size_t values_begin, indices_begin;
    uint32_t count;
    bool sparse, named;
  };

  size_t size_ = 0;
  size_t expected_rows_ = 0;   // Reserve
  size_t dimension_ = 0;       // of all rows, while places_ is empty
  std::vector<Place> places_;  // empty: all rows are dense, of one size, one after the other
  std::vector<float> values_;
  const float* viewed_ = nullptr;
  std::vector<uint64_t> indices_;
  std::vector<float> weights_;  // empty: all 1
  // Of targets; empty: there are none. A number's bits, a population, or where a label or vector
  // begins.
  std::vector<TargetKind> kinds_;
  std::vector<uint64_t> numbers_;
  std::vector<uint32_t> target_sizes_;  // of labels and vectors; empty: there are none
  std::string labels_;
  std::vector<double> target_values_;
  size_t unused_bytes_ = 0;  // of values, indices, labels and vectors that no row has any more
};

}  // namespace sample_batch_internal

// Thread-compatible. Any number of rows, dense and sparse mixed, with targets and weights, in a few
// flat arrays: no allocation per row. An array is there only once a row needs it: dense rows of one
// size with numbers as targets take their values and 9 bytes.
class SampleBatch : private sample_batch_internal::Columns {
 public:
  SampleBatch() = default;
  SampleBatch(const SampleBatch&) = default;
  SampleBatch& operator=(const SampleBatch&) = default;
  // What is moved from is empty.
  SampleBatch(SampleBatch&& other) noexcept
      : Columns(std::exchange(static_cast<Columns&>(other), Columns())) {}
  SampleBatch& operator=(SampleBatch&& other) noexcept {
    Columns::operator=(std::exchange(static_cast<Columns&>(other), Columns()));
    return *this;
  }

  // Dense rows of `dimension` values each, 1 or more, that stay where they are and must outlive the
  // batch and its copies. Nothing can be added to such a batch or dropped from it; Clear makes it
  // one like others. values: [rows, dimension].
  static SampleBatch ViewOf(std::span<const float> values, size_t dimension);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
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
  // Copies row i of another batch to where row `at` is. Takes no more memory if the row before was
  // as sparse and had as many values and as large a target; however often it is done, at most half
  // of bytes() belongs to rows that have gone.
  void ReplaceRow(size_t at, const SampleBatch& from, size_t i);
  // Drops the row added last.
  void RemoveLast();

  RowView row(size_t i) const;
  TargetView target(size_t i) const;
  float weight(size_t i) const { return weights_.empty() ? 1.0f : weights_[i]; }
  // Memory held by rows, roughly.
  size_t bytes() const;

 private:
  // Where Place::values_begin counts from.
  const float* values() const { return viewed_ != nullptr ? viewed_ : values_.data(); }
  Place place(size_t i) const;
  // Adds a row of dense values, which the caller has to add.
  void AddRow(size_t num_values);
  void AddPlaces();
  void MakeLastSparse(std::span<const uint64_t> indices, bool named);
  void SetTarget(size_t i, const TargetView& target);
  void SetWeight(size_t i, float weight);
  void RemoveInputs(const Place& place);
  void RemoveTarget(size_t i);
  // False: it is of another kind or size than the one before.
  bool OverwriteTarget(size_t i, const TargetView& target);
  // Copies the rows to new memory, without what none of them has any more.
  void Compact();
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_SAMPLE_BATCH_H_
