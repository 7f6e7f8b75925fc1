#include "core/feature/quasi_monte_carlo.h"

#include <algorithm>
#include <array>
#include <bit>
#include <boost/random/sobol.hpp>
#include <vector>

#include "core/base/philox.h"
#include "core/feature/sampler.h"
#include "core/simd/simd.h"

namespace kernelstream {
namespace {

constexpr size_t kPoints = size_t{1} << kNetBits;
constexpr size_t kNetPanels = kPoints / kPanelWidth;
using Cells = std::array<uint8_t, kPoints>;

// For each Sobol dimension the top bits of its first direction numbers: what the points need.
using Directions = std::array<uint8_t, kNetBits>;

std::vector<Directions> MakeDirections() {
  constexpr size_t kDimensions = kMaxSobolInputs + 1;
  boost::random::sobol engine(kDimensions);
  std::vector<Directions> directions(kDimensions);
  std::vector<uint8_t> point(kDimensions);
  // The k-th number is the point whose first coordinate is 2^-(k + 1).
  for (size_t found = 0; found < size_t{kNetBits};) {
    for (uint8_t& value : point) value = static_cast<uint8_t>(engine() >> 56);
    if (!std::has_single_bit(point[0])) continue;
    const auto k = static_cast<size_t>(kNetBits - std::bit_width(point[0]));
    for (size_t j = 0; j < kDimensions; ++j) directions[j][k] = point[j];
    ++found;
  }
  return directions;
}

const Directions& DirectionsOf(size_t dimension) {
  static const std::vector<Directions>& all = *new std::vector<Directions>(MakeDirections());
  return all[dimension];
}

// Cells of the points of one dimension of one net. The bit that a scramble adds at each level
// depends on the bits above it: one random bit for each node of a binary tree.
Cells ScrambledCells(uint64_t seed, uint64_t net, size_t dimension) {
  std::array<uint32_t, kPoints / 32> random;  // bit 2^level + node
  for (uint64_t i = 0; i < random.size() / 4; ++i) {
    const PhiloxBlock words =
        Philox4x32(StreamCounter(RandomStream::kScramble, net, 2 * dimension + i), PhiloxKey(seed));
    std::copy(words.begin(), words.end(), random.begin() + static_cast<long>(4 * i));
  }
  Cells scrambled = {}, next = {};  // of each prefix
  for (size_t level = 0; level < kNetBits; ++level) {
    const size_t nodes = size_t{1} << level;
    for (size_t node = 0; node < nodes; ++node) {
      const size_t at = nodes + node;
      const uint32_t flip = random[at / 32] >> (at % 32) & 1;
      next[2 * node] = static_cast<uint8_t>(2 * scrambled[node] + flip);
      next[2 * node + 1] = static_cast<uint8_t>(2 * scrambled[node] + 1 - flip);
    }
    scrambled = next;
  }
  const Directions& directions = DirectionsOf(dimension);
  Cells points = {}, cells = {};
  for (size_t i = 0; i < kPoints; ++i) {
    if (i > 0) {
      points[i] = points[i & (i - 1)] ^ directions[static_cast<size_t>(std::countr_zero(i))];
    }
    cells[i] = scrambled[points[i]];
  }
  return cells;
}

}  // namespace

void DrawQuasiMonteCarlo(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel,
                         size_t num_panels, size_t coordinates, float* out) {
  std::vector<uint8_t> cells;
  for (const uint64_t end = first_panel + num_panels; first_panel < end;) {
    const size_t first = first_panel % kNetPanels;
    const size_t count = std::min<size_t>(kNetPanels - first, end - first_panel);
    cells.resize(count * coordinates * kPanelWidth);
    for (size_t j = 0; j < coordinates; ++j) {
      const Cells net =
          ScrambledCells(seed, first_panel / kNetPanels, spec.net_slots * (j + 1) + spec.net_slot);
      for (size_t p = 0; p < count; ++p) {
        std::copy_n(net.begin() + static_cast<long>((first + p) * kPanelWidth), kPanelWidth,
                    cells.begin() + static_cast<long>((p * coordinates + j) * kPanelWidth));
      }
    }
    SampleFromCells(spec.law, seed, first_panel * kPanelWidth, count, coordinates, cells.data(),
                    kNetBits, out);
    out += count * coordinates * kPanelWidth;
    first_panel += count;
  }
}

void RadiusCells(const FeatureSpec& spec, uint64_t seed, uint64_t panel, uint8_t* cells) {
  const Cells net = ScrambledCells(seed, panel / kNetPanels, spec.net_slot);
  std::copy_n(net.begin() + static_cast<long>(panel % kNetPanels * kPanelWidth), kPanelWidth,
              cells);
}

SamplerEntry QuasiMonteCarloSampler() {
  return {.doc = {.name = "quasi_monte_carlo",
                  .doc = "scrambled Sobol points in place of independent ones: several times less "
                         "variance for few inputs and distances up to a bandwidth; for kernels "
                         "whose frequencies have independent coordinates, at most 3666 inputs "
                         "(a product: divided by its terms; dot_product: not function 2)",
                  .parameters = {},
                  .source = "Yang, Sindhwani, Avron & Mahoney, ICML 2014"},
          .sampler = Sampler::kQuasiMonteCarlo,
          .takes = "cosines, exponentials or powers of one projection",
          .applies =
              [](const FeatureSpec& spec) {
                return spec.law != SpectralLaw::kRademacher &&
                       (spec.form == FeatureForm::kCosine ||
                        spec.form == FeatureForm::kCosineExponential ||
                        spec.form == FeatureForm::kExponential ||
                        spec.form == FeatureForm::kRectifiedPower);
              },
          .max_dimension =
              [](const FeatureSpec& spec) {
                const size_t most = MaxNetCoordinates(spec.net_slots);
                if (spec.image.size() == 0) return most;
                // A filter, and the places that a pixel has at most one of.
                const size_t taps = spec.image.patch_size();
                return most <= taps ? 0 : (most - taps) * spec.image.channels;
              }};
}

}  // namespace kernelstream
