// Small models for tests.
#ifndef KERNELSTREAM_TESTS_MODEL_MODEL_SUPPORT_H_
#define KERNELSTREAM_TESTS_MODEL_MODEL_SUPPORT_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/model/trainer.h"
#include "tests/support/learning.h"
#include "tests/support/random.h"

namespace kernelstream {

inline InlineExecutor& Inline() {
  static InlineExecutor executor;
  return executor;
}

// A complete config of a small, quick model.
inline ModelConfig SmallConfig(const std::string& loss, const std::string& rule = "proximal") {
  ModelConfig config;
  config.loss.name = loss;
  config.update_rule.name = rule;
  config.max_features = 512;
  config.warmup_rows = 64;
  config.batch_rows = 32;
  config.seed = 7;
  EXPECT_TRUE(CompleteConfig(config).ok());
  return config;
}

// Rows of `dim` standard normal inputs. Targets: sin(x0) + x_last / 2 for regression, its sign for
// binary (-1 / 1), a text label of three for softmax.
inline SampleBatch MakeRows(const std::string& loss, size_t count, size_t dim, uint64_t seed) {
  SampleBatch rows;
  Random random(seed);
  for (size_t i = 0; i < count; ++i) {
    float* x = rows.AddDense(dim);
    for (size_t j = 0; j < dim; ++j) x[j] = static_cast<float>(random.Normal());
    const double y = std::sin(x[0]) + x[dim - 1] / 2;
    if (loss == "softmax") {
      rows.SetLabel(y < -0.5 ? "low" : y > 0.5 ? "high" : "middle");
    } else if (loss == "square") {
      rows.SetTarget(y);
    } else {
      rows.SetTarget(y > 0 ? 1 : -1);
    }
  }
  return rows;
}

// The same rows with as many targets: the first as it is, the others its square, its cube, ...
inline SampleBatch WithTargets(const SampleBatch& rows, size_t targets) {
  SampleBatch out;
  for (size_t i = 0; i < rows.size(); ++i) {
    out.AppendRow(rows, i);
    std::vector<double> values(targets, rows.target(i).value);
    for (size_t k = 1; k < targets; ++k) values[k] *= values[k - 1];
    out.SetTargets(values);
  }
  return out;
}

inline std::unique_ptr<Trainer> MakeTrainer(const ModelConfig& config,
                                            Executor& executor = Inline(),
                                            FeatureCacheBudget* budget = nullptr) {
  auto trainer = Trainer::Create(config, {&executor, budget});
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return *std::move(trainer);
}

inline std::vector<double> Scores(const Trainer& trainer, const SampleBatch& rows) {
  const Ref<Snapshot> snapshot = trainer.MakeSnapshot();
  std::vector<double> scores(rows.size() * snapshot->num_outputs());
  snapshot->Score(rows, Inline(), scores.data());
  return scores;
}

inline std::vector<Prediction> Predictions(const Trainer& trainer, const SampleBatch& rows) {
  return Predictions(*trainer.MakeSnapshot(), rows, Inline());
}
inline double ErrorOn(const Trainer& trainer, const SampleBatch& rows) {
  return ErrorOn(*trainer.MakeSnapshot(), rows, Inline());
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_MODEL_MODEL_SUPPORT_H_
