// Thousands of classes: they are discovered one by one, and most are seen a few times only.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/model/model_support.h"

namespace kernelstream {
namespace {

constexpr size_t kLabels = 1024, kBits = 10;

// A label's number in binary, each bit -1 or 1 with noise.
SampleBatch Rows(size_t count, uint64_t seed) {
  SampleBatch rows;
  Random random(seed);
  for (size_t i = 0; i < count; ++i) {
    const size_t label = random.Below(kLabels);
    float* x = rows.AddDense(kBits);
    for (size_t j = 0; j < kBits; ++j) {
      x[j] = static_cast<float>((label >> j & 1 ? 1 : -1) + 0.2 * random.Normal());
    }
    rows.SetLabel(std::to_string(label));
  }
  return rows;
}

TEST(Softmax, LearnsAThousandLabelsItDiscovers) {
  ModelConfig config;
  config.loss.name = "softmax";
  config.max_labels = kLabels;
  config.max_features = config.block_features = 512;
  config.candidates = {{0.5}, {0.1}};
  config.input_metric = InputMetric::kOff;
  config.replay.ratio = 0;
  ASSERT_TRUE(CompleteConfig(config).ok());
  auto trainer = MakeTrainer(config);
  const SampleBatch train = Rows(8192, 1), test = Rows(1024, 2);
  Feed(*trainer, config, train, 0, train.size());
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  EXPECT_GT(snapshot->num_outputs(), kLabels - 8);
  EXPECT_LE(snapshot->num_outputs(), kLabels);
  const double error = ErrorOn(*snapshot, test, Inline());
  std::printf("%zu labels, %zu rows: error %.4f\n", snapshot->num_outputs(), train.size(), error);
  EXPECT_LT(error, 0.15);
}

}  // namespace
}  // namespace kernelstream
