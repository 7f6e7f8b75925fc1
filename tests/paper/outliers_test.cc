// Wild targets among good ones, real data, default settings.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "core/model/trainer.h"
#include "tests/support/data_sets.h"
#include "tests/support/learning.h"
#include "tests/support/random.h"
#include "tests/support/thread_executor.h"

namespace kernelstream {
namespace {

constexpr uint64_t kSplits = 4;
constexpr size_t kTestRows = 2064;
// One training row in a hundred has a target that is 30 times too large.
constexpr double kShare = 0.01, kTimes = 30;
constexpr double kMostRise = 0.03;  // of the mean absolute error on targets that are not wild

double MeanAbsoluteError(const SampleBatch& train, const SampleBatch& test) {
  ModelConfig config;
  config.loss.name = "huber";
  EXPECT_TRUE(CompleteConfig(config).ok());
  ThreadExecutor executor(2);
  FeatureCacheBudget budget(int64_t{1} << 30);
  auto trainer = *Trainer::Create(config, {&executor, &budget});
  Feed(*trainer, config, train, 0, train.size());
  const std::vector<Prediction> predictions = Predictions(*trainer->MakeSnapshot(), test, executor);
  double sum = 0;
  for (size_t i = 0; i < test.size(); ++i) {
    sum += std::abs(predictions[i].value - test.target(i).value);
  }
  return sum / static_cast<double>(test.size());
}

TEST(Huber, HardlyMindsOutliersAmongHousePrices) {
  const auto folder = DataFolder();
  if (!folder.has_value()) {
    GTEST_SKIP() << "KERNELSTREAM_DATA names no folder with streams/: not run";
  }
  const SampleBatch rows = ReadCsv(*folder + "/streams/cal_housing.csv.gz", /*labels=*/false);
  double rise = 0;
  for (uint64_t split = 0; split < kSplits; ++split) {
    const SampleBatch shuffled = Shuffled(rows, 1000 + split);
    SampleBatch train, wild, test;
    Random random(split);
    for (size_t i = 0; i < shuffled.size(); ++i) {
      if (i + kTestRows >= shuffled.size()) {
        test.AppendRow(shuffled, i);
        continue;
      }
      train.AppendRow(shuffled, i);
      wild.AppendRow(shuffled, i);
      if (random.Uniform(0, 1) < kShare) wild.SetTarget(kTimes * shuffled.target(i).value);
    }
    const double clean = MeanAbsoluteError(train, test), outliers = MeanAbsoluteError(wild, test);
    std::printf("split %llu: mean absolute error %.0f, with outliers %.0f (%+.1f %%)\n",
                static_cast<unsigned long long>(split), clean, outliers,
                100 * (outliers / clean - 1));
    rise += (outliers / clean - 1) / static_cast<double>(kSplits);
  }
  std::printf("on average %+.1f %%\n", 100 * rise);
  EXPECT_LE(rise, kMostRise);
}

}  // namespace
}  // namespace kernelstream
