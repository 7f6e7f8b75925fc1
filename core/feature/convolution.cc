#include "core/feature/convolution.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/feature/composition.h"
#include "core/feature/orthogonal.h"
#include "core/feature/quasi_monte_carlo.h"
#include "core/simd/simd.h"

namespace kernelstream {
namespace {

constexpr float kRadiansPerTurn = 0x1.921fb6p+2f;

// to += a * b, lane by lane.
void MultiplyAdd(const float* a, const float* b, float* to) {
  for (size_t l = 0; l < kPanelWidth; ++l) to[l] += a[l] * b[l];
}

// filters: [num_panels][taps][16], frequencies: [num_panels][places][16], both in turns.
void DrawFiltersAndFrequencies(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel,
                               size_t num_panels, std::span<float> filters,
                               std::span<float> frequencies) {
  const size_t taps = spec.image.patch_size(), places = spec.image.places();
  if (spec.sampler == Sampler::kOrthogonal) {
    DrawOrthogonal(spec, TermSeed(seed, 0), first_panel, num_panels, taps, filters.data());
    DrawOrthogonal(spec, TermSeed(seed, 1), first_panel, num_panels, places, frequencies.data());
    return;
  }
  std::vector<float> draws(num_panels * (taps + places) * kPanelWidth);
  if (spec.sampler == Sampler::kQuasiMonteCarlo) {
    DrawQuasiMonteCarlo(spec, seed, first_panel, num_panels, taps + places, draws.data());
  } else {
    SampleFrequencies(spec.law, seed, first_panel * kPanelWidth, num_panels, taps + places,
                      draws.data());
  }
  const float* from = draws.data();
  for (size_t p = 0; p < num_panels; ++p) {
    std::copy_n(from, taps * kPanelWidth, &filters[p * taps * kPanelWidth]);
    from += taps * kPanelWidth;
    std::copy_n(from, places * kPanelWidth, &frequencies[p * places * kPanelWidth]);
    from += places * kPanelWidth;
  }
}

}  // namespace

void DrawConvolutions(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel,
                      size_t num_panels, Coordinates inputs, float* out) {
  const ImageShape& image = spec.image;
  const size_t taps = image.patch_size(), places = image.places();
  const size_t row = image.width * image.channels, patch_row = image.patch_width * image.channels;
  const size_t columns = image.width - image.patch_width + 1;
  std::vector<float> filters(num_panels * taps * kPanelWidth);
  std::vector<float> frequencies(num_panels * places * kPanelWidth);
  DrawFiltersAndFrequencies(spec, seed, first_panel, num_panels, filters, frequencies);
  for (float& tap : filters) tap *= kRadiansPerTurn;  // numbers, not frequencies
  std::vector<float> panel(image.size() * kPanelWidth);
  for (size_t p = 0; p < num_panels; ++p) {
    const float* filter = filters.data() + p * taps * kPanelWidth;
    std::fill(panel.begin(), panel.end(), 0.0f);
    for (size_t s = 0; s < places; ++s) {
      const float* w = frequencies.data() + (p * places + s) * kPanelWidth;
      const size_t corner = s / columns * row + s % columns * image.channels;
      for (size_t t = 0; t < taps; ++t) {
        const size_t pixel = corner + t / patch_row * row + t % patch_row;
        MultiplyAdd(w, filter + t * kPanelWidth, &panel[pixel * kPanelWidth]);
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
