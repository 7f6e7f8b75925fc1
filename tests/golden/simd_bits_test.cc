// Models are stored as seeds: what a seed means must never change, on no machine. The digests below
// are of the bits that targets with fused multiply-add gave when the first model was written.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/digest.h"
#include "core/simd/hadamard.h"
#include "core/simd/simd.h"
#include "core/simd/triangle.h"

namespace kernelstream {
namespace {

constexpr uint64_t kKey = 0x9E3779B97F4A7C15u;

template <class T>
std::string DigestOf(const std::vector<T>& values) {
  Digest128 digest;
  for (const T value : values) digest.AddDouble(double{value});
  return DigestHex(digest.Finish());
}

std::vector<float> Frequencies(SpectralLaw law, uint64_t first, size_t panels, size_t dim) {
  std::vector<float> out(panels * dim * kPanelWidth);
  SampleFrequencies(law, kKey, first, panels, dim, out.data());
  return out;
}

std::vector<std::string> FmaTargets() {
  std::vector<std::string> targets = SimdTargets();
  std::erase_if(targets, [](const std::string& name) { return !SimdTargetHasFma(name); });
  return targets;
}

class SimdBits : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseSimdTarget(GetParam())); }
  void TearDown() override { UseSimdTarget(""); }
};

TEST_P(SimdBits, OfFrequenciesNeverChange) {
  EXPECT_EQ(DigestOf(Frequencies(SpectralLaw::kNormal, 0, 64, 37)),
            "4f648dd33c18977bf953d4e840115bf0");
  EXPECT_EQ(DigestOf(Frequencies(SpectralLaw::kCauchy, 1 << 20, 64, 37)),
            "db944abbf60e5f2c871f119d544c246f");
  std::vector<float> phases(64 * kPanelWidth);
  SamplePhases(kKey, 160, 64, phases.data());
  EXPECT_EQ(DigestOf(phases), "c2e4b3d0f826db1f7ff989b669833c6b");
}

TEST_P(SimdBits, OfFeaturesAndSumsNeverChange) {
  constexpr size_t kPanels = 40, kDim = 37, kRows = 11, kOutputs = 3;
  const std::vector<float> frequencies = Frequencies(SpectralLaw::kNormal, 0, kPanels, kDim);
  const std::vector<float> data = Frequencies(SpectralLaw::kNormal, 4096, kRows, kDim);
  const std::vector<float> coefficients =
      Frequencies(SpectralLaw::kNormal, 8192, kPanels, kOutputs);
  std::vector<float> phases(kPanels * kPanelWidth);
  SamplePhases(kKey, 0, kPanels, phases.data());
  const FeaturePanels panels = {frequencies.data(), phases.data(), kPanels, 0.8f};
  const ConstMatrixView x(data.data(), kRows, kDim, kDim * kPanelWidth);
  std::vector<float> features(kPanels * kRows * kPanelWidth);
  PanelFeatures(panels, x, features.data());
  EXPECT_EQ(DigestOf(features), "e58ae53811cd6baad699cfad4e4b3ce2");
  std::vector<double> sums(kRows * kOutputs);
  PanelSums(panels, x, coefficients.data(), kOutputs, sums.data());
  EXPECT_EQ(DigestOf(sums), "3202edf091cc5c9a35fe08449de6e4c1");
  std::vector<float> gram(kRows * kRows);
  FeatureGram(features.data(), kPanels, kRows, gram.data());
  EXPECT_EQ(DigestOf(gram), "bc751a6a36888eea6a858ce98f5f2c34");
  std::vector<float> updated = coefficients;
  AddWeightedFeatures(features.data(), kPanels, kRows, data.data(), kOutputs, updated.data());
  EXPECT_EQ(DigestOf(updated), "bb2c1c351519335054471bd539fa8de3");
}

// Cosine and sine of one projection, from the first panel of a pair and from the second one.
TEST_P(SimdBits, OfPairsNeverChange) {
  constexpr size_t kPanels = 40, kDim = 37, kRows = 11, kOutputs = 3;
  const std::vector<float> frequencies =
      Frequencies(SpectralLaw::kNormal, 0, kPanels / 2 + 1, kDim);
  const std::vector<float> data = Frequencies(SpectralLaw::kNormal, 4096, kRows, kDim);
  const std::vector<float> coefficients =
      Frequencies(SpectralLaw::kNormal, 8192, kPanels, kOutputs);
  std::vector<float> phases(kPanels * kPanelWidth);
  SamplePhases(kKey, 0, kPanels, phases.data());
  const ConstMatrixView x(data.data(), kRows, kDim, kDim * kPanelWidth);
  const char* const digests[2][2] = {
      {"54018dbcf0968a667458776859f32c64", "691c134878577cb6e28e8a6ae31bcee2"},
      {"c4d30621ddb76c225cc97ff186307513", "7c4ca217c6ab285bb45a0617c86e8cc3"}};
  for (const size_t first : {0, 1}) {
    FeaturePanels panels = {frequencies.data(), phases.data(), kPanels, 0.8f};
    panels.waves = 2;
    panels.first_wave = first;
    std::vector<float> features(kPanels * kRows * kPanelWidth);
    PanelFeatures(panels, x, features.data());
    EXPECT_EQ(DigestOf(features), digests[first][0]);
    std::vector<double> sums(kRows * kOutputs);
    PanelSums(panels, x, coefficients.data(), kOutputs, sums.data());
    EXPECT_EQ(DigestOf(sums), digests[first][1]);
  }
}

TEST_P(SimdBits, OfStructuredProjectionsNeverChange) {
  constexpr size_t kSize = 64, kDim = 37, kRows = 11, kPanels = kSize / kPanelWidth;
  const std::vector<float> signs = Frequencies(SpectralLaw::kRademacher, 0, kPanels, 1);
  const std::vector<float> gains = Frequencies(SpectralLaw::kNormal, 1024, kPanels, 1);
  const std::vector<float> scales = Frequencies(SpectralLaw::kNormal, 2048, kPanels, 1);
  std::vector<int32_t> places(kSize);
  for (size_t i = 0; i < kSize; ++i) places[i] = static_cast<int32_t>((29 * i + 3) % kSize);
  const std::vector<float> data = Frequencies(SpectralLaw::kNormal, 4096, kRows, kDim);
  std::vector<float> out(kPanels * kRows * kPanelWidth), scratch(kHadamardScratch * kSize);
  std::vector<float*> panels(kPanels);
  for (size_t p = 0; p < kPanels; ++p) panels[p] = out.data() + p * kRows * kPanelWidth;
  HadamardProjections({kSize, signs.data(), places.data(), gains.data(), scales.data()},
                      ConstMatrixView(data.data(), kRows, kDim, kDim * kPanelWidth), 0, kPanels,
                      scratch.data(), panels.data());
  EXPECT_EQ(DigestOf(out), "30173bb72d97d610ee8bfebca1fb1d8e");
}

TEST_P(SimdBits, OfTrianglesNeverChange) {
  constexpr size_t kPanels = 5, kRows = 96;
  std::vector<float> features = Frequencies(SpectralLaw::kNormal, 0, kPanels, kRows);
  std::vector<double> triangle(TriangleSize(kPanels));
  AddFeatureProducts(features.data(), kPanels, kRows, triangle.data());
  EXPECT_EQ(DigestOf(triangle), "7b59b60f59c356a57d9885a0af3104b8");
  for (size_t p = 0; p < kPanels; ++p) {  // makes it positive definite
    double* square = triangle.data() + TriangleSize(p + 1) - kPanelWidth * kPanelWidth;
    for (size_t i = 0; i < kPanelWidth; ++i) square[i * kPanelWidth + i] += 1;
  }
  ASSERT_TRUE(FactorTriangle(kPanels, triangle.data()));
  EXPECT_EQ(DigestOf(triangle), "a88106ee65fe68b139595c37d2a70a6a");
  const std::vector<float> factor(triangle.begin(), triangle.end());
  SolveTriangle(factor.data(), kPanels, kRows, features.data());
  EXPECT_EQ(DigestOf(features), "c843a59cf077cfd8bc1be8cfef195e0d");
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SimdBits);
INSTANTIATE_TEST_SUITE_P(AllTargets, SimdBits, testing::ValuesIn(FmaTargets()),
                         [](const auto& target) { return target.param; });

}  // namespace
}  // namespace kernelstream
