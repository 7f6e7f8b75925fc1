// Frequencies and lanes of features, drawn from their seed.
#ifndef KERNELSTREAM_CORE_FEATURE_DRAWS_H_
#define KERNELSTREAM_CORE_FEATURE_DRAWS_H_

#include <cstddef>
#include <cstdint>

#include "core/base/feature_spec.h"
#include "core/simd/simd.h"

namespace kernelstream {

// Thread-safe: a pure function. Draws of features 16 first_panel ... 16 (first_panel + num_panels)
// - 1. frequencies: [num_panels][factors][terms][16]; lanes: [num_panels][lane_rows][16], as
// FeaturePanels (core/simd/simd.h) describes them. Feature f depends on (spec, seed, f) alone, its
// coordinate j on j too and not on which others are asked for; only the frequency over the
// logarithms of an additive kernel is shared by a panel, and stratified in a block of 16 panels:
// each of them is drawn from its law, from another sixteenth of it than the other 15, blocks
// independently. Pairs: frequencies are [frequency panel][terms][16], those of the panels asked
// for; frequency panel q has the draws of panel q of the form without pairs, for panel 2q with its
// phase, for panel 2q + 1 with a quarter turn less. Additional draws, beside those of
// SampleFrequencies, SampleSigns and SamplePhases: the radius of feature f is the quantile of
// UniformDouble(word 0, word 1) of counter (kRadius, f), in float64. At most 2^14: see
// core/kernel/matern.cc.
void DrawPanels(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                Coordinates inputs, float* frequencies, float* lanes);

// The lanes alone, of forms that need nothing but phases: kCosine and those without lanes.
void DrawPanelLanes(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                    float* lanes);
// Radii of frequencies first_index ... first_index + 15, a multiple of 16. spec.radial is kStudent.
void PanelRadii(const FeatureSpec& spec, uint64_t seed, uint64_t first_index, float* radii);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_DRAWS_H_
