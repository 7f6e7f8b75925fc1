#include "core/feature/orthogonal.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/feature/chi_law.h"
#include "core/feature/sampler.h"
#include "core/simd/simd.h"

namespace kernelstream {
namespace {

// Makes the columns of w [rows][columns] orthonormal, first to last, by the modified method of Gram
// and Schmidt. Sums run over rows in order, so the bits are the same everywhere. A column that is a
// combination of those before it, which happens with probability 0, becomes 0.
void Orthonormalize(size_t rows, size_t columns, double* w) {
  std::vector<double> unit(rows), products(columns);
  for (size_t i = 0; i < columns; ++i) {
    double square = 0;
    for (size_t j = 0; j < rows; ++j) square += w[j * columns + i] * w[j * columns + i];
    const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
    std::fill(products.begin(), products.end(), 0.0);
    for (size_t j = 0; j < rows; ++j) {
      double* row = w + j * columns;
      unit[j] = row[i] *= scale;
      for (size_t k = i + 1; k < columns; ++k) products[k] += unit[j] * row[k];
    }
    for (size_t j = 0; j < rows; ++j) {
      double* row = w + j * columns;
      for (size_t k = i + 1; k < columns; ++k) row[k] -= products[k] * unit[j];
    }
  }
}

}  // namespace

void DrawOrthogonal(const FeatureSpec& spec, uint64_t seed, uint64_t first_panel, size_t num_panels,
                    size_t input_dim, float* out) {
  const size_t block_panels = kPanelsPerBlock / spec.waves();
  const size_t block = block_panels * kPanelWidth, group = std::min(input_dim, block);
  const size_t panel_floats = input_dim * kPanelWidth;
  const ChiLaw& lengths = ThreadChiLaw(input_dim);
  std::vector<float> drawn(block_panels * panel_floats);
  std::vector<double> w(input_dim * group);
  const auto at = [&](size_t f, size_t j) -> float& {
    return drawn[(f / kPanelWidth * input_dim + j) * kPanelWidth + f % kPanelWidth];
  };
  for (const uint64_t end = first_panel + num_panels; first_panel < end;) {
    const size_t first = first_panel % block_panels;
    const size_t count = std::min<size_t>(block_panels - first, end - first_panel);
    const uint64_t first_index = (first_panel - first) * kPanelWidth;
    SampleFrequencies(SpectralLaw::kNormal, seed, first_index, block_panels, input_dim,
                      drawn.data());
    for (size_t f = 0; f < block; f += group) {
      const size_t columns = std::min(group, block - f);
      if (f + columns <= first * kPanelWidth || f >= (first + count) * kPanelWidth) continue;
      for (size_t j = 0; j < input_dim; ++j) {
        for (size_t k = 0; k < columns; ++k) w[j * columns + k] = double{at(f + k, j)};
      }
      Orthonormalize(input_dim, columns, w.data());
      for (size_t k = 0; k < columns; ++k) {
        const double length =
            FrequencyNorm(lengths, seed, first_index + f + k) / (2 * std::numbers::pi);
        for (size_t j = 0; j < input_dim; ++j) {
          at(f + k, j) = static_cast<float>(length * w[j * columns + k]);
        }
      }
    }
    std::copy_n(drawn.begin() + static_cast<long>(first * panel_floats), count * panel_floats, out);
    out += count * panel_floats;
    first_panel += count;
  }
}

SamplerEntry OrthogonalSampler() {
  return {
      .doc = {.name = "orthogonal",
              .doc = "frequencies at right angles, in groups of as many as there are inputs: "
                     "several times less variance for few inputs and distances up to a "
                     "bandwidth; for kernels of normal frequencies (dot_product: not function 2)",
              .parameters = {},
              .source = "Yu et al., NIPS 2016"},
      .sampler = Sampler::kOrthogonal,
      .takes = "cosines or powers of one projection on a normal frequency",
      .applies =
          [](const FeatureSpec& spec) {
            return spec.law == SpectralLaw::kNormal &&
                   (spec.form == FeatureForm::kCosine ||
                    spec.form == FeatureForm::kCosineExponential ||
                    spec.form == FeatureForm::kRectifiedPower);
          },
      .fixes_dimension = true};
}

}  // namespace kernelstream
