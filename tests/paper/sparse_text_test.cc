// Words hashed to 64 bits, against what a linear model and the more frequent label make of them,
// and in the memory that small indices take.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "core/base/named_input.h"
#include "core/model/trainer.h"
#include "tests/support/data_sets.h"
#include "tests/support/learning.h"
#include "tests/support/random.h"
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

// The same rows with the hash of each word, here the text of its index, for an index.
SampleBatch WithHashes(const SampleBatch& rows) {
  SampleBatch hashed;
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowView row = rows.row(i);
    std::map<uint64_t, float> words;
    for (size_t j = 0; j < row.values.size(); ++j) {
      words[NumberIndex(absl::StrCat("word", row.indices[j]))] += row.values[j];
    }
    std::vector<uint64_t> indices;
    std::vector<float> values;
    for (const auto& [index, value] : words) {
      indices.push_back(index);
      values.push_back(value);
    }
    hashed.AddSparse(indices, values);
    hashed.SetTarget(rows.target(i).value);
  }
  return hashed;
}

// Texts of two subjects: 60 words each, the rank of a word in its list by Zipf's law; one word in
// three is of the subject's own list, the others of one that both share. Logarithms of counts,
// rows of length 1.
SampleBatch MadeTexts(size_t count, uint64_t seed) {
  constexpr double kShared = 20000, kOwn = 3000;
  constexpr size_t kWords = 60;
  SampleBatch rows;
  Random random(seed);
  for (size_t i = 0; i < count; ++i) {
    const bool second = random.Uniform() < 0.5;
    std::map<uint64_t, double> counts;
    for (size_t w = 0; w < kWords; ++w) {
      const bool own = random.Uniform() < 1.0 / 3;
      const double rank = std::floor(std::pow(own ? kOwn : kShared, random.Uniform()));
      const double list = own ? kShared + (second ? kOwn : 0) : 0;
      ++counts[static_cast<uint64_t>(list + rank)];
    }
    double square = 0;
    for (auto& [word, value] : counts) value = 1 + std::log(value), square += value * value;
    std::vector<uint64_t> indices;
    std::vector<float> values;
    for (const auto& [word, value] : counts) {
      indices.push_back(word);
      values.push_back(static_cast<float>(value / std::sqrt(square)));
    }
    rows.AddSparse(indices, values);
    rows.SetTarget(second ? 1 : -1);
  }
  return rows;
}

long PeakKib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

double ModelError(const SampleBatch& train, const SampleBatch& test) {
  ModelConfig config;
  config.loss.name = "logistic";
  config.hashed = true;
  EXPECT_TRUE(CompleteConfig(config).ok());
  ThreadExecutor executor(2);
  auto trainer = Trainer::Create(config, {&executor, nullptr});
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  Feed(**trainer, config, train, 0, train.size());
  return ErrorOn(*(*trainer)->MakeSnapshot(), test, executor);
}

void ExpectLearned(const std::string& name, const SampleBatch& train, const SampleBatch& test) {
  const double small = ModelError(train, test);
  const long before = PeakKib();
  const SampleBatch hashed_train = WithHashes(train), hashed_test = WithHashes(test);
  const double error = ModelError(hashed_train, hashed_test);
  const long grown = PeakKib() - before;
  const double majority = MajorityError(test), linear = LinearError(hashed_train, hashed_test);
  std::printf(
      "%s, %zu rows: error %.3f (small indices %.3f), linear %.3f, more frequent label %.3f; "
      "%ld KiB more memory than with small indices\n",
      name.c_str(), train.size(), error, small, linear, majority, grown);
  EXPECT_LE(error, 0.4 * majority);
  EXPECT_LE(error, linear + 0.03);
  // The rows themselves, twice, and what the allocator leaves between.
  EXPECT_LE(grown, 32 << 10);
}

TEST(SparseText, HashedModelIsAsGoodAsALinearOneInTheSameMemory) {
  ExpectLearned("texts made up", MadeTexts(1000, 1), MadeTexts(500, 2));
}

TEST(Rcv1, HashedModelIsAsGoodAsALinearOneInTheSameMemory) {
  const auto folder = DataFolder();
  if (!folder.has_value()) {
    GTEST_SKIP() << "KERNELSTREAM_DATA names no folder with field/: not run";
  }
  ExpectLearned("RCV1", ReadVowpalWabbit(*folder + "/field/rcv1_small.dat.gz"),
                ReadVowpalWabbit(*folder + "/field/rcv1_small_test.data.gz"));
}

}  // namespace
}  // namespace kernelstream
