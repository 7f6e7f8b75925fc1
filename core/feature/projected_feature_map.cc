#include "core/feature/projected_feature_map.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/feature/draws.h"

namespace kernelstream {

ProjectedFeatureMap::ProjectedFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                                         uint64_t max_features)
    : FeatureMap(spec, seed, input_dim),
      written_out_(spec, seed, input_dim, max_features, nullptr),
      amplitude_(static_cast<float>(std::sqrt(spec.amplitude_square()))) {}

void ProjectedFeatureMap::Lanes(uint64_t first_panel, size_t num_panels, float* lanes) const {
  DrawPanelLanes(spec(), seed(), first_panel, num_panels, lanes);
}

void ProjectedFeatureMap::FeaturesAt(InputsView x, std::span<const float> inverse_bandwidths,
                                     uint64_t first_panel, size_t num_panels,
                                     std::span<float* const> out) const {
  thread_local std::vector<float> lanes;
  thread_local std::vector<float*> places;
  const size_t panel_floats = x.rows * kPanelWidth, waves = spec().waves();
  const uint64_t end = (first_panel + num_panels + waves - 1) / waves;
  lanes.resize(std::max(lanes.size(), num_panels * kPanelWidth));
  Lanes(first_panel, num_panels, lanes.data());
  // The last output holds the projections until all others are made from them.
  places.clear();
  for (uint64_t q = first_panel / waves; q < end; ++q) {
    places.push_back(out.back() + (std::max(q * waves, first_panel) - first_panel) * panel_floats);
  }
  ProjectionsAt(x.dense, first_panel / waves, places);
  FeaturePanels panels = {.phases = lanes.data(),
                          .num_panels = num_panels,
                          .form = spec().form,
                          .degree = spec().degree,
                          .waves = waves,
                          .first_wave = static_cast<size_t>(first_panel % waves)};
  for (size_t k = 0; k < out.size(); ++k) {
    panels.inverse_bandwidth = inverse_bandwidths[k] * static_cast<float>(spec().frequency_scale);
    FeaturesOfProjections(panels, out.back(), x.rows, out[k]);
    if (amplitude_ == 1) continue;
    for (size_t i = 0; i < num_panels * panel_floats; ++i) out[k][i] *= amplitude_;
  }
}

}  // namespace kernelstream
