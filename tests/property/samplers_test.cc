// What each sampler promises beyond being unbiased, which kernels_test.cc checks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/philox.h"
#include "core/base/quantile.h"
#include "core/feature/chi_law.h"
#include "core/feature/feature_map.h"
#include "core/feature/quasi_monte_carlo.h"
#include "core/feature/random_feature_map.h"
#include "core/feature/sampler.h"
#include "core/kernel/kernel.h"
#include "tests/support/compositions.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

constexpr uint64_t kSeed = 2016;
constexpr double kTurn = 2 * std::numbers::pi;

FeatureSpec NormalSpec(Sampler sampler, bool pairs) {
  FeatureSpec spec;
  spec.sampler = sampler;
  spec.pairs = pairs;
  return spec;
}

// Frequencies of the first `count` features that have one of their own, [feature][coordinate].
std::vector<std::vector<double>> Frequencies(const FeatureSpec& spec, size_t dim, size_t count) {
  std::vector<std::vector<double>> rows;
  const auto map = MakeFeatureMap(spec, kSeed, dim, 4096, nullptr);
  map->AsRandom()->VisitPanels(
      0, count * spec.waves() / kPanelWidth, [&](const FeaturePanels& panels, uint64_t) {
        for (size_t f = 0; f < panels.num_panels / spec.waves() * kPanelWidth; ++f) {
          std::vector<double> row(dim);
          for (size_t j = 0; j < dim; ++j) {
            row[j] =
                panels.frequencies[(f / kPanelWidth * dim + j) * kPanelWidth + f % kPanelWidth];
          }
          rows.push_back(row);
        }
      });
  return rows;
}

double Product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}

TEST(ChiLaw, IsTheQuantileOfTheLengthOfNormalVectors) {
  for (const size_t dim : {1, 2, 3, 16, 200, 2000, 65536}) {
    const ChiLaw law(dim);
    for (const double u : {0x1p-24, 1e-6, 1e-3, 0.1, 0.4, 0.5, 0.7, 0.95, 0.9999, 1 - 0x1p-24}) {
      EXPECT_NEAR(law.Quantile(u), ChiQuantile(static_cast<double>(dim), u), 1e-7)
          << dim << " " << u;
    }
  }
}

TEST(Orthogonal, FrequenciesOfAGroupAreAtRightAngles) {
  for (const bool pairs : {false, true}) {
    for (const size_t dim : {1, 3, 16, 150, 300}) {
      const size_t block = pairs ? 128 : 256, group = std::min(dim, block);
      const auto rows = Frequencies(NormalSpec(Sampler::kOrthogonal, pairs), dim, 2 * block);
      ASSERT_EQ(rows.size(), 2 * block);
      const ChiLaw law(dim);
      for (size_t f = 0; f < rows.size(); ++f) {
        const double length = std::sqrt(Product(rows[f], rows[f]));
        EXPECT_NEAR(length * kTurn, FrequencyNorm(law, kSeed, f), 2e-6 * length * kTurn);
        const size_t in_block = f % block;
        for (size_t g = f - in_block % group; g < f; ++g) {
          EXPECT_NEAR(Product(rows[f], rows[g]), 0, 1e-6 * Product(rows[g], rows[g]))
              << "dim " << dim << " frequencies " << g << " " << f;
        }
      }
    }
  }
}

TEST(QuasiMonteCarlo, EveryCoordinateOfANetFillsEachCellOnce) {
  for (const bool pairs : {false, true}) {
    const size_t block = 256, dim = 40;
    const auto rows = Frequencies(NormalSpec(Sampler::kQuasiMonteCarlo, pairs), dim, 2 * block);
    std::set<std::vector<size_t>> orders;
    for (size_t first = 0; first < rows.size(); first += block) {
      for (size_t j = 0; j < dim; ++j) {
        std::vector<size_t> cells;
        for (size_t f = first; f < first + block; ++f) {
          const double u = 0.5 * std::erfc(-rows[f][j] * kTurn / std::numbers::sqrt2);
          cells.push_back(static_cast<size_t>(u * static_cast<double>(block)));
        }
        EXPECT_TRUE(orders.insert(cells).second) << "coordinate " << j << " is another one again";
        EXPECT_EQ(std::set<size_t>(cells.begin(), cells.end()).size(), block) << "coordinate " << j;
      }
    }
  }
}

// Of two coordinates, 2^m points of a (t, m, 2)-net with t = 0 fill each box of equal area once:
// true for the first dimensions of Sobol's sequence, however they are scrambled.
TEST(QuasiMonteCarlo, TheFirstTwoDimensionsFillBoxes) {
  FeatureSpec spec = NormalSpec(Sampler::kQuasiMonteCarlo, true);
  uint8_t radii[kPanelWidth];
  const auto rows = Frequencies(spec, 1, 256);
  std::set<std::pair<size_t, size_t>> boxes;
  for (size_t panel = 0; panel < 16; ++panel) {
    RadiusCells(spec, kSeed, panel, radii);
    for (size_t l = 0; l < kPanelWidth; ++l) {
      const double u =
          0.5 * std::erfc(-rows[panel * kPanelWidth + l][0] * kTurn / std::numbers::sqrt2);
      boxes.insert({radii[l] >> 4, static_cast<size_t>(u * 16)});
    }
  }
  EXPECT_EQ(boxes.size(), 256u);
}

// The transform against projections on the same frequencies written out, on every target.
TEST(Structured, FeaturesAreThoseOfTheFrequenciesWrittenOut) {
  constexpr size_t kRows = 5, kPanels = 37;
  for (const size_t dim : {1, 16, 17, 100, 300, 784, 1500}) {
    for (const bool pairs : {false, true}) {
      FeatureSpec spec = NormalSpec(Sampler::kStructured, pairs);
      if (dim == 17) {
        spec.radial = RadialLaw::kStudent;
        spec.shape = 1.5;
      }
      const auto map = MakeFeatureMap(spec, kSeed, dim, 4096, nullptr);
      Random random(dim);
      std::vector<float> x(kRows * dim), expected(kPanels * kRows * kPanelWidth), got = expected;
      for (float& v : x) {
        v = static_cast<float>(random.Normal() / std::sqrt(static_cast<double>(dim)));
      }
      const ConstMatrixView rows(x.data(), kRows, dim);
      map->AsRandom()->Features(rows, 0.7f, 3, kPanels, expected.data());
      std::vector<float> first;
      for (const std::string& target : SimdTargets()) {
        ASSERT_TRUE(UseSimdTarget(target));
        map->Features(rows, 0.7f, 3, kPanels, got.data());
        double worst = 0;
        for (size_t i = 0; i < got.size(); ++i) {
          worst = std::max(worst, double{std::abs(got[i] - expected[i])});
        }
        // Heavy tails make some frequencies, and with them the errors of phases, large.
        EXPECT_LE(worst, dim == 17 ? 1e-3 : 4e-5)
            << dim << " " << target << (pairs ? " pairs" : "");
        if (!SimdTargetHasFma(target)) continue;
        if (first.empty()) first = got;
        EXPECT_EQ(got, first) << dim << " " << target;
      }
      UseSimdTarget("");
    }
  }
}

FeatureSpec SampledSpec(const Kernel& kernel, const std::string& sampler, bool pairs) {
  const SamplerEntry& entry = *FindSampler(sampler);
  FeatureSpec spec = Sampled(kernel.features(), entry);
  EXPECT_EQ(spec.sampler, entry.sampler);
  spec.pairs = pairs;
  return spec;
}

// Kernels with k(x, x) = 1 of 16 inputs, at a bandwidth of about 1.
std::unique_ptr<const Kernel> Composed(const std::string& name) {
  ComponentConfig config = {name, {{"bandwidth", 1}}};
  if (name == "product") {
    // Together a Gaussian of bandwidth 1.
    config.terms = {{1, Leaf("gaussian", 1.25)}, {1, Leaf("gaussian", 5.0 / 3)}};
  } else if (name == "sum") {
    config.terms = {{0.5, Leaf("gaussian", 1)}, {0.5, Leaf("matern", 1)}};
  } else if (name == "convolution") {
    config.parameters = {{"height", 4}, {"width", 4}, {"bandwidth", 1}};
  }
  auto kernel = MakeKernel(*CompleteKernel(config));
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return *std::move(kernel);
}

TEST(StructuredComposition, FeaturesAreThoseOfTheFrequenciesWrittenOut) {
  constexpr size_t kRows = 5, kPanels = 61, kDim = 33;
  ComponentConfig nested = {"sum", {{"bandwidth", 2}}};
  nested.terms = {{0.5, Leaf("gaussian", 1)}, {2, Leaf("laplacian", 3)}, {1, Leaf("matern", 2)}};
  ComponentConfig product = {"product", {{"bandwidth", 1}}};
  product.terms = {{1, Leaf("gaussian", 2)}, {1, nested}, {1, Leaf("cauchy", 4)}};
  Random random(kSeed);
  std::vector<float> x(kRows * kDim), expected(kPanels * kRows * kPanelWidth), got = expected;
  for (float& v : x) v = static_cast<float>(random.Normal() / 6);
  const ConstMatrixView rows(x.data(), kRows, kDim);
  for (const ComponentConfig& config : {nested, product}) {
    const auto kernel = *MakeKernel(*CompleteKernel(config));
    for (const bool pairs : {false, true}) {
      const FeatureSpec spec = SampledSpec(*kernel, "structured", pairs);
      FeatureCacheBudget budget(1 << 24);
      const auto map = MakeFeatureMap(spec, kSeed, kDim, 4096, &budget);
      map->AsRandom()->Features(rows, 0.7f, 3, kPanels, expected.data());
      map->Features(rows, 0.7f, 3, kPanels, got.data());
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], expected[i], 1e-3) << config.name << " " << pairs << " " << i;
      }
      EXPECT_EQ(budget.used(), map->cached_bytes());
      EXPECT_GT(map->cached_bytes(), 0);
    }
  }
}

// Mean squared error of k from 1024 features, over that of independent pairs.
double RelativeError(const FeatureSpec& spec, const Kernel& kernel, double distance) {
  constexpr size_t kDim = 16, kDirections = 12, kRepeats = 150, kFeatures = 1024;
  constexpr size_t kRows = 2 * kDirections, kPanels = kFeatures / kPanelWidth;
  Random random(kSeed);
  std::vector<float> x(kRows * kDim);
  std::vector<double> exact(kDirections);
  double expected = 0;
  for (size_t p = 0; p < kDirections; ++p) {
    std::vector<double> step(kDim), zero(kDim), twice(kDim);
    for (double& v : step) v = random.Normal();
    const double length = std::sqrt(Product(step, step));
    for (size_t j = 0; j < kDim; ++j) {
      const double start = random.Normal();
      step[j] *= distance / length, twice[j] = 2 * step[j];
      x[2 * p * kDim + j] = static_cast<float>(start);
      x[(2 * p + 1) * kDim + j] = static_cast<float>(start + step[j]);
    }
    exact[p] = kernel.Evaluate(step, zero);
    expected += ((1 + kernel.Evaluate(twice, zero)) / 2 - exact[p] * exact[p]) / (kFeatures / 2);
  }
  const auto map = MakeFeatureMap(spec, kSeed, kDim, kRepeats * kFeatures, nullptr);
  std::vector<float> features(kPanels * kRows * kPanelWidth);
  double sum = 0;
  for (size_t repeat = 0; repeat < kRepeats; ++repeat) {
    map->Features(ConstMatrixView(x.data(), kRows, kDim), 1.0f, repeat * kPanels, kPanels,
                  features.data());
    for (size_t p = 0; p < kDirections; ++p) {
      double mean = 0;
      for (size_t i = 0; i < kPanels; ++i) {
        const float* a = features.data() + (i * kRows + 2 * p) * kPanelWidth;
        for (size_t l = 0; l < kPanelWidth; ++l) mean += double{a[l]} * a[kPanelWidth + l];
      }
      const double error = mean / kFeatures - exact[p];
      sum += error * error;
    }
  }
  return sum / kRepeats / expected;
}

// Rows "| `iid` without pairs | 10.7 | 1.7 | 1.0 | 1.0 |" of that README: name -> numbers.
std::map<std::string, std::vector<double>> StatedErrors() {
  std::map<std::string, std::vector<double>> stated;
  std::ifstream file(KERNELSTREAM_FEATURE_README);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (cells.size() != 7 || !cells[0].empty()) continue;
    std::vector<double> numbers;
    for (size_t i = 2; i + 1 < cells.size(); ++i) {
      double number = 0;
      if (absl::SimpleAtod(cells[i], &number)) numbers.push_back(number);
    }
    if (numbers.size() == cells.size() - 3) {
      // The first table is that of a gaussian kernel.
      stated.emplace(absl::StrReplaceAll(absl::StripAsciiWhitespace(cells[1]), {{"`", ""}}),
                     numbers);
    }
  }
  return stated;
}

TEST(EverySampler, HasTheErrorThatTheReadmeOfCoreFeatureStates) {
  constexpr double kDistances[] = {0.5, 1, 2, 3};
  const auto kernel = MakeKernel({"gaussian", {{"bandwidth", 1}}});
  ASSERT_TRUE(kernel.ok());
  const auto stated = StatedErrors();
  // What they are for.
  const std::map<std::string, double> most = {
      {"iid", 1.2}, {"orthogonal", 0.25}, {"quasi_monte_carlo", 0.2}, {"structured", 2.0}};
  for (const SamplerEntry& sampler : SamplerRegistry()) {
    for (const bool pairs : {true, false}) {
      const std::string name = absl::StrCat(sampler.doc.name, pairs ? "" : " without pairs");
      const auto row = stated.find(name);
      EXPECT_TRUE(row != stated.end() || (!pairs && sampler.sampler != Sampler::kIid))
          << "state the error of " << name << " in core/feature/README.md";
      const FeatureSpec spec = NormalSpec(sampler.sampler, pairs);
      std::string line;
      for (size_t i = 0; i < std::size(kDistances); ++i) {
        const double error = RelativeError(spec, **kernel, kDistances[i]);
        absl::StrAppendFormat(&line, " %.3f", error);
        if (row == stated.end()) continue;
        EXPECT_NEAR(error, row->second[i], 0.2 * row->second[i])
            << name << " at " << kDistances[i] << " seed " << kSeed;
        if (pairs && kDistances[i] == 1) {
          ASSERT_TRUE(most.contains(name)) << "state the bound of the new sampler";
          EXPECT_LE(error, most.at(name)) << name;
        }
      }
      std::printf("%s:%s\n", name.c_str(), line.c_str());
    }
  }
}

// What is gained term by term is not lost in the composition, nor in the filters of a convolution.
TEST(EverySampler, IsNotWorseInACompositionThanTheReadmeOfCoreFeatureStates) {
  const std::map<std::string, std::map<std::string, double>> bounds = {
      {"product",
       {{"iid", 1.2}, {"orthogonal", 0.7}, {"quasi_monte_carlo", 0.35}, {"structured", 2}}},
      {"sum", {{"iid", 1.2}, {"orthogonal", 0.7}, {"quasi_monte_carlo", 0.45}, {"structured", 2}}},
      {"convolution", {{"iid", 1.2}, {"orthogonal", 1.2}, {"quasi_monte_carlo", 1.2}}}};
  for (const auto& [name, samplers] : bounds) {
    const auto kernel = Composed(name);
    for (const SamplerEntry& sampler : SamplerRegistry()) {
      const std::string text(sampler.doc.name);
      EXPECT_EQ(SamplerApplies(sampler, kernel->features()), samplers.contains(text));
      if (!samplers.contains(text)) continue;
      std::string line;
      for (const double distance : {0.5, 1.0, 2.0, 3.0}) {
        const double error = RelativeError(SampledSpec(*kernel, text, true), *kernel, distance);
        char number[32];
        std::snprintf(number, sizeof number, " %.3f", error);
        line += number;
        EXPECT_LE(error, distance <= 1 ? samplers.at(text) : 2.2)
            << name << " " << text << " at " << distance << " seed " << kSeed;
      }
      std::printf("%s %s:%s\n", name.c_str(), text.c_str(), line.c_str());
    }
  }
}

}  // namespace
}  // namespace kernelstream
