// Orthogonal frequencies.
#ifndef KERNELSTREAM_CORE_FEATURE_ORTHOGONAL_H_
#define KERNELSTREAM_CORE_FEATURE_ORTHOGONAL_H_

#include <cstddef>
#include <cstdint>

#include "core/base/feature_spec.h"

namespace kernelstream {

// Normal frequencies (in turns, as SampleFrequencies draws them) of frequency panels [first_panel,
// first_panel + num_panels), out: [num_panels][input_dim][16]. Those of a block (128 of pairs, else
// 256) are orthogonal to each other in groups of min(input_dim, block): the iid draws, made
// orthogonal one after the other in float64, each given the length FrequencyNorm of its index. A
// group's directions are uniformly distributed and its lengths independent, so each frequency alone
// is normal (Yu, Suresh, Choromanski, Holtmann-Rice, Kumar 2016, "Orthogonal random features").
// Costs about group x input_dim multiply-adds for each frequency, for whole groups.
void DrawOrthogonal(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                    size_t input_dim, float* out);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_ORTHOGONAL_H_
