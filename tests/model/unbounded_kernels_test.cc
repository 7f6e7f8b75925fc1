// Kernels whose k(x, x) has no bound, and those whose size is the user's choice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/kernel_learning.h"
#include "tests/support/kernel_settings.h"

namespace kernelstream {
namespace {

constexpr size_t kLearned = 2048;

ModelConfig ConfigOf(const ComponentConfig& kernel) { return KernelConfig(kernel, 256); }

TEST(UnboundedKernels, LearnWithTheirDefaultsOnEverySeed) {
  const std::vector<ComponentConfig> kernels = {
      {"dot_product", {}},
      {"polynomial", {{"degree", 4}}},
      {"polynomial", {{"degree", 6}}},
      {"polynomial", {{"degree", 8}}},
      {"arc_cosine", {{"order", 2}}},
  };
  for (const ComponentConfig& kernel : kernels) {
    for (const uint64_t seed : {1, 2, 3}) {
      SCOPED_TRACE(SettingText(kernel) + " seed " + std::to_string(seed));
      const KernelOutcome outcome = Learn(ConfigOf(kernel), kLearned, seed);
      EXPECT_LT(outcome.error, 0.5);
      EXPECT_LT(outcome.validation, 0.25);
      EXPECT_TRUE(outcome.warnings.empty());
    }
  }
}

// A bandwidth at which k(x, x) is astronomical is the user's choice; it must not look well.
TEST(UnboundedKernels, ServeAConstantAndSayWhyWhereTheyCannotLearn) {
  const std::vector<ComponentConfig> kernels = {
      {"dot_product", {{"bandwidth", 0.1}}},
      {"dot_product", {{"bandwidth", 0.2}}},
      {"polynomial", {{"degree", 8}, {"offset", 1e6}}},
      {"arc_cosine", {{"order", 3}, {"bandwidth", 1e-6}}},
  };
  for (const ComponentConfig& kernel : kernels) {
    SCOPED_TRACE(SettingText(kernel));
    const KernelOutcome outcome = Learn(ConfigOf(kernel), kLearned, 1);
    EXPECT_TRUE(std::isfinite(outcome.error));
    EXPECT_LT(outcome.error, 2);
    ASSERT_EQ(outcome.warnings.size(), 1u);
    EXPECT_EQ(outcome.warnings[0].kind, WarningKind::kDiverged);
    EXPECT_THAT(outcome.warnings[0].text, testing::HasSubstr("create the model with a larger"));
  }
}

TEST(UnboundedKernels, DoNotServeALearnerBecauseItStartedAfresh) {
  SampleBatch rows;
  Random random(3);
  for (size_t i = 0; i < 1500; ++i) {
    float* x = rows.AddDense(kKernelDim);
    for (size_t j = 0; j < kKernelDim; ++j) x[j] = static_cast<float>(random.Normal());
    rows.SetTarget(random.Normal());  // nothing to learn
  }
  ModelConfig config = ConfigOf({"polynomial", {{"degree", 8}}});
  config.candidates.bandwidth_scales = {0.125, 1, 4};
  const auto trainer = MakeTrainer(config);
  for (size_t i = 0; i < rows.size(); i += config.batch_rows) {
    const size_t count = std::min<size_t>(config.batch_rows, rows.size() - i);
    SampleBatch next;
    for (size_t k = i; k < i + count; ++k) next.AppendRow(rows, k);
    if (i > 512) {
      EXPECT_LT(ErrorOn(*trainer, next), 25) << "row " << i;
    }
    trainer->Step(rows, i, count, i + count);
  }
}

TEST(SumOfKernels, LearnsAlikeWhateverTheSizeOfItsWeights) {
  double usual = 0;
  for (const double size : {1.0, 1e-4, 1e4}) {
    const ComponentConfig sum = {
        "sum", {}, {{size, {"gaussian", {}}}, {0.1 * size, {"polynomial", {}}}}};
    const double error = Learn(ConfigOf(sum), kLearned, 1).error;
    if (size == 1) usual = error;
    EXPECT_LT(error, 0.1);
    EXPECT_NEAR(error, usual, 0.1 * usual) << size;
  }
}

}  // namespace
}  // namespace kernelstream
