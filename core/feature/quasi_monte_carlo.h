// Frequencies from low-discrepancy points.
#ifndef KERNELSTREAM_CORE_FEATURE_QUASI_MONTE_CARLO_H_
#define KERNELSTREAM_CORE_FEATURE_QUASI_MONTE_CARLO_H_

#include <cstddef>
#include <cstdint>

#include "core/base/feature_spec.h"

namespace kernelstream {

// Inputs that there are Sobol dimensions for.
inline constexpr size_t kMaxSobolInputs = 3666;
// Most coordinates of a frequency of which net_slots are drawn together.
inline size_t MaxNetCoordinates(size_t net_slots) { return (kMaxSobolInputs + 1) / net_slots - 1; }
// A net has 2^kNetBits frequencies: a block of single features, two blocks of pairs.
inline constexpr int kNetBits = 8;

// Draws of spec.law for frequency panels [first_panel, first_panel + num_panels), out:
// [num_panels][coordinates][16], as SampleFromCells makes them; at most MaxNetCoordinates. The
// frequencies of a net are the first points of the Sobol sequence with the direction numbers of Joe
// & Kuo 2008, coordinate j from its dimension net_slots (j + 1) + net_slot (dimension net_slot is
// that of radii): the frequencies that a product puts together are parts of the points of one net.
// Each dimension of each net is scrambled anew (Owen 1995, nested uniform): every point is uniform
// and its coordinates are independent, so each frequency alone has its law; nets are independent. A
// frequency does not depend on the number of coordinates.
void DrawQuasiMonteCarlo(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel,
                         size_t num_panels, size_t coordinates, float* out);

// Which of 2^kNetBits equal parts of (0, 1) the 16 radii of one frequency panel are drawn from.
void RadiusCells(const FeatureSpec& spec, uint64_t seed, uint64_t panel, uint8_t* cells);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_QUASI_MONTE_CARLO_H_
