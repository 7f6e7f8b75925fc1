#include "core/feature/composition.h"

#include <algorithm>
#include <cmath>

#include "core/base/philox.h"
#include "core/feature/draws.h"
#include "core/simd/simd.h"

namespace kernelstream {

uint64_t TermSeed(uint64_t seed, size_t m) {
  const PhiloxBlock words =
      Philox4x32(StreamCounter(RandomStream::kTermSeed, m, 0), PhiloxKey(seed));
  return uint64_t{words[0]} << 32 | words[1];
}

TermChoice::TermChoice(const FeatureSpec& spec, uint64_t seed) : seed_(seed) {
  const double total = spec.amplitude_square();
  double end = 0;
  for (const FeatureTerm& term : spec.terms) {
    const double first = std::floor(end * double{kPanelsPerBlock});
    end += term.weight * term.spec.amplitude_square() / total;
    if (ends_.size() + 1 == spec.terms.size()) end = 1;
    ends_.push_back(end);
    const double beyond = std::max(std::ceil(end * double{kPanelsPerBlock}), first + 1);
    first_stratum_.push_back(static_cast<uint64_t>(first));
    num_strata_.push_back(static_cast<uint64_t>(beyond - first));
  }
}

TermChoice::Panel TermChoice::At(uint64_t panel) const {
  const auto words = [&](uint64_t index, uint64_t group) {
    return Philox4x32(StreamCounter(RandomStream::kTermChoice, index, group), PhiloxKey(seed_));
  };
  const uint64_t block = panel / kPanelsPerBlock;
  const uint64_t shift = words(block * kFeaturesPerBlock, 1)[0] >> 28;
  const uint64_t stratum = (panel + shift) % kPanelsPerBlock;
  // Exact: strictly inside its stratum.
  const double within = (words(panel * kPanelWidth, 0)[0] + 0.5) * 0x1p-32;
  const double u = (static_cast<double>(stratum) + within) / double{kPanelsPerBlock};
  const auto term =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), u) - ends_.begin());
  return {term, block * num_strata_[term] + (stratum - first_stratum_[term])};
}

uint64_t TermChoice::TermPanels(size_t m, uint64_t panels) const {
  return (panels + kPanelsPerBlock - 1) / kPanelsPerBlock * num_strata_[m];
}

void DrawTermFrequencies(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel,
                         size_t num_panels, Coordinates inputs, float* frequencies) {
  const size_t panel_floats = inputs.size * kPanelWidth;
  std::vector<float> drawn(panel_floats);
  float phases[kPanelWidth];
  // Adds the frequencies of one panel of term m, in units of the composition.
  const auto add = [&](size_t m, uint64_t panel, float* to) {
    const FeatureSpec& term = spec.terms[m].spec;
    DrawPanels(term, TermSeed(seed, m), panel, 1, inputs, drawn.data(), phases);
    const auto scale = static_cast<float>(term.frequency_scale);
    for (size_t i = 0; i < panel_floats; ++i) to[i] += scale * drawn[i];
  };
  std::fill_n(frequencies, num_panels * panel_floats, 0.0f);
  if (spec.composition == Composition::kSum) {
    const TermChoice choice(spec, seed);
    for (size_t p = 0; p < num_panels; ++p) {
      const TermChoice::Panel from = choice.At(first_panel + p);
      add(from.term, from.panel, frequencies + p * panel_floats);
    }
    return;
  }
  for (size_t m = 0; m < spec.terms.size(); ++m) {
    for (size_t p = 0; p < num_panels; ++p) {
      add(m, first_panel + p, frequencies + p * panel_floats);
    }
  }
}

}  // namespace kernelstream
