#include "core/feature/composite_feature_map.h"

#include <algorithm>
#include <cmath>

#include "core/simd/simd.h"

namespace kernelstream {

int64_t BytesOfTerms(const FeatureSpec& spec, uint64_t seed, const TermMaps& terms,
                     uint64_t num_features) {
  int64_t bytes = 0;
  if (spec.composition != Composition::kSum) {
    for (const auto& term : terms) bytes += term->BytesOf(num_features);
    return bytes;
  }
  const uint64_t unit = spec.waves() * kPanelWidth;
  const auto runs = TermChoice(spec, seed).Runs(0, (num_features + unit - 1) / unit);
  for (size_t m = 0; m < terms.size(); ++m) {
    bytes += terms[m]->BytesOf((runs[m].first + runs[m].places.size()) * unit);
  }
  return bytes;
}

int64_t CachedBytes(const TermMaps& terms) {
  int64_t bytes = 0;
  for (const auto& term : terms) bytes += term->cached_bytes();
  return bytes;
}

TermMaps Widened(const TermMaps& terms, size_t input_dim, bool keep) {
  TermMaps widened;
  for (const auto& term : terms) widened.push_back(term->Widen(input_dim, keep));
  return widened;
}

TermMaps MakeTermMaps(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                      uint64_t max_features, FeatureCacheBudget* budget) {
  TermMaps maps;
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

SumFeatureMap::SumFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                             uint64_t max_features, FeatureCacheBudget* budget)
    : SumFeatureMap(spec, seed, input_dim,
                    MakeTermMaps(spec, seed, input_dim, max_features, budget)) {}

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
      new SumFeatureMap(spec(), seed(), input_dim, Widened(terms(), input_dim, keep)));
}

// Those of a structured term are made together: each call transforms whole groups.
size_t SumFeatureMap::PanelsAtATime() const {
  size_t longest = kPanelsPerBlock;
  for (size_t m = 0; m < terms().size(); ++m) {
    const size_t own = terms()[m]->PanelsAtATime();
    if (own == kPanelsPerBlock) continue;
    const size_t of_block = choice_.TermPanels(m, 1);
    longest = std::max(longest, (own + of_block - 1) / of_block * kPanelsPerBlock);
  }
  return longest;
}

void SumFeatureMap::Amplify(size_t term, std::span<float> features) const {
  for (float& value : features) value *= amplitudes_[term];
}

void SumFeatureMap::FeaturesAt(InputsView x, std::span<const float> inverse_bandwidths,
                               uint64_t first_panel, size_t num_panels,
                               std::span<float* const> out) const {
  const size_t panel_floats = x.rows * kPanelWidth;
  // Both panels of a pair belong to one term.
  std::vector<TermChoice::Panel> from;
  for (uint64_t panel = first_panel; panel < first_panel + num_panels; ++panel) {
    from.push_back(choice_.At(panel / spec().waves()));
    from.back().panel = from.back().panel * spec().waves() + panel % spec().waves();
  }
  std::vector<float*> to(out.size());
  for (size_t p = 0; p < num_panels;) {
    // A run of panels of one term that are next to each other there too.
    const size_t term = from[p].term;
    size_t run = 1;
    while (p + run < num_panels && from[p + run] == TermChoice::Panel{term, from[p].panel + run}) {
      ++run;
    }
    if (!IsStructured(term)) {
      for (size_t k = 0; k < out.size(); ++k) to[k] = out[k] + p * panel_floats;
      terms()[term]->FeaturesAt(x, inverse_bandwidths, from[p].panel, run, to);
      for (float* values : to) Amplify(term, {values, run * panel_floats});
    }
    p += run;
  }
  if (spec().sampler != Sampler::kStructured) return;
  std::vector<float> made;
  const std::vector<TermChoice::Run> runs = choice_.RunsOf(from);
  for (size_t m = 0; m < runs.size(); ++m) {
    const std::vector<size_t>& places = runs[m].places;
    if (!IsStructured(m) || places.empty()) continue;
    const size_t floats = places.size() * panel_floats;
    made.resize(out.size() * floats);
    for (size_t k = 0; k < out.size(); ++k) to[k] = made.data() + k * floats;
    terms()[m]->FeaturesAt(x, inverse_bandwidths, runs[m].first, places.size(), to);
    Amplify(m, made);
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] == TermChoice::kUnused) continue;
      for (size_t k = 0; k < out.size(); ++k) {
        std::copy_n(to[k] + i * panel_floats, panel_floats, out[k] + places[i] * panel_floats);
      }
    }
  }
}

ProductFeatureMap::ProductFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                                     uint64_t max_features, FeatureCacheBudget* budget)
    : CompositeFeatureMap(spec, seed, input_dim,
                          MakeTermMaps(spec, seed, input_dim, max_features, budget)) {}

std::shared_ptr<const FeatureMap> ProductFeatureMap::Widen(size_t input_dim, bool keep) const {
  return std::shared_ptr<const FeatureMap>(
      new ProductFeatureMap(spec(), seed(), input_dim, Widened(terms(), input_dim, keep)));
}

size_t ProductFeatureMap::PanelsAtATime() const {
  size_t longest = kPanelsPerBlock;
  for (const auto& term : terms()) longest = std::max(longest, term->PanelsAtATime());
  return longest;
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
