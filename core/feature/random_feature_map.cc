#include "core/feature/random_feature_map.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/aligned_floats.h"
#include "core/feature/draws.h"
#include "core/feature/scratch.h"

namespace kernelstream {
namespace {

// Frequencies that are generated for one use: at most 1 MiB at a time, so that they are used while
// still in the caches.
constexpr size_t kScratchFloats = size_t{1} << 18;

// Memory of this thread, good until the next call.
std::span<float> ThreadFrequencies(size_t size) {
  thread_local AlignedFloats buffer;
  return Grow(buffer, size);
}
std::span<float> ThreadFeatures(size_t size) {
  thread_local AlignedFloats buffer;
  return Grow(buffer, size);
}
std::span<float> ThreadInputs(size_t size) {
  thread_local AlignedFloats buffer;
  return Grow(buffer, size);
}
std::span<double> ThreadSums(size_t size) {
  thread_local std::vector<double> buffer;
  return Grow(buffer, size);
}

}  // namespace

RandomFeatureMap::RandomFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                                   uint64_t max_features, FeatureCacheBudget* budget)
    : FeatureMap(spec, seed, input_dim),
      inputs_(input_dim),
      terms_(spec.transformed_dim(input_dim)),
      amplitude_(static_cast<float>(std::sqrt(spec.amplitude_square()))),
      max_features_(max_features),
      budget_(budget),
      blocks_(budget == nullptr ? 0 : (max_features + kFeaturesPerBlock - 1) / kFeaturesPerBlock) {}

RandomFeatureMap::RandomFeatureMap(const FeatureSpec& spec, uint64_t seed,
                                   std::span<const uint64_t> ids)
    : FeatureMap(spec, seed, ids.size()),
      inputs_(ids),
      terms_(spec.transformed_dim(ids.size())),
      amplitude_(static_cast<float>(std::sqrt(spec.amplitude_square()))),
      max_features_(0),
      budget_(nullptr) {}

RandomFeatureMap::~RandomFeatureMap() {
  for (std::atomic<float*>& block : blocks_) {
    LineAllocator<float>().deallocate(block.load(std::memory_order_relaxed), BlockFloats());
  }
  if (budget_ != nullptr) budget_->GiveBack(cached_bytes());
}

std::shared_ptr<const FeatureMap> RandomFeatureMap::Widen(size_t input_dim, bool keep) const {
  return std::make_shared<RandomFeatureMap>(spec(), seed(), input_dim, max_features_,
                                            keep ? budget_ : nullptr);
}

int64_t RandomFeatureMap::BytesOf(uint64_t num_features) const {
  const uint64_t blocks = (num_features + kFeaturesPerBlock - 1) / kFeaturesPerBlock;
  return static_cast<int64_t>(blocks * BlockFloats() * sizeof(float));
}

void RandomFeatureMap::Generate(uint64_t first_panel, size_t num_panels, float* frequencies,
                                float* lanes) const {
  DrawPanels(spec(), seed(), first_panel, num_panels, inputs_, frequencies, lanes);
}

FeaturePanels RandomFeatureMap::Panels(const float* frequencies, const float* lanes,
                                       uint64_t first_panel, size_t num_panels) const {
  return {.frequencies = frequencies,
          .phases = lanes,
          .num_panels = num_panels,
          .form = spec().form,
          .is_additive = spec().transform == InputTransform::kAdditive,
          .factors = spec().factors(),
          .degree = spec().degree,
          .shift = static_cast<float>(spec().shift),
          .waves = spec().waves(),
          .first_wave = static_cast<size_t>(first_panel % spec().waves())};
}

float RandomFeatureMap::TransformParameter(float inverse_bandwidth) const {
  const auto shift = static_cast<float>(spec().shift);
  return spec().transform == InputTransform::kBall ? std::sqrt(shift) / inverse_bandwidth : shift;
}

ConstMatrixView RandomFeatureMap::Transformed(ConstMatrixView x, float inverse_bandwidth) const {
  if (spec().transform == InputTransform::kNone) return x;
  const std::span<float> out = ThreadInputs(x.rows * terms_);
  TransformInputs(spec().transform, TransformParameter(inverse_bandwidth), x, out.data());
  return {out.data(), x.rows, terms_};
}

const float* RandomFeatureMap::CachedBlock(uint64_t block) const {
  if (block >= blocks_.size()) return nullptr;
  float* kept = blocks_[block].load(std::memory_order_acquire);
  if (kept != nullptr) return kept;
  const int64_t bytes = static_cast<int64_t>(BlockFloats() * sizeof(float));
  if (!budget_->TryTake(bytes)) return nullptr;
  float* const fresh = LineAllocator<float>().allocate(BlockFloats());
  Generate(block * kPanelsPerBlock, kPanelsPerBlock, fresh, fresh + FrequenciesPerBlock());
  if (blocks_[block].compare_exchange_strong(kept, fresh, std::memory_order_acq_rel)) {
    cached_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return fresh;
  }
  LineAllocator<float>().deallocate(fresh, BlockFloats());  // another thread was quicker
  budget_->GiveBack(bytes);
  return kept;
}

void RandomFeatureMap::VisitPanels(
    uint64_t first_panel, size_t num_panels,
    absl::FunctionRef<void(const FeaturePanels& panels, uint64_t first_panel)> visit) const {
  const size_t panel_floats = FrequenciesPerPanel(), lanes_per_panel = LanesPerPanel();
  const size_t waves = spec().waves();
  // Other samplers draw whole blocks, whatever is asked for.
  const size_t longest =
      spec().sampler != Sampler::kIid
          ? kPanelsPerBlock
          : std::max<size_t>(kScratchFloats / std::max<size_t>(panel_floats, 1), 1) * waves;
  for (const uint64_t end = first_panel + num_panels; first_panel < end;) {
    const size_t offset = first_panel % kPanelsPerBlock;
    const size_t count = std::min(
        {longest - offset % waves, size_t{kPanelsPerBlock - offset}, size_t{end - first_panel}});
    if (const float* kept = CachedBlock(first_panel / kPanelsPerBlock)) {
      const float* lanes = kept + FrequenciesPerBlock() + offset * lanes_per_panel;
      visit(Panels(kept + offset / waves * panel_floats, lanes, first_panel, count), first_panel);
    } else {
      const size_t frequencies = (offset % waves + count + waves - 1) / waves * panel_floats;
      const std::span<float> scratch = ThreadFrequencies(frequencies + count * lanes_per_panel);
      float* const lanes = scratch.data() + frequencies;
      Generate(first_panel, count, scratch.data(), lanes);
      visit(Panels(scratch.data(), lanes, first_panel, count), first_panel);
    }
    first_panel += count;
  }
}

void RandomFeatureMap::Amplify(std::span<float> features) const {
  if (amplitude_ == 1) return;
  for (float& value : features) value *= amplitude_;
}

void RandomFeatureMap::FeaturesOf(ConstMatrixView z, float scale, uint64_t first_panel,
                                  size_t num_panels, float* out) const {
  VisitPanels(first_panel, num_panels, [&](const FeaturePanels& visited, uint64_t first) {
    FeaturePanels panels = visited;
    panels.inverse_bandwidth = scale;
    float* const to = out + (first - first_panel) * z.rows * kPanelWidth;
    PanelFeatures(panels, z, to);
    Amplify({to, visited.num_panels * z.rows * kPanelWidth});
  });
}

void RandomFeatureMap::Features(InputsView x, float inverse_bandwidth, uint64_t first_panel,
                                size_t num_panels, float* out) const {
  if (x.sparse != nullptr) {
    return SparseFeaturesAt(*x.sparse, {&inverse_bandwidth, 1}, first_panel, num_panels, {&out, 1});
  }
  FeaturesOf(Transformed(x.dense, Scale(inverse_bandwidth)), Scale(inverse_bandwidth), first_panel,
             num_panels, out);
}

bool RandomFeatureMap::has_one_projection() const {
  return spec().form != FeatureForm::kProduct && spec().form != FeatureForm::kSketch &&
         spec().form != FeatureForm::kRandomProduct &&
         spec().form != FeatureForm::kCosineExponential &&
         spec().transform != InputTransform::kAdditive;
}

void RandomFeatureMap::FeaturesAt(InputsView x, std::span<const float> inverse_bandwidths,
                                  uint64_t first_panel, size_t num_panels,
                                  std::span<float* const> out) const {
  if (x.sparse != nullptr) {
    return SparseFeaturesAt(*x.sparse, inverse_bandwidths, first_panel, num_panels, out);
  }
  if (inverse_bandwidths.size() == 1 || !has_one_projection()) {
    for (size_t k = 0; k < out.size(); ++k) {
      Features(x, inverse_bandwidths[k], first_panel, num_panels, out[k]);
    }
    return;
  }
  const ConstMatrixView z = Transformed(x.dense, 1);
  VisitPanels(first_panel, num_panels, [&](const FeaturePanels& visited, uint64_t first) {
    FeaturePanels panels = visited;
    // The last output holds the projections until all others are made from them.
    const size_t offset = (first - first_panel) * x.rows * kPanelWidth;
    float* const projections = out.back() + offset;
    Projections(panels, z, projections);
    for (size_t k = 0; k < out.size(); ++k) {
      panels.inverse_bandwidth = Scale(inverse_bandwidths[k]);
      FeaturesOfProjections(panels, projections, x.rows, out[k] + offset);
      Amplify({out[k] + offset, visited.num_panels * x.rows * kPanelWidth});
    }
  });
}

void RandomFeatureMap::AddChunkSums(InputsView x, float inverse_bandwidth, uint64_t first_block,
                                    size_t num_panels, size_t panels_per_chunk,
                                    const float* coefficients, size_t num_outputs,
                                    double* sums) const {
  const float scale = Scale(inverse_bandwidth);
  const ConstMatrixView z = x.sparse != nullptr ? x.dense : Transformed(x.dense, scale);
  const size_t count = x.rows * num_outputs;
  const std::span<double> block_sums = ThreadSums(count);
  for (size_t p = 0; p < num_panels; p += kPanelsPerBlock) {
    const uint64_t block = first_block + p / kPanelsPerBlock;
    const size_t in_block = std::min(kPanelsPerBlock, num_panels - p);
    const float* block_coefficients = coefficients + p * num_outputs * kPanelWidth;
    const bool fused = x.sparse == nullptr && amplitude_ == 1;
    const float* kept = fused ? CachedBlock(block) : nullptr;
    if (kept != nullptr) {
      FeaturePanels panels = Panels(kept, kept + FrequenciesPerBlock(), 0, in_block);
      panels.inverse_bandwidth = scale;
      PanelSums(panels, z, block_coefficients, num_outputs, block_sums.data());
    } else {
      const std::span<float> features = ThreadFeatures(in_block * x.rows * kPanelWidth);
      if (x.sparse != nullptr) {
        Features(x, inverse_bandwidth, block * kPanelsPerBlock, in_block, features.data());
      } else {
        FeaturesOf(z, scale, block * kPanelsPerBlock, in_block, features.data());
      }
      FeatureSums(features.data(), in_block, x.rows, block_coefficients, num_outputs,
                  block_sums.data());
    }
    double* const to = sums + p / panels_per_chunk * count;
    for (size_t i = 0; i < count; ++i) to[i] += block_sums[i];
  }
}

}  // namespace kernelstream
