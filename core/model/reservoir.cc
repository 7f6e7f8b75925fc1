#include "core/model/reservoir.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/philox.h"

namespace kernelstream {

void AddRecent(const SampleBatch& from, size_t i, RecentRowsState& recent) {
  if (recent.current.size() >= kRecentRows) {
    std::swap(recent.previous, recent.current);
    recent.current.Clear();
  }
  recent.current.AppendRow(from, i);
}

SampleBatch LastRows(const RecentRowsState& recent, size_t count) {
  SampleBatch rows;
  const size_t from_current = std::min(count, recent.current.size());
  const size_t from_previous = std::min(count - from_current, recent.previous.size());
  for (size_t i = recent.previous.size() - from_previous; i < recent.previous.size(); ++i) {
    rows.AppendRow(recent.previous, i);
  }
  for (size_t i = recent.current.size() - from_current; i < recent.current.size(); ++i) {
    rows.AppendRow(recent.current, i);
  }
  return rows;
}

void Reservoir::Restore(const ReservoirState& state) {
  rows_ = state.rows;
  slots_.resize(rows_.size());
  std::iota(slots_.begin(), slots_.end(), size_t{0});
  seen_ = state.seen;
  draws_ = state.draws;
  flushes_ = state.flushes;
}

ReservoirState Reservoir::Save() const {
  ReservoirState state;
  for (const size_t slot : slots_) state.rows.AppendRow(rows_, slot);
  state.seen = seen_;
  state.draws = draws_;
  state.flushes = flushes_;
  return state;
}

uint64_t Reservoir::Random(uint64_t n) {
  const PhiloxBlock words =
      Philox4x32(StreamCounter(RandomStream::kReservoir, draws_++, 0), PhiloxKey(seed_));
  // The bias of the remainder is below 2^-32 for all n that fit in memory.
  return (uint64_t{words[0]} << 32 | words[1]) % n;
}

void Reservoir::Offer(const SampleBatch& from, size_t i) {
  ++seen_;
  if (slots_.size() < capacity_) {
    slots_.push_back(rows_.size());
    rows_.AppendRow(from, i);
    return;
  }
  const uint64_t place = Random(seen_);
  if (place >= capacity_) return;
  slots_[place] = rows_.size();
  rows_.AppendRow(from, i);
  if (rows_.size() >= 2 * capacity_) {  // drop what fell out
    ReservoirState kept = Save();
    Restore(kept);
  }
}

void Reservoir::Draw(size_t count, SampleBatch& out) {
  if (slots_.empty()) return;
  for (size_t k = 0; k < count; ++k) out.AppendRow(rows_, slots_[Random(slots_.size())]);
}

void Reservoir::Flush() {
  rows_.Clear();
  slots_.clear();
  seen_ = 0;
  ++flushes_;
}

}  // namespace kernelstream
