// Features of sums and products of kernels that are not all cosines of the inputs.
#ifndef KERNELSTREAM_CORE_FEATURE_COMPOSITE_FEATURE_MAP_H_
#define KERNELSTREAM_CORE_FEATURE_COMPOSITE_FEATURE_MAP_H_

#include <memory>
#include <span>
#include <vector>

#include "core/feature/composition.h"
#include "core/feature/feature_map.h"

namespace kernelstream {

using TermMaps = std::vector<std::shared_ptr<const FeatureMap>>;

// Maps of the terms of a composition, as MakeFeatureMap makes them: with seeds of their own, at
// the scale of the composition, of a sum with as many features as the first max_features take.
TermMaps MakeTermMaps(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                      uint64_t max_features, FeatureCacheBudget* budget);

// Bytes that all of them keep, and would keep of the composition's first num_features features.
int64_t CachedBytes(const TermMaps& terms);
int64_t BytesOfTerms(const FeatureSpec& spec, uint64_t seed, const TermMaps& terms,
                     uint64_t num_features);
TermMaps Widened(const TermMaps& terms, size_t input_dim, bool keep);

// Immutable in what it computes; thread-safe. What sums and products share: maps of the terms, and
// sums of features that are written to memory first (64 rows: 64 KiB for a block of 256 features),
// since no fused loop knows their form. That costs a fifth to a half more than the features alone.
class CompositeFeatureMap : public FeatureMap {
 public:
  int64_t cached_bytes() const final { return CachedBytes(terms_); }
  int64_t BytesOf(uint64_t num_features) const final {
    return BytesOfTerms(spec(), seed(), terms_, num_features);
  }

 protected:
  CompositeFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim, TermMaps terms)
      : FeatureMap(spec, seed, input_dim), terms_(std::move(terms)) {}
  const TermMaps& terms() const { return terms_; }

 private:
  const TermMaps terms_;
};

// A panel (with pairs: two, on one frequency where the term has some) is one of a term times the
// root of sum of weights / weight of the term's own panels (composition.h), so each step of an
// optimiser sees an unbiased kernel. A panel costs what the term's does.
class SumFeatureMap final : public CompositeFeatureMap {
 public:
  SumFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim, uint64_t max_features,
                FeatureCacheBudget* budget);
  std::shared_ptr<const FeatureMap> Widen(size_t input_dim, bool keep) const override;
  void FeaturesAt(InputsView x, std::span<const float> inverse_bandwidths, uint64_t first_panel,
                  size_t num_panels, std::span<float* const> out) const override;
  size_t PanelsAtATime() const override;

 private:
  bool IsStructured(size_t term) const {
    return terms()[term]->spec().sampler == Sampler::kStructured;
  }
  void Amplify(size_t term, std::span<float> features) const;
  SumFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim, TermMaps terms);

  const TermChoice choice_;
  std::vector<float> amplitudes_;  // by term
};

// Feature f is the product of the features f of the terms, which have independent seeds and no
// pairs. A panel costs what those of all terms do.
class ProductFeatureMap final : public CompositeFeatureMap {
 public:
  ProductFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim, uint64_t max_features,
                    FeatureCacheBudget* budget);
  std::shared_ptr<const FeatureMap> Widen(size_t input_dim, bool keep) const override;
  void FeaturesAt(InputsView x, std::span<const float> inverse_bandwidths, uint64_t first_panel,
                  size_t num_panels, std::span<float* const> out) const override;
  size_t PanelsAtATime() const override;

 private:
  ProductFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim, TermMaps terms)
      : CompositeFeatureMap(spec, seed, input_dim, std::move(terms)) {}
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_COMPOSITE_FEATURE_MAP_H_
