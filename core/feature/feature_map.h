// Random features of any kernel, one after the other for ever, as a function of a seed.
#ifndef KERNELSTREAM_CORE_FEATURE_FEATURE_MAP_H_
#define KERNELSTREAM_CORE_FEATURE_FEATURE_MAP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/feature_spec.h"
#include "core/base/inputs_view.h"
#include "core/simd/simd.h"

namespace kernelstream {

class RandomFeatureMap;

// Thread-safe. Bytes that feature caches of all models may hold together. Outlives the maps that
// use it.
class FeatureCacheBudget {
 public:
  explicit FeatureCacheBudget(int64_t bytes) : left_(bytes), capacity_(bytes) {}
  // Takes `bytes` if they are left.
  bool TryTake(int64_t bytes);
  void GiveBack(int64_t bytes) { left_.fetch_add(bytes, std::memory_order_relaxed); }
  int64_t used() const { return capacity_ - left_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> left_;
  int64_t capacity_;
};

// Immutable in what it computes; thread-safe. Feature i is a function of (spec, seed, i) and the
// row, whatever range is asked for, with or without a cache, on any machine, and whether a row's
// zeros are left out or not. Sparse rows are taken if spec().takes_sparse_rows(); they may have any
// coordinates, and cost time for their own values, frequencies that are drawn anew included.
// Features come in panels of 16, as core/simd/simd.h describes them.
class FeatureMap {
 public:
  virtual ~FeatureMap() = default;
  FeatureMap(const FeatureMap&) = delete;
  FeatureMap& operator=(const FeatureMap&) = delete;

  const FeatureSpec& spec() const { return spec_; }
  size_t input_dim() const { return input_dim_; }
  uint64_t seed() const { return seed_; }

  // The same features of wider inputs (more coordinates, the first ones unchanged). keep: with the
  // same cache budget, else without a cache.
  virtual std::shared_ptr<const FeatureMap> Widen(size_t input_dim, bool keep) const = 0;

  // sums += features times coefficients over num_panels panels from the start of first_block on,
  // block by block as FeatureSums defines it; the last block may be cut. x: scaled rows, dense
  // ones [rows, input_dim]. coefficients: from the first block's first panel, [panel][output][16].
  // sums: [rows][num_outputs], added to in block order.
  void AddSums(InputsView x, float inverse_bandwidth, uint64_t first_block, size_t num_panels,
               const float* coefficients, size_t num_outputs, double* sums) const {
    AddChunkSums(x, inverse_bandwidth, first_block, num_panels, num_panels, coefficients,
                 num_outputs, sums);
  }

  // The same for one chunk of panels_per_chunk panels, whole blocks of them, after the other: sums
  // is [chunk][rows][num_outputs], each bit-equal to what AddSums gives for it.
  // As it stands: of features that are written to memory first, for forms no fused loop knows.
  virtual void AddChunkSums(InputsView x, float inverse_bandwidth, uint64_t first_block,
                            size_t num_panels, size_t panels_per_chunk, const float* coefficients,
                            size_t num_outputs, double* sums) const;

  // Features of panels [first_panel, first_panel + num_panels). out: [panel][row][16].
  virtual void Features(InputsView x, float inverse_bandwidth, uint64_t first_panel,
                        size_t num_panels, float* out) const;

  // The same for several bandwidths at once: out[k] gets the features at inverse_bandwidths[k],
  // bit-equal to Features.
  virtual void FeaturesAt(InputsView x, std::span<const float> inverse_bandwidths,
                          uint64_t first_panel, size_t num_panels,
                          std::span<float* const> out) const = 0;

  // Projections of dense rows on panels of frequencies first_panel, first_panel + 1, ..., at
  // bandwidth 1 and without frequency_scale: that of row r on frequency l of panel first_panel + p
  // goes to out[p][16 r + l]. spec() is shift-invariant and has no pairs.
  // As it stands: on the frequencies of AsRandom.
  virtual void ProjectionsAt(ConstMatrixView x, uint64_t first_panel,
                             std::span<float* const> out) const;

  // This map if its panels of frequencies may be visited, else null. Never null where
  // spec().is_shift_invariant().
  virtual const RandomFeatureMap* AsRandom() const { return nullptr; }

  // Bytes this map keeps.
  virtual int64_t cached_bytes() const = 0;
  // Bytes it would keep of the first num_features features, if the budget had room for all.
  virtual int64_t BytesOf(uint64_t num_features) const = 0;

  // Panels that share work when they are asked for together, whole blocks of them: those from a
  // multiple of it to the next.
  virtual size_t PanelsAtATime() const { return kPanelsPerBlock; }

 protected:
  FeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim)
      : spec_(spec), seed_(seed), input_dim_(input_dim) {}

 private:
  const FeatureSpec spec_;
  const uint64_t seed_;
  const size_t input_dim_;
};

// The map of `spec`. budget may be null: nothing is kept. max_features bounds what can be kept.
std::shared_ptr<const FeatureMap> MakeFeatureMap(const FeatureSpec& spec, uint64_t seed,
                                                 size_t input_dim, uint64_t max_features,
                                                 FeatureCacheBudget* budget);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_FEATURE_MAP_H_
