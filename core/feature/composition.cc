#include "core/feature/composition.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

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

std::vector<TermChoice::Run> TermChoice::Runs(uint64_t first_panel, size_t num_panels) const {
  std::vector<Panel> panels;
  for (size_t p = 0; p < num_panels; ++p) panels.push_back(At(first_panel + p));
  return RunsOf(panels);
}

std::vector<TermChoice::Run> TermChoice::RunsOf(std::span<const Panel> panels) const {
  std::vector<Run> runs(ends_.size());
  for (size_t m = 0; m < runs.size(); ++m) {
    uint64_t first = ~uint64_t{0}, end = 0;
    for (const Panel& panel : panels) {
      if (panel.term != m) continue;
      first = std::min(first, panel.panel);
      end = std::max(end, panel.panel + 1);
    }
    if (end == 0) continue;
    runs[m].first = first;
    runs[m].places.assign(end - first, kUnused);
    for (size_t p = 0; p < panels.size(); ++p) {
      if (panels[p].term == m) runs[m].places[panels[p].panel - first] = p;
    }
  }
  return runs;
}

uint64_t TermChoice::TermPanels(size_t m, uint64_t panels) const {
  return (panels + kPanelsPerBlock - 1) / kPanelsPerBlock * num_strata_[m];
}

void DrawTermFrequencies(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel,
                         size_t num_panels, Coordinates inputs, float* frequencies) {
  const size_t panel_floats = inputs.size * kPanelWidth, waves = spec.waves();
  std::vector<float> drawn, phases;
  // Adds the frequencies of panel `first` + i of term m, in units of the composition, to panel
  // places[i].
  const auto add = [&](size_t m, uint64_t first, std::span<const size_t> places) {
    FeatureSpec term = spec.terms[m].spec;
    term.pairs = spec.pairs;
    drawn.resize(places.size() * panel_floats);
    phases.resize(places.size() * waves * kPanelWidth);
    DrawPanels(term, TermSeed(seed, m), first * waves, places.size() * waves, inputs, drawn.data(),
               phases.data());
    const auto scale = static_cast<float>(term.frequency_scale);
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] == TermChoice::kUnused) continue;
      const float* from = drawn.data() + i * panel_floats;
      float* to = frequencies + places[i] * panel_floats;
      for (size_t j = 0; j < panel_floats; ++j) to[j] += scale * from[j];
    }
  };
  std::fill_n(frequencies, num_panels * panel_floats, 0.0f);
  if (spec.composition == Composition::kProduct) {
    std::vector<size_t> all(num_panels);
    std::iota(all.begin(), all.end(), size_t{0});
    for (size_t m = 0; m < spec.terms.size(); ++m) add(m, first_panel, all);
    return;
  }
  const std::vector<TermChoice::Run> runs = TermChoice(spec, seed).Runs(first_panel, num_panels);
  for (size_t m = 0; m < runs.size(); ++m) {
    const std::span<const size_t> places = runs[m].places;
    if (spec.terms[m].spec.sampler != Sampler::kIid) {
      if (!places.empty()) add(m, runs[m].first, places);
      continue;
    }
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] != TermChoice::kUnused) add(m, runs[m].first + i, places.subspan(i, 1));
    }
  }
}

}  // namespace kernelstream
