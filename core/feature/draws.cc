#include "core/feature/draws.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/philox.h"
#include "core/base/quantile.h"
#include "core/feature/composition.h"
#include "core/feature/convolution.h"
#include "core/feature/orthogonal.h"
#include "core/feature/quasi_monte_carlo.h"
#include "core/feature/sketch.h"
#include "core/feature/structured.h"
#include "core/simd/simd.h"

namespace kernelstream {
namespace {

constexpr double kLargestRadius = 0x1p14;

PhiloxBlock Words(RandomStream stream, uint64_t seed, uint64_t index, uint64_t group = 0) {
  return Philox4x32(StreamCounter(stream, index, group), PhiloxKey(seed));
}

double RadiusUniform(uint64_t seed, uint64_t feature) {
  const PhiloxBlock words = Words(RandomStream::kRadius, seed, feature);
  return UniformDouble(words[0], words[1]);
}

// Of the features of one panel of frequencies.
void RadiusUniforms(const FeatureSpec& spec, uint64_t seed, uint64_t first_feature, double* out) {
  for (size_t l = 0; l < kPanelWidth; ++l) out[l] = RadiusUniform(seed, first_feature + l);
  if (spec.sampler != Sampler::kQuasiMonteCarlo) return;
  uint8_t cells[kPanelWidth];
  RadiusCells(spec, seed, first_feature / kPanelWidth, cells);
  const double parts = 1 << kNetBits;
  for (size_t l = 0; l < kPanelWidth; ++l) {
    out[l] = std::min((cells[l] + out[l]) / parts, 1 - 0x1p-53);  // the sum may round up
  }
}

// Multiplies the frequencies of the features of one panel.
void MultiplyLanes(const float* factors, size_t terms, float* frequencies) {
  for (size_t j = 0; j < terms; ++j) {
    for (size_t l = 0; l < kPanelWidth; ++l) frequencies[j * kPanelWidth + l] *= factors[l];
  }
}

double Student(double shape, double u) {
  const double g = GammaQuantile(shape, u);
  return g <= shape / (kLargestRadius * kLargestRadius) ? kLargestRadius : std::sqrt(shape / g);
}

}  // namespace

void PanelRadii(const FeatureSpec& spec, uint64_t seed, uint64_t first_index, float* radii) {
  double uniforms[kPanelWidth];
  RadiusUniforms(spec, seed, first_index, uniforms);
  for (size_t l = 0; l < kPanelWidth; ++l) {
    radii[l] = static_cast<float>(Student(spec.shape, uniforms[l]));
  }
}

namespace {

// Radii of one panel; rates, if not null, get the squares.
void DrawRadii(const FeatureSpec& spec, uint64_t seed, uint64_t first_feature, size_t terms,
               float* frequencies, float* rates) {
  float radii[kPanelWidth];
  if (spec.radial == RadialLaw::kStudent) {
    PanelRadii(spec, seed, first_feature, radii);
    return MultiplyLanes(radii, terms, frequencies);
  }
  double uniforms[kPanelWidth] = {};
  if (spec.radial != RadialLaw::kNone) RadiusUniforms(spec, seed, first_feature, uniforms);
  for (size_t l = 0; l < kPanelWidth; ++l) {
    double square = 1;
    if (spec.radial == RadialLaw::kExponential) {
      square = ExponentialQuantile(uniforms[l]) / (1 - spec.shift);
    }
    radii[l] = static_cast<float>(std::sqrt(square));
    if (rates != nullptr) rates[l] = static_cast<float>(square);
  }
  if (spec.radial != RadialLaw::kNone) MultiplyLanes(radii, terms, frequencies);
}

// Signs times the root of what is added to the inner product.
void DrawOffsets(const FeatureSpec& spec, uint64_t seed, uint64_t first_feature, float* lanes) {
  const auto root = static_cast<float>(std::sqrt(spec.shift));
  for (size_t l = 0; l < kPanelWidth; ++l) {
    const uint32_t word = Words(RandomStream::kPhase, seed, first_feature + l)[0];
    for (size_t i = 0; i < spec.factors(); ++i) {
      lanes[i * kPanelWidth + l] = (word >> (31 - i) & 1) != 0 ? root : -root;
    }
  }
}

// The first N factors keep their frequencies, the others become the constant 1; the root of the sum
// of the series goes into the first.
void DrawOrders(const FeatureSpec& spec, uint64_t seed, uint64_t first_feature, size_t terms,
                float* frequencies, float* lanes) {
  double total = 0;
  for (const double a : spec.series) total += a;
  const auto amplitude = static_cast<float>(std::sqrt(total));
  for (size_t l = 0; l < kPanelWidth; ++l) {
    double left = RadiusUniform(seed, first_feature + l) * total;
    size_t order = 0;
    while (order < kMaxFactors && left >= spec.series[order]) left -= spec.series[order++];
    for (size_t i = 0; i < kMaxFactors; ++i) {
      const float size = i == 0 ? amplitude : 1.0f;
      const float keep = i < order ? size : 0.0f;
      float* factor = frequencies + i * terms * kPanelWidth + l;
      for (size_t j = 0; j < terms; ++j) factor[j * kPanelWidth] *= keep;
      lanes[i * kPanelWidth + l] = i < order ? 0.0f : size;
    }
  }
}

double AdditiveQuantile(SpectralLaw law, double u) {
  if (law == SpectralLaw::kJensenShannon) return JensenShannonQuantile(u);
  return law == SpectralLaw::kSech ? SechQuantile(u) : CauchyQuantile(u) / 2;
}

// Panel p of a block takes the stratum (p + shift) mod 16.
float AdditiveFrequency(const FeatureSpec& spec, uint64_t seed, uint64_t panel) {
  const uint64_t block = panel / kPanelsPerBlock;
  const uint64_t first_feature = block * kFeaturesPerBlock;
  const uint32_t shift = Words(RandomStream::kAdditiveFrequency, seed, first_feature, 1)[0];
  const PhiloxBlock words = Words(RandomStream::kAdditiveFrequency, seed, panel * kPanelWidth);
  const uint64_t stratum = (panel + (shift >> 28)) % kPanelsPerBlock;
  const double u =
      (static_cast<double>(stratum) + UniformDouble(words[0], words[1])) / double{kPanelsPerBlock};
  return static_cast<float>(AdditiveQuantile(spec.additive_law, u) / (2 * std::numbers::pi));
}

void DrawFrequencies(const FeatureSpec& spec, uint64_t seed, uint64_t first_feature,
                     size_t num_panels, Coordinates inputs, float* out) {
  const uint64_t first_panel = first_feature / kPanelWidth;
  if (spec.composition != Composition::kNone) {
    return DrawTermFrequencies(spec, seed, first_panel, num_panels, inputs, out);
  }
  if (spec.image.size() != 0) {
    return DrawConvolutions(spec, seed, first_panel, num_panels, inputs, out);
  }
  switch (spec.sampler) {
    case Sampler::kOrthogonal:
      return DrawOrthogonal(spec, seed, first_panel, num_panels, inputs.size, out);
    case Sampler::kQuasiMonteCarlo:
      return DrawQuasiMonteCarlo(spec, seed, first_panel, num_panels, inputs.size, out);
    case Sampler::kStructured:
      return DrawStructured(spec, seed, first_panel, num_panels, inputs.size, out);
    case Sampler::kIid:
      break;
  }
  // Signs of one input coordinate: for each factor, or for the cosine and the sine.
  const size_t signs = spec.transform == InputTransform::kAdditive ? 2 : spec.factors();
  if (spec.form == FeatureForm::kSketch) {
    DrawSketches(spec, seed, first_panel, num_panels, inputs, out);
  } else if (signs > 1 && spec.law == SpectralLaw::kRademacher) {
    SampleSigns(seed, first_feature, num_panels, inputs,
                {.signs = signs, .sign_stride = inputs.size, .coordinate_stride = 1}, out);
  } else {
    SampleFrequencies(spec.law, seed, first_feature, num_panels, inputs, out);
  }
}

// Panel by panel after the frequencies; first_panel in panels of frequencies.
void DrawLanes(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
               size_t terms, float* frequencies, float* lanes) {
  for (size_t p = 0; p < num_panels; ++p) {
    const uint64_t feature = (first_panel + p) * kPanelWidth;
    float* panel = frequencies + p * spec.factors() * terms * kPanelWidth;
    float* panel_lanes = lanes + p * spec.lane_rows() * kPanelWidth;
    switch (spec.form) {
      case FeatureForm::kCosine:
        if (spec.radial != RadialLaw::kNone) DrawRadii(spec, seed, feature, terms, panel, nullptr);
        break;
      case FeatureForm::kCosineExponential:
        SamplePhases(seed, feature, 1, panel_lanes);
        DrawRadii(spec, seed, feature, terms, panel, panel_lanes + kPanelWidth);
        break;
      case FeatureForm::kProduct:
        DrawOffsets(spec, seed, feature, panel_lanes);
        break;
      case FeatureForm::kSketch:
        DrawSketchOffsets(spec, seed, first_panel + p, panel_lanes);
        break;
      case FeatureForm::kRandomProduct:
        DrawOrders(spec, seed, feature, terms, panel, panel_lanes);
        break;
      case FeatureForm::kLinear:
        if (spec.transform == InputTransform::kAdditive) {
          std::fill_n(panel_lanes, kPanelWidth, AdditiveFrequency(spec, seed, first_panel + p));
        }
        break;
      case FeatureForm::kExponential:
      case FeatureForm::kRectifiedPower:
        break;
    }
  }
}

void DrawPhases(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                float* phases) {
  if (!spec.pairs) return SamplePhases(seed, first_panel * kPanelWidth, num_panels, phases);
  for (size_t p = 0; p < num_panels; ++p) {
    float* panel = phases + p * kPanelWidth;
    SamplePhases(seed, (first_panel + p) / 2 * kPanelWidth, 1, panel);
    if ((first_panel + p) % 2 == 0) continue;
    for (size_t l = 0; l < kPanelWidth; ++l) panel[l] -= 0.25f;  // exact
  }
}

}  // namespace

void DrawPanelLanes(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                    float* lanes) {
  if (spec.form == FeatureForm::kCosine) {
    DrawPhases(spec, seed, first_panel, num_panels, lanes);
  } else {
    std::fill_n(lanes, num_panels * spec.lane_rows() * kPanelWidth, 0.0f);
  }
}

void DrawPanels(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                Coordinates inputs, float* frequencies, float* lanes) {
  const uint64_t first = first_panel / spec.waves();
  const size_t count = (first_panel + num_panels + spec.waves() - 1) / spec.waves() - first;
  DrawFrequencies(spec, seed, first * kPanelWidth, count, inputs, frequencies);
  DrawPanelLanes(spec, seed, first_panel, num_panels, lanes);
  DrawLanes(spec, seed, first, count, spec.transformed_dim(inputs.size), frequencies, lanes);
}

}  // namespace kernelstream
