// Requests that are evaluated together: the bits of each alone, nobody left out.
#include "server/service/prediction_groups.h"

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "core/model/trainer.h"
#include "gtest/gtest.h"
#include "tests/support/learning.h"
#include "tests/support/random.h"

namespace kernelstream::server {
namespace {

constexpr size_t kDim = 7, kRows = 640;

SampleBatch MakeRows(uint64_t seed) {
  Random random(seed);
  SampleBatch rows;
  for (size_t i = 0; i < kRows; ++i) {
    float* const x = rows.AddDense(kDim);
    for (size_t j = 0; j < kDim; ++j) x[j] = static_cast<float>(random.Normal());
    rows.SetTargets(std::vector<double>{x[0] * x[1], x[2]});
  }
  return rows;
}

class PredictionGroupsTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.loss.name = "square";
    config_.max_features = 512;
    ASSERT_TRUE(CompleteConfig(config_).ok());
    auto trainer = Trainer::Create(config_, {&executor_, nullptr});
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    trainer_ = *std::move(trainer);
    Feed(*trainer_, config_, MakeRows(1), 0, kRows);
    old_ = trainer_->MakeSnapshot();
    Feed(*trainer_, config_, MakeRows(2), 0, kRows);
    new_ = trainer_->MakeSnapshot();
  }

  // Rows [first, first + count) of MakeRows(3).
  static SampleBatch Some(size_t first, size_t count) {
    static const SampleBatch* const kAll = new SampleBatch(MakeRows(3));
    SampleBatch some;
    for (size_t i = 0; i < count; ++i) some.AppendRow(*kAll, (first + i) % kRows);
    return some;
  }

  std::vector<double> Alone(const Snapshot& snapshot, const SampleBatch& rows) {
    std::vector<double> scores(rows.size() * snapshot.num_outputs());
    snapshot.Score(rows, executor_, scores.data());
    return scores;
  }

  InlineExecutor executor_;
  ModelConfig config_;
  std::unique_ptr<Trainer> trainer_;
  Ref<Snapshot> old_, new_;
};

TEST_F(PredictionGroupsTest, WhoWaitsIsEvaluatedTogetherByTheNewestSnapshot) {
  constexpr size_t kMembers = 10;
  WorkerPool pool(1, 16);
  PredictionGroups groups(&pool, 1);
  absl::Notification begin;
  ASSERT_TRUE(pool.Submit([&] { begin.WaitForNotification(); }));
  std::vector<SampleBatch> rows;
  for (size_t i = 0; i < kMembers; ++i) rows.push_back(Some(5 * i, 1 + i % 3));
  std::set<absl::Time> begun;
  absl::BlockingCounter answers(kMembers);
  for (size_t i = 0; i < kMembers; ++i) {
    ASSERT_TRUE(groups.Score(&groups, i == 4 ? new_ : old_, &rows[i], [&, i](const auto& group) {
      EXPECT_EQ(group.snapshot->step(), new_->step());
      EXPECT_EQ(std::vector<double>(group.scores.begin(), group.scores.end()),
                Alone(*new_, rows[i]));
      begun.insert(group.begun);
      answers.DecrementCount();
    }));
  }
  begin.Notify();
  answers.Wait();
  EXPECT_EQ(begun.size(), 1u);
}

TEST_F(PredictionGroupsTest, EveryRequestOfManyThreadsIsAnsweredOnce) {
  constexpr size_t kThreads = 8, kCalls = 200;
  WorkerPool pool(2, 4);  // often full
  PredictionGroups groups(&pool, 2);
  std::atomic<size_t> answered{0}, refused{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < kCalls; ++i) {
        const Ref<Snapshot>& snapshot = t % 2 == 0 ? old_ : new_;
        const SampleBatch rows = Some(t * kCalls + i, 1 + i % PredictionGroups::kMostRows);
        const std::vector<double> expected = Alone(*snapshot, rows);
        absl::Notification done;
        // Two models: the snapshot itself stands for its model.
        const bool taken =
            groups.Score(snapshot.get(), snapshot, &rows, [&](const GroupedScores& group) {
              EXPECT_EQ(std::vector<double>(group.scores.begin(), group.scores.end()), expected);
              done.Notify();
            });
        if (taken) done.WaitForNotification();
        ++(taken ? answered : refused);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered + refused, kThreads * kCalls);
  EXPECT_GT(answered, kThreads * kCalls / 2);
}

TEST_F(PredictionGroupsTest, ThereIsNoRoomInAPoolThatHasEnded) {
  WorkerPool pool(1, 16);
  PredictionGroups groups(&pool, 1);
  pool.Shutdown();
  const SampleBatch rows = Some(0, 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(groups.Score(&groups, old_, &rows, [](const auto&) { FAIL(); }));
  }
}

}  // namespace
}  // namespace kernelstream::server
