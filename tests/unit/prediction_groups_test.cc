// Requests that are evaluated together: the bits of each alone, nobody left out.
#include "server/service/prediction_groups.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

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

// A request that remembers what it was told.
struct Asked final : GroupedRequest {
  explicit Asked(SampleBatch asked) : rows(std::move(asked)) {}
  bool Wanted() override { return wanted; }
  void Scored(const GroupedScores& group) override {
    scores.assign(group.scores.begin(), group.scores.end());
    step = group.snapshot->step();
    begun = group.begun;
    done.Notify();
  }

  const SampleBatch rows;
  std::atomic<bool> wanted{true};
  std::vector<double> scores;
  uint64_t step = 0;
  absl::Time begun;
  absl::Notification done;
};

TEST_F(PredictionGroupsTest, WhoWaitsIsEvaluatedTogetherByTheNewestSnapshot) {
  constexpr size_t kMembers = 10, kUnwanted = 6;
  WorkerPool pool(1, 16);
  PredictionGroups groups(&pool, 1, 100);
  absl::Notification begin;
  ASSERT_TRUE(pool.Submit([&] { begin.WaitForNotification(); }));
  std::vector<std::shared_ptr<Asked>> requests;
  for (size_t i = 0; i < kMembers; ++i) {
    requests.push_back(std::make_shared<Asked>(Some(5 * i, 1 + i % 2)));
    const Asked& asked = *requests.back();
    ASSERT_TRUE(groups.Score(&groups, i == 4 ? new_ : old_, &asked.rows, requests.back()));
  }
  requests[kUnwanted]->wanted = false;
  begin.Notify();
  for (size_t i = 0; i < kMembers; ++i) {
    if (i == kUnwanted) continue;
    const Asked& asked = *requests[i];
    asked.done.WaitForNotification();
    EXPECT_EQ(asked.step, new_->step());
    EXPECT_EQ(asked.scores, Alone(*new_, asked.rows));
    EXPECT_EQ(asked.begun, requests[0]->begun);
  }
  pool.Shutdown();
  EXPECT_FALSE(requests[kUnwanted]->done.HasBeenNotified());
  EXPECT_EQ(requests[kUnwanted].use_count(), 1);
}

TEST_F(PredictionGroupsTest, EveryRequestOfManyThreadsIsAnsweredOnce) {
  constexpr size_t kThreads = 8, kCalls = 200;
  WorkerPool pool(2, 4);
  PredictionGroups groups(&pool, 2, 5);  // both often full
  std::atomic<size_t> answered{0}, refused{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < kCalls; ++i) {
        const Ref<Snapshot>& snapshot = t % 2 == 0 ? old_ : new_;
        const auto asked =
            std::make_shared<Asked>(Some(t * kCalls + i, 1 + i % PredictionGroups::kMostRows));
        // Two models: the snapshot itself stands for its model.
        const bool taken = groups.Score(snapshot.get(), snapshot, &asked->rows, asked);
        ++(taken ? answered : refused);
        if (!taken) continue;
        asked->done.WaitForNotification();
        EXPECT_EQ(asked->scores, Alone(*snapshot, asked->rows));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  pool.Shutdown();
  EXPECT_EQ(answered + refused, kThreads * kCalls);
  EXPECT_GT(answered, 0u);
}

// A model whose callers never stop, and a pool that is full: others still get their turn.
TEST_F(PredictionGroupsTest, OneModelDoesNotKeepTheThreads) {
  WorkerPool pool(1, 1);
  PredictionGroups groups(&pool, 1, 100);
  std::atomic<bool> stop{false};
  const auto keep_asking = [&] {
    while (!stop) {
      const auto asked = std::make_shared<Asked>(Some(0, 8));
      if (groups.Score(&groups, old_, &asked->rows, asked)) asked->done.WaitForNotification();
    }
  };
  std::thread one(keep_asking), two(keep_asking);
  for (int i = 0; i < 20; ++i) {
    absl::Notification done;
    while (!pool.Submit([&] { done.Notify(); })) std::this_thread::yield();
    EXPECT_TRUE(done.WaitForNotificationWithTimeout(absl::Seconds(30)));
  }
  stop = true;
  one.join();
  two.join();
  pool.Shutdown();
}

TEST_F(PredictionGroupsTest, ThereIsNoRoomInAPoolThatHasEnded) {
  WorkerPool pool(1, 16);
  PredictionGroups groups(&pool, 1, 100);
  pool.Shutdown();
  const auto asked = std::make_shared<Asked>(Some(0, 1));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(groups.Score(&groups, old_, &asked->rows, asked));
  EXPECT_EQ(asked.use_count(), 1);
}

}  // namespace
}  // namespace kernelstream::server
