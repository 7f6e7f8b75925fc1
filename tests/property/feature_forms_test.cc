// Features of every registered kernel against plain float64 loops over the same draws, on every
// SIMD target: the error bounds of core/simd/simd.h.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "core/feature/random_feature_map.h"
#include "core/kernel/kernel.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// One feature of one row and its allowed error.
struct Reference {
  double value, bound;
};

// z(x) for a panel with this frequency over the logarithms.
std::vector<double> Transformed(const FeatureSpec& spec, std::span<const float> x, double scale,
                                double additive_turns) {
  std::vector<double> z, sines;
  double square = 0;
  for (const float v : x) square += double{v} * v;
  const double length = std::sqrt(spec.shift) / scale;
  for (const float v : x) {
    switch (spec.transform) {
      case InputTransform::kNone:
        z.push_back(v);
        break;
      case InputTransform::kLog:
        z.push_back(std::log1p(double{v} / spec.shift));
        break;
      case InputTransform::kSquareRoot:
        z.push_back(std::sqrt(v));
        break;
      case InputTransform::kBall:
        z.push_back(v * std::min(1.0, length / std::sqrt(square)));
        break;
      case InputTransform::kAdditive: {
        const double angle = v > 0 ? kTurn * additive_turns * std::log(double{v}) : 0;
        z.push_back(std::sqrt(v) * std::cos(angle));
        sines.push_back(std::sqrt(v) * std::sin(angle));
        break;
      }
    }
  }
  z.insert(z.end(), sines.begin(), sines.end());
  return z;
}

// Lane l of panel p, scale included in panels.inverse_bandwidth.
Reference FeatureOf(const FeatureSpec& spec, const FeaturePanels& panels, size_t p, size_t l,
                    std::span<const float> x) {
  const double s = panels.inverse_bandwidth;
  const size_t factors = spec.factors();
  const float* lanes = panels.phases + p * spec.lane_rows() * kPanelWidth + l;
  const std::vector<double> z = Transformed(spec, x, s, lanes[0]);
  const auto frequency = [&](size_t factor, size_t j) {
    return double{panels.frequencies[((p * factors + factor) * z.size() + j) * kPanelWidth + l]};
  };
  double projection = 0, m = 0, largest = 0, square = 0;
  for (size_t j = 0; j < z.size(); ++j) {
    projection += z[j] * frequency(0, j);
    // Logarithms come with an error of their own.
    const double size =
        spec.transform == InputTransform::kLog ? std::abs(z[j]) + 1 : std::abs(z[j]);
    const double term = size * std::abs(frequency(0, j)) * s;
    m += term;
    largest = std::max(largest, term);
    square += z[j] * z[j];
  }
  m += static_cast<double>(z.size()) / 5 * largest;
  const double cosine = std::numbers::sqrt2 * std::cos(kTurn * (projection * s + lanes[0]));
  switch (spec.form) {
    case FeatureForm::kCosine:
      return {cosine, 4e-6 + 3e-6 * m};
    case FeatureForm::kCosineExponential: {
      const double exponent = lanes[kPanelWidth] * (square * s * s - spec.shift) / 2;
      const double factor = std::exp(std::min(60.0, exponent)) / std::sqrt(1 - spec.shift);
      return {cosine * factor, factor * (1e-5 + 3e-6 * m + 3e-7 * std::abs(exponent))};
    }
    case FeatureForm::kExponential: {
      const double value = std::exp(-projection * s);
      return {value, value * (1e-6 + 4e-7 * m) + 2e-38};
    }
    case FeatureForm::kLinear: {
      double bound = 4e-7 * m / s;
      if (spec.transform == InputTransform::kAdditive) {
        for (const float v : x) {
          if (v <= 0) continue;
          const double log_size = std::abs(std::log(double{v}));
          bound += std::sqrt(v) * (2e-5 + 4e-6 * std::abs(lanes[0]) * log_size);
        }
      }
      return {projection * std::sqrt(s), bound * std::sqrt(s)};
    }
    case FeatureForm::kRectifiedPower: {
      const double t = kTurn * projection * s, e = 4e-6 * m;
      const auto n = static_cast<double>(spec.degree);
      if (n == 0) return {t > 0 ? std::numbers::sqrt2 : 0, std::abs(t) < e ? 2 : 1e-7};
      const double power = std::pow(std::max(t, 0.0), n);
      return {std::numbers::sqrt2 * power,
              std::numbers::sqrt2 * n * std::pow(std::abs(t) + e, n - 1) * e + 4e-7 * power};
    }
    case FeatureForm::kSketch: {
      std::vector<double> sketch;
      double sizes = 4;
      for (size_t i = 0; i < factors; ++i) {
        std::vector<double> factor(kPanelWidth), product(kPanelWidth);
        double size = 0;
        for (size_t h = 0; h < kPanelWidth; ++h) {
          const double lane = lanes[i * kPanelWidth + h - l];
          factor[h] = lane;
          for (size_t j = 0; j < z.size(); ++j) {
            const size_t at = ((p * factors + i) * z.size() + j) * kPanelWidth + h;
            factor[h] += s * z[j] * panels.frequencies[at];
            size += s * std::abs(z[j] * panels.frequencies[at]);
          }
          size += std::abs(lane);
        }
        sizes *= size;
        for (size_t h = 0; h < kPanelWidth; ++h) {
          for (size_t k = 0; k < kPanelWidth; ++k) {
            product[h] +=
                (i == 0 ? (h == k ? 4 : 0) : sketch[(h + kPanelWidth - k) % kPanelWidth]) *
                factor[k];
          }
        }
        sketch = product;
      }
      return {sketch[l], 1e-5 * static_cast<double>(factors) * sizes};
    }
    case FeatureForm::kProduct:
    case FeatureForm::kRandomProduct: {
      double value = 1, upper = 1, sizes = 1;
      for (size_t i = 0; i < factors; ++i) {
        const double lane = lanes[i * kPanelWidth];
        double sum = 0, size = 0;
        for (size_t j = 0; j < z.size(); ++j) {
          sum += z[j] * frequency(i, j);
          size += std::abs(z[j] * frequency(i, j));
        }
        const double factor = sum * s + lane;
        value *= factor;
        sizes *= std::abs(factor);
        upper *= std::abs(factor) + 4e-7 * (size * s + std::abs(lane));
      }
      return {value, upper - sizes + 1e-6 * sizes};
    }
  }
  return {0, 0};
}

TEST(EveryKernel, FeaturesStayWithinTheErrorBoundsOnEveryTarget) {
  constexpr size_t kRows = 7, kPanels = 18;
  for (const KernelEntry& entry : KernelRegistry()) {
    if (entry.doc.takes_terms) continue;  // their features are those of their terms
    for (const size_t dim : {size_t{3}, size_t{70}, size_t{300}}) {
      const std::string name(entry.doc.name);
      std::vector<ParameterMap> settings = {{{"bandwidth", 1.7}}};
      for (const ParameterDoc& parameter : entry.doc.parameters) {
        if (!parameter.integer) continue;
        // The shape of an image belongs to the number of inputs.
        if (name == "convolution" && parameter.name != "patch") continue;
        for (double value = parameter.min; value <= std::min(parameter.max, 3.0); ++value) {
          settings.push_back({{"bandwidth", 1.7}, {std::string(parameter.name), value}});
        }
      }
      for (const ParameterMap& setting : settings) {
        auto config = CompleteKernel({name, setting});
        ASSERT_TRUE(config.ok()) << config.status();
        const std::vector<float> row(dim);
        ChooseKernelParameters({row.data(), 1, dim}, *config);
        const auto kernel = MakeKernel(*config);
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        const FeatureSpec spec = (*kernel)->features();
        const RandomFeatureMap map(spec, 3, dim, 4096, nullptr);
        Random random(dim);
        std::vector<float> data(kRows * dim);
        for (float& v : data) {
          const double size = random.Normal() / std::sqrt(static_cast<double>(dim) / 3);
          v = static_cast<float>((*kernel)->takes_any_input() ? size : size * size);
        }
        data[1] = 0;
        const ConstMatrixView x(data.data(), kRows, dim);
        const auto scale = 0.8f * static_cast<float>(spec.frequency_scale);
        for (const std::string& target : SimdTargets()) {
          ASSERT_TRUE(UseSimdTarget(target));
          std::vector<float> out(kPanels * kRows * kPanelWidth);
          map.Features(x, 0.8f, 0, kPanels, out.data());
          double worst = 0;
          map.VisitPanels(0, kPanels, [&](const FeaturePanels& visited, uint64_t first) {
            FeaturePanels panels = visited;
            panels.inverse_bandwidth = scale;
            for (size_t p = 0; p < panels.num_panels; ++p) {
              for (size_t i = 0; i < kRows * kPanelWidth; ++i) {
                const Reference expected =
                    FeatureOf(spec, panels, p, i % kPanelWidth, x.row(i / kPanelWidth));
                const double got = out[(first + p) * kRows * kPanelWidth + i];
                worst = std::max(worst, std::abs(got - expected.value) / expected.bound);
              }
            }
          });
          EXPECT_LE(worst, 1) << name << " dim " << dim << " " << target << " degree "
                              << spec.degree << " form " << static_cast<int>(spec.form);
        }
        UseSimdTarget("");
      }
    }
  }
}

}  // namespace
}  // namespace kernelstream
