// Models are stored as seeds: what a seed means must never change, on no machine. The digests below
// are of the bits that targets with fused multiply-add gave when the first model was written.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/digest.h"
#include "core/simd/simd.h"

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
  EXPECT_EQ(DigestOf(gram), "e4439d9b4dcd6d877fd5690a58481b20");
  std::vector<float> updated = coefficients;
  AddWeightedFeatures(features.data(), kPanels, kRows, data.data(), kOutputs, updated.data());
  EXPECT_EQ(DigestOf(updated), "bb2c1c351519335054471bd539fa8de3");
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SimdBits);
INSTANTIATE_TEST_SUITE_P(AllTargets, SimdBits, testing::ValuesIn(FmaTargets()),
                         [](const auto& target) { return target.param; });

}  // namespace
}  // namespace kernelstream
