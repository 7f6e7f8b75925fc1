#include "core/feature/composite_feature_map.h"

#include <algorithm>
#include <cmath>

#include "core/simd/simd.h"

namespace kernelstream {

int64_t CompositeFeatureMap::cached_bytes() const {
  int64_t bytes = 0;
  for (const auto& term : terms_) bytes += term->cached_bytes();
  return bytes;
}

CompositeFeatureMap::TermMaps CompositeFeatureMap::WidenedTerms(size_t input_dim, bool keep) const {
  TermMaps widened;
  for (const auto& term : terms_) widened.push_back(term->Widen(input_dim, keep));
  return widened;
}

namespace {

std::vector<std::shared_ptr<const FeatureMap>> MapsOf(const FeatureSpec& spec, uint64_t seed,
                                                      size_t input_dim, uint64_t max_features,
                                                      FeatureCacheBudget* budget) {
  std::vector<std::shared_ptr<const FeatureMap>> maps;
  for (size_t m = 0; m < spec.terms.size(); ++m) {
    FeatureSpec term = spec.terms[m].spec;
    term.frequency_scale *= spec.frequency_scale;
    uint64_t features = max_features;
    if (spec.composition == Composition::kSum) {
      term.pairs = spec.pairs && term.takes_pairs();
      const uint64_t unit = spec.waves() * kPanelWidth;
      features = TermChoice(spec, seed).TermPanels(m, (max_features + unit - 1) / unit) * unit;
    }
    maps.push_back(MakeFeatureMap(term, TermSeed(seed, m), input_dim, features, budget));
  }
  return maps;
}

}  // namespace

SumFeatureMap::SumFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                             uint64_t max_features, FeatureCacheBudget* budget)
    : SumFeatureMap(spec, seed, input_dim, MapsOf(spec, seed, input_dim, max_features, budget)) {}

SumFeatureMap::SumFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                             TermMaps terms)
    : CompositeFeatureMap(spec, seed, input_dim, std::move(terms)), choice_(spec, seed) {
  const double total = spec.amplitude_square();
  for (const FeatureTerm& term : spec.terms) {
    amplitudes_.push_back(static_cast<float>(std::sqrt(total / term.spec.amplitude_square())));
  }
}

std::shared_ptr<const FeatureMap> SumFeatureMap::Widen(size_t input_dim, bool keep) const {
  return std::shared_ptr<const FeatureMap>(
      new SumFeatureMap(spec(), seed(), input_dim, WidenedTerms(input_dim, keep)));
}

void SumFeatureMap::FeaturesAt(InputsView x, std::span<const float> inverse_bandwidths,
                               uint64_t first_panel, size_t num_panels,
                               std::span<float* const> out) const {
  const size_t panel_floats = x.rows * kPanelWidth;
  std::vector<float*> to(out.size());
  // Both panels of a pair belong to one term.
  const auto at = [&, waves = spec().waves()](uint64_t panel) {
    TermChoice::Panel from = choice_.At(panel / waves);
    from.panel = from.panel * waves + panel % waves;
    return from;
  };
  for (size_t p = 0; p < num_panels;) {
    // A run of panels of one term that are next to each other there too.
    const TermChoice::Panel from = at(first_panel + p);
    size_t run = 1;
    while (p + run < num_panels &&
           at(first_panel + p + run) == TermChoice::Panel{from.term, from.panel + run}) {
      ++run;
    }
    for (size_t k = 0; k < out.size(); ++k) to[k] = out[k] + p * panel_floats;
    terms()[from.term]->FeaturesAt(x, inverse_bandwidths, from.panel, run, to);
    const float amplitude = amplitudes_[from.term];
    for (float* values : to) {
      for (size_t i = 0; i < run * panel_floats; ++i) values[i] *= amplitude;
    }
    p += run;
  }
}

ProductFeatureMap::ProductFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                                     uint64_t max_features, FeatureCacheBudget* budget)
    : CompositeFeatureMap(spec, seed, input_dim,
                          MapsOf(spec, seed, input_dim, max_features, budget)) {}

std::shared_ptr<const FeatureMap> ProductFeatureMap::Widen(size_t input_dim, bool keep) const {
  return std::shared_ptr<const FeatureMap>(
      new ProductFeatureMap(spec(), seed(), input_dim, WidenedTerms(input_dim, keep)));
}

void ProductFeatureMap::FeaturesAt(InputsView x, std::span<const float> inverse_bandwidths,
                                   uint64_t first_panel, size_t num_panels,
                                   std::span<float* const> out) const {
  terms()[0]->FeaturesAt(x, inverse_bandwidths, first_panel, num_panels, out);
  if (terms().size() == 1) return;
  const size_t count = num_panels * x.rows * kPanelWidth;
  std::vector<float> factors(out.size() * count);
  std::vector<float*> to(out.size());
  for (size_t k = 0; k < out.size(); ++k) to[k] = factors.data() + k * count;
  for (size_t m = 1; m < terms().size(); ++m) {
    terms()[m]->FeaturesAt(x, inverse_bandwidths, first_panel, num_panels, to);
    for (size_t k = 0; k < out.size(); ++k) {
      for (size_t i = 0; i < count; ++i) out[k][i] *= to[k][i];
    }
  }
}

}  // namespace kernelstream
