#include "core/feature/convolution.h"

#include <algorithm>
#include <vector>

#include "core/simd/simd.h"

namespace kernelstream {
namespace {

constexpr float kRadiansPerTurn = 0x1.921fb6p+2f;

// to += a * b, lane by lane.
void MultiplyAdd(const float* a, const float* b, float* to) {
  for (size_t l = 0; l < kPanelWidth; ++l) to[l] += a[l] * b[l];
}

}  // namespace

void DrawConvolutions(const FeatureSpec& spec, uint64_t seed, uint64_t first_feature,
                      size_t num_panels, Coordinates inputs, float* out) {
  const ImageShape& image = spec.image;
  const size_t taps = image.patch_size(), places = image.places();
  const size_t row = image.width * image.channels, patch_row = image.patch_width * image.channels;
  const size_t columns = image.width - image.patch_width + 1;
  std::vector<float> filters(taps * kPanelWidth), draws((taps + places) * kPanelWidth);
  std::vector<float> panel(image.size() * kPanelWidth);
  for (size_t p = 0; p < num_panels; ++p) {
    const uint64_t feature = first_feature + p * kPanelWidth;
    SampleFrequencies(SpectralLaw::kNormal, seed, feature, 1, taps, filters.data());
    for (float& tap : filters) tap *= kRadiansPerTurn;  // numbers, not frequencies
    SampleFrequencies(spec.law, seed, feature, 1, taps + places, draws.data());
    std::fill(panel.begin(), panel.end(), 0.0f);
    for (size_t s = 0; s < places; ++s) {
      const float* w = draws.data() + (taps + s) * kPanelWidth;
      const size_t corner = s / columns * row + s % columns * image.channels;
      for (size_t t = 0; t < taps; ++t) {
        const size_t pixel = corner + t / patch_row * row + t % patch_row;
        MultiplyAdd(w, filters.data() + t * kPanelWidth, &panel[pixel * kPanelWidth]);
      }
    }
    for (size_t j = 0; j < inputs.size; ++j, out += kPanelWidth) {
      if (inputs[j] < image.size()) {
        std::copy_n(&panel[inputs[j] * kPanelWidth], kPanelWidth, out);
      } else {
        std::fill_n(out, kPanelWidth, 0.0f);
      }
    }
  }
}

}  // namespace kernelstream
