// What every registered kernel promises, its random features included.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/feature/random_feature_map.h"
#include "core/kernel/kernel.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

constexpr uint64_t kSeed = 2014;
constexpr size_t kPairs = 12;
constexpr double kBandwidth = 1.7;
// Bound on |mean - k| in standard errors: one of 10^4 honest comparisons would break it.
constexpr double kStandardErrors = 4.5;
constexpr uint64_t kNumFeatures = 1 << 17;

std::unique_ptr<const Kernel> Make(const KernelEntry& entry) {
  auto kernel = MakeKernel({std::string(entry.doc.name), {{"bandwidth", kBandwidth}}});
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return *std::move(kernel);
}

std::vector<double> Widened(const float* x, size_t n) { return {x, x + n}; }

TEST(EveryKernel, IsSymmetricBoundedAndOneOnTheDiagonal) {
  Random random(kSeed);
  for (const KernelEntry& entry : KernelRegistry()) {
    const auto kernel = Make(entry);
    for (int trial = 0; trial < 100; ++trial) {
      std::vector<double> x(5), y(5);
      for (size_t j = 0; j < x.size(); ++j) x[j] = random.Normal(), y[j] = random.Normal();
      EXPECT_EQ(kernel->Evaluate(x, y), kernel->Evaluate(y, x)) << entry.doc.name;
      EXPECT_EQ(kernel->Evaluate(x, x), 1) << entry.doc.name;
      EXPECT_LT(kernel->Evaluate(x, y), 1) << entry.doc.name;
      EXPECT_GT(kernel->Evaluate(x, y), 0) << entry.doc.name;
    }
  }
}

// E[feature(x) feature(x')] = k(x, x') over pairs at all distances that matter.
TEST(EveryKernel, FeaturesAreUnbiased) {
  constexpr size_t kDim = 4;
  for (const KernelEntry& entry : KernelRegistry()) {
    const auto kernel = Make(entry);
    const RandomFeatureMap map(kernel->law(), kSeed, kDim, kNumFeatures, nullptr);
    Random random(kSeed);
    std::vector<float> x(2 * kPairs * kDim);
    for (size_t p = 0; p < kPairs; ++p) {
      const double distance = 0.25 * static_cast<double>(p) * kBandwidth / std::sqrt(double{kDim});
      for (size_t j = 0; j < kDim; ++j) {
        x[2 * p * kDim + j] = static_cast<float>(random.Normal());
        x[(2 * p + 1) * kDim + j] =
            static_cast<float>(x[2 * p * kDim + j] + distance * random.Normal());
      }
    }
    const size_t rows = 2 * kPairs;
    std::vector<float> features(kPanelsPerBlock * rows * kPanelWidth);
    std::vector<double> sum(kPairs), squares(kPairs);
    for (uint64_t panel = 0; panel < kNumFeatures / kPanelWidth; panel += kPanelsPerBlock) {
      map.Features({x.data(), rows, kDim}, static_cast<float>(1 / kBandwidth), panel,
                   kPanelsPerBlock, features.data());
      for (size_t i = 0; i < kPanelsPerBlock; ++i) {
        for (size_t p = 0; p < kPairs; ++p) {
          const float* a = features.data() + (i * rows + 2 * p) * kPanelWidth;
          for (size_t lane = 0; lane < kPanelWidth; ++lane) {
            const double product = double{a[lane]} * a[kPanelWidth + lane];
            sum[p] += product;
            squares[p] += product * product;
          }
        }
      }
    }
    const auto n = static_cast<double>(kNumFeatures);
    for (size_t p = 0; p < kPairs; ++p) {
      const double expected =
          kernel->Evaluate(Widened(&x[2 * p * kDim], kDim), Widened(&x[(2 * p + 1) * kDim], kDim));
      const double mean = sum[p] / n;
      const double error = std::sqrt((squares[p] / n - mean * mean) / n);
      EXPECT_LE(std::abs(mean - expected), kStandardErrors * error + 1e-6)
          << entry.doc.name << " pair " << p << " k = " << expected << " seed " << kSeed;
      // Variance of the product, cos form: 1 + k(2D) / 2 - k(D)^2.
      std::vector<double> zero(kDim), twice(kDim);
      for (size_t j = 0; j < kDim; ++j) {
        twice[j] = 2.0 * (x[2 * p * kDim + j] - x[(2 * p + 1) * kDim + j]);
      }
      const double variance = 1 + kernel->Evaluate(twice, zero) / 2 - expected * expected;
      EXPECT_NEAR((squares[p] / n - mean * mean) / variance, 1, 0.03)
          << entry.doc.name << " pair " << p;
    }
  }
}

TEST(RandomFeatureMap, GivesTheSameBitsWithAndWithoutCacheAndWhenWidened) {
  constexpr size_t kDim = 7, kRows = 5, kPanels = 40, kOutputs = 3;
  Random random(kSeed);
  std::vector<float> x(kRows * kDim), coefficients(kPanels * kOutputs * kPanelWidth);
  for (float& value : x) value = static_cast<float>(random.Normal());
  for (float& value : coefficients) value = static_cast<float>(random.Normal());
  std::vector<float> wide_x(kRows * 2 * kDim, 0.0f);
  for (size_t i = 0; i < kRows; ++i) std::copy_n(&x[i * kDim], kDim, &wide_x[i * 2 * kDim]);

  FeatureCacheBudget everything(1 << 30), one_block(kFeaturesPerBlock * (kDim + 1) * 4);
  std::vector<std::vector<double>> results;
  for (FeatureCacheBudget* budget :
       {&everything, &one_block, static_cast<FeatureCacheBudget*>(nullptr)}) {
    const RandomFeatureMap map(SpectralLaw::kNormal, kSeed, kDim, 4096, budget);
    for (int repeat = 0; repeat < 2; ++repeat) {
      std::vector<double> sums(kRows * kOutputs);
      map.AddSums({x.data(), kRows, kDim}, 0.7f, 0, kPanels, coefficients.data(), kOutputs,
                  sums.data());
      results.push_back(sums);
    }
    std::vector<double> sums(kRows * kOutputs);
    map.Widen(2 * kDim, true)
        ->AddSums({wide_x.data(), kRows, 2 * kDim}, 0.7f, 0, kPanels, coefficients.data(), kOutputs,
                  sums.data());
    results.push_back(sums);
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_EQ(everything.used(), 0) << "maps give their bytes back";
  EXPECT_EQ(one_block.used(), 0);
}

}  // namespace
}  // namespace kernelstream
