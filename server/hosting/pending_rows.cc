#include "server/hosting/pending_rows.h"

#include <algorithm>
#include <utility>

namespace kernelstream::server {

void PendingRows::Push(SampleBatch rows, size_t first_row, uint64_t first_sequence,
                       absl::Time arrival, uint64_t bytes) {
  Chunk chunk;
  chunk.rows = std::make_shared<const SampleBatch>(std::move(rows));
  chunk.next = first_row;
  chunk.next_sequence = first_sequence;
  chunk.arrival = arrival;
  chunk.bytes = bytes;
  size_ += chunk.left();
  chunks_.push_back(std::move(chunk));
}

PendingRows::Taken PendingRows::Take(uint64_t count) {
  Taken taken;
  while (taken.rows < count) {
    Chunk& chunk = chunks_.front();
    const uint64_t part = std::min(count - taken.rows, chunk.left());
    taken.slices.push_back({chunk.rows, chunk.next, static_cast<size_t>(part)});
    taken.rows += part;
    chunk.next += part;
    chunk.next_sequence += part;
    taken.last_sequence = chunk.next_sequence - 1;
    if (chunk.left() == 0) {
      taken.bytes += chunk.bytes;
      chunks_.pop_front();
    }
  }
  size_ -= taken.rows;
  return taken;
}

uint64_t PendingRows::bytes() const {
  uint64_t bytes = 0;
  for (const Chunk& chunk : chunks_) bytes += chunk.bytes;
  return bytes;
}

uint64_t PendingRows::CountUpTo(uint64_t sequence) const {
  uint64_t count = 0;
  for (const Chunk& chunk : chunks_) {
    if (chunk.next_sequence > sequence) break;
    count += std::min(chunk.left(), sequence - chunk.next_sequence + 1);
  }
  return count;
}

uint64_t PendingRows::last_sequence() const {
  return chunks_.back().next_sequence + chunks_.back().left() - 1;
}

void PendingRows::Clear() {
  chunks_.clear();
  size_ = 0;
}

}  // namespace kernelstream::server
