// Features of any index range as a pure function of a seed.
#ifndef KERNELSTREAM_CORE_FEATURE_RANDOM_FEATURE_MAP_H_
#define KERNELSTREAM_CORE_FEATURE_RANDOM_FEATURE_MAP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/feature_spec.h"
#include "core/base/matrix_view.h"
#include "core/simd/simd.h"

namespace kernelstream {

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

// Immutable in what it computes; thread-safe. The seed schedule: feature i has frequency and phase
// drawn from (seed, i) alone (additive kernels: panels of 16 features share a draw, see draws.h),
// so any block may be asked for, in any order, on any machine. Source: Dai et al. 2014, Algorithms
// 1-2, with counter-based random numbers in place of seeded generators. Blocks of kFeaturesPerBlock
// features are kept once generated while the budget lasts; the others are generated anew at each
// use, with the same bits. Reading a kept block is one atomic load.
class RandomFeatureMap {
 public:
  // budget may be null: nothing is kept. max_features bounds the blocks that can be kept.
  RandomFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim, uint64_t max_features,
                   FeatureCacheBudget* budget);
  ~RandomFeatureMap();
  RandomFeatureMap(const RandomFeatureMap&) = delete;
  RandomFeatureMap& operator=(const RandomFeatureMap&) = delete;

  const FeatureSpec& spec() const { return spec_; }
  size_t input_dim() const { return input_dim_; }
  uint64_t seed() const { return seed_; }
  // The same features of wider inputs (more coordinates, the first ones unchanged). keep: with the
  // same cache budget, else without a cache.
  std::shared_ptr<const RandomFeatureMap> Widen(size_t input_dim, bool keep) const;

  // sums += features times coefficients over num_panels panels from the start of first_block on,
  // block by block as CosineSums defines it; the last block may be cut. x: [rows, input_dim] scaled
  // rows. coefficients: from the first block's first panel, [panel][output][16]. sums:
  // [rows][num_outputs], added to in block order.
  void AddSums(ConstMatrixView x, float inverse_bandwidth, uint64_t first_block, size_t num_panels,
               const float* coefficients, size_t num_outputs, double* sums) const;

  // Features of panels [first_panel, first_panel + num_panels). out: [panel][row][16].
  void Features(ConstMatrixView x, float inverse_bandwidth, uint64_t first_panel, size_t num_panels,
                float* out) const;

  // The same for several bandwidths at once: out[k] gets the features at inverse_bandwidths[k],
  // bit-equal to Features. The projections are computed once where the form allows it.
  void FeaturesAt(ConstMatrixView x, std::span<const float> inverse_bandwidths,
                  uint64_t first_panel, size_t num_panels, std::span<float* const> out) const;

  // Calls visit(panels, first_panel) with the frequencies and lanes, at bandwidth 1, of panels
  // [first_panel, first_panel + num_panels), in order, in runs that lie in one block each. The runs
  // are the same whether a block is kept or generated, so sums over runs have the same bits.
  void VisitPanels(
      uint64_t first_panel, size_t num_panels,
      absl::FunctionRef<void(const FeaturePanels& panels, uint64_t first_panel)> visit) const;

  // Bytes this map keeps.
  int64_t cached_bytes() const { return cached_bytes_.load(std::memory_order_relaxed); }

 private:
  // Frequencies of all panels, then lanes of all panels, of one block.
  const float* CachedBlock(uint64_t block) const;
  size_t FrequenciesPerPanel() const { return kPanelWidth * spec_.factors() * terms_; }
  size_t LanesPerPanel() const { return kPanelWidth * spec_.lane_rows(); }
  size_t BlockFloats() const { return kPanelsPerBlock * (FrequenciesPerPanel() + LanesPerPanel()); }
  void Generate(uint64_t first_panel, size_t num_panels, float* frequencies, float* lanes) const;
  FeaturePanels Panels(const float* frequencies, const float* lanes, size_t num_panels) const;
  // Inputs as the kernel sees them: x itself, or memory of this thread until the next call.
  ConstMatrixView Transformed(ConstMatrixView x, float inverse_bandwidth) const;
  float Scale(float inverse_bandwidth) const {
    return inverse_bandwidth * static_cast<float>(spec_.frequency_scale);
  }
  // Of transformed rows.
  void FeaturesOf(ConstMatrixView z, float scale, uint64_t first_panel, size_t num_panels,
                  float* out) const;

  const FeatureSpec spec_;
  const uint64_t seed_;
  const size_t input_dim_;
  const size_t terms_;
  const uint64_t max_features_;
  FeatureCacheBudget* const budget_;
  mutable std::vector<std::atomic<float*>> blocks_;
  mutable std::atomic<int64_t> cached_bytes_{0};
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_RANDOM_FEATURE_MAP_H_
