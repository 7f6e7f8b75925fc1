// Every kernel of the registry learns on data of its domain.
#include <gtest/gtest.h>

#include "tests/model/kernel_learning.h"
#include "tests/support/kernel_settings.h"

namespace kernelstream {
namespace {

constexpr uint64_t kSeed = 15;
constexpr size_t kLearned = 2000, kTested = 300;

std::vector<ComponentConfig> Kernels() {
  std::vector<ComponentConfig> kernels;
  for (const KernelEntry& entry : KernelRegistry()) {
    const std::vector<ComponentConfig> settings = KernelSettings(entry.doc.name);
    kernels.insert(kernels.end(), settings.begin(), settings.end());
  }
  return kernels;
}

ModelConfig ConfigOf(const ComponentConfig& kernel) { return KernelConfig(kernel, 512); }

TEST(EveryKernel, BeatsTheBestConstantClearly) {
  for (const ComponentConfig& kernel : Kernels()) {
    SCOPED_TRACE(SettingText(kernel));
    const double error = Learn(ConfigOf(kernel), kLearned, kSeed).error;
    EXPECT_LT(error, 0.5);
    RecordProperty(SettingText(kernel), std::to_string(error));
  }
}

// What a filter of one place sees at its place, in an image of noise.
TEST(Convolution, LearnsFromSmallImages) {
  constexpr size_t kSide = 6, kImages = 3000;
  SampleBatch rows, tested;
  Random random(kSeed);
  double squares = 0;
  for (size_t i = 0; i < kImages + kTested; ++i) {
    SampleBatch& to = i < kImages ? rows : tested;
    float* x = to.AddDense(kSide * kSide);
    for (size_t j = 0; j < kSide * kSide; ++j) x[j] = static_cast<float>(random.Normal());
    const float* corner = x + 2 * kSide + 2;
    const double y = std::sin(corner[0] + corner[1] - corner[kSide] - corner[kSide + 1]);
    to.SetTarget(y);
    if (i >= kImages) squares += y * y;
  }
  ModelConfig config;
  config.loss.name = "square";
  config.kernel = {"convolution", {{"height", kSide}}};
  config.max_features = 1024;
  config.warmup_rows = 64;
  ASSERT_TRUE(CompleteConfig(config).ok());
  const auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, kImages);
  EXPECT_LT(ErrorOn(*trainer, tested), 0.8 * squares / kTested);
  EXPECT_EQ(trainer->MakeSnapshot()->resolved().kernel_parameters.at("width"), kSide);
}

TEST(EveryKernel, RefusesRowsOutsideItsDomain) {
  for (const ComponentConfig& kernel : Kernels()) {
    SCOPED_TRACE(SettingText(kernel));
    const ModelConfig config = ConfigOf(kernel);
    const auto rules = RowRules::Create(config);
    ASSERT_TRUE(rules.ok()) << rules.status();
    const auto made = MakeUnitKernel(config.kernel);
    const std::vector<float> refused = RefusedRow(**made, kKernelDim);
    EXPECT_EQ(refused.empty(), (*made)->takes_any_input());
    SampleBatch rows;
    rows.AddDense(std::vector<float>(kKernelDim, 0.5f));
    if (!refused.empty()) rows.AddDense(refused);
    EXPECT_TRUE((*rules)->CheckInput("m", kKernelDim, rows.row(0)).ok());
    EXPECT_TRUE(refused.empty() || !(*rules)->CheckInput("m", kKernelDim, rows.row(1)).ok());
  }
}

}  // namespace
}  // namespace kernelstream
