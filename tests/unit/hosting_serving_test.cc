// Predicting while learning at full speed; run it under ThreadSanitizer.
#include <array>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/hosting_support.h"

namespace kernelstream::server {
namespace {

constexpr int kReaders = 8;
constexpr uint64_t kRowsAtATime = 40;
constexpr uint64_t kMostRows = 100000;
// Rows that keep the trainer busy.
constexpr uint64_t kMostWaiting = 2000;
// Steps that the readers have to have seen, all together, before rows stop coming.
constexpr uint64_t kStepsToSee = 10 * kReaders;

// The reading path in one place: look-up by name, snapshot, scores. What it is made of never takes
// a lock: the map of models and each model's snapshot are in PublishedCells, whose Get is a few
// atomic instructions (asserted lock-free there).
using Scores = std::vector<double>;
Scores Predict(const ModelRegistry& registry, const SampleBatch& probes, uint64_t* step) {
  thread_local InlineExecutor inline_executor;
  const auto model = registry.Get("m");
  const Ref<Snapshot> snapshot = (*model)->snapshot();
  *step = snapshot->step();
  Scores scores(probes.size());
  snapshot->Score(probes, inline_executor, scores.data());
  return scores;
}

TEST(Serving, EveryAnswerIsTheReplayOfTheStepItNames) {
  SampleBatch probes;
  for (const float x : {-2.0f, 0.5f, 300.0f}) probes.AddDense(std::vector<float>{x, -x});

  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> steps_seen = 0;
  std::vector<std::map<uint64_t, Scores>> answers(kReaders);
  std::vector<std::thread> readers;
  for (int t = 0; t < kReaders; ++t) {
    readers.emplace_back([&, t] {
      uint64_t last = 0;
      while (!stop) {
        uint64_t step = 0;
        const Scores scores = Predict(host.registry, probes, &step);
        EXPECT_GE(step, last) << "a reader went back";
        last = step;
        const auto [it, is_new] = answers[t].try_emplace(step, scores);
        if (is_new) ++steps_seen;
        EXPECT_EQ(it->second, scores) << "two answers of step " << step << " differ";
      }
    });
  }
  uint64_t sent = 0;
  while (sent < kMostRows && steps_seen < kStepsToSee) {
    if (sent > model->snapshot()->sequence() + kMostWaiting) {  // they are learned in the end
      sched_yield();
      continue;
    }
    const auto result = AppendAndWait(*model, NumberedRows(sent + 1, kRowsAtATime));
    if (result.ok()) {
      sent += kRowsAtATime;
    } else {  // as fast as the queue takes them
      ASSERT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted) << result.status();
      sched_yield();
    }
  }
  host.Settle(*model);
  uint64_t final_step = 0;
  Predict(host.registry, probes, &final_step);
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_GE(steps_seen, kStepsToSee) << "after " << sent << " rows";

  // The same rows through a trainer of their own.
  InlineExecutor executor;
  auto trainer = Trainer::Create(model->config(), {&executor, nullptr});
  ASSERT_TRUE(trainer.ok());
  const uint32_t batch = model->config().batch_rows;
  const SampleBatch rows = NumberedRows(1, sent).rows;
  std::map<uint64_t, Scores> replay;
  for (uint64_t i = 0;; i += batch) {
    const Ref<Snapshot> snapshot = (*trainer)->MakeSnapshot();
    Scores scores(probes.size());
    snapshot->Score(probes, executor, scores.data());
    replay[snapshot->step()] = scores;
    if (i == sent) break;
    (*trainer)->Step(rows, i, batch, i + batch);
  }
  EXPECT_EQ(final_step, (*trainer)->step());
  size_t checked = 0;
  for (const auto& of_reader : answers) {
    for (const auto& [step, scores] : of_reader) {
      ASSERT_TRUE(replay.contains(step)) << step;
      EXPECT_EQ(scores, replay.at(step)) << "step " << step;
      ++checked;
    }
  }
  EXPECT_EQ(checked, steps_seen);
}

// While full mini-batches wait, snapshots keep the fingerprint of an older step and say so; the
// last one has its own.
TEST(Serving, TheFingerprintOfABusyModelIsOfTheStepItNames) {
  InlineExecutor executor;
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  const uint32_t batch = model->config().batch_rows;
  const uint64_t count = 12 * batch;
  struct Seen {
    uint64_t step, fingerprint_step;
    std::array<uint8_t, 16> fingerprint;
  };
  std::vector<Seen> seen;  // by the thread that learns
  const auto look = [&] {
    const Ref<Snapshot> snapshot = model->snapshot();
    seen.push_back({snapshot->step(), snapshot->fingerprint_step(), snapshot->fingerprint()});
  };
  model->WaitForSequence(4 * batch, [&](absl::Status) {
    look();
    host.clock.Advance(absl::Seconds(2));
  });
  model->WaitForSequence(6 * batch, [&](absl::Status) { look(); });
  ASSERT_TRUE(AppendAndWait(*model, NumberedRows(1, count, AckLevel::kApplied)).ok());
  look();
  host.Settle(*model);

  auto trainer = Trainer::Create(model->config(), {&executor, nullptr});
  ASSERT_TRUE(trainer.ok());
  const SampleBatch rows = NumberedRows(1, count).rows;
  std::map<uint64_t, std::array<uint8_t, 16>> replay;
  for (uint64_t i = 0;; i += batch) {
    replay[(*trainer)->step()] = (*trainer)->MakeSnapshot()->fingerprint();
    if (i == count) break;
    (*trainer)->Step(rows, i, batch, i + batch);
  }
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_LT(seen[0].fingerprint_step, seen[0].step);
  // A second has passed: there was a new one.
  EXPECT_GT(seen[1].fingerprint_step, seen[0].fingerprint_step);
  EXPECT_EQ(seen[2].step, (*trainer)->step());
  EXPECT_EQ(seen[2].fingerprint_step, seen[2].step);
  for (const Seen& one : seen) {
    ASSERT_TRUE(replay.contains(one.fingerprint_step));
    EXPECT_EQ(one.fingerprint, replay.at(one.fingerprint_step));
  }
}

// The lock audit, by doing: every kind of writer is stuck in the store, with whatever it holds
// while it is there, and predictions go on.
TEST(Serving, PredictsWhileEveryWriterIsStuck) {
  SampleBatch probes;
  probes.AddDense(std::vector<float>{0.5f, -1});
  absl::Notification go;  // these outlive the host, whose last checkpoint passes through the hook
  std::atomic<int> stuck = 0;
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  ASSERT_TRUE(AppendAndWait(*model, NumberedRows(1, 64)).ok());
  host.Settle(*model);

  store.SetHook([&](MemoryStore::Op op, ModelUid) {
    if (op == MemoryStore::Op::kCommit || op == MemoryStore::Op::kSaveCheckpoint ||
        op == MemoryStore::Op::kPutModel) {
      ++stuck;
      go.WaitForNotification();
    }
    return absl::OkStatus();
  });
  std::thread creator([&] { EXPECT_TRUE(host.registry.Create("other", SmallConfig()).ok()); });
  absl::Notification acknowledged;
  model->Append(NumberedRows(65, 8), [&](auto) { acknowledged.Notify(); });
  host.clock.Advance(absl::Seconds(10));  // a checkpoint is due
  while (stuck < 3) sched_yield();        // the registry, the log writer and a training thread

  uint64_t step = 0;
  const Scores first = Predict(host.registry, probes, &step);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(Predict(host.registry, probes, &step), first);
  EXPECT_FALSE(acknowledged.HasBeenNotified());

  go.Notify();
  creator.join();
  acknowledged.WaitForNotification();
}

}  // namespace
}  // namespace kernelstream::server
