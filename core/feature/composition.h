// How panels of a composition are made of panels of its terms.
#ifndef KERNELSTREAM_CORE_FEATURE_COMPOSITION_H_
#define KERNELSTREAM_CORE_FEATURE_COMPOSITION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/feature_spec.h"
#include "core/simd/simd.h"

namespace kernelstream {

// Seed of term m of a composition, independent of those of all other terms.
uint64_t TermSeed(uint64_t seed, size_t m);

// Immutable. Which panel of which term each panel of a sum is (of frequencies, where features come
// in pairs). A panel belongs to term m with probability q_m = weight_m * amplitude_square_m / their
// sum. Stratified: 16 panels in a row take a uniform each from another sixteenth of (0, 1), in an
// order that is rotated at random, so that they have 16 q_m panels of a term to within two.
class TermChoice {
 public:
  struct Panel {
    size_t term;
    uint64_t panel;  // of the term: no two panels of the sum have the same
    bool operator==(const Panel&) const = default;
  };

  // spec.composition is kSum.
  TermChoice(const FeatureSpec& spec, uint64_t seed);
  Panel At(uint64_t panel) const;

  static constexpr size_t kUnused = ~size_t{0};
  // Panels [first, first + places.size()) of a term: panel first + i of it is panel places[i] of
  // the run that was asked for, or kUnused.
  struct Run {
    uint64_t first = 0;
    std::vector<size_t> places;
  };
  // For each term the shortest run with all of its panels among [first_panel, first_panel +
  // num_panels); of one block at most two are unused.
  std::vector<Run> Runs(uint64_t first_panel, size_t num_panels) const;
  // The same for any panels of the terms, each at its place of the list.
  std::vector<Run> RunsOf(std::span<const Panel> panels) const;
  // Panels of the term, of which the first `panels` of the sum use some.
  uint64_t TermPanels(size_t m, uint64_t panels) const;

 private:
  uint64_t seed_;
  std::vector<double> ends_;  // cumulated q
  // Sixteenths that the interval of each term touches: its panels of 16.
  std::vector<uint64_t> first_stratum_, num_strata_;
};

// Frequencies of a composition of cosines of the inputs, [num_panels][inputs.size][16], by panels
// of frequencies: those of the terms times their frequency_scale, chosen (kSum) or added up
// (kProduct). A panel costs one draw of one term (kSum) or of each term (kProduct). Where terms
// have samplers, spec.pairs says what a block is, and what a sampler draws together may belong to
// two blocks of a sum, which then depend on each other.
void DrawTermFrequencies(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel,
                         size_t num_panels, Coordinates inputs, float* frequencies);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_COMPOSITION_H_
