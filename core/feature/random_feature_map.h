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
#include "core/feature/feature_map.h"
#include "core/simd/simd.h"

namespace kernelstream {

// Immutable in what it computes; thread-safe. The seed schedule: feature i has frequency and phase
// drawn from (seed, i) alone (additive kernels: panels of 16 features share a draw, see draws.h),
// so any block may be asked for, in any order, on any machine. Source: Dai et al. 2014, Algorithms
// 1-2, with counter-based random numbers in place of seeded generators. Blocks of kFeaturesPerBlock
// features are kept once generated while the budget lasts; the others are generated anew at each
// use, with the same bits. Reading a kept block is one atomic load.
class RandomFeatureMap final : public FeatureMap {
 public:
  // budget may be null: nothing is kept. max_features bounds the blocks that can be kept.
  RandomFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim, uint64_t max_features,
                   FeatureCacheBudget* budget);
  // Coordinate i of these features is coordinate ids[i] of the others. ids: increasing, in memory
  // that outlives this.
  RandomFeatureMap(const FeatureSpec& spec, uint64_t seed, std::span<const uint64_t> ids);
  ~RandomFeatureMap() override;

  std::shared_ptr<const FeatureMap> Widen(size_t input_dim, bool keep) const override;
  // Fused where a block is kept, unless a sum of kernels has weights that do not add up to 1.
  void AddChunkSums(InputsView x, float inverse_bandwidth, uint64_t first_block, size_t num_panels,
                    size_t panels_per_chunk, const float* coefficients, size_t num_outputs,
                    double* sums) const override;
  void Features(InputsView x, float inverse_bandwidth, uint64_t first_panel, size_t num_panels,
                float* out) const override;
  // The projections are computed once where the form allows it.
  void FeaturesAt(InputsView x, std::span<const float> inverse_bandwidths, uint64_t first_panel,
                  size_t num_panels, std::span<float* const> out) const override;
  const RandomFeatureMap* AsRandom() const override { return this; }

  // Calls visit(panels, first_panel) with the frequencies and lanes, at bandwidth 1, of panels
  // [first_panel, first_panel + num_panels), in order, in runs that lie in one block each. The runs
  // are the same whether a block is kept or generated, so sums over runs have the same bits. Pairs
  // are divided only where the first or the last panel asked for divides one.
  void VisitPanels(
      uint64_t first_panel, size_t num_panels,
      absl::FunctionRef<void(const FeaturePanels& panels, uint64_t first_panel)> visit) const;

  int64_t cached_bytes() const override { return cached_bytes_.load(std::memory_order_relaxed); }
  int64_t BytesOf(uint64_t num_features) const override;

 private:
  // Frequencies of all panels, then lanes of all panels, of one block.
  const float* CachedBlock(uint64_t block) const;
  // Of one panel of frequencies.
  size_t FrequenciesPerPanel() const { return kPanelWidth * spec().factors() * terms_; }
  size_t LanesPerPanel() const { return kPanelWidth * spec().lane_rows(); }
  size_t FrequenciesPerBlock() const {
    return kPanelsPerBlock / spec().waves() * FrequenciesPerPanel();
  }
  size_t BlockFloats() const { return FrequenciesPerBlock() + kPanelsPerBlock * LanesPerPanel(); }
  void Generate(uint64_t first_panel, size_t num_panels, float* frequencies, float* lanes) const;
  FeaturePanels Panels(const float* frequencies, const float* lanes, uint64_t first_panel,
                       size_t num_panels) const;
  float TransformParameter(float inverse_bandwidth) const;
  // Inputs as the kernel sees them: x itself, or memory of this thread until the next call.
  ConstMatrixView Transformed(ConstMatrixView x, float inverse_bandwidth) const;
  float Scale(float inverse_bandwidth) const {
    return inverse_bandwidth * static_cast<float>(spec().frequency_scale);
  }
  // True if all bandwidths can share a projection.
  bool has_one_projection() const;
  // Lists of frequencies at all inputs, [input][16], that visited panels have.
  size_t FrequencyLists(const FeaturePanels& visited) const {
    const size_t panels =
        (visited.first_wave + visited.num_panels + visited.waves - 1) / visited.waves;
    return panels * spec().factors() * spec().transformed_dim(1);
  }
  // sparse_features.cc
  std::vector<float> TransformedRows(const SparseRows& x, float inverse_bandwidth) const;
  void SparseFeaturesAt(const SparseRows& x, std::span<const float> inverse_bandwidths,
                        uint64_t first_panel, size_t num_panels, std::span<float* const> out) const;
  // Features of one run of rows on panels of this map's frequencies, to rows of out_rows.
  void ProjectSparse(const FeaturePanels& visited, const SparseTerms& rows,
                     std::span<const float> inverse_bandwidths, size_t out_rows,
                     std::span<float* const> out) const;
  void GatherSparse(const FeaturePanels& visited, const SparseTerms& rows,
                    std::span<const std::vector<float>> inputs,
                    std::span<const float> inverse_bandwidths, size_t out_rows,
                    std::span<float* const> out) const;
  // Of transformed rows.
  void FeaturesOf(ConstMatrixView z, float scale, uint64_t first_panel, size_t num_panels,
                  float* out) const;

  // Of a weighted composition, else nothing.
  void Amplify(std::span<float> features) const;

  const Coordinates inputs_;
  const size_t terms_;
  const float amplitude_;
  const uint64_t max_features_;
  FeatureCacheBudget* const budget_;
  mutable std::vector<std::atomic<float*>> blocks_;
  mutable std::atomic<int64_t> cached_bytes_{0};
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_RANDOM_FEATURE_MAP_H_
