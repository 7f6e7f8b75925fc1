// Models by name: creation, loading, damage, deletion, stopping.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosting_support.h"

namespace kernelstream::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Op = MemoryStore::Op;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(ModelRegistry, EqualConfigIsTheSameModelAndAnotherOneIsRefused) {
  MemoryStore store;
  Host host(&store);
  const auto first = host.registry.Create("m", SmallConfig());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->created);
  const auto again = host.registry.Create("m", SmallConfig());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->created);
  EXPECT_EQ(again->model, first->model);
  ModelConfig other = SmallConfig();
  other.seed = 7;
  EXPECT_EQ(host.registry.Create("m", other).status().code(), absl::StatusCode::kAlreadyExists);
}

// A server that was updated has other defaults than the model was made with.
TEST(ModelRegistry, WhatACallLeavesOpenIsAsTheModelHasIt) {
  MemoryStore store;
  Host host(&store);
  ModelConfig made;
  made.loss.name = "square";
  made.max_features = 16384;
  ModelConfig older = made;
  older.replay.ratio = 1;       // 3 is the default
  older.block_features = 1024;  // 128 is
  const auto first = host.registry.Create("m", older);
  ASSERT_TRUE(first.ok()) << first.status();
  for (const ModelConfig& same : {made, older, first->model->config()}) {
    const auto again = host.registry.Create("m", same);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_FALSE(again->created);
  }
  ModelConfig other = made;
  other.replay.ratio = 2;
  EXPECT_EQ(host.registry.Create("m", other).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(ModelRegistry, NamesAreChecked) {
  MemoryStore store;
  Host host(&store);
  const std::string names[] = {"", ".a", "-a", "a b", "a/b", "\xff", std::string(129, 'a')};
  for (const std::string& name : names) {
    const absl::Status status = host.registry.Create(name, SmallConfig()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(FieldPathOf(status), "name");
  }
  EXPECT_TRUE(host.registry.Create(std::string(128, 'a'), SmallConfig()).ok());
  EXPECT_TRUE(host.registry.Create("0.a_B-9", SmallConfig()).ok());
}

TEST(ModelRegistry, BadConfigAndFailedWriteLeaveNothingBehind) {
  MemoryStore store;
  Host host(&store);
  ModelConfig bad = SmallConfig();
  bad.loss.name = "no_such_loss";
  EXPECT_EQ(host.registry.Create("m", bad).status().code(), absl::StatusCode::kInvalidArgument);
  FailAlways(store, Op::kPutModel, absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(host.registry.Create("m", SmallConfig()).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(host.registry.List().empty());
  EXPECT_THAT(host.metrics.Text(), Not(HasSubstr("model=\"m\"")));
  store.SetHook(nullptr);
  EXPECT_TRUE(store.ListModels(nullptr)->empty());
  EXPECT_TRUE(host.registry.Create("m", SmallConfig())->created);
}

TEST(ModelRegistry, LimitOfModelsNamesTheFlag) {
  MemoryStore store;
  HostingOptions options;
  options.max_models = 2;
  Host host(&store, options);
  host.Create("a");
  host.Create("b");
  const absl::Status status = host.registry.Create("c", SmallConfig()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr("--max_models"));
  ASSERT_TRUE(host.registry.Delete("a").ok());
  EXPECT_TRUE(host.registry.Create("c", SmallConfig()).ok());
}

TEST(ModelRegistry, UnknownNameListsTheNearestFirst) {
  MemoryStore store;
  Host host(&store);
  EXPECT_THAT(Message(host.registry.Get("x").status()), HasSubstr("Create one"));
  for (int i = 0; i < 11; ++i) host.Create(absl::StrCat("zzzzzzzz", i));
  host.Create("churn");
  const absl::Status status = host.registry.Get("chrun").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr("Known: churn, "));
  EXPECT_THAT(Message(status), HasSubstr("(10 of 12)"));
}

TEST(ModelRegistry, ListIsSortedByName) {
  MemoryStore store;
  Host host(&store);
  for (const char* name : {"b", "c", "a"}) host.Create(name);
  std::vector<std::string> names;
  for (const auto& model : host.registry.List()) names.push_back(model->name());
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(ModelRegistry, DamagedModelsFailAndTheOthersServe) {
  MemoryStore store;
  ModelUid bad_uid = 0;
  {
    Host host(&store);
    for (const char* name : {"good", "bad"}) {
      const auto model = host.Create(name);
      ASSERT_TRUE(AppendAndWait(*model, NumberedRows(1, 16, AckLevel::kApplied)).ok());
    }
    bad_uid = host.Get("bad")->uid();
  }
  DamagedModel unreadable;
  unreadable.uid = 99;
  unreadable.name = "unreadable";
  unreadable.message = "bits have changed";
  store.AddDamaged(unreadable);
  store.SetHook([bad_uid](Op op, ModelUid uid) {
    return op == Op::kLoadCheckpoint && uid == bad_uid ? absl::DataLossError("flipped bit")
                                                       : absl::OkStatus();
  });
  Host host(&store);
  host.Load();
  for (const char* name : {"bad", "unreadable"}) {
    const auto model = host.Get(name);
    EXPECT_EQ(model->status().phase, ModelStatus::Phase::kFailed);
    EXPECT_FALSE(model->status().failure.empty());
    EXPECT_EQ(model->ServingSnapshot().status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(AppendAndWait(*model, NumberedRows(17, 1)).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
  const auto good = host.Get("good");
  EXPECT_EQ(good->snapshot()->sequence(), 16u);
  EXPECT_TRUE(AppendAndWait(*good, NumberedRows(17, 8, AckLevel::kApplied)).ok());
  // A failed model can be deleted and made anew.
  for (const char* name : {"bad", "unreadable"}) {
    ASSERT_TRUE(host.registry.Delete(name).ok());
    store.SetHook(nullptr);
    EXPECT_TRUE(host.registry.Create(name, SmallConfig()).ok());
  }
}

TEST(ModelRegistry, DamagedLogServesWhatWasReadBeforeIt) {
  MemoryStore store;
  {
    Host host(&store);
    ASSERT_TRUE(AppendAndWait(*host.Create("m"), NumberedRows(1, 16, AckLevel::kApplied)).ok());
  }
  FailAlways(store, Op::kReadLog, absl::DataLossError("flipped bit"));
  Host host(&store);
  host.Load();
  const auto model = host.Get("m");
  EXPECT_EQ(model->status().phase, ModelStatus::Phase::kFailed);
  ASSERT_TRUE(model->snapshot());
  EXPECT_EQ(model->snapshot()->sequence(), 16u);
  EXPECT_TRUE(model->ServingSnapshot().ok());
}

TEST(ModelRegistry, ConfigOfAnotherVersionFailsThatModelOnly) {
  MemoryStore store;
  StoredModel strange;
  strange.uid = *store.NextUid();
  strange.name = "strange";
  strange.config.loss.name = "loss_of_the_future";
  ASSERT_TRUE(store.PutModel(strange).ok());
  Host host(&store);
  host.Load();
  EXPECT_EQ(host.Get("strange")->status().phase, ModelStatus::Phase::kFailed);
  EXPECT_THAT(host.Get("strange")->status().failure, HasSubstr("loss_of_the_future"));
  EXPECT_TRUE(host.registry.Create("m", SmallConfig()).ok());
}

// What new models may not have, models of earlier versions keep.
TEST(ModelRegistry, ConfigThatNewModelsMayNotHaveStillLoads) {
  MemoryStore store;
  ModelConfig config;
  config.loss.name = "novelty";
  config.replay = {.ratio = 3, .order = StreamOrder::kOrdered};
  {
    Host host(&store);
    const absl::Status status = host.registry.Create("new", config).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(FieldPathOf(status), "replay.ratio");
  }
  StoredModel stored;
  stored.uid = *store.NextUid();
  stored.name = "old";
  stored.config = config;
  ASSERT_TRUE(CompleteConfig(stored.config).ok());
  ASSERT_TRUE(store.PutModel(stored).ok());
  Host host(&store);
  host.Load();
  EXPECT_NE(host.Get("old")->status().phase, ModelStatus::Phase::kFailed);
  const auto again = host.registry.Create("old", config);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->created);
}

TEST(ModelRegistry, DeletingWhileTrainingEndsWaitersAndLeavesNothing) {
  for (int round = 0; round < 10; ++round) {
    MemoryStore store;
    Host host(&store);
    const auto model = host.Create("m");
    std::atomic<int> answers = 0, acknowledged = 0;
    for (uint64_t first = 1; first <= 400; first += 20) {
      model->Append(NumberedRows(first, 20, AckLevel::kApplied), [&](auto result) {
        if (result.ok()) ++acknowledged;
        ++answers;
      });
    }
    absl::Status waited;
    model->WaitForSequence(100000, [&waited](absl::Status status) { waited = status; });
    ASSERT_TRUE(host.registry.Delete("m").ok());
    EXPECT_EQ(waited.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(answers, 20);
    EXPECT_TRUE(NumbersInLog(store, model->uid()).empty());
    EXPECT_EQ(host.registry.Get("m").status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(AppendAndWait(*model, NumberedRows(1, 1)).status().code(),
              absl::StatusCode::kNotFound);
    EXPECT_EQ(host.registry.Delete("m").code(), absl::StatusCode::kNotFound);
  }
}

TEST(ModelRegistry, FailedDeletionLeavesTheModelAsItWas) {
  MemoryStore store;
  Host host(&store);
  const auto model = host.Create("m");
  FailAlways(store, Op::kDeleteModel, absl::UnavailableError("no disk"));
  EXPECT_EQ(host.registry.Delete("m").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(host.Get("m"), model);
  EXPECT_TRUE(AppendAndWait(*model, NumberedRows(1, 8, AckLevel::kApplied)).ok());
}

// Rows are on their way to the disk when the model is deleted: once they are there, they ask for a
// slice.
TEST(ModelRegistry, DeletedModelGivesItsMemoryBack) {
  MemoryStore store;
  HostingOptions options;
  options.max_pending_rows = 16;
  Host host(&store, options);
  std::shared_ptr<HostedModel> model = host.Create("m");
  absl::Notification writing, written;
  store.SetHook([&](MemoryStore::Op op, ModelUid) {
    if (op == MemoryStore::Op::kCommit) {
      writing.Notify();
      written.WaitForNotification();
    }
    return absl::OkStatus();
  });
  absl::Notification answered;
  model->Append(NumberedRows(1, 8), [&answered](const auto&) { answered.Notify(); });
  writing.WaitForNotification();
  std::thread deleting([&host] { EXPECT_TRUE(host.registry.Delete("m").ok()); });
  // A batch that is too large for any queue is answered at once, and with another code once the
  // model is being deleted.
  while (AppendAndWait(*model, NumberedRows(9, 17)).status().code() !=
         absl::StatusCode::kUnavailable) {
    sched_yield();
  }
  // Now it leaves the pool within a few instructions. Should that come after the rows, nothing is
  // proved, nor failed.
  for (int i = 0; i < 10000; ++i) sched_yield();
  written.Notify();
  deleting.join();
  answered.WaitForNotification();
  host.log.Flush();
  const std::weak_ptr<HostedModel> gone = model;
  model.reset();
  EXPECT_TRUE(gone.expired());
}

TEST(ModelRegistry, DeletedModelLosesItsSeries) {
  MemoryStore store;
  Host host(&store);
  auto model = host.Create("m");
  EXPECT_THAT(host.metrics.Text(), HasSubstr("model=\"m\""));
  ASSERT_TRUE(host.registry.Delete("m").ok());
  model.reset();
  EXPECT_THAT(host.metrics.Text(), Not(HasSubstr("model=\"m\"")));
}

TEST(ModelRegistry, DrainLearnsWhatWasTakenAndStopSavesIt) {
  MemoryStore store;
  ModelUid uid = 0;
  {
    Host host(&store);
    const auto model = host.Create("m");
    uid = model->uid();
    std::atomic<int> durable = 0;
    for (uint64_t first = 1; first <= 100; first += 10) {
      model->Append(NumberedRows(first, 10), [&](auto result) { durable += result.ok() ? 1 : 0; });
    }
    // Full mini-batches need no clock; the four rows left over stay in the log.
    std::atomic<bool> drained = false;
    std::thread drain([&] {
      host.registry.Drain(absl::Hours(1));
      drained = true;
    });
    while (!drained) {
      host.clock.Advance(absl::Milliseconds(1));
      sched_yield();
    }
    drain.join();
    EXPECT_EQ(durable, 10);
    EXPECT_EQ(AppendAndWait(*model, NumberedRows(101, 1)).status().code(),
              absl::StatusCode::kUnavailable);
    absl::Status waited;
    model->WaitForSequence(1000, [&waited](absl::Status status) { waited = status; });
    host.registry.Stop();
    EXPECT_EQ(waited.code(), absl::StatusCode::kUnavailable);
    EXPECT_GE(model->snapshot()->sequence(), 96u);
    EXPECT_EQ(host.registry.Create("o", SmallConfig()).status().code(),
              absl::StatusCode::kUnavailable);
  }
  ASSERT_TRUE(store.LoadCheckpoint(uid)->has_value());
  EXPECT_GE((*store.LoadCheckpoint(uid))->sequence, 96u);
}

}  // namespace
}  // namespace kernelstream::server
