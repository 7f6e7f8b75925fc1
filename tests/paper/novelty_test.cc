// Novelty on real sets: members of some classes are learned, the others are strangers. Half of the
// members are held out, and ranked against the strangers by their scores and, beside it, by how far
// they lie from the mean of the standardised inputs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "core/model/trainer.h"
#include "tests/support/data_sets.h"
#include "tests/support/learning.h"
#include "tests/support/thread_executor.h"

namespace kernelstream {
namespace {

constexpr double kFraction = 0.1;

struct Sets {
  SampleBatch train, members, strangers;
};

// The first half of the members, in a random order, is learned; at most 6000 rows each.
Sets Split(const SampleBatch& rows, const std::set<std::string>& classes) {
  constexpr size_t kMost = 6000;
  const SampleBatch shuffled = Shuffled(rows, 1);
  SampleBatch members;
  Sets sets;
  for (size_t i = 0; i < shuffled.size(); ++i) {
    if (classes.contains(std::string(shuffled.target(i).label))) {
      members.AppendRow(shuffled, i);
    } else if (sets.strangers.size() < kMost) {
      sets.strangers.AppendRow(shuffled, i);
    }
  }
  const size_t half = std::min(members.size() / 2, kMost);
  for (size_t i = 0; i < 2 * half; ++i) {
    (i < half ? sets.train : sets.members).AppendRow(members, i);
  }
  return sets;
}

// Minus the squared distance from the mean of `train`, every input divided by its deviation.
std::vector<double> Closeness(const SampleBatch& train, const SampleBatch& rows) {
  const size_t dim = train.row(0).values.size();
  std::vector<double> mean(dim), variance(dim);
  const auto n = static_cast<double>(train.size());
  for (size_t i = 0; i < train.size(); ++i) {
    for (size_t j = 0; j < dim; ++j) mean[j] += train.row(i).values[j] / n;
  }
  for (size_t i = 0; i < train.size(); ++i) {
    for (size_t j = 0; j < dim; ++j) {
      const double off = train.row(i).values[j] - mean[j];
      variance[j] += off * off / n;
    }
  }
  std::vector<double> closeness(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < dim; ++j) {
      const double off = rows.row(i).values[j] - mean[j];
      closeness[i] -= off * off / std::max(variance[j], 1e-12);
    }
  }
  return closeness;
}

std::vector<double> ScoresOf(const Snapshot& snapshot, const SampleBatch& rows,
                             Executor& executor) {
  std::vector<double> scores(rows.size());
  snapshot.Score(rows, executor, scores.data());
  return scores;
}

// How often a member scores above a stranger, ties counting half.
double Auc(const std::vector<double>& members, const std::vector<double>& strangers) {
  double right = 0;
  for (const double a : members) {
    for (const double b : strangers) right += a > b ? 1 : a == b ? 0.5 : 0;
  }
  return right / static_cast<double>(members.size() * strangers.size());
}

struct Case {
  const char* name;
  const char* file;
  std::set<std::string> classes;
  double margin;       // that the ranking is to be better than the baseline's by
  bool mnist = false;  // the digits, not a file
};

class RealSets : public testing::TestWithParam<Case> {};

TEST_P(RealSets, TheWantedFractionIsBelowAndStrangersRankLow) {
  const auto folder = DataFolder();
  if (!folder.has_value()) {
    GTEST_SKIP() << "KERNELSTREAM_DATA names no folder with tabular/: not run";
  }
  const std::string file = *folder + "/" + GetParam().file;
  const Sets sets = Split(
      GetParam().mnist ? ReadMnist(*folder, MnistPart::kTrain) : ReadCsv(file, /*labels=*/true),
      GetParam().classes);
  ModelConfig config;
  config.loss = {"novelty", {{"fraction", kFraction}}, {}};
  config.max_features = 4096;
  ASSERT_TRUE(CompleteConfig(config).ok());
  ThreadExecutor executor(2);
  auto trainer = Trainer::Create(config, {&executor, nullptr});
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  Feed(**trainer, config, sets.train, 0, sets.train.size());
  const Ref<Snapshot> snapshot = (*trainer)->MakeSnapshot();
  const std::vector<double> members = ScoresOf(*snapshot, sets.members, executor);
  const std::vector<double> strangers = ScoresOf(*snapshot, sets.strangers, executor);
  double below = 0;
  for (const double score : members) below += score < snapshot->threshold() ? 1 : 0;
  below /= static_cast<double>(members.size());
  const double auc = Auc(members, strangers);
  const double baseline =
      Auc(Closeness(sets.train, sets.members), Closeness(sets.train, sets.strangers));
  std::printf("%s: %zu rows learned, %.4f of %zu others below, AUC %.4f, baseline %.4f\n",
              GetParam().name, sets.train.size(), below, members.size(), auc, baseline);
  EXPECT_NEAR(below, kFraction, 0.02);
  EXPECT_GT(auc, baseline + GetParam().margin);
}

INSTANTIATE_TEST_SUITE_P(
    Novelty, RealSets,
    testing::Values(Case{"shuttle", "tabular/shuttle.csv.gz", {"Rad.Flow"}, 0.05},
                    Case{"letter", "tabular/letter.csv.gz", {"A", "B", "C", "D", "E"}, 0.1},
                    // One cloud each: the distance from its middle says most, and the kernel has
                    // to find out from a few thousand rows.
                    Case{"spambase", "tabular/spambase.csv.gz", {"nonspam"}, -0.05},
                    Case{"mnist", "", {"0"}, -0.15, true}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace kernelstream
