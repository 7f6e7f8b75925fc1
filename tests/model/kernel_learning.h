// Small regressions under any kernel, on the rows that tests/support/kernel_rows.h makes for it.
#ifndef KERNELSTREAM_TESTS_MODEL_KERNEL_LEARNING_H_
#define KERNELSTREAM_TESTS_MODEL_KERNEL_LEARNING_H_

#include <gtest/gtest.h>

#include <vector>

#include "tests/model/model_support.h"
#include "tests/support/kernel_rows.h"

namespace kernelstream {

inline constexpr size_t kKernelDim = 5;

inline ModelConfig KernelConfig(const ComponentConfig& kernel, uint32_t features) {
  ModelConfig config;
  config.loss.name = "square";
  config.kernel = kernel;
  config.max_features = features;
  config.warmup_rows = 64;
  config.batch_rows = 32;
  config.seed = 7;
  EXPECT_EQ(CompleteConfig(config), absl::OkStatus())
      << "if it needs more than its name, add a setting to tests/support/kernel_settings.h";
  return config;
}

struct KernelOutcome {
  double error = 0;       // of 300 held-out rows, over the variance of the targets
  double validation = 0;  // recent predict-then-learn loss
  std::vector<ModelWarning> warnings;
};

// After `learned` rows.
inline KernelOutcome Learn(const ModelConfig& config, size_t learned, uint64_t seed) {
  const auto [rows, variance] =
      RowsFor(**MakeUnitKernel(config.kernel), learned + 300, kKernelDim, seed);
  const auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, learned);
  SampleBatch tested;
  for (size_t i = learned; i < rows.size(); ++i) tested.AppendRow(rows, i);
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  return {.error = ErrorOn(*trainer, tested) / variance,
          .validation = snapshot->validation().recent_loss,
          .warnings = snapshot->warnings()};
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_MODEL_KERNEL_LEARNING_H_
