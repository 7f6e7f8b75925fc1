// Compositions of cosines of the inputs some of which have structured frequencies.
#ifndef KERNELSTREAM_CORE_FEATURE_STRUCTURED_COMPOSITION_H_
#define KERNELSTREAM_CORE_FEATURE_STRUCTURED_COMPOSITION_H_

#include <memory>
#include <span>

#include "core/feature/composite_feature_map.h"
#include "core/feature/composition.h"
#include "core/feature/projected_feature_map.h"

namespace kernelstream {

// Immutable in what it computes; thread-safe. Cosines of projections that are chosen among (kSum)
// or added up from (kProduct) those of the terms: the frequencies of DrawTermFrequencies, with
// the terms' projections each made its own way, by transforms where it is structured.
class StructuredComposition final : public ProjectedFeatureMap {
 public:
  // As MakeFeatureMap. spec is a composition from Sampled of core/feature/sampler.h,
  // shift-invariant, spec.sampler is kStructured.
  StructuredComposition(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                        uint64_t max_features, FeatureCacheBudget* budget);
  std::shared_ptr<const FeatureMap> Widen(size_t input_dim, bool keep) const override;
  void ProjectionsAt(ConstMatrixView x, uint64_t first_panel,
                     std::span<float* const> out) const override;
  int64_t cached_bytes() const override { return CachedBytes(terms_); }
  int64_t BytesOf(uint64_t num_features) const override;
  size_t PanelsAtATime() const override;

 private:
  StructuredComposition(const FeatureSpec& spec, uint64_t seed, size_t input_dim, TermMaps terms);
  // At bandwidth 1 of the composition.
  void TermProjections(size_t m, ConstMatrixView x, uint64_t first_panel,
                       std::span<float* const> out) const;

  const TermMaps terms_;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_STRUCTURED_COMPOSITION_H_
