#include "core/feature/sketch.h"

#include <algorithm>
#include <cmath>

#include "core/base/philox.h"
#include "core/simd/simd.h"

namespace kernelstream {
namespace {

// Sets the one entry of each factor that the coordinate is hashed to; factors lie `stride` apart.
void Scatter(const PhiloxBlock& words, size_t factors, float value, size_t stride, float* out) {
  for (size_t i = 0; i < factors; ++i) {
    const uint32_t bits = words[i / 2] >> (16 * (i % 2));
    out[i * stride + (bits & 15)] = (bits & 16) != 0 ? value : -value;
  }
}

}  // namespace

void DrawSketches(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                  Coordinates inputs, float* frequencies) {
  const size_t factor_floats = inputs.size * kPanelWidth;
  std::fill_n(frequencies, num_panels * spec.degree * factor_floats, 0.0f);
  for (size_t p = 0; p < num_panels; ++p) {
    const uint64_t feature = (first_panel + p) * kPanelWidth;
    float* const panel = frequencies + p * spec.degree * factor_floats;
    for (size_t j = 0; j < inputs.size; ++j) {
      const PhiloxBlock words =
          Philox4x32(StreamCounter(RandomStream::kSketch, feature, inputs[j]), PhiloxKey(seed));
      Scatter(words, spec.degree, 1, factor_floats, panel + j * kPanelWidth);
    }
  }
}

void DrawSketchOffsets(const FeatureSpec& spec, uint64_t seed, uint64_t panel, float* lanes) {
  const PhiloxBlock words =
      Philox4x32(StreamCounter(RandomStream::kSketch, panel * kPanelWidth + 1, 0), PhiloxKey(seed));
  std::fill_n(lanes, spec.degree * kPanelWidth, 0.0f);
  Scatter(words, spec.degree, static_cast<float>(std::sqrt(spec.shift)), kPanelWidth, lanes);
}

}  // namespace kernelstream
