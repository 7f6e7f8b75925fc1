// Structured frequencies: projections in O(log d) operations for each, and next to no memory.
#ifndef KERNELSTREAM_CORE_FEATURE_STRUCTURED_H_
#define KERNELSTREAM_CORE_FEATURE_STRUCTURED_H_

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "core/feature/feature_map.h"
#include "core/feature/random_feature_map.h"
#include "core/simd/hadamard.h"

namespace kernelstream {

// Immutable in what it computes; thread-safe. Frequencies come in groups of n, the power of two
// (at least 16) that input_dim is padded to: rows of
//   S H G P H B / (sqrt(n) |G|),
// G normal, P a permutation, B signs, S the length of each frequency (Le, Sarlos, Smola 2013,
// "Fastfood", with independent lengths). Each frequency alone has exactly the law of iid ones;
// those of a group depend on each other, also where a group is longer than a block: then blocks of
// one group are unbiased, but not independent. Groups depend on (seed, their number) alone.
//
// A group keeps 16 bytes for each frequency while the budget lasts, else its draws are made anew at
// each use, with the same bits.
// Dense inputs only.
class StructuredFeatureMap final : public FeatureMap {
 public:
  // As MakeFeatureMap. spec.sampler is kStructured.
  StructuredFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                       uint64_t max_features, FeatureCacheBudget* budget);
  ~StructuredFeatureMap() override;

  // Features of another number of inputs are others: see SamplerEntry::fixes_dimension.
  std::shared_ptr<const FeatureMap> Widen(size_t input_dim, bool keep) const override;
  void FeaturesAt(InputsView x, std::span<const float> inverse_bandwidths, uint64_t first_panel,
                  size_t num_panels, std::span<float* const> out) const override;
  // The same frequencies, written out; nothing of them is kept.
  const RandomFeatureMap* AsRandom() const override { return &written_out_; }
  int64_t cached_bytes() const override { return cached_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Draws;

  // What a group makes.
  size_t PanelsAtATime() const override;
  static Draws MakeDraws(const FeatureSpec& spec, uint64_t seed, size_t size, uint64_t group);
  const Draws* KeptDraws(uint64_t group) const;
  // Of transformed rows: [panel][row][16], of pairs as `Projections` of core/simd/simd.h leaves
  // them.
  void ProjectionsOf(ConstMatrixView z, uint64_t first_panel, size_t num_panels, float* out) const;
  // What FeaturesOfProjections needs. lanes: [num_panels][16], written.
  FeaturePanels Panels(uint64_t first_panel, size_t num_panels, float scale, float* lanes) const;

  friend void DrawStructured(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel,
                             size_t num_panels, size_t input_dim, float* out);

  const size_t size_;  // n
  const uint64_t max_features_;
  FeatureCacheBudget* const budget_;
  mutable std::vector<std::atomic<const Draws*>> groups_;
  mutable std::atomic<int64_t> cached_bytes_{0};
  const RandomFeatureMap written_out_;
};

// Frequencies of frequency panels [first_panel, first_panel + num_panels) without radii, written
// out: [num_panels][input_dim][16]. Costs input_dim transforms for each group.
void DrawStructured(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                    size_t input_dim, float* out);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_STRUCTURED_H_
