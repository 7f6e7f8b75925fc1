#include "core/feature/random_feature_map.h"

#include <algorithm>
#include <span>

namespace kernelstream {
namespace {

// Frequencies that are generated for one use: at most 1 MiB at a time, so that they are used while
// still in the caches.
constexpr size_t kScratchFloats = size_t{1} << 18;

// Memory of this thread, at least `size` long; good until the next call with the same `buffer`.
template <typename T>
std::span<T> Grow(std::vector<T>& buffer, size_t size) {
  if (buffer.size() < size) buffer.resize(size);
  return {buffer.data(), size};
}

std::span<float> ThreadFrequencies(size_t size) {
  thread_local std::vector<float> buffer;
  return Grow(buffer, size);
}
std::span<float> ThreadFeatures(size_t size) {
  thread_local std::vector<float> buffer;
  return Grow(buffer, size);
}
std::span<double> ThreadSums(size_t size) {
  thread_local std::vector<double> buffer;
  return Grow(buffer, size);
}

}  // namespace

bool FeatureCacheBudget::TryTake(int64_t bytes) {
  int64_t left = left_.load(std::memory_order_relaxed);
  while (left >= bytes) {
    if (left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
  }
  return false;
}

RandomFeatureMap::RandomFeatureMap(SpectralLaw law, uint64_t seed, size_t input_dim,
                                   uint64_t max_features, FeatureCacheBudget* budget)
    : law_(law),
      seed_(seed),
      input_dim_(input_dim),
      max_features_(max_features),
      budget_(budget),
      blocks_(budget == nullptr ? 0 : (max_features + kFeaturesPerBlock - 1) / kFeaturesPerBlock) {}

RandomFeatureMap::~RandomFeatureMap() {
  for (std::atomic<float*>& block : blocks_) delete[] block.load(std::memory_order_relaxed);
  if (budget_ != nullptr) budget_->GiveBack(cached_bytes());
}

std::shared_ptr<const RandomFeatureMap> RandomFeatureMap::Widen(size_t input_dim, bool keep) const {
  return std::make_shared<RandomFeatureMap>(law_, seed_, input_dim, max_features_,
                                            keep ? budget_ : nullptr);
}

void RandomFeatureMap::Generate(uint64_t first_panel, size_t num_panels, float* frequencies,
                                float* phases) const {
  const uint64_t first_feature = first_panel * kPanelWidth;
  SampleFrequencies(law_, seed_, first_feature, num_panels, input_dim_, frequencies);
  SamplePhases(seed_, first_feature, num_panels, phases);
}

const float* RandomFeatureMap::CachedBlock(uint64_t block) const {
  if (block >= blocks_.size()) return nullptr;
  float* kept = blocks_[block].load(std::memory_order_acquire);
  if (kept != nullptr) return kept;
  const int64_t bytes = static_cast<int64_t>(BlockFloats() * sizeof(float));
  if (!budget_->TryTake(bytes)) return nullptr;
  auto* fresh = new float[BlockFloats()];
  Generate(block * kPanelsPerBlock, kPanelsPerBlock, fresh, fresh + kFeaturesPerBlock * input_dim_);
  if (blocks_[block].compare_exchange_strong(kept, fresh, std::memory_order_acq_rel)) {
    cached_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return fresh;
  }
  delete[] fresh;  // another thread was quicker
  budget_->GiveBack(bytes);
  return kept;
}

void RandomFeatureMap::VisitPanels(
    uint64_t first_panel, size_t num_panels,
    absl::FunctionRef<void(const FeaturePanels& panels, uint64_t first_panel)> visit) const {
  const size_t panel_floats = kPanelWidth * input_dim_;
  const size_t longest = std::max<size_t>(kScratchFloats / panel_floats, 1);
  FeaturePanels panels;
  for (const uint64_t end = first_panel + num_panels; first_panel < end;) {
    const size_t offset = first_panel % kPanelsPerBlock;
    panels.num_panels =
        std::min({longest, size_t{kPanelsPerBlock - offset}, size_t{end - first_panel}});
    if (const float* kept = CachedBlock(first_panel / kPanelsPerBlock)) {
      panels.frequencies = kept + offset * panel_floats;
      panels.phases = kept + kFeaturesPerBlock * input_dim_ + offset * kPanelWidth;
    } else {
      const std::span<float> scratch =
          ThreadFrequencies(panels.num_panels * (panel_floats + kPanelWidth));
      float* const phases = scratch.data() + panels.num_panels * panel_floats;
      Generate(first_panel, panels.num_panels, scratch.data(), phases);
      panels.frequencies = scratch.data();
      panels.phases = phases;
    }
    visit(panels, first_panel);
    first_panel += panels.num_panels;
  }
}

void RandomFeatureMap::Features(ConstMatrixView x, float inverse_bandwidth, uint64_t first_panel,
                                size_t num_panels, float* out) const {
  VisitPanels(first_panel, num_panels, [&](const FeaturePanels& visited, uint64_t first) {
    FeaturePanels panels = visited;
    panels.inverse_bandwidth = inverse_bandwidth;
    CosineFeatures(panels, x, out + (first - first_panel) * x.rows * kPanelWidth);
  });
}

void RandomFeatureMap::FeaturesAt(ConstMatrixView x, std::span<const float> inverse_bandwidths,
                                  uint64_t first_panel, size_t num_panels,
                                  std::span<float* const> out) const {
  if (inverse_bandwidths.size() == 1) {
    Features(x, inverse_bandwidths[0], first_panel, num_panels, out[0]);
    return;
  }
  VisitPanels(first_panel, num_panels, [&](const FeaturePanels& panels, uint64_t first) {
    // The last output holds the projections until all others are made from them.
    const size_t offset = (first - first_panel) * x.rows * kPanelWidth;
    float* const projections = out.back() + offset;
    Projections(panels, x, projections);
    for (size_t k = 0; k < out.size(); ++k) {
      CosineOfProjections(projections, panels.phases, panels.num_panels, x.rows,
                          inverse_bandwidths[k], out[k] + offset);
    }
  });
}

void RandomFeatureMap::AddSums(ConstMatrixView x, float inverse_bandwidth, uint64_t first_block,
                               size_t num_panels, const float* coefficients, size_t num_outputs,
                               double* sums) const {
  const size_t count = x.rows * num_outputs;
  const std::span<double> block_sums = ThreadSums(count);
  for (size_t p = 0; p < num_panels; p += kPanelsPerBlock) {
    const uint64_t block = first_block + p / kPanelsPerBlock;
    const size_t in_block = std::min(kPanelsPerBlock, num_panels - p);
    const float* block_coefficients = coefficients + p * num_outputs * kPanelWidth;
    if (const float* kept = CachedBlock(block)) {
      const FeaturePanels panels{.frequencies = kept,
                                 .phases = kept + kFeaturesPerBlock * input_dim_,
                                 .num_panels = in_block,
                                 .inverse_bandwidth = inverse_bandwidth};
      CosineSums(panels, x, block_coefficients, num_outputs, block_sums.data());
    } else {
      const std::span<float> features = ThreadFeatures(in_block * x.rows * kPanelWidth);
      Features(x, inverse_bandwidth, block * kPanelsPerBlock, in_block, features.data());
      FeatureSums(features.data(), in_block, x.rows, block_coefficients, num_outputs,
                  block_sums.data());
    }
    for (size_t i = 0; i < count; ++i) sums[i] += block_sums[i];
  }
}

}  // namespace kernelstream
