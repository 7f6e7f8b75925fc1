#include "core/model/sample_batch.h"

#include <algorithm>
#include <cassert>

namespace kernelstream {

SampleBatch SampleBatch::ViewOf(std::span<const float> values, size_t dimension) {
  SampleBatch batch;
  const size_t rows = values.size() / dimension;
  batch.rows_.reserve(rows);
  for (size_t i = 0; i < rows; ++i) {
    batch.AddRow(dimension);
    batch.rows_.back().values_begin = i * dimension;
  }
  batch.viewed_ = values.data();
  return batch;
}

void SampleBatch::Reserve(size_t rows, size_t values) {
  rows_.reserve(rows_.size() + rows);
  values_.reserve(values_.size() + values);
}

void SampleBatch::Clear() {
  rows_.clear();
  values_.clear();
  viewed_ = nullptr;
  indices_.clear();
  labels_.clear();
  target_values_.clear();
}

void SampleBatch::AddRow(size_t num_values) {
  assert(viewed_ == nullptr);
  Row row{};
  row.values_begin = values_.size();
  row.values_count = num_values;
  row.indices_begin = indices_.size();
  row.weight = 1.0f;
  rows_.push_back(row);
}

float* SampleBatch::AddDense(size_t num_values) {
  AddRow(num_values);
  values_.resize(values_.size() + num_values);
  return values_.data() + rows_.back().values_begin;
}

void SampleBatch::AddDense(std::span<const float> values) {
  AddRow(values.size());
  values_.insert(values_.end(), values.begin(), values.end());
}

void SampleBatch::AddSparse(std::span<const uint64_t> indices, std::span<const float> values) {
  AddDense(values);
  indices_.insert(indices_.end(), indices.begin(), indices.end());
  rows_.back().sparse = true;
}

void SampleBatch::AddNamed(std::span<const uint64_t> indices, std::span<const float> values) {
  AddSparse(indices, values);
  rows_.back().named = true;
}

SampleBatch::Row& SampleBatch::WithoutTarget() {
  Row& row = rows_.back();
  if (row.kind == TargetKind::kLabel) labels_.resize(row.target_begin);
  if (row.kind == TargetKind::kVector) target_values_.resize(row.target_begin);
  row.kind = TargetKind::kNone;
  row.target = 0;
  return row;
}

void SampleBatch::SetTarget(double value) {
  Row& row = WithoutTarget();
  row.kind = TargetKind::kValue;
  row.target = value;
}

void SampleBatch::SetLabel(absl::string_view label) {
  Row& row = WithoutTarget();
  row.kind = TargetKind::kLabel;
  row.target_begin = labels_.size();
  row.target_size = static_cast<uint32_t>(label.size());
  labels_.append(label.data(), label.size());
}

void SampleBatch::SetTargets(std::span<const double> values) {
  Row& row = WithoutTarget();
  row.kind = TargetKind::kVector;
  row.target_begin = target_values_.size();
  row.target_size = static_cast<uint32_t>(values.size());
  target_values_.insert(target_values_.end(), values.begin(), values.end());
}

void SampleBatch::SetPopulation(Population population) {
  Row& row = WithoutTarget();
  row.kind = TargetKind::kPopulation;
  row.population = population;
}

void SampleBatch::SetWeight(float weight) { rows_.back().weight = weight; }

void SampleBatch::AppendRow(const SampleBatch& from, size_t i) {
  const RowView source = from.row(i);
  if (source.sparse) {
    AddSparse(source.indices, source.values);
    rows_.back().named = source.named;
  } else {
    AddDense(source.values);
  }
  const TargetView target = from.target(i);
  switch (target.kind) {
    case TargetKind::kNone:
      break;
    case TargetKind::kValue:
      SetTarget(target.value);
      break;
    case TargetKind::kLabel:
      SetLabel(target.label);
      break;
    case TargetKind::kVector:
      SetTargets(target.values);
      break;
    case TargetKind::kPopulation:
      SetPopulation(target.population);
      break;
  }
  SetWeight(from.weight(i));
}

void SampleBatch::RemoveLast() {
  assert(viewed_ == nullptr);
  const Row& row = WithoutTarget();
  values_.resize(row.values_begin);
  indices_.resize(row.indices_begin);
  rows_.pop_back();
}

RowView SampleBatch::row(size_t i) const {
  const Row& row = rows_[i];
  RowView view;
  view.sparse = row.sparse;
  view.named = row.named;
  view.values = {values() + row.values_begin, row.values_count};
  if (row.sparse) view.indices = {indices_.data() + row.indices_begin, row.values_count};
  return view;
}

TargetView SampleBatch::target(size_t i) const {
  const Row& row = rows_[i];
  switch (row.kind) {
    case TargetKind::kNone:
      break;
    case TargetKind::kValue:
      return TargetView::Number(row.target);
    case TargetKind::kLabel:
      return TargetView::Label(
          absl::string_view(labels_).substr(row.target_begin, row.target_size));
    case TargetKind::kVector:
      return TargetView::Vector({target_values_.data() + row.target_begin, row.target_size});
    case TargetKind::kPopulation:
      return TargetView::Of(row.population);
  }
  return {};
}

size_t SampleBatch::bytes() const {
  return rows_.size() * sizeof(Row) + values_.size() * sizeof(float) +
         indices_.size() * sizeof(uint64_t) + labels_.size() +
         target_values_.size() * sizeof(double);
}

}  // namespace kernelstream
