#include "core/feature/feature_map.h"

#include <algorithm>
#include <vector>

#include "core/base/aligned_floats.h"
#include "core/feature/composite_feature_map.h"
#include "core/feature/random_feature_map.h"
#include "core/feature/structured.h"
#include "core/feature/structured_composition.h"

namespace kernelstream {
namespace {

// Features that are written before they are summed: half of a second-level cache.
constexpr size_t kHotFeatureFloats = size_t{1} << 16;

}  // namespace

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

void FeatureMap::AddChunkSums(InputsView x, float inverse_bandwidth, uint64_t first_block,
                              size_t num_panels, size_t panels_per_chunk, const float* coefficients,
                              size_t num_outputs, double* sums) const {
  thread_local AlignedFloats features;
  thread_local std::vector<double> block_sums;
  if (num_panels == 0) return;
  const size_t longest = std::min(PanelsAtATime(), num_panels);
  size_t rows = x.rows;
  if (x.sparse == nullptr) {
    const size_t hot = kHotFeatureFloats / (longest * kPanelWidth);
    rows = std::min(rows, std::max<size_t>(hot, 1));
  }
  features.resize(std::max(features.size(), longest * rows * kPanelWidth));
  block_sums.resize(std::max(block_sums.size(), rows * num_outputs));
  for (size_t row = 0; row < x.rows; row += rows) {
    const size_t count = std::min(rows, x.rows - row);
    const InputsView some = x.sparse == nullptr ? InputsView(x.dense.Rows(row, count)) : x;
    for (size_t first = 0; first < num_panels; first += longest) {
      const size_t panels = std::min(longest, num_panels - first);
      Features(some, inverse_bandwidth, first_block * kPanelsPerBlock + first, panels,
               features.data());
      for (size_t p = 0; p < panels; p += kPanelsPerBlock) {
        FeatureSums(
            features.data() + p * count * kPanelWidth, std::min(kPanelsPerBlock, panels - p), count,
            coefficients + (first + p) * num_outputs * kPanelWidth, num_outputs, block_sums.data());
        const size_t chunk = (first + p) / panels_per_chunk;
        double* const to = sums + (chunk * x.rows + row) * num_outputs;
        for (size_t i = 0; i < count * num_outputs; ++i) to[i] += block_sums[i];
      }
    }
  }
}

void FeatureMap::ProjectionsAt(ConstMatrixView x, uint64_t first_panel,
                               std::span<float* const> out) const {
  thread_local AlignedFloats projections;
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
