// The parts a hosted model is made of.
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "core/base/field_error.h"
#include "gtest/gtest.h"
#include "server/hosting/append_ledger.h"
#include "server/hosting/pending_rows.h"
#include "server/hosting/sequence_waiters.h"
#include "server/hosting/thread_priority.h"
#include "server/hosting/training_pool.h"
#include "tests/unit/hosting_support.h"

namespace kernelstream::server {
namespace {

TEST(Answer, ComesBackAsItWasAndNoDamageCrashes) {
  AppendResult result;
  result.sequence = 77;
  result.rows_accepted = 5;
  result.rejected.push_back({3, InvalidField("features.dense.values[1]", "not finite")});
  result.rejected.push_back({9, absl::InvalidArgumentError("")});
  const std::string bytes = EncodeAnswer(result);
  const auto back = DecodeAnswer(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->sequence, 77u);
  EXPECT_EQ(back->rows_accepted, 5u);
  ASSERT_EQ(back->rejected.size(), 2u);
  EXPECT_EQ(back->rejected[0].number, 3u);
  EXPECT_EQ(FieldPathOf(back->rejected[0].status), "features.dense.values[1]");
  EXPECT_EQ(back->rejected[0].status.message(), "not finite");
  EXPECT_EQ(back->rejected[1].status.code(), absl::StatusCode::kInvalidArgument);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeAnswer(absl::string_view(bytes).substr(0, size)).ok());
  }
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string flipped = bytes;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    DecodeAnswer(flipped).status().IgnoreError();
  }
}

TEST(AppendLedger, RollbackTakesNumbersPositionsAndAnswersBack) {
  MemoryStore store;
  AppendLedger ledger(&store, 1, "m");
  AppendResult result;
  AppendRequest call = NumberedRows(0, 2);
  call.request_id = "r";
  ASSERT_TRUE(ledger.Stage(call, absl::OkStatus(), result).ok());
  AppendRequest rows = FromProducer(NumberedRows(1, 3), "p");
  ASSERT_TRUE(ledger.Stage(rows, absl::OkStatus(), result).ok());
  EXPECT_EQ(result.sequence, 5u);
  EXPECT_EQ(ledger.Position("p")->next_producer_sequence, 4u);
  ledger.Rollback();
  EXPECT_EQ(ledger.last_sequence(), 0u);
  EXPECT_EQ(ledger.Position("p")->next_producer_sequence, 1u);
  AppendRequest again = NumberedRows(0, 2);
  again.request_id = "r";
  result = {};
  const auto staged = ledger.Stage(again, absl::OkStatus(), result);
  ASSERT_TRUE(staged.ok() && staged->has_value());
  EXPECT_FALSE(result.duplicate);
  EXPECT_EQ(result.sequence, 2u);
}

TEST(AppendLedger, RepetitionWithinAGroupIsOne) {
  MemoryStore store;
  AppendLedger ledger(&store, 1, "m");
  for (const bool repeated : {false, true}) {
    AppendRequest call = NumberedRows(0, 2);
    call.request_id = "r";
    AppendResult result;
    const auto staged = ledger.Stage(call, absl::OkStatus(), result);
    ASSERT_TRUE(staged.ok());
    EXPECT_EQ(staged->has_value(), !repeated);
    EXPECT_EQ(result.duplicate, repeated);
    EXPECT_EQ(result.sequence, 2u);
  }
}

TEST(PendingRows, SlicesFollowTheLog) {
  PendingRows pending;
  pending.Push(NumberedRows(1, 5).rows, 2, 3, absl::UnixEpoch(), 50);
  pending.Push(NumberedRows(6, 4).rows, 0, 6, absl::UnixEpoch() + absl::Seconds(1), 40);
  EXPECT_EQ(pending.size(), 7u);
  EXPECT_EQ(pending.last_sequence(), 9u);
  EXPECT_EQ(pending.CountUpTo(2), 0u);
  EXPECT_EQ(pending.CountUpTo(4), 2u);
  EXPECT_EQ(pending.CountUpTo(7), 5u);
  EXPECT_EQ(pending.CountUpTo(100), 7u);
  const PendingRows::Taken taken = pending.Take(4);
  EXPECT_EQ(taken.rows, 4u);
  EXPECT_EQ(taken.last_sequence, 6u);
  EXPECT_EQ(taken.bytes, 50u);
  ASSERT_EQ(taken.slices.size(), 2u);
  EXPECT_EQ(taken.slices[0].rows->row(taken.slices[0].first).values[0], 3.0f);
  EXPECT_EQ(pending.oldest_arrival(), absl::UnixEpoch() + absl::Seconds(1));
  EXPECT_EQ(pending.bytes(), 40u);
  EXPECT_EQ(pending.Take(3).last_sequence, 9u);
  EXPECT_TRUE(pending.empty());
}

TEST(SequenceWaiters, AreTakenInOrderAndOnce) {
  SequenceWaiters waiters;
  std::string order;
  const auto add = [&](uint64_t sequence, char name) {
    return waiters.Add(sequence, [&order, name](absl::Status) { order += name; });
  };
  add(5, 'c');
  add(2, 'a');
  const uint64_t cancelled = add(3, 'x');
  add(3, 'b');
  EXPECT_FALSE(waiters.AnyUpTo(1));
  EXPECT_TRUE(waiters.AnyUpTo(2));
  EXPECT_TRUE(waiters.Cancel(cancelled));
  for (auto& waiter : waiters.TakeUpTo(4)) waiter(absl::OkStatus());
  EXPECT_EQ(order, "ab");
  EXPECT_FALSE(waiters.Cancel(cancelled));
  for (auto& waiter : waiters.TakeAll()) waiter(absl::OkStatus());
  EXPECT_EQ(order, "abc");
  EXPECT_TRUE(waiters.empty());
}

TEST(TrainingPool, ParallelForRunsEachTaskOnceAlsoNestedAndFromManyThreads) {
  for (int threads : {0, 1, 3}) {
    ManualClock clock;
    TrainingPool pool({threads, 0}, &clock);
    std::vector<std::thread> callers;
    for (int c = 0; c < 3; ++c) {
      callers.emplace_back([&pool] {
        for (int round = 0; round < 100; ++round) {
          std::vector<std::atomic<int>> runs(20 * 3);
          pool.ParallelFor(
              20, [&](size_t i) { pool.ParallelFor(3, [&](size_t j) { ++runs[3 * i + j]; }); });
          for (const auto& count : runs) ASSERT_EQ(count, 1);
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
}

// Runs a function as its slice; notes overlaps.
class Slices final : public Runnable {
 public:
  explicit Slices(std::function<absl::Time()> slice) : slice_(std::move(slice)) {}
  absl::Time RunSlice() override {
    EXPECT_FALSE(inside_.exchange(true));
    const absl::Time wake = slice_();
    inside_ = false;
    return wake;
  }

 private:
  std::function<absl::Time()> slice_;
  std::atomic<bool> inside_{false};
};

TEST(TrainingPool, ReadySlicesTakeTurns) {
  ManualClock clock;
  TrainingPool pool({1, 10}, &clock);
  absl::Notification go, done;
  std::string order;  // one thread: no lock needed
  int left = 6;
  const auto gate = std::make_shared<Slices>([&] {
    go.WaitForNotification();
    return absl::InfiniteFuture();
  });
  pool.Schedule(gate);
  std::vector<std::shared_ptr<Slices>> busy;
  for (const char name : {'a', 'b'}) {
    busy.push_back(std::make_shared<Slices>([&, name] {
      order += name;
      if (--left == 0) done.Notify();
      return left > 0 ? absl::InfinitePast() : absl::InfiniteFuture();
    }));
    pool.Schedule(busy.back());
  }
  go.Notify();
  done.WaitForNotification();
  pool.Shutdown();
  EXPECT_EQ(order.substr(0, 6), "ababab");
}

// What keeps training out of the way of serving.
TEST(TrainingPool, EveryThreadRunsAtItsLowPriorityAndTheCallersStaysAsItWas) {
  ManualClock clock;
  const auto priority = [] {
    return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)));
  };
  constexpr int kThreads = 3, kLowest = 19;
  const int own = priority();
  const uint64_t own_time_slice = ThreadTimeSliceNanos();
  for (const int nice : {TrainingPool::Options().nice, 0}) {
    TrainingPool pool({kThreads, nice}, &clock);
    absl::BlockingCounter inside(kThreads);
    absl::Notification go;
    // Time slices are not to be had before Linux 6.12, nor under other policies.
    const bool chosen = nice != 0 && own_time_slice != 0 && sched_getscheduler(0) == SCHED_OTHER;
    const uint64_t time_slice = chosen ? kLongTimeSliceNanos : own_time_slice;
    std::atomic<int> wrong{0};
    std::vector<std::shared_ptr<Slices>> slices;
    for (int i = 0; i < kThreads; ++i) {
      // One on each thread: none ends before all have begun.
      slices.push_back(std::make_shared<Slices>([&] {
        wrong += priority() != std::min(own + nice, kLowest);
        wrong += ThreadTimeSliceNanos() != time_slice;
        inside.DecrementCount();
        go.WaitForNotification();
        return absl::InfiniteFuture();
      }));
      pool.Schedule(slices.back());
    }
    inside.Wait();
    EXPECT_EQ(wrong, 0) << "nice " << nice;
    go.Notify();
    pool.Shutdown();
  }
  EXPECT_GT(TrainingPool::Options().nice, 0);
  EXPECT_EQ(priority(), own);
  EXPECT_EQ(ThreadTimeSliceNanos(), own_time_slice);
}

TEST(TrainingPool, SleepersWakeAtTheirTime) {
  ManualClock clock;
  TrainingPool pool({2, 0}, &clock);
  std::atomic<int> runs = 0;
  const auto sleeper = std::make_shared<Slices>([&] {
    ++runs;
    return clock.Now() + absl::Seconds(10);
  });
  pool.Schedule(sleeper);
  while (runs != 1) sched_yield();
  clock.Advance(absl::Seconds(9));
  EXPECT_EQ(runs, 1);
  while (runs != 2) {
    clock.Advance(absl::Seconds(1));
    sched_yield();
  }
  pool.Remove(sleeper.get());
  const int last = runs;
  clock.Advance(absl::Hours(1));
  pool.Shutdown();
  EXPECT_EQ(runs, last);
}

TEST(TrainingPool, ScheduledWhileRunningRunsAgain) {
  ManualClock clock;
  TrainingPool pool({2, 0}, &clock);
  absl::Notification started, go;
  std::atomic<int> runs = 0;
  const auto slices = std::make_shared<Slices>([&] {
    if (++runs == 1) {
      started.Notify();
      go.WaitForNotification();
    }
    return absl::InfiniteFuture();
  });
  pool.Schedule(slices);
  started.WaitForNotification();
  pool.Schedule(slices);
  go.Notify();
  while (runs != 2) sched_yield();
  pool.Remove(slices.get());
}

}  // namespace
}  // namespace kernelstream::server
