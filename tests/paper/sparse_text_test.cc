// Word counts with hashed inputs, against what a linear model and the more frequent label make of
// them.
#include <gtest/gtest.h>

#include <cstdio>
#include <unordered_map>

#include "core/model/trainer.h"
#include "tests/support/data_sets.h"
#include "tests/support/learning.h"
#include "tests/support/thread_executor.h"

namespace kernelstream {
namespace {

double MajorityError(const SampleBatch& rows) {
  size_t positive = 0;
  for (size_t i = 0; i < rows.size(); ++i) positive += rows.target(i).value > 0 ? 1 : 0;
  return static_cast<double>(std::min(positive, rows.size() - positive)) /
         static_cast<double>(rows.size());
}

// Averaged perceptron, one pass.
double LinearError(const SampleBatch& train, const SampleBatch& test) {
  std::unordered_map<uint64_t, double> weights, sums;
  const auto score = [](const RowView& row, std::unordered_map<uint64_t, double>& of) {
    double sum = 0;
    for (size_t i = 0; i < row.values.size(); ++i) sum += of[row.indices[i]] * row.values[i];
    return sum;
  };
  for (size_t i = 0; i < train.size(); ++i) {
    const RowView row = train.row(i);
    const double y = train.target(i).value;
    if (score(row, weights) * y > 0) continue;
    const auto left = static_cast<double>(train.size() - i);
    for (size_t j = 0; j < row.values.size(); ++j) {
      weights[row.indices[j]] += y * row.values[j];
      sums[row.indices[j]] += left * y * row.values[j];
    }
  }
  size_t wrong = 0;
  for (size_t i = 0; i < test.size(); ++i) {
    wrong += score(test.row(i), sums) * test.target(i).value > 0 ? 0 : 1;
  }
  return static_cast<double>(wrong) / static_cast<double>(test.size());
}

TEST(Rcv1, HashedModelIsAsGoodAsALinearOne) {
  const auto folder = DataFolder();
  if (!folder.has_value()) {
    GTEST_SKIP() << "KERNELSTREAM_DATA names no folder with field/: not run";
  }
  const SampleBatch train = ReadVowpalWabbit(*folder + "/field/rcv1_small.dat.gz");
  const SampleBatch test = ReadVowpalWabbit(*folder + "/field/rcv1_small_test.data.gz");
  ModelConfig config;
  config.loss.name = "logistic";
  config.hashed = true;
  config.block_features = 1024;  // as many features as 1000 rows bring by themselves are too few
  ASSERT_TRUE(CompleteConfig(config).ok());
  ThreadExecutor executor(2);
  auto trainer = Trainer::Create(config, {&executor, nullptr});
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  Feed(**trainer, config, train, 0, train.size());
  const double error = ErrorOn(*(*trainer)->MakeSnapshot(), test, executor);
  const double majority = MajorityError(test), linear = LinearError(train, test);
  std::printf("RCV1, %zu rows: error %.3f, linear %.3f, more frequent label %.3f\n", train.size(),
              error, linear, majority);
  EXPECT_LE(error, 0.4 * majority);
  EXPECT_LE(error, linear + 0.03);
}

}  // namespace
}  // namespace kernelstream
