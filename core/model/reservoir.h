// Rows kept from the stream: the last ones, and a uniform sample of all.
#ifndef KERNELSTREAM_CORE_MODEL_RESERVOIR_H_
#define KERNELSTREAM_CORE_MODEL_RESERVOIR_H_

#include <cstddef>
#include <cstdint>

#include "core/model/sample_batch.h"
#include "core/model/trainer_state.h"

namespace kernelstream {

inline constexpr size_t kRecentRows = 8192;
// Rows held out of an ordered stream.
inline constexpr size_t kHeldOutRows = 1024;

// Thread-compatible. The last kRecentRows rows.
class RecentRows {
 public:
  // Takes saved ones over.
  void Restore(const RecentRowsState& state);
  RecentRowsState Save() const;

  // Adds row i of `from`.
  void Add(const SampleBatch& from, size_t i);
  // The last min(count, kept) rows, oldest first.
  SampleBatch Last(size_t count) const;
  void Clear();

 private:
  SampleBatch rows_;
  size_t oldest_ = 0;  // once all kRecentRows are there
};

// Thread-compatible. A uniform sample of at most `capacity` of the rows offered (Vitter 1985,
// algorithm R), with random numbers that follow from the seed and the counts alone.
class Reservoir {
 public:
  Reservoir(uint64_t seed, size_t capacity) : seed_(seed), capacity_(capacity) {}
  // Takes a saved one over.
  void Restore(const ReservoirState& state);
  ReservoirState Save() const;

  void Offer(const SampleBatch& from, size_t i);
  // Appends `count` rows, drawn uniformly with replacement, to `out`; none while empty.
  void Draw(size_t count, SampleBatch& out);
  // Forgets all rows.
  void Flush();

  size_t size() const { return rows_.size(); }
  uint64_t seen() const { return seen_; }
  uint64_t flushes() const { return flushes_; }

 private:
  // Uniform on 0 ... n - 1.
  uint64_t Random(uint64_t n);

  uint64_t seed_;
  size_t capacity_;
  SampleBatch rows_;
  uint64_t seen_ = 0, draws_ = 0, flushes_ = 0;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_RESERVOIR_H_
