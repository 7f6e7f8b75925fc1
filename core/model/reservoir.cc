#include "core/model/reservoir.h"

#include <algorithm>

#include "core/base/philox.h"

namespace kernelstream {

void RecentRows::Restore(const RecentRowsState& state) {
  Clear();
  for (const SampleBatch* part : {&state.previous, &state.current}) {
    for (size_t i = 0; i < part->size(); ++i) Add(*part, i);
  }
}

RecentRowsState RecentRows::Save() const { return {.previous = {}, .current = Last(kRecentRows)}; }

void RecentRows::Add(const SampleBatch& from, size_t i) {
  if (rows_.size() < kRecentRows) return rows_.AppendRow(from, i);
  rows_.ReplaceRow(oldest_, from, i);
  oldest_ = (oldest_ + 1) % kRecentRows;
}

SampleBatch RecentRows::Last(size_t count) const {
  SampleBatch last;
  const size_t size = rows_.size();
  for (size_t i = size - std::min(count, size); i < size; ++i) {
    last.AppendRow(rows_, (oldest_ + i) % size);
  }
  return last;
}

void RecentRows::Clear() {
  rows_.Clear();
  oldest_ = 0;
}

void Reservoir::Restore(const ReservoirState& state) {
  rows_ = state.rows;
  seen_ = state.seen;
  draws_ = state.draws;
  flushes_ = state.flushes;
}

ReservoirState Reservoir::Save() const {
  return {.rows = rows_, .seen = seen_, .draws = draws_, .flushes = flushes_};
}

uint64_t Reservoir::Random(uint64_t n) {
  const PhiloxBlock words =
      Philox4x32(StreamCounter(RandomStream::kReservoir, draws_++, 0), PhiloxKey(seed_));
  // The bias of the remainder is below 2^-32 for all n that fit in memory.
  return (uint64_t{words[0]} << 32 | words[1]) % n;
}

void Reservoir::Offer(const SampleBatch& from, size_t i) {
  ++seen_;
  if (rows_.size() < capacity_) return rows_.AppendRow(from, i);
  const uint64_t place = Random(seen_);
  if (place < capacity_) rows_.ReplaceRow(place, from, i);
}

void Reservoir::Draw(size_t count, SampleBatch& out) {
  if (rows_.empty()) return;
  for (size_t k = 0; k < count; ++k) out.AppendRow(rows_, Random(rows_.size()));
}

void Reservoir::Flush() {
  rows_.Clear();
  seen_ = 0;
  ++flushes_;
}

}  // namespace kernelstream
