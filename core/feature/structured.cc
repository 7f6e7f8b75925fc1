#include "core/feature/structured.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/base/philox.h"
#include "core/feature/chi_law.h"
#include "core/feature/draws.h"
#include "core/feature/sampler.h"
#include "core/simd/simd.h"

namespace kernelstream {
namespace {

size_t PaddedSize(size_t input_dim) { return std::bit_ceil(std::max(input_dim, kPanelWidth)); }

void DrawSigns(uint64_t seed, uint64_t group, std::vector<float>& signs) {
  PhiloxBlock words = {};
  for (size_t j = 0; j < signs.size(); ++j) {
    const size_t bit = j % 128;
    if (bit == 0) {
      words =
          Philox4x32(StreamCounter(RandomStream::kHadamardSign, group, j / 128), PhiloxKey(seed));
    }
    signs[j] = (words[bit / 32] >> (bit % 32) & 1) != 0 ? 1.0f : -1.0f;
  }
}

void DrawPermutation(uint64_t seed, uint64_t group, std::vector<int32_t>& places) {
  std::iota(places.begin(), places.end(), 0);
  PhiloxBlock words = {};
  for (size_t i = 0; i + 1 < places.size(); ++i) {
    if (i % 4 == 0) {
      words =
          Philox4x32(StreamCounter(RandomStream::kHadamardPlace, group, i / 4), PhiloxKey(seed));
    }
    const uint64_t left = places.size() - i;
    std::swap(places[i], places[i + (words[i % 4] * left >> 32)]);
  }
}

}  // namespace

struct StructuredFeatureMap::Draws {
  std::vector<float> signs, gains, scales;
  std::vector<int32_t> places;

  HadamardGroup view() const {
    return {signs.size(), signs.data(), places.data(), gains.data(), scales.data()};
  }
};

StructuredFeatureMap::StructuredFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                                           uint64_t max_features, FeatureCacheBudget* budget)
    : FeatureMap(spec, seed, input_dim),
      size_(PaddedSize(input_dim)),
      max_features_(max_features),
      budget_(budget),
      groups_(budget == nullptr ? 0 : max_features / spec.waves() / size_ + 1),
      written_out_(spec, seed, input_dim, max_features, nullptr) {}

StructuredFeatureMap::~StructuredFeatureMap() {
  for (auto& group : groups_) delete group.load(std::memory_order_relaxed);
  if (budget_ != nullptr) budget_->GiveBack(cached_bytes());
}

std::shared_ptr<const FeatureMap> StructuredFeatureMap::Widen(size_t input_dim, bool keep) const {
  return std::make_shared<StructuredFeatureMap>(spec(), seed(), input_dim, max_features_,
                                                keep ? budget_ : nullptr);
}

// The draws of frequencies n group ... n (group + 1) - 1; scales without radii.
StructuredFeatureMap::Draws StructuredFeatureMap::MakeDraws(const FeatureSpec& spec, uint64_t seed,
                                                            size_t size, uint64_t group) {
  Draws draws;
  draws.signs.resize(size);
  draws.gains.resize(size);
  draws.scales.resize(size);
  draws.places.resize(size);
  DrawSigns(seed, group, draws.signs);
  DrawPermutation(seed, group, draws.places);
  SampleFrequencies(SpectralLaw::kNormal, seed, group * kPanelWidth, 1, size / kPanelWidth,
                    draws.gains.data());
  double square = 0;
  for (const float gain : draws.gains) square += double{gain} * gain;
  const double unit = 1 / (std::sqrt(square * static_cast<double>(size)) * 2 * std::numbers::pi);
  const ChiLaw& lengths = ThreadChiLaw(size);
  for (size_t i = 0; i < size; ++i) {
    draws.scales[i] = static_cast<float>(unit * FrequencyNorm(lengths, seed, group * size + i));
  }
  return draws;
}

const StructuredFeatureMap::Draws* StructuredFeatureMap::KeptDraws(uint64_t group) const {
  if (group >= groups_.size()) return nullptr;
  const Draws* kept = groups_[group].load(std::memory_order_acquire);
  if (kept != nullptr) return kept;
  const auto bytes = static_cast<int64_t>(4 * size_ * sizeof(float));
  if (!budget_->TryTake(bytes)) return nullptr;
  const auto* fresh = new Draws(MakeDraws(spec(), seed(), size_, group));
  if (groups_[group].compare_exchange_strong(kept, fresh, std::memory_order_acq_rel)) {
    cached_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return fresh;
  }
  delete fresh;  // another thread was quicker
  budget_->GiveBack(bytes);
  return kept;
}

void StructuredFeatureMap::ProjectionsOf(ConstMatrixView z, uint64_t first_panel, size_t num_panels,
                                         float* out) const {
  thread_local std::vector<float> scratch;
  thread_local std::vector<float*> places;
  scratch.resize(std::max(scratch.size(), 2 * size_));
  const size_t waves = spec().waves(), group_panels = size_ / kPanelWidth;
  const uint64_t end = (first_panel + num_panels + waves - 1) / waves;
  for (uint64_t q = first_panel / waves; q < end;) {
    const uint64_t group = q / group_panels;
    const size_t first = q % group_panels;
    const size_t count = std::min<size_t>(group_panels - first, end - q);
    places.clear();
    for (size_t p = 0; p < count; ++p) {
      const uint64_t panel = std::max((q + p) * waves, first_panel) - first_panel;
      places.push_back(out + panel * z.rows * kPanelWidth);
    }
    if (const Draws* kept = KeptDraws(group)) {
      HadamardProjections(kept->view(), z, first, count, scratch.data(), places.data());
    } else {
      const Draws fresh = MakeDraws(spec(), seed(), size_, group);
      HadamardProjections(fresh.view(), z, first, count, scratch.data(), places.data());
    }
    if (spec().radial != RadialLaw::kNone) {
      float radii[kPanelWidth];
      for (size_t p = 0; p < count; ++p) {
        PanelRadii(spec(), seed(), (q + p) * kPanelWidth, radii);
        for (size_t i = 0; i < z.rows * kPanelWidth; ++i) places[p][i] *= radii[i % kPanelWidth];
      }
    }
    q += count;
  }
}

FeaturePanels StructuredFeatureMap::Panels(uint64_t first_panel, size_t num_panels, float scale,
                                           float* lanes) const {
  DrawPanelLanes(spec(), seed(), first_panel, num_panels, lanes);
  return {.phases = lanes,
          .num_panels = num_panels,
          .inverse_bandwidth = scale,
          .form = spec().form,
          .degree = spec().degree,
          .waves = spec().waves(),
          .first_wave = static_cast<size_t>(first_panel % spec().waves())};
}

void StructuredFeatureMap::FeaturesAt(InputsView x, std::span<const float> inverse_bandwidths,
                                      uint64_t first_panel, size_t num_panels,
                                      std::span<float* const> out) const {
  thread_local std::vector<float> lanes;
  lanes.resize(std::max(lanes.size(), num_panels * kPanelWidth));
  // The last output holds the projections until all others are made from them.
  ProjectionsOf(x.dense, first_panel, num_panels, out.back());
  FeaturePanels panels = Panels(first_panel, num_panels, 1, lanes.data());
  for (size_t k = 0; k < out.size(); ++k) {
    panels.inverse_bandwidth = inverse_bandwidths[k] * static_cast<float>(spec().frequency_scale);
    FeaturesOfProjections(panels, out.back(), x.rows, out[k]);
  }
}

size_t StructuredFeatureMap::PanelsAtATime() const {
  return std::max(kPanelsPerBlock, size_ / kPanelWidth * spec().waves());
}

void DrawStructured(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                    size_t input_dim, float* out) {
  constexpr size_t kRows = 64;
  const size_t size = PaddedSize(input_dim), group_panels = size / kPanelWidth;
  const size_t panel_floats = input_dim * kPanelWidth;
  std::vector<float> scratch(2 * size), units(std::min(kRows, input_dim) * input_dim);
  std::vector<float*> places;
  for (const uint64_t end = first_panel + num_panels; first_panel < end;) {
    const size_t first = first_panel % group_panels;
    const size_t count = std::min<size_t>(group_panels - first, end - first_panel);
    const auto draws =
        StructuredFeatureMap::MakeDraws(spec, seed, size, first_panel / group_panels);
    // Coordinate j of all frequencies is their projection of unit vector j.
    for (size_t j = 0; j < input_dim; j += kRows) {
      const size_t rows = std::min(kRows, input_dim - j);
      std::fill(units.begin(), units.end(), 0.0f);
      for (size_t r = 0; r < rows; ++r) units[r * input_dim + j + r] = 1;
      places.clear();
      for (size_t p = 0; p < count; ++p) {
        places.push_back(out + p * panel_floats + j * kPanelWidth);
      }
      HadamardProjections(draws.view(), {units.data(), rows, input_dim}, first, count,
                          scratch.data(), places.data());
    }
    out += count * panel_floats;
    first_panel += count;
  }
}

SamplerEntry StructuredSampler() {
  return {
      .doc = {.name = "structured",
              .doc = "products of Hadamard matrices: log2(inputs) operations for a projection "
                     "instead of one for each input, and 16 bytes for a frequency, for half as "
                     "much variance more at short distances; for wide dense inputs and kernels "
                     "of normal frequencies",
              .parameters = {}},
      .sampler = Sampler::kStructured,
      .applies =
          [](const FeatureSpec& spec) {
            return spec.is_plain() && spec.law == SpectralLaw::kNormal &&
                   spec.transform == InputTransform::kNone &&
                   (spec.form == FeatureForm::kCosine || spec.form == FeatureForm::kRectifiedPower);
          },
      .fixes_dimension = true};
}

}  // namespace kernelstream
