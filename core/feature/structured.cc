#include "core/feature/structured.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/base/aligned_floats.h"
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
  std::vector<float> lanes;  // of the features of the group

  HadamardGroup view() const {
    return {signs.size(), signs.data(), places.data(), gains.data(), scales.data()};
  }
  static int64_t Bytes(size_t size, size_t waves) {
    return static_cast<int64_t>(size * (4 + waves) * sizeof(float));
  }
};

StructuredFeatureMap::StructuredFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                                           uint64_t max_features, FeatureCacheBudget* budget)
    : ProjectedFeatureMap(spec, seed, input_dim, max_features),
      size_(PaddedSize(input_dim)),
      max_features_(max_features),
      budget_(budget),
      groups_(budget == nullptr ? 0 : max_features / spec.waves() / size_ + 1) {}

StructuredFeatureMap::~StructuredFeatureMap() {
  for (auto& group : groups_) delete group.load(std::memory_order_relaxed);
  if (budget_ != nullptr) budget_->GiveBack(cached_bytes());
}

std::shared_ptr<const FeatureMap> StructuredFeatureMap::Widen(size_t input_dim, bool keep) const {
  return std::make_shared<StructuredFeatureMap>(spec(), seed(), input_dim, max_features_,
                                                keep ? budget_ : nullptr);
}

// The draws of frequencies n group ... n (group + 1) - 1; no lanes.
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
  if (spec.radial == RadialLaw::kNone) return draws;
  float radii[kPanelWidth];
  for (size_t i = 0; i < size; i += kPanelWidth) {
    PanelRadii(spec, seed, group * size + i, radii);
    for (size_t l = 0; l < kPanelWidth; ++l) draws.scales[i + l] *= radii[l];
  }
  return draws;
}

const StructuredFeatureMap::Draws* StructuredFeatureMap::KeptDraws(uint64_t group) const {
  if (group >= groups_.size()) return nullptr;
  const Draws* kept = groups_[group].load(std::memory_order_acquire);
  if (kept != nullptr) return kept;
  const size_t waves = spec().waves();
  const int64_t bytes = Draws::Bytes(size_, waves);
  if (!budget_->TryTake(bytes)) return nullptr;
  auto fresh = std::make_unique<Draws>(MakeDraws(spec(), seed(), size_, group));
  fresh->lanes.resize(size_ * waves);
  DrawPanelLanes(spec(), seed(), group * GroupPanels(), GroupPanels(), fresh->lanes.data());
  if (groups_[group].compare_exchange_strong(kept, fresh.get(), std::memory_order_acq_rel)) {
    cached_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return fresh.release();
  }
  budget_->GiveBack(bytes);  // another thread was quicker
  return kept;
}

int64_t StructuredFeatureMap::BytesOf(uint64_t num_features) const {
  const uint64_t of_group = GroupPanels() * kPanelWidth;
  return static_cast<int64_t>((num_features + of_group - 1) / of_group) *
         Draws::Bytes(size_, spec().waves());
}

void StructuredFeatureMap::ProjectionsAt(ConstMatrixView x, uint64_t first_panel,
                                         std::span<float* const> out) const {
  thread_local AlignedFloats scratch;
  scratch.resize(std::max(scratch.size(), kHadamardScratch * size_));
  const size_t group_panels = size_ / kPanelWidth;
  for (size_t p = 0; p < out.size();) {
    const uint64_t group = (first_panel + p) / group_panels;
    const size_t first = (first_panel + p) % group_panels;
    const size_t count = std::min(group_panels - first, out.size() - p);
    if (const Draws* kept = KeptDraws(group)) {
      HadamardProjections(kept->view(), x, first, count, scratch.data(), &out[p]);
    } else {
      const Draws fresh = MakeDraws(spec(), seed(), size_, group);
      HadamardProjections(fresh.view(), x, first, count, scratch.data(), &out[p]);
    }
    p += count;
  }
}

void StructuredFeatureMap::Lanes(uint64_t first_panel, size_t num_panels, float* lanes) const {
  for (const uint64_t end = first_panel + num_panels; first_panel < end;) {
    const size_t first = first_panel % GroupPanels();
    const size_t count = std::min<size_t>(GroupPanels() - first, end - first_panel);
    if (const Draws* kept = KeptDraws(first_panel / GroupPanels())) {
      std::copy_n(kept->lanes.data() + first * kPanelWidth, count * kPanelWidth, lanes);
    } else {
      DrawPanelLanes(spec(), seed(), first_panel, count, lanes);
    }
    lanes += count * kPanelWidth;
    first_panel += count;
  }
}

size_t StructuredFeatureMap::PanelsAtATime() const {
  return std::max(kPanelsPerBlock, GroupPanels());
}

void DrawStructured(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                    size_t input_dim, float* out) {
  constexpr size_t kRows = 64;
  const size_t size = PaddedSize(input_dim), group_panels = size / kPanelWidth;
  const size_t panel_floats = input_dim * kPanelWidth;
  std::vector<float> scratch(kHadamardScratch * size),
      units(std::min(kRows, input_dim) * input_dim);
  std::vector<float*> places;
  FeatureSpec without_radii = spec;
  without_radii.radial = RadialLaw::kNone;
  for (const uint64_t end = first_panel + num_panels; first_panel < end;) {
    const size_t first = first_panel % group_panels;
    const size_t count = std::min<size_t>(group_panels - first, end - first_panel);
    const auto draws =
        StructuredFeatureMap::MakeDraws(without_radii, seed, size, first_panel / group_panels);
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
                     "instead of one for each input, and 16 bytes for a frequency and 4 for "
                     "each of its features, for half as much variance more at short distances; for "
                     "wide dense inputs and kernels "
                     "of normal frequencies",
              .parameters = {}},
      .sampler = Sampler::kStructured,
      .takes = "cosines or powers of one projection of the inputs themselves on a normal frequency",
      .applies =
          [](const FeatureSpec& spec) {
            return spec.image.size() == 0 && spec.law == SpectralLaw::kNormal &&
                   spec.transform == InputTransform::kNone &&
                   (spec.form == FeatureForm::kCosine || spec.form == FeatureForm::kRectifiedPower);
          },
      .fixes_dimension = true};
}

}  // namespace kernelstream
