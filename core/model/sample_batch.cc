#include "core/model/sample_batch.h"

#include <algorithm>

namespace kernelstream {

void SampleBatch::Clear() {
  rows_.clear();
  values_.clear();
  indices_.clear();
  labels_.clear();
}

float* SampleBatch::AddDense(size_t num_values) {
  Row row{};
  row.values_begin = values_.size();
  row.values_count = num_values;
  row.indices_begin = indices_.size();
  row.label_begin = labels_.size();
  row.weight = 1.0f;
  rows_.push_back(row);
  values_.resize(values_.size() + num_values);
  return values_.data() + row.values_begin;
}

void SampleBatch::AddDense(std::span<const float> values) {
  std::copy(values.begin(), values.end(), AddDense(values.size()));
}

void SampleBatch::AddSparse(std::span<const uint32_t> indices, std::span<const float> values) {
  std::copy(values.begin(), values.end(), AddDense(values.size()));
  indices_.insert(indices_.end(), indices.begin(), indices.end());
  rows_.back().sparse = true;
}

void SampleBatch::SetTarget(double value) {
  rows_.back().target = value;
  rows_.back().is_label = false;
}

void SampleBatch::SetLabel(absl::string_view label) {
  Row& row = rows_.back();
  labels_.resize(row.label_begin);
  labels_.append(label.data(), label.size());
  row.label_size = static_cast<uint32_t>(label.size());
  row.is_label = true;
}

void SampleBatch::SetWeight(float weight) { rows_.back().weight = weight; }

void SampleBatch::AppendRow(const SampleBatch& from, size_t i) {
  const RowView source = from.row(i);
  if (source.sparse) {
    AddSparse(source.indices, source.values);
  } else {
    AddDense(source.values);
  }
  const TargetView target = from.target(i);
  if (target.is_label) {
    SetLabel(target.label);
  } else {
    SetTarget(target.value);
  }
  SetWeight(from.weight(i));
}

void SampleBatch::RemoveLast() {
  const Row row = rows_.back();
  rows_.pop_back();
  values_.resize(row.values_begin);
  indices_.resize(row.indices_begin);
  labels_.resize(row.label_begin);
}

RowView SampleBatch::row(size_t i) const {
  const Row& row = rows_[i];
  RowView view;
  view.sparse = row.sparse;
  view.values = {values_.data() + row.values_begin, row.values_count};
  if (row.sparse) view.indices = {indices_.data() + row.indices_begin, row.values_count};
  return view;
}

TargetView SampleBatch::target(size_t i) const {
  const Row& row = rows_[i];
  TargetView view;
  view.is_label = row.is_label;
  view.value = row.target;
  if (row.is_label) view.label = absl::string_view(labels_).substr(row.label_begin, row.label_size);
  return view;
}

size_t SampleBatch::bytes() const {
  return rows_.size() * sizeof(Row) + values_.size() * sizeof(float) +
         indices_.size() * sizeof(uint32_t) + labels_.size();
}

}  // namespace kernelstream
