#include "core/feature/structured_composition.h"

#include <algorithm>
#include <vector>

namespace kernelstream {
namespace {

// Terms have frequencies, pairs are made of them later.
FeatureSpec WithoutPairs(FeatureSpec spec) {
  spec.pairs = false;
  return spec;
}
uint64_t FrequenciesFor(const FeatureSpec& spec, uint64_t num_features) {
  return (num_features + spec.waves() - 1) / spec.waves();
}

TermMaps FrequenciesOfTerms(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                            uint64_t max_features, FeatureCacheBudget* budget) {
  return MakeTermMaps(WithoutPairs(spec), seed, input_dim, FrequenciesFor(spec, max_features),
                      budget);
}

}  // namespace

StructuredComposition::StructuredComposition(const FeatureSpec& spec, uint64_t seed,
                                             size_t input_dim, uint64_t max_features,
                                             FeatureCacheBudget* budget)
    : StructuredComposition(spec, seed, input_dim,
                            FrequenciesOfTerms(spec, seed, input_dim, max_features, budget)) {}

StructuredComposition::StructuredComposition(const FeatureSpec& spec, uint64_t seed,
                                             size_t input_dim, TermMaps terms)
    : ProjectedFeatureMap(spec, seed, input_dim, 0), terms_(std::move(terms)) {}

std::shared_ptr<const FeatureMap> StructuredComposition::Widen(size_t input_dim, bool keep) const {
  return std::shared_ptr<const FeatureMap>(
      new StructuredComposition(spec(), seed(), input_dim, Widened(terms_, input_dim, keep)));
}

int64_t StructuredComposition::BytesOf(uint64_t num_features) const {
  return BytesOfTerms(WithoutPairs(spec()), seed(), terms_, FrequenciesFor(spec(), num_features));
}

void StructuredComposition::TermProjections(size_t m, ConstMatrixView x, uint64_t first_panel,
                                            std::span<float* const> out) const {
  terms_[m]->ProjectionsAt(x, first_panel, out);
  const auto scale = static_cast<float>(spec().terms[m].spec.frequency_scale);
  if (scale == 1) return;
  for (float* values : out) {
    for (size_t i = 0; i < x.rows * kPanelWidth; ++i) values[i] *= scale;
  }
}

void StructuredComposition::ProjectionsAt(ConstMatrixView x, uint64_t first_panel,
                                          std::span<float* const> out) const {
  const size_t panel_floats = x.rows * kPanelWidth;
  if (spec().composition == Composition::kSum) {
    std::vector<float> unused(panel_floats);
    std::vector<float*> places;
    const auto runs = TermChoice(spec(), seed()).Runs(first_panel, out.size());
    for (size_t m = 0; m < runs.size(); ++m) {
      places.clear();
      for (const size_t place : runs[m].places) {
        places.push_back(place == TermChoice::kUnused ? unused.data() : out[place]);
      }
      if (!places.empty()) TermProjections(m, x, runs[m].first, places);
    }
    return;
  }
  TermProjections(0, x, first_panel, out);
  std::vector<float> further(out.size() * panel_floats);
  std::vector<float*> places;
  for (size_t p = 0; p < out.size(); ++p) places.push_back(further.data() + p * panel_floats);
  for (size_t m = 1; m < terms_.size(); ++m) {
    TermProjections(m, x, first_panel, places);
    for (size_t p = 0; p < out.size(); ++p) {
      for (size_t i = 0; i < panel_floats; ++i) out[p][i] += places[p][i];
    }
  }
}

size_t StructuredComposition::PanelsAtATime() const {
  size_t longest = kPanelsPerBlock;
  for (size_t m = 0; m < terms_.size(); ++m) {
    const size_t own = terms_[m]->PanelsAtATime();
    if (own == kPanelsPerBlock) continue;
    size_t of_block = kPanelsPerBlock;
    if (spec().composition == Composition::kSum) {
      of_block = TermChoice(spec(), seed()).TermPanels(m, 1);
    }
    longest = std::max(longest, (own + of_block - 1) / of_block * kPanelsPerBlock * spec().waves());
  }
  return longest;
}

}  // namespace kernelstream
