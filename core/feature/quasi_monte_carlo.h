// Frequencies from low-discrepancy points.
#ifndef KERNELSTREAM_CORE_FEATURE_QUASI_MONTE_CARLO_H_
#define KERNELSTREAM_CORE_FEATURE_QUASI_MONTE_CARLO_H_

#include <cstddef>
#include <cstdint>

#include "core/base/spectral_law.h"

namespace kernelstream {

// Inputs that there are Sobol dimensions for.
inline constexpr size_t kMaxSobolInputs = 3666;
// A net has 2^kNetBits frequencies: a block of single features, two blocks of pairs.
inline constexpr int kNetBits = 8;

// Frequencies of frequency panels [first_panel, first_panel + num_panels), out:
// [num_panels][input_dim][16], as SampleFromCells draws them. The frequencies of a net are the
// first points of the Sobol sequence with the direction numbers of Joe & Kuo 2008, coordinate j
// from its dimension j + 1 (dimension 0 is that of radii). Each dimension of each net is scrambled
// anew (Owen 1995, nested uniform): every point is uniform and its coordinates are independent, so
// each frequency alone has its law; nets are independent. A frequency does not depend on input_dim.
void DrawQuasiMonteCarlo(SpectralLaw law, uint64_t seed, uint64_t first_panel, size_t num_panels,
                         size_t input_dim, float* out);

// Which of 2^kNetBits equal parts of (0, 1) the 16 radii of one frequency panel are drawn from.
void RadiusCells(uint64_t seed, uint64_t panel, uint8_t* cells);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_QUASI_MONTE_CARLO_H_
