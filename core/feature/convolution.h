// Frequencies of cosines of filtered images.
#ifndef KERNELSTREAM_CORE_FEATURE_CONVOLUTION_H_
#define KERNELSTREAM_CORE_FEATURE_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>

#include "core/base/feature_spec.h"
#include "core/simd/simd.h"

namespace kernelstream {

// Thread-safe: a pure function. Frequencies over the image of features first_feature ...
// first_feature + 16 num_panels - 1, in turns: with theta the feature's filter (normal draws,
// [patch_height][patch_width][channels]) and w its frequency over the filtered image
// ([places], spec.law in turns),
//   out[pixel p] = sum over places s of w[s] theta[p - s],
// so that out . x = w . (x filtered by theta): the cosine of a convolution is one of the inputs.
// theta and w are coordinates 0, 1, ... of the feature in the seed schedule (SampleFrequencies).
// out: [num_panels][inputs.size][16], 0 beyond spec.image.size(). Costs places * patch_size
// multiplications for each feature, beside the draws.
void DrawConvolutions(const FeatureSpec& spec, uint64_t seed, uint64_t first_feature,
                      size_t num_panels, Coordinates inputs, float* out);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_CONVOLUTION_H_
