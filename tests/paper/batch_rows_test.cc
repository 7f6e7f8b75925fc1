// The errors of a model do not depend on how many rows come at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/model/trainer.h"
#include "tests/support/data_sets.h"
#include "tests/support/learning.h"
#include "tests/support/thread_executor.h"

namespace kernelstream {
namespace {

constexpr double kMostDifference = 0.03;  // of the largest error to the smallest one

// Held-out error after one pass: share of wrong labels, or mean squared error.
double ErrorOf(const std::string& loss, uint32_t batch_rows, const SampleBatch& train,
               const SampleBatch& test) {
  ModelConfig config;
  config.loss.name = loss;
  config.batch_rows = batch_rows;
  EXPECT_TRUE(CompleteConfig(config).ok());
  ThreadExecutor executor(2);
  FeatureCacheBudget budget(int64_t{1} << 30);
  auto trainer = *Trainer::Create(config, {&executor, &budget});
  Feed(*trainer, config, train, 0, train.size());
  return ErrorOn(*trainer->MakeSnapshot(), test, executor);
}

void ExpectOneErrorForAll(const char* name, const std::string& loss, const SampleBatch& train,
                          const SampleBatch& test) {
  std::vector<double> errors;
  for (const uint32_t batch_rows : {1u, 16u, 64u, 256u}) {
    errors.push_back(ErrorOf(loss, batch_rows, train, test));
    std::printf("%s: %u rows at a time %.5f\n", name, batch_rows, errors.back());
  }
  const auto [smallest, largest] = std::minmax_element(errors.begin(), errors.end());
  std::printf("%s: the largest is %.2f %% above the smallest\n", name,
              100 * (*largest / *smallest - 1));
  EXPECT_LE(*largest, (1 + kMostDifference) * *smallest) << name;
}

TEST(BatchRows, AdultEndsAtOneError) {
  ExpectOneErrorForAll("adult", "logistic",
                       Shuffled(ReadLibsvm(KERNELSTREAM_EXAMPLES "/a9a.libsvm.gz"), 1),
                       ReadLibsvm(KERNELSTREAM_EXAMPLES "/a9a.t.libsvm.gz"));
}

TEST(BatchRows, Kin40kEndsAtOneError) {
  const auto folder = DataFolder();
  if (!folder.has_value()) {
    GTEST_SKIP() << "KERNELSTREAM_DATA names no folder with tabular/: not run";
  }
  const SampleBatch rows = ReadCsv(*folder + "/tabular/kin40k.csv.gz", /*labels=*/false);
  const std::vector<bool> mask = ReadMask(*folder + "/tabular/kin40k_test_mask.csv.gz", 0);
  SampleBatch train, test;
  for (size_t i = 0; i < rows.size(); ++i) (mask[i] ? test : train).AppendRow(rows, i);
  ExpectOneErrorForAll("kin40k", "square", Shuffled(train, 1), test);
}

}  // namespace
}  // namespace kernelstream
