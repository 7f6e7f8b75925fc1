// Rows that are logged and not learned yet.
#ifndef KERNELSTREAM_SERVER_HOSTING_PENDING_ROWS_H_
#define KERNELSTREAM_SERVER_HOSTING_PENDING_ROWS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "core/model/sample_batch.h"

namespace kernelstream::server {

// Thread-compatible. A queue of rows in the order of the log. Rows are not copied in or out.
class PendingRows {
 public:
  // Rows [first_row, rows.size()) with log positions from `first_sequence` on. `bytes`: given back
  // once the last of them is taken.
  void Push(SampleBatch rows, size_t first_row, uint64_t first_sequence, absl::Time arrival,
            uint64_t bytes);

  struct Slice {
    std::shared_ptr<const SampleBatch> rows;
    size_t first = 0, count = 0;
  };
  struct Taken {
    std::vector<Slice> slices;
    uint64_t rows = 0;
    uint64_t bytes = 0;          // of the pushes that are finished with
    uint64_t last_sequence = 0;  // of the last row taken
  };
  // The first `count` rows, 1 <= count <= size().
  Taken Take(uint64_t count);

  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Of all pushes that are not finished with.
  uint64_t bytes() const;
  // Rows whose sequence is at most `sequence`.
  uint64_t CountUpTo(uint64_t sequence) const;
  // Of the last row; not empty.
  uint64_t last_sequence() const;
  // Of the first row; not empty.
  absl::Time oldest_arrival() const { return chunks_.front().arrival; }
  void Clear();

 private:
  struct Chunk {
    std::shared_ptr<const SampleBatch> rows;
    size_t next = 0;
    uint64_t next_sequence = 0;
    absl::Time arrival;
    uint64_t bytes = 0;
    uint64_t left() const { return rows->size() - next; }
  };
  std::deque<Chunk> chunks_;
  uint64_t size_ = 0;
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_HOSTING_PENDING_ROWS_H_
