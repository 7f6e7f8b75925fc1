// Every kernel of the registry learns on data of its domain, with nothing but its name given.
#include <gtest/gtest.h>

#include "tests/model/model_support.h"

namespace kernelstream {
namespace {

constexpr uint64_t kSeed = 15;
constexpr size_t kDim = 5, kLearned = 2000, kTested = 300;

// Inputs: normal, or squares of normals with a scale for each column. Targets: a smooth function of
// two of them that has its mean on the way.
SampleBatch RowsFor(const Kernel& kernel, double* target_variance) {
  SampleBatch rows;
  Random random(kSeed);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < kLearned + kTested; ++i) {
    float* x = rows.AddDense(kDim);
    for (size_t j = 0; j < kDim; ++j) {
      const double z = random.Normal();
      const double scale = 1 + 20.0 * static_cast<double>(j);
      x[j] = static_cast<float>(kernel.takes_any_input() ? z : scale * z * z);
    }
    const double y = kernel.takes_any_input() ? std::sin(x[0]) + x[1] / 2
                                              : std::sqrt(x[0]) - std::sqrt(x[1] / 21) / 2;
    rows.SetTarget(y);
    sum += y, squares += y * y;
  }
  const auto n = static_cast<double>(rows.size());
  *target_variance = squares / n - sum / n * (sum / n);
  return rows;
}

TEST(EveryKernel, BeatsTheBestConstantClearly) {
  for (const KernelEntry& entry : KernelRegistry()) {
    ModelConfig config;
    config.loss.name = "square";
    config.kernel.name = std::string(entry.doc.name);
    config.max_features = 512;
    config.warmup_rows = 64;
    config.batch_rows = 32;
    config.seed = 7;
    ASSERT_TRUE(CompleteConfig(config).ok()) << entry.doc.name;
    ComponentConfig unit = config.kernel;
    unit.parameters["bandwidth"] = 1;
    double variance = 0;
    const SampleBatch rows = RowsFor(**MakeKernel(unit), &variance);
    const auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, kLearned);
    SampleBatch tested;
    for (size_t i = kLearned; i < rows.size(); ++i) tested.AppendRow(rows, i);
    const double error = ErrorOn(*trainer, tested);
    EXPECT_LT(error, 0.5 * variance) << entry.doc.name;
    RecordProperty(std::string(entry.doc.name), std::to_string(error / variance));
  }
}

TEST(EveryKernel, RefusesRowsOutsideItsDomain) {
  for (const KernelEntry& entry : KernelRegistry()) {
    ModelConfig config = SmallConfig("square");
    config.kernel = {std::string(entry.doc.name), {}};
    ASSERT_TRUE(CompleteConfig(config).ok()) << entry.doc.name;
    const auto rules = RowRules::Create(config);
    ASSERT_TRUE(rules.ok()) << rules.status();
    SampleBatch rows;
    float* x = rows.AddDense(2);
    x[0] = 1, x[1] = -3;
    rows.SetTarget(0);
    ComponentConfig unit = config.kernel;
    unit.parameters["bandwidth"] = 1;
    const absl::Status status = (*rules)->CheckInput("m", 2, rows.row(0));
    EXPECT_EQ(status.ok(), (*MakeKernel(unit))->takes_any_input()) << entry.doc.name << status;
  }
}

}  // namespace
}  // namespace kernelstream
