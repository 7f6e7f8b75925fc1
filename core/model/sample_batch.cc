#include "core/model/sample_batch.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace kernelstream {
namespace {

// Appends, and returns where: 0 for nothing, which is there whatever is dropped later.
template <typename Array, typename From>
size_t Append(const From& from, Array& array) {
  if (from.empty()) return 0;
  array.insert(array.end(), from.begin(), from.end());
  return array.size() - from.size();
}

// Drops the `count` elements from `begin` on if they are the last ones. Returns how many bytes stay
// without use.
template <typename Array>
size_t Drop(Array& array, size_t begin, size_t count) {
  if (count == 0 || begin + count != array.size()) return count * sizeof(array[0]);
  array.resize(begin);
  return 0;
}

}  // namespace

SampleBatch SampleBatch::ViewOf(std::span<const float> values, size_t dimension) {
  SampleBatch batch;
  batch.size_ = values.size() / dimension;
  batch.dimension_ = dimension;
  batch.viewed_ = values.data();
  return batch;
}

void SampleBatch::Reserve(size_t rows, size_t values) {
  values_.reserve(values_.size() + values);
  expected_rows_ = size_ + rows;
}

void SampleBatch::Clear() {
  size_ = expected_rows_ = 0;
  places_.clear();
  values_.clear();
  viewed_ = nullptr;
  indices_.clear();
  weights_.clear();
  kinds_.clear();
  numbers_.clear();
  target_sizes_.clear();
  labels_.clear();
  target_values_.clear();
  unused_bytes_ = 0;
}

SampleBatch::Place SampleBatch::place(size_t i) const {
  if (!places_.empty()) return places_[i];
  return {.values_begin = i * dimension_,
          .indices_begin = 0,
          .count = static_cast<uint32_t>(dimension_),
          .sparse = false,
          .named = false};
}

void SampleBatch::AddPlaces() {
  if (!places_.empty()) return;
  std::vector<Place> places(size_);
  for (size_t i = 0; i < size_; ++i) places[i] = place(i);
  places_ = std::move(places);
}

void SampleBatch::AddRow(size_t num_values) {
  assert(viewed_ == nullptr);
  if (size_ == 0) dimension_ = num_values;
  if (num_values != dimension_) AddPlaces();
  if (!places_.empty()) {
    places_.push_back({.values_begin = num_values == 0 ? 0 : values_.size(),
                       .indices_begin = 0,
                       .count = static_cast<uint32_t>(num_values),
                       .sparse = false,
                       .named = false});
  }
  if (!weights_.empty()) weights_.push_back(1.0f);
  if (!kinds_.empty()) {
    kinds_.push_back(TargetKind::kNone);
    numbers_.push_back(0);
  }
  if (!target_sizes_.empty()) target_sizes_.push_back(0);
  ++size_;
}

float* SampleBatch::AddDense(size_t num_values) {
  AddRow(num_values);
  values_.resize(values_.size() + num_values);
  return values_.data() + values_.size() - num_values;
}

void SampleBatch::AddDense(std::span<const float> values) {
  AddRow(values.size());
  values_.insert(values_.end(), values.begin(), values.end());
}

void SampleBatch::MakeLastSparse(std::span<const uint64_t> indices, bool named) {
  AddPlaces();
  Place& last = places_.back();
  last.sparse = true;
  last.named = named;
  last.indices_begin = Append(indices, indices_);
}

void SampleBatch::AddSparse(std::span<const uint64_t> indices, std::span<const float> values) {
  AddDense(values);
  MakeLastSparse(indices, false);
}

void SampleBatch::AddNamed(std::span<const uint64_t> indices, std::span<const float> values) {
  AddDense(values);
  MakeLastSparse(indices, true);
}

void SampleBatch::RemoveInputs(const Place& place) {
  unused_bytes_ += Drop(values_, place.values_begin, place.count);
  if (place.sparse) unused_bytes_ += Drop(indices_, place.indices_begin, place.count);
}

void SampleBatch::RemoveTarget(size_t i) {
  if (kinds_.empty()) return;
  if (kinds_[i] == TargetKind::kLabel) {
    unused_bytes_ += Drop(labels_, numbers_[i], target_sizes_[i]);
  } else if (kinds_[i] == TargetKind::kVector) {
    unused_bytes_ += Drop(target_values_, numbers_[i], target_sizes_[i]);
  }
  kinds_[i] = TargetKind::kNone;
}

bool SampleBatch::OverwriteTarget(size_t i, const TargetView& target) {
  if (target_sizes_.empty() || kinds_[i] != target.kind) return false;
  if (target.kind == TargetKind::kLabel && target.label.size() == target_sizes_[i]) {
    std::copy(target.label.begin(), target.label.end(), labels_.data() + numbers_[i]);
    return true;
  }
  if (target.kind == TargetKind::kVector && target.values.size() == target_sizes_[i]) {
    std::copy(target.values.begin(), target.values.end(), target_values_.data() + numbers_[i]);
    return true;
  }
  return false;
}

void SampleBatch::SetTarget(size_t i, const TargetView& target) {
  if (OverwriteTarget(i, target)) return;
  RemoveTarget(i);
  if (target.kind == TargetKind::kNone) return;
  if (kinds_.empty()) {
    kinds_.reserve(expected_rows_);
    numbers_.reserve(expected_rows_);
    kinds_.resize(size_, TargetKind::kNone);
    numbers_.resize(size_);
  }
  kinds_[i] = target.kind;
  switch (target.kind) {
    case TargetKind::kNone:
      break;
    case TargetKind::kValue:
      numbers_[i] = std::bit_cast<uint64_t>(target.value);
      break;
    case TargetKind::kLabel:
      target_sizes_.resize(size_);
      target_sizes_[i] = static_cast<uint32_t>(target.label.size());
      numbers_[i] = Append(target.label, labels_);
      break;
    case TargetKind::kVector:
      target_sizes_.resize(size_);
      target_sizes_[i] = static_cast<uint32_t>(target.values.size());
      numbers_[i] = Append(target.values, target_values_);
      break;
    case TargetKind::kPopulation:
      numbers_[i] = static_cast<uint64_t>(target.population);
      break;
  }
}

void SampleBatch::SetTarget(double value) { SetTarget(size_ - 1, TargetView::Number(value)); }

void SampleBatch::SetLabel(absl::string_view label) {
  SetTarget(size_ - 1, TargetView::Label(label));
}

void SampleBatch::SetTargets(std::span<const double> values) {
  SetTarget(size_ - 1, TargetView::Vector(values));
}

void SampleBatch::SetPopulation(Population population) {
  SetTarget(size_ - 1, TargetView::Of(population));
}

void SampleBatch::SetWeight(size_t i, float weight) {
  if (weights_.empty() && weight == 1) return;
  weights_.resize(size_, 1.0f);
  weights_[i] = weight;
}

void SampleBatch::SetWeight(float weight) { SetWeight(size_ - 1, weight); }

void SampleBatch::AppendRow(const SampleBatch& from, size_t i) {
  const RowView source = from.row(i);
  AddDense(source.values);
  if (source.sparse) MakeLastSparse(source.indices, source.named);
  SetTarget(size_ - 1, from.target(i));
  SetWeight(from.weight(i));
}

void SampleBatch::ReplaceRow(size_t at, const SampleBatch& from, size_t i) {
  assert(viewed_ == nullptr);
  const RowView source = from.row(i);
  const Place old = place(at);
  if (source.values.size() == old.count && source.sparse == old.sparse) {
    std::copy(source.values.begin(), source.values.end(), values_.data() + old.values_begin);
    std::copy(source.indices.begin(), source.indices.end(), indices_.data() + old.indices_begin);
    if (source.named != old.named) places_[at].named = source.named;
  } else {
    AddPlaces();
    RemoveInputs(old);
    places_[at] = {.values_begin = Append(source.values, values_),
                   .indices_begin = Append(source.indices, indices_),
                   .count = static_cast<uint32_t>(source.values.size()),
                   .sparse = source.sparse,
                   .named = source.named};
  }
  SetTarget(at, from.target(i));
  SetWeight(at, from.weight(i));
  if (2 * unused_bytes_ > bytes()) Compact();
}

void SampleBatch::Compact() {
  SampleBatch fresh;
  for (size_t i = 0; i < size_; ++i) fresh.AppendRow(*this, i);
  *this = std::move(fresh);
}

void SampleBatch::RemoveLast() {
  assert(viewed_ == nullptr);
  RemoveTarget(size_ - 1);
  RemoveInputs(place(size_ - 1));
  --size_;
  if (!places_.empty()) places_.pop_back();
  if (!weights_.empty()) weights_.pop_back();
  if (!kinds_.empty()) {
    kinds_.pop_back();
    numbers_.pop_back();
  }
  if (!target_sizes_.empty()) target_sizes_.pop_back();
  if (size_ == 0) Clear();  // also of what no row has any more
}

RowView SampleBatch::row(size_t i) const {
  const Place at = place(i);
  RowView view;
  view.sparse = at.sparse;
  view.named = at.named;
  view.values = {values() + at.values_begin, at.count};
  if (at.sparse) view.indices = {indices_.data() + at.indices_begin, at.count};
  return view;
}

TargetView SampleBatch::target(size_t i) const {
  if (kinds_.empty()) return {};
  switch (kinds_[i]) {
    case TargetKind::kNone:
      break;
    case TargetKind::kValue:
      return TargetView::Number(std::bit_cast<double>(numbers_[i]));
    case TargetKind::kLabel:
      return TargetView::Label(absl::string_view(labels_).substr(numbers_[i], target_sizes_[i]));
    case TargetKind::kVector:
      return TargetView::Vector({target_values_.data() + numbers_[i], target_sizes_[i]});
    case TargetKind::kPopulation:
      return TargetView::Of(static_cast<Population>(numbers_[i]));
  }
  return {};
}

size_t SampleBatch::bytes() const {
  return places_.size() * sizeof(Place) + values_.size() * sizeof(float) +
         indices_.size() * sizeof(uint64_t) + weights_.size() * sizeof(float) +
         kinds_.size() * (sizeof(TargetKind) + sizeof(uint64_t)) +
         target_sizes_.size() * sizeof(uint32_t) + labels_.size() +
         target_values_.size() * sizeof(double);
}

}  // namespace kernelstream
