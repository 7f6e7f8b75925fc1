// One model: exactly once, acks that tell the truth, recovery.
#include <array>
#include <atomic>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/compositions.h"
#include "tests/unit/hosting_support.h"

namespace kernelstream::server {
namespace {

using ::testing::HasSubstr;
using Op = MemoryStore::Op;

TEST(HostedModel, RowsAreLoggedAndLearnedInOrder) {
  MemoryStore store;
  FailAlways(store, Op::kSaveCheckpoint, absl::UnavailableError("keep the log"));
  Host host(&store);
  const auto model = host.Create("m");
  for (uint64_t first = 1; first <= 41; first += 5) {
    const auto result = AppendAndWait(*model, NumberedRows(first, 5));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->sequence, first + 4);
    EXPECT_EQ(result->rows_accepted, 5u);
  }
  host.Settle(*model);
  EXPECT_EQ(NumbersInLog(store, model->uid()), UpTo(45));
  EXPECT_EQ(model->snapshot()->sequence(), 40u);
  EXPECT_EQ(model->status().rows_pending, 5u);
  EXPECT_EQ(model->status().phase, ModelStatus::Phase::kLearning);
}

TEST(HostedModel, AppliedMeansInThePublishedSnapshot) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  uint64_t next = 1;
  for (uint64_t count : {3, 8, 21, 1, 16}) {
    const auto result =
        AppendAndWait(*model, NumberedRows(next, count, AckLevel::kApplied), &host.clock);
    ASSERT_TRUE(result.ok()) << result.status();
    next += count;
    EXPECT_EQ(result->sequence, next - 1);
    EXPECT_GE(model->snapshot()->sequence(), next - 1);
  }
}

TEST(HostedModel, PartialMiniBatchWaitsForItsTime) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  std::atomic<bool> applied = false;
  model->Append(NumberedRows(1, 3, AckLevel::kApplied), [&](auto) { applied = true; });
  host.log.Flush();
  host.clock.Advance(absl::Milliseconds(19));
  EXPECT_FALSE(applied);
  EXPECT_EQ(model->snapshot()->sequence(), 0u);
  host.clock.Advance(absl::Milliseconds(1));
  while (!applied) sched_yield();
  EXPECT_EQ(model->snapshot()->sequence(), 3u);
}

// One row each 100 ms into mini-batches of 8: every row is learned 20 ms (max_batch_delay) after it
// came, by the model's clock, in which a step takes no time; none waits for seven others.
TEST(HostedModel, ATrickleIsLearnedRowByRowWithinTheDelay) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  for (uint64_t row = 1; row <= 40; ++row) {  // the warm-up ends at row 16
    SCOPED_TRACE(absl::StrCat("row ", row));
    std::atomic<bool> applied = false;
    model->Append(NumberedRows(row, 1, AckLevel::kApplied), [&](auto) { applied = true; });
    host.log.Flush();
    host.clock.Advance(absl::Milliseconds(19));
    EXPECT_EQ(model->snapshot()->sequence(), row - 1);
    EXPECT_EQ(model->status().rows_pending, 1u);
    host.clock.Advance(absl::Milliseconds(1));
    while (!applied) sched_yield();
    EXPECT_EQ(model->snapshot()->sequence(), row);
    EXPECT_EQ(model->snapshot()->rows_learned(), row);
    host.clock.Advance(absl::Milliseconds(80));
  }
}

TEST(HostedModel, AcceptedDoesNotWaitForTheDiskAndDurableDoes) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  absl::Notification go;
  store.SetHook([&go](Op op, ModelUid) {
    if (op == Op::kCommit) go.WaitForNotification();
    return absl::OkStatus();
  });
  ASSERT_TRUE(AppendAndWait(*model, NumberedRows(1, 2, AckLevel::kAccepted)).ok());
  std::atomic<bool> durable = false;
  model->Append(NumberedRows(3, 2), [&](auto) { durable = true; });
  EXPECT_FALSE(durable);
  EXPECT_EQ(model->logged_sequence(), 0u);
  go.Notify();
  host.log.Flush();
  EXPECT_TRUE(durable);
  EXPECT_EQ(model->logged_sequence(), 4u);
}

TEST(HostedModel, RepetitionsOverlapsGapsAndFailedWritesLearnEachRowOnce) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    MemoryStore store;
    std::atomic<uint64_t> state = seed * 77;
    store.SetHook([&state](Op op, ModelUid) {
      if (op == Op::kSaveCheckpoint) return absl::UnavailableError("keep the log");
      const bool fail = op == Op::kCommit && Random(state.fetch_add(1)).Below(4) == 0;
      return fail ? absl::ResourceExhaustedError("disk full") : absl::OkStatus();
    });
    auto host = std::make_unique<Host>(&store);
    auto model = host->Create("m");
    uint64_t acknowledged = 0;
    while (acknowledged < 200) {
      // From anywhere at or before where it should go on; now and then with a gap.
      const uint64_t back = random.Below(std::min<uint64_t>(acknowledged, 12) + 1);
      const bool gap = random.Below(8) == 0;
      const uint64_t first = gap ? acknowledged + 2 : acknowledged + 1 - back;
      const uint64_t count = 1 + random.Below(20);
      const auto result = AppendAndWait(*model, FromProducer(NumberedRows(first, count), "p"));
      if (gap) {
        const bool refused = result.status().code() == absl::StatusCode::kFailedPrecondition ||
                             result.status().code() == absl::StatusCode::kResourceExhausted;
        EXPECT_TRUE(refused) << result.status();
        continue;
      }
      if (!result.ok()) {
        EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
      } else {
        acknowledged = std::max(acknowledged, first + count - 1);
        EXPECT_EQ(result->next_producer_sequence, acknowledged + 1);
        EXPECT_EQ(result->duplicate, result->rows_accepted == 0);
      }
      if (random.Below(15) == 0) {  // a restart in between
        model.reset();
        host.reset();
        host = std::make_unique<Host>(&store);
        host->Load();
        model = host->Get("m");
      }
    }
    EXPECT_EQ(NumbersInLog(store, model->uid()), UpTo(acknowledged));
    EXPECT_EQ(model->logged_sequence(), acknowledged);
  }
}

TEST(HostedModel, GapNamesTheExpectedNumber) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  ASSERT_TRUE(AppendAndWait(*model, FromProducer(NumberedRows(1, 4), "p")).ok());
  const auto result = AppendAndWait(*model, FromProducer(NumberedRows(9, 4), "p"));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("expected 5"));
}

TEST(HostedModel, RefusedRowsMoveTheProducerOn) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  AppendRequest request = FromProducer(NumberedRows(1, 4), "p");
  SampleBatch rows;
  for (size_t i = 0; i < 4; ++i) {
    rows.AppendRow(request.rows, i);
    if (i == 1) rows.SetTarget(std::numeric_limits<double>::quiet_NaN());
  }
  request.rows = rows;
  auto result = AppendAndWait(*model, std::move(request));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rows_accepted, 3u);
  EXPECT_EQ(result->sequence, 3u);
  EXPECT_EQ(result->next_producer_sequence, 5u);
  ASSERT_EQ(result->rejected.size(), 1u);
  EXPECT_EQ(result->rejected[0].number, 2u);
  EXPECT_EQ(FieldPathOf(result->rejected[0].status), "value");
  EXPECT_EQ(model->status().rows_rejected, 1u);

  AppendRequest all_bad;
  all_bad.rejected.push_back({5, InvalidField("features", "none")});
  all_bad.producer_id = "p";
  all_bad.producer_sequence = 5;
  all_bad.next_producer_sequence = 6;
  result = AppendAndWait(*model, std::move(all_bad));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->refused);
  EXPECT_EQ(result->next_producer_sequence, 6u);
  ASSERT_TRUE(AppendAndWait(*model, FromProducer(NumberedRows(6, 1), "p")).ok());
}

TEST(HostedModel, AllOrNothingTakesNothing) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  AppendRequest request = NumberedRows(1, 3);
  request.rows.AddDense(std::vector<float>{1});  // one value too few
  request.numbers.push_back(4);
  request.all_or_nothing = true;
  const auto result = AppendAndWait(*model, std::move(request));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->refused);
  EXPECT_EQ(result->rejected.size(), 1u);
  EXPECT_EQ(model->logged_sequence(), 0u);
  // And the refused batch has not fixed the dimension.
  AppendRequest other;
  other.rows.AddDense(std::vector<float>{1, 2, 3});
  other.rows.SetTarget(1);
  other.numbers = {0};
  EXPECT_EQ(AppendAndWait(*model, std::move(other))->rows_accepted, 1u);
}

TEST(HostedModel, EveryRowHasAsManyTargetsAsTheFirstAlsoAfterARestart) {
  MemoryStore store;
  const auto append = [](HostedModel& model, size_t targets) {
    AppendRequest request;
    request.rows.AddDense(std::vector<float>{1, 2});
    request.rows.SetTargets(std::vector<double>(targets, 0.5));
    request.numbers = {0};
    return AppendAndWait(model, std::move(request))->rows_accepted;
  };
  {
    Host host(&store);
    const auto model = host.Create("m");
    EXPECT_EQ(append(*model, 3), 1u);
    EXPECT_EQ(append(*model, 2), 0u);
    EXPECT_EQ(append(*model, 3), 1u);
  }
  Host host(&store);
  host.Load();
  const auto model = host.Get("m");
  EXPECT_EQ(append(*model, 2), 0u);
  EXPECT_EQ(append(*model, 3), 1u);
}

TEST(HostedModel, FailedWriteLeavesNoTrace) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  FailAlways(store, Op::kCommit, absl::ResourceExhaustedError("disk full"));
  auto result = AppendAndWait(*model, NumberedRows(1, 3));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  store.SetHook(nullptr);
  // Neither the dimension nor a number of the failed batch counts.
  AppendRequest other;
  other.rows.AddDense(std::vector<float>{1, 2, 3});
  other.rows.SetTarget(1);
  other.numbers = {0};
  result = AppendAndWait(*model, std::move(other));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rows_accepted, 1u);
  EXPECT_EQ(result->sequence, 1u);
}

TEST(HostedModel, RepeatedCallGetsTheFirstAnswerAlsoAfterARestart) {
  MemoryStore store;
  uint64_t sequence = 0;
  const auto call = [] {
    AppendRequest request = NumberedRows(0, 3);
    request.request_id = "call";
    request.rejected.push_back({7, InvalidField("features", "none")});
    return request;
  };
  for (int round = 0; round < 3; ++round) {
    Host host(&store);
    host.Load();
    const auto model = round == 0 ? host.Create("m") : host.Get("m");
    for (int i = 0; i < 2; ++i) {
      const auto result = AppendAndWait(*model, call());
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->duplicate, round > 0 || i > 0);
      EXPECT_EQ(result->rows_accepted, 3u);
      if (sequence == 0) sequence = result->sequence;
      EXPECT_EQ(result->sequence, sequence);
      ASSERT_EQ(result->rejected.size(), 1u);
      EXPECT_EQ(FieldPathOf(result->rejected[0].status), "features");
    }
    EXPECT_EQ(model->logged_sequence(), 3u);
  }
}

TEST(HostedModel, FullQueueRefusesAndLosesNothingAcknowledged) {
  MemoryStore store;
  HostingOptions options;
  options.max_pending_rows = 20;
  Host host(&store, options);
  const auto model = host.Create("m");
  absl::Notification go;
  store.SetHook([&go](Op op, ModelUid) {
    if (op == Op::kCommit) go.WaitForNotification();
    return absl::OkStatus();
  });
  std::atomic<int> acknowledged = 0;
  for (uint64_t first : {1, 9}) {
    model->Append(NumberedRows(first, 8), [&](absl::StatusOr<AppendResult> result) {
      EXPECT_TRUE(result.ok());
      ++acknowledged;
    });
  }
  EXPECT_EQ(AppendAndWait(*model, NumberedRows(17, 8)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(AppendAndWait(*model, NumberedRows(17, 21)).status().code(),
            absl::StatusCode::kInvalidArgument);
  absl::Notification space;
  AppendRequest request = NumberedRows(17, 8);
  request.waits_for_room = true;
  model->WaitForSpace({8, request.rows.bytes()}, [&](std::optional<QueueRoom::Space> granted) {
    request.granted = granted;
    space.Notify();
  });
  EXPECT_FALSE(space.HasBeenNotified());
  go.Notify();
  space.WaitForNotification();
  ASSERT_TRUE(request.granted.has_value());
  ASSERT_TRUE(AppendAndWait(*model, std::move(request)).ok());
  host.Settle(*model);
  EXPECT_EQ(acknowledged, 2);
  EXPECT_EQ(model->snapshot()->sequence(), 24u);
}

// A stream that waits for room may be cancelled by the time there is some.
TEST(HostedModel, SpaceThatNobodyTakesGoesToTheNext) {
  MemoryStore store;
  HostingOptions options;
  options.max_pending_rows = 6;  // of 8
  Host host(&store, options);
  const auto model = host.Create("m");
  ASSERT_TRUE(AppendAndWait(*model, NumberedRows(1, 5)).ok());
  absl::Notification first, second, third;
  const QueueRoom::Space space = {4, 100};
  model->WaitForSpace(space, [&first](auto) { first.Notify(); });
  const QueueRoom::WaitId id = model->WaitForSpace(space, [&second](auto) { second.Notify(); });
  model->WaitForSpace(space, [&third](auto) { third.Notify(); });
  first.WaitForNotification();
  EXPECT_FALSE(third.HasBeenNotified());  // there is room for one
  EXPECT_TRUE(model->CancelSpaceWait(id));
  model->ReturnSpace(space);
  third.WaitForNotification();
  EXPECT_FALSE(second.HasBeenNotified());
  EXPECT_FALSE(AppendAndWait(*model, NumberedRows(6, 4)).ok());  // it is kept for the third
  model->ReturnSpace(space);
  ASSERT_TRUE(AppendAndWait(*model, NumberedRows(6, 4)).ok());
}

// Rows so large, or a queue so small, that it is full before a mini-batch is: time stands still
// here, so nothing else cuts.
TEST(HostedModel, FullQueueWithLessThanAMiniBatchIsCutAtOnce) {
  MemoryStore store;
  HostingOptions options;
  options.max_pending_rows = 6;  // of 8
  Host host(&store, options);
  const auto model = host.Create("m");
  ASSERT_TRUE(AppendAndWait(*model, NumberedRows(1, 5)).ok());
  absl::Notification space;
  model->WaitForSpace({4, 100}, [&space](auto) { space.Notify(); });
  space.WaitForNotification();
  model->ReturnSpace({4, 100});
  ASSERT_TRUE(AppendAndWait(*model, NumberedRows(6, 4)).ok());
  EXPECT_EQ(model->snapshot()->sequence(), 5u);
  // A caller that does not wait is refused, and finds room when it comes again.
  uint64_t refusals = 0;
  for (auto result = AppendAndWait(*model, NumberedRows(10, 6)); !result.ok();
       result = AppendAndWait(*model, NumberedRows(10, 6))) {
    ASSERT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
    ++refusals;
  }
  EXPECT_GT(refusals, 0u);
  EXPECT_EQ(model->logged_sequence(), 15u);
}

// Restarts at random moments, with and without checkpoints, with early cuts and rows left over.
TEST(HostedModel, ReplayGivesTheSameFingerprint) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    MemoryStore store;
    auto host = std::make_unique<Host>(&store, HostingOptions{}, static_cast<int>(1 + seed % 2));
    auto model = host->Create("m");
    uint64_t next = 1;
    for (int round = 0; round < 8; ++round) {
      for (uint64_t batches = random.Below(10); batches > 0; --batches) {
        const uint64_t count = 1 + random.Below(25);
        const bool cut = random.Below(3) == 0;
        const auto result = AppendAndWait(
            *model, NumberedRows(next, count, cut ? AckLevel::kApplied : AckLevel::kDurable),
            cut ? &host->clock : nullptr);
        ASSERT_TRUE(result.ok()) << result.status();
        next += count;
      }
      if (random.Coin()) {
        FailAlways(store, Op::kSaveCheckpoint, absl::UnavailableError("crash"));
      } else {
        store.SetHook(nullptr);
      }
      host->Settle(*model);
      const Ref<Snapshot> before = model->snapshot();
      const uint64_t pending = model->status().rows_pending;
      model.reset();
      host.reset();
      host = std::make_unique<Host>(&store, HostingOptions{}, static_cast<int>(1 + round % 2));
      host->Load();
      model = host->Get("m");
      const Ref<Snapshot> after = model->snapshot();
      ASSERT_TRUE(after);
      EXPECT_EQ(after->fingerprint(), before->fingerprint());
      EXPECT_EQ(after->step(), before->step());
      EXPECT_EQ(after->sequence(), before->sequence());
      EXPECT_EQ(model->status().rows_pending, pending);
    }
  }
}

TEST(HostedModel, KernelOfTermsComesBackAsItWas) {
  MemoryStore store;
  ModelConfig config = SmallConfig();
  config.kernel = {"sum", {}, {{2, Leaf("gaussian")}, {0.5, Leaf("polynomial")}}};
  auto host = std::make_unique<Host>(&store);
  auto model = host->Create("m", config);
  ASSERT_TRUE(AppendAndWait(*model, NumberedRows(1, 64)).ok());
  host->Settle(*model);
  const ParameterMap parameters = model->snapshot()->resolved().kernel_parameters;
  EXPECT_GT(parameters.at("terms[0].bandwidth"), 0);
  const ModelConfig complete = model->config();
  const auto fingerprint = model->snapshot()->fingerprint();
  model.reset();
  host = std::make_unique<Host>(&store);
  host->Load();
  model = host->Get("m");
  EXPECT_EQ(model->config(), complete);
  EXPECT_EQ(model->snapshot()->resolved().kernel_parameters, parameters);
  EXPECT_EQ(model->snapshot()->fingerprint(), fingerprint);
}

TEST(HostedModel, EarlyCutIsLoggedBeforeItIsLearned) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  ASSERT_TRUE(AppendAndWait(*model, NumberedRows(1, 3)).ok());
  absl::Notification asked;
  std::atomic<bool> fail = true;
  store.SetHook([&](Op op, ModelUid) {
    if (op != Op::kCommit || !fail) return absl::OkStatus();
    if (!asked.HasBeenNotified()) asked.Notify();
    return absl::UnavailableError("no disk");
  });
  std::atomic<bool> applied = false;
  model->WaitForSequence(3, [&](absl::Status) { applied = true; });
  host.clock.Advance(absl::Milliseconds(20));
  asked.WaitForNotification();
  host.log.Flush();
  EXPECT_FALSE(applied);
  EXPECT_EQ(model->snapshot()->sequence(), 0u);
  fail = false;
  while (!applied) {
    host.clock.Advance(absl::Seconds(1));  // tried again a little later
    sched_yield();
  }
  EXPECT_EQ(model->snapshot()->sequence(), 3u);
}

TEST(HostedModel, IdleModelIsCheckpointed) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  ASSERT_TRUE(AppendAndWait(*model, NumberedRows(1, 16, AckLevel::kApplied)).ok());
  while (!(*store.LoadCheckpoint(model->uid())).has_value()) {
    host.clock.Advance(absl::Seconds(1));
    sched_yield();
  }
  EXPECT_EQ((*store.LoadCheckpoint(model->uid()))->sequence, 16u);
}

TEST(HostedModel, FrozenModelRefusesNewRowsAndAcknowledgesOldOnes) {
  MemoryStore store;
  Host host(&store);
  ModelConfig config = SmallConfig();
  config.max_features = 16;
  config.when_full = WhenFull::kFreeze;
  const auto model = host.Create("m", config);
  for (uint64_t first = 1; first <= 64; first += 16) {
    const auto result = AppendAndWait(
        *model, FromProducer(NumberedRows(first, 16, AckLevel::kApplied), "p"), &host.clock);
    if (!result.ok()) break;
  }
  ASSERT_EQ(model->status().phase, ModelStatus::Phase::kFrozen);
  const uint64_t logged = model->logged_sequence();
  const auto refused = AppendAndWait(*model, NumberedRows(1000, 1));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("max_features"));
  const auto repeated = AppendAndWait(*model, FromProducer(NumberedRows(1, 8), "p"));
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_TRUE(repeated->duplicate);
  EXPECT_EQ(model->logged_sequence(), logged);
}

// What was logged before the door closed is learned, over several slices and a restart; a model
// that says it is frozen does not change any more.
TEST(HostedModel, FreezesOnceEveryLoggedRowIsLearned) {
  constexpr uint64_t kRows = 1024;
  ModelConfig config = SmallConfig();
  config.when_full = WhenFull::kFreeze;
  std::array<uint8_t, 16> fingerprint{};
  for (const bool restarts : {false, true}) {
    SCOPED_TRACE(restarts ? "with a restart" : "without a restart");
    MemoryStore store;
    FailAlways(store, Op::kSaveCheckpoint, absl::UnavailableError("crash"));
    auto host = std::make_unique<Host>(&store);
    auto model = host->Create("m", config);
    std::atomic<uint64_t> looks = 0, full = 0;
    absl::Notification half;
    for (uint64_t sequence = kRows / 8; sequence <= kRows / 2; sequence += kRows / 8) {
      model->WaitForSequence(sequence, [&, sequence](const absl::Status&) {
        const ModelStatus status = model->status();
        ++looks;
        if (status.snapshot->phase() == ModelPhase::kFrozen) ++full;
        EXPECT_EQ(status.phase == ModelStatus::Phase::kFrozen, status.rows_pending == 0);
        host->clock.Advance(absl::Milliseconds(6));  // the slice ends
        if (sequence == kRows / 2) half.Notify();
      });
    }
    ASSERT_TRUE(AppendAndWait(*model, NumberedRows(1, kRows)).ok());
    half.WaitForNotification();
    EXPECT_EQ(looks, 4u);
    EXPECT_GT(full, 0u);
    if (restarts) {
      model.reset();
      host.reset();
      host = std::make_unique<Host>(&store);
      host->Load();
      model = host->Get("m");
    }
    host->Settle(*model);
    while (model->status().phase != ModelStatus::Phase::kFrozen) sched_yield();
    const ModelStatus status = model->status();
    EXPECT_EQ(status.rows_pending, 0u);
    EXPECT_EQ(status.snapshot->sequence(), kRows);
    EXPECT_EQ(status.snapshot->rows_learned(), kRows);
    if (restarts) {
      EXPECT_EQ(status.snapshot->fingerprint(), fingerprint);
    }
    fingerprint = status.snapshot->fingerprint();
    const auto refused = AppendAndWait(*model, FromProducer(NumberedRows(1, 8), "p"));
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(model->status().phase, ModelStatus::Phase::kFrozen);
    EXPECT_EQ(model->snapshot()->fingerprint(), fingerprint);
  }
}

TEST(HostedModel, WaitCanBeCancelled) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  bool called = false;
  const auto id = model->WaitForSequence(5, [&](absl::Status) { called = true; });
  EXPECT_TRUE(model->CancelWait(id));
  EXPECT_FALSE(model->CancelWait(id));
  ASSERT_TRUE(AppendAndWait(*model, NumberedRows(1, 8, AckLevel::kApplied)).ok());
  EXPECT_FALSE(called);
  EXPECT_EQ(model->WaitForSequence(5, [&](absl::Status status) { called = status.ok(); }), 0u);
  EXPECT_TRUE(called);
}

TEST(HostedModel, PositionCountsWhatWasSentBefore) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  model->Append(FromProducer(NumberedRows(1, 5), "p"), [](auto) {});
  absl::Notification done;
  model->GetProducerPosition("p", [&](absl::StatusOr<ProducerPosition> position) {
    ASSERT_TRUE(position.ok()) << position.status();
    EXPECT_EQ(position->next_producer_sequence, 6u);
    EXPECT_EQ(position->sequence, 5u);
    done.Notify();
  });
  done.WaitForNotification();
}

}  // namespace
}  // namespace kernelstream::server
