// Streams that change and streams that are sorted, with default settings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/model/trainer.h"
#include "tests/support/data_sets.h"
#include "tests/support/learning.h"
#include "tests/support/random.h"
#include "tests/support/thread_executor.h"

namespace kernelstream {
namespace {

ModelConfig Default(const std::string& loss) {
  ModelConfig config;
  config.loss.name = loss;
  return config;
}

// Learns rows [first, end) and returns the mean squared error of the predictions made before.
double LearnPrequentially(Trainer& trainer, const ModelConfig& config, const SampleBatch& rows,
                          size_t first, size_t end) {
  double sum = 0;
  InlineExecutor executor;
  for (size_t i = first; i < end; i += config.batch_rows) {
    const size_t count = std::min<size_t>(config.batch_rows, end - i);
    SampleBatch part;
    for (size_t k = i; k < i + count; ++k) part.AppendRow(rows, k);
    sum += ErrorOn(*trainer.MakeSnapshot(), part, executor) * static_cast<double>(count);
    trainer.Step(rows, i, count, i + count);
  }
  return sum / static_cast<double>(end - first);
}

// The paper's synthetic function is replaced by another of its kind half-way; noise of variance .01
// is in every target.
TEST(Drift, IsReportedAtOnceAndOvercome) {
  constexpr size_t kBefore = 32768, kAfter = 17408;
  const SampleBatch before = SyntheticRows(kBefore, 1, 0.1);
  SampleBatch after;
  Random random(2);
  for (size_t i = 0; i < kAfter; ++i) {
    const auto x0 = static_cast<float>(random.Uniform(-5, 5));
    const auto x1 = static_cast<float>(random.Uniform(-5, 5));
    after.AddDense(std::array{x0, x1});
    after.SetTarget(SyntheticFunction(x0 + 2, x1 - 1) + 0.1 * random.Normal());
  }
  ModelConfig config = Default("square");
  ASSERT_TRUE(CompleteConfig(config).ok());
  ThreadExecutor executor(2);
  FeatureCacheBudget budget(int64_t{1} << 30);
  auto trainer = *Trainer::Create(config, {&executor, &budget});
  Feed(*trainer, config, before, 0, kBefore);
  EXPECT_EQ(trainer->MakeSnapshot()->drift_reports(), 0u);
  const double first = LearnPrequentially(*trainer, config, after, 0, 512);
  EXPECT_EQ(trainer->MakeSnapshot()->drift_reports(), 1u);
  LearnPrequentially(*trainer, config, after, 512, 8192);
  const double later = LearnPrequentially(*trainer, config, after, 8192, kAfter);
  std::printf(
      "squared error of the first 512 rows after the change %.4f, of rows 8192 to %zu %.5f\n",
      first, kAfter, later);
  EXPECT_LE(later, 0.0115);
}

// MNIST sorted by digit.
SampleBatch SortedDigits(const std::string& folder) {
  const SampleBatch train = Shuffled(ReadMnist(folder, MnistPart::kTrain), 1);
  SampleBatch sorted;
  for (int digit = 0; digit < 10; ++digit) {
    for (size_t i = 0; i < train.size(); ++i) {
      if (train.target(i).label == std::to_string(digit)) sorted.AppendRow(train, i);
    }
  }
  return sorted;
}

bool WarnsOfOrder(const Trainer& trainer) {
  const Ref<Snapshot> snapshot = trainer.MakeSnapshot();
  return std::ranges::any_of(snapshot->warnings(), [](const ModelWarning& warning) {
    return warning.kind == WarningKind::kOrdered;
  });
}

// Of a small model, because the warning does not depend on how well it learns. At the first change
// of digit at the latest, and then always.
TEST(Order, ASortedStreamThatWasNotSaidToBeOneIsWarnedOf) {
  const auto folder = DataFolder();
  if (!folder.has_value()) {
    GTEST_SKIP() << "KERNELSTREAM_DATA names no folder with mnist/: not run";
  }
  const SampleBatch sorted = SortedDigits(*folder);
  ModelConfig config = Default("softmax");
  config.max_features = 512;
  ASSERT_TRUE(CompleteConfig(config).ok());
  ThreadExecutor executor(2);
  auto trainer = *Trainer::Create(config, {&executor, nullptr});
  constexpr size_t kOften = 4096;
  for (size_t i = 0; i < sorted.size(); i += kOften) {
    const size_t end = std::min(i + kOften, sorted.size());
    Feed(*trainer, config, sorted, i, end);
    const bool has_changed = sorted.target(end - 1).label != "0";
    EXPECT_EQ(WarnsOfOrder(*trainer), has_changed) << "after row " << end;
  }
}

// Long: see the label.
TEST(Order, ReplayLearnsASortedStream) {
  const auto folder = DataFolder();
  if (!folder.has_value()) {
    GTEST_SKIP() << "KERNELSTREAM_DATA names no folder with mnist/: not run";
  }
  const SampleBatch sorted = SortedDigits(*folder);
  const SampleBatch test = ReadMnist(*folder, MnistPart::kTest);
  ModelConfig config = Default("softmax");
  config.replay.order = StreamOrder::kOrdered;
  ASSERT_TRUE(CompleteConfig(config).ok());
  ThreadExecutor executor(2);
  FeatureCacheBudget budget(int64_t{2} << 30);
  auto trainer = *Trainer::Create(config, {&executor, &budget});
  Feed(*trainer, config, sorted, 0, sorted.size());
  const double error = ErrorOn(*trainer->MakeSnapshot(), test, executor);
  std::printf("MNIST sorted by digit, said to be ordered: error %.4f\n", error);
  EXPECT_LE(error, 0.05);
}

}  // namespace
}  // namespace kernelstream
