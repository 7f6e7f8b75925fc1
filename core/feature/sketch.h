// Hashes and signs of sketches.
#ifndef KERNELSTREAM_CORE_FEATURE_SKETCH_H_
#define KERNELSTREAM_CORE_FEATURE_SKETCH_H_

#include <cstddef>
#include <cstdint>

#include "core/base/feature_spec.h"
#include "core/simd/simd.h"

namespace kernelstream {

// Thread-safe: a pure function. The draws of panels of form kSketch as FeaturePanels
// (core/simd/simd.h) wants them. Coordinate j of a panel has one word of 16 bits for each factor i:
// half i % 2 (the low one first) of word i / 2 of counter (kSketch, first feature of the panel, j).
// Bits 0 to 3 are the hash, bit 4 the sign, + where it is set. The constant coordinate has those of
// counter (kSketch, first feature + 1, 0). frequencies: [num_panels][degree][inputs.size][16].
void DrawSketches(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                  Coordinates inputs, float* frequencies);
// lanes: [degree][16] of one panel.
void DrawSketchOffsets(const FeatureSpec& spec, uint64_t seed, uint64_t panel, float* lanes);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_SKETCH_H_
