// Structured frequencies: projections in O(log d) operations for each, and next to no memory.
#ifndef KERNELSTREAM_CORE_FEATURE_STRUCTURED_H_
#define KERNELSTREAM_CORE_FEATURE_STRUCTURED_H_

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "core/feature/projected_feature_map.h"
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
// A group keeps 16 bytes for each frequency, and 4 for the phase of each feature, while the budget
// lasts, else its draws are made anew at each use, with the same bits. Each call transforms the
// rows once for each group that it needs a panel of.
class StructuredFeatureMap final : public ProjectedFeatureMap {
 public:
  // As MakeFeatureMap. spec.sampler is kStructured.
  StructuredFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                       uint64_t max_features, FeatureCacheBudget* budget);
  ~StructuredFeatureMap() override;

  // Features of another number of inputs are others: see SamplerEntry::fixes_dimension.
  std::shared_ptr<const FeatureMap> Widen(size_t input_dim, bool keep) const override;
  void ProjectionsAt(ConstMatrixView x, uint64_t first_panel,
                     std::span<float* const> out) const override;
  int64_t cached_bytes() const override { return cached_bytes_.load(std::memory_order_relaxed); }
  int64_t BytesOf(uint64_t num_features) const override;
  // What a group makes.
  size_t PanelsAtATime() const override;

 private:
  struct Draws;

  static Draws MakeDraws(const FeatureSpec& spec, uint64_t seed, size_t size, uint64_t group);
  // Null where the budget has nothing left.
  const Draws* KeptDraws(uint64_t group) const;
  void Lanes(uint64_t first_panel, size_t num_panels, float* lanes) const override;
  // Panels of features of a group.
  size_t GroupPanels() const { return size_ / kPanelWidth * spec().waves(); }

  friend void DrawStructured(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel,
                             size_t num_panels, size_t input_dim, float* out);

  const size_t size_;  // n
  const uint64_t max_features_;
  FeatureCacheBudget* const budget_;
  mutable std::vector<std::atomic<const Draws*>> groups_;
  mutable std::atomic<int64_t> cached_bytes_{0};
};

// Frequencies of frequency panels [first_panel, first_panel + num_panels) without radii, written
// out: [num_panels][input_dim][16]. Costs input_dim transforms for each group.
void DrawStructured(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                    size_t input_dim, float* out);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_STRUCTURED_H_
