#include "core/feature/feature_map.h"

#include <algorithm>
#include <vector>

#include "core/feature/composite_feature_map.h"
#include "core/feature/random_feature_map.h"
#include "core/feature/structured.h"
#include "core/feature/structured_composition.h"

namespace kernelstream {

bool FeatureCacheBudget::TryTake(int64_t bytes) {
  int64_t left = left_.load(std::memory_order_relaxed);
  while (left >= bytes) {
    if (left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
  }
  return false;
}

void FeatureMap::Features(InputsView x, float inverse_bandwidth, uint64_t first_panel,
                          size_t num_panels, float* out) const {
  FeaturesAt(x, {&inverse_bandwidth, 1}, first_panel, num_panels, {&out, 1});
}

void FeatureMap::AddSums(InputsView x, float inverse_bandwidth, uint64_t first_block,
                         size_t num_panels, const float* coefficients, size_t num_outputs,
                         double* sums) const {
  thread_local std::vector<float> features;
  thread_local std::vector<double> block_sums;
  const size_t panel_floats = x.rows * kPanelWidth, count = x.rows * num_outputs;
  const size_t longest = PanelsAtATime();
  features.resize(std::max(features.size(), std::min(longest, num_panels) * panel_floats));
  block_sums.resize(std::max(block_sums.size(), count));
  for (size_t first = 0; first < num_panels; first += longest) {
    const size_t panels = std::min(longest, num_panels - first);
    Features(x, inverse_bandwidth, first_block * kPanelsPerBlock + first, panels, features.data());
    for (size_t p = 0; p < panels; p += kPanelsPerBlock) {
      FeatureSums(features.data() + p * panel_floats, std::min(kPanelsPerBlock, panels - p), x.rows,
                  coefficients + (first + p) * num_outputs * kPanelWidth, num_outputs,
                  block_sums.data());
      for (size_t i = 0; i < count; ++i) sums[i] += block_sums[i];
    }
  }
}

void FeatureMap::ProjectionsAt(ConstMatrixView x, uint64_t first_panel,
                               std::span<float* const> out) const {
  thread_local std::vector<float> projections;
  const size_t panel_floats = x.rows * kPanelWidth;
  AsRandom()->VisitPanels(first_panel, out.size(),
                          [&](const FeaturePanels& panels, uint64_t first) {
                            const size_t count = panels.num_panels * panel_floats;
                            projections.resize(std::max(projections.size(), count));
                            Projections(panels, x, projections.data());
                            for (size_t p = 0; p < panels.num_panels; ++p) {
                              std::copy_n(projections.data() + p * panel_floats, panel_floats,
                                          out[first - first_panel + p]);
                            }
                          });
}

std::shared_ptr<const FeatureMap> MakeFeatureMap(const FeatureSpec& spec, uint64_t seed,
                                                 size_t input_dim, uint64_t max_features,
                                                 FeatureCacheBudget* budget) {
  const bool structured = spec.sampler == Sampler::kStructured;
  if (structured && spec.composition == Composition::kNone) {
    return std::make_shared<StructuredFeatureMap>(spec, seed, input_dim, max_features, budget);
  }
  if (structured && spec.is_shift_invariant()) {
    return std::make_shared<StructuredComposition>(spec, seed, input_dim, max_features, budget);
  }
  if (spec.composition != Composition::kNone && !spec.is_shift_invariant()) {
    if (spec.composition == Composition::kSum) {
      return std::make_shared<SumFeatureMap>(spec, seed, input_dim, max_features, budget);
    }
    return std::make_shared<ProductFeatureMap>(spec, seed, input_dim, max_features, budget);
  }
  return std::make_shared<RandomFeatureMap>(spec, seed, input_dim, max_features, budget);
}

}  // namespace kernelstream
