// Frequencies of cosines of filtered images.
#ifndef KERNELSTREAM_CORE_FEATURE_CONVOLUTION_H_
#define KERNELSTREAM_CORE_FEATURE_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>

#include "core/base/feature_spec.h"
#include "core/simd/simd.h"

namespace kernelstream {

// Thread-safe: a pure function. Frequencies over the image of frequency panels [first_panel,
// first_panel + num_panels), in turns: with theta the feature's filter (normal draws,
// [patch_height][patch_width][channels]) and w its frequency over the filtered image
// ([places], spec.law, normal too, in turns),
//   out[pixel p] = sum over places s of w[s] theta[p - s],
// so that out . x = w . (x filtered by theta): the cosine of a convolution is one of the inputs.
// out: [num_panels][inputs.size][16], 0 beyond spec.image.size(). Costs places * patch_size
// multiplications for each feature, beside the draws.
//
// Samplers. kIid: theta and w are coordinates 0, 1, ... of the feature in the seed schedule
// (SampleFrequencies). kQuasiMonteCarlo: the same coordinates, of one net. kOrthogonal: the filters
// of a group are at right angles, and so are their w, with independent seeds TermSeed(seed, 0) and
// (seed, 1). Each pair (theta, w) alone has its law, so features are unbiased; the frequencies over
// the image are not orthogonal. kStructured does not apply: each feature has another filtered
// image, so that there is no transform that several could share.
void DrawConvolutions(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel,
                      size_t num_panels, Coordinates inputs, float* out);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_CONVOLUTION_H_
