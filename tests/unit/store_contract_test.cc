// What every store promises.
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/memory_store.h"
#include "server/store/store.h"
#include "tests/unit/store_random.h"

namespace kernelstream::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StoreContract : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!durable()) {
      store_ = std::make_unique<MemoryStore>();
      return;
    }
    directory_ = absl::StrCat(::testing::TempDir(), "store_contract_",
                              ::testing::UnitTest::GetInstance()->random_seed(), "_",
                              reinterpret_cast<uintptr_t>(this));
    std::filesystem::remove_all(directory_);
    Open();
  }
  void TearDown() override {
    store_.reset();
    if (durable()) std::filesystem::remove_all(directory_);
  }
  bool durable() const { return GetParam(); }
  void Open() {
    store_.reset();
    auto store = OpenRocksDbStore(directory_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  // Everything has to be there after a restart as well.
  void Reopen() {
    if (durable()) Open();
  }

  void Commit(LogAppend append) { ASSERT_TRUE(store_->Commit({std::move(append)}).ok()); }
  static LogAppend RowsAppend(ModelUid uid, uint64_t first, size_t count) {
    LogAppend append;
    append.uid = uid;
    append.rows.emplace();
    append.rows->first_sequence = first;
    for (size_t i = 0; i < count; ++i) {
      append.rows->rows.AddDense(std::vector<float>{static_cast<float>(first + i)});
    }
    return append;
  }
  static LogAppend CutAppend(ModelUid uid, uint64_t sequence) {
    LogAppend append;
    append.uid = uid;
    append.cut = CutRecord{sequence};
    return append;
  }
  // "r3+2" is two rows from sequence 3 on, "c4" a cut at 4.
  std::vector<std::string> Log(ModelUid uid, uint64_t after) {
    std::vector<std::string> out;
    const absl::Status status = store_->ReadLog(uid, after, [&out](LogEntry entry) {
      if (const auto* rows = std::get_if<RowsRecord>(&entry)) {
        out.push_back(absl::StrCat("r", rows->first_sequence, "+", rows->rows.size()));
      } else {
        out.push_back(absl::StrCat("c", std::get<CutRecord>(entry).sequence));
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }

  std::unique_ptr<Store> store_;
  std::string directory_;
};

TEST_P(StoreContract, UidsAreNeverGivenOutTwice) {
  const ModelUid first = *store_->NextUid();
  const ModelUid second = *store_->NextUid();
  EXPECT_GT(first, 0u);
  EXPECT_GT(second, first);
  Reopen();
  EXPECT_GT(*store_->NextUid(), second);
}

TEST_P(StoreContract, ModelsComeBackAsTheyWere) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const StoredModel model = random.Model(seed);
    ASSERT_TRUE(store_->PutModel(model).ok());
  }
  Reopen();
  std::vector<DamagedModel> damaged;
  const auto models = store_->ListModels(&damaged);
  ASSERT_TRUE(models.ok());
  EXPECT_THAT(damaged, IsEmpty());
  ASSERT_EQ(models->size(), 50u);
  for (const StoredModel& model : *models) {
    EXPECT_TRUE(Same(model, Random(model.uid).Model(model.uid))) << "seed " << model.uid;
  }
}

TEST_P(StoreContract, RowsComeBackAsTheyWere) {
  uint64_t next = 1;
  std::vector<RowsRecord> written;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    LogAppend append;
    append.uid = 7;
    append.rows = RowsRecord{next, random.Rows(20), random.Bytes(4), random.Bits(), random.Bits()};
    next = append.rows->last_sequence() + 1;
    written.push_back(*append.rows);
    Commit(std::move(append));
  }
  Reopen();
  size_t i = 0;
  ASSERT_TRUE(store_
                  ->ReadLog(7, 0,
                            [&](LogEntry entry) {
                              EXPECT_TRUE(Same(std::get<RowsRecord>(entry), written.at(i)))
                                  << "seed " << i + 1;
                              ++i;
                              return absl::OkStatus();
                            })
                  .ok());
  EXPECT_EQ(i, written.size());
}

TEST_P(StoreContract, StatesComeBackAsTheyWere) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    // Large ones have several chunks.
    const TrainerState state = random.State(seed % 10 == 0 ? 700000 : 200);
    ASSERT_TRUE(store_->SaveCheckpoint(3, state).ok());
    if (seed % 8 == 0) Reopen();
    const auto loaded = store_->LoadCheckpoint(3);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_TRUE(loaded->has_value());
    EXPECT_TRUE(Same(**loaded, state));
  }
}

TEST_P(StoreContract, UnknownThingsAreAbsent) {
  EXPECT_FALSE(store_->LoadCheckpoint(9)->has_value());
  EXPECT_FALSE(store_->GetProducer(9, "p")->has_value());
  EXPECT_FALSE(store_->GetRequest(9, "r")->has_value());
  EXPECT_EQ(*store_->LastSequence(9), 0u);
  EXPECT_EQ(*store_->LastRequestNumber(9), 0u);
  EXPECT_THAT(Log(9, 0), IsEmpty());
  EXPECT_TRUE(store_->DeleteModel(9).ok());
}

TEST_P(StoreContract, CutsComeAfterTheRowsThatBeginBeforeThem) {
  Commit(RowsAppend(1, 1, 4));
  Commit(RowsAppend(1, 5, 1));
  Commit(CutAppend(1, 5));
  Commit(RowsAppend(1, 6, 3));
  Commit(CutAppend(1, 3));  // late, and inside a record
  Commit(RowsAppend(2, 1, 1));
  Reopen();
  EXPECT_THAT(Log(1, 0), ElementsAre("r1+4", "c3", "r5+1", "c5", "r6+3"));
  EXPECT_THAT(Log(1, 3), ElementsAre("r1+4", "r5+1", "c5", "r6+3"));
  EXPECT_THAT(Log(1, 4), ElementsAre("r5+1", "c5", "r6+3"));
  EXPECT_THAT(Log(1, 7), ElementsAre("r6+3"));
  EXPECT_THAT(Log(1, 8), IsEmpty());
  EXPECT_THAT(Log(2, 0), ElementsAre("r1+1"));
}

TEST_P(StoreContract, ReadLogStopsAtTheFirstError) {
  Commit(RowsAppend(1, 1, 1));
  Commit(RowsAppend(1, 2, 1));
  int calls = 0;
  const absl::Status status = store_->ReadLog(1, 0, [&calls](LogEntry) {
    ++calls;
    return absl::CancelledError("enough");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 1);
}

TEST_P(StoreContract, CheckpointTrimsTheLogButNotWhatStraddlesIt) {
  Commit(RowsAppend(1, 1, 4));
  Commit(CutAppend(1, 4));
  Commit(RowsAppend(1, 5, 6));
  Commit(RowsAppend(1, 11, 2));
  Commit(CutAppend(1, 12));
  TrainerState state;
  state.sequence = 7;
  ASSERT_TRUE(store_->SaveCheckpoint(1, state).ok());
  Reopen();
  EXPECT_THAT(Log(1, 0), ElementsAre("r5+6", "r11+2", "c12"));
  state.sequence = 12;
  ASSERT_TRUE(store_->SaveCheckpoint(1, state).ok());
  Reopen();
  EXPECT_THAT(Log(1, 0), IsEmpty());
  EXPECT_EQ(*store_->LastSequence(1), 12u);
  // The log goes on behind what was trimmed.
  Commit(RowsAppend(1, 13, 1));
  Reopen();
  EXPECT_THAT(Log(1, 12), ElementsAre("r13+1"));
  EXPECT_EQ(*store_->LastSequence(1), 13u);
}

TEST_P(StoreContract, SmallerStateReplacesALargerOne) {
  TrainerState large;
  large.candidates.resize(2);
  large.candidates[0].last.values.assign(600000, 1.0f);
  large.candidates[1].average.values.assign(600000, 2.0f);
  ASSERT_TRUE(store_->SaveCheckpoint(1, large).ok());
  TrainerState small;
  small.candidates.resize(1);
  small.generations.resize(1);
  small.candidates[0].last.values.assign(3, 4.0f);
  ASSERT_TRUE(store_->SaveCheckpoint(1, small).ok());
  Reopen();
  EXPECT_TRUE(Same(**store_->LoadCheckpoint(1), small));
}

TEST_P(StoreContract, ProducersMoveOnAlsoWithoutRows) {
  LogAppend append = RowsAppend(1, 1, 2);
  append.producer_id = "p";
  append.producer = ProducerPosition{3, 2};
  Commit(append);
  append.rows.reset();
  append.producer = ProducerPosition{5, 2};
  Commit(append);
  Reopen();
  const auto position = store_->GetProducer(1, "p");
  ASSERT_TRUE(position->has_value());
  EXPECT_EQ((*position)->next_producer_sequence, 5u);
  EXPECT_EQ((*position)->sequence, 2u);
  EXPECT_FALSE(store_->GetProducer(1, "")->has_value());
  EXPECT_FALSE(store_->GetProducer(2, "p")->has_value());
}

TEST_P(StoreContract, OldRequestsAreForgotten) {
  const auto remember = [this](uint64_t number, const std::string& id) {
    LogAppend append;
    append.uid = 1;
    append.request = RequestRecord{id, number, absl::StrCat("answer ", number)};
    ASSERT_TRUE(store_->Commit({append}).ok());
  };
  remember(1, "a");
  remember(2, "b");
  EXPECT_EQ((*store_->GetRequest(1, "a"))->answer, "answer 1");
  remember(kRememberedRequests + 1, "c");
  EXPECT_FALSE(store_->GetRequest(1, "a")->has_value());
  EXPECT_TRUE(store_->GetRequest(1, "b")->has_value());
  remember(kRememberedRequests + 2, "a");  // the same id again
  Reopen();
  EXPECT_FALSE(store_->GetRequest(1, "b")->has_value());
  EXPECT_EQ((*store_->GetRequest(1, "a"))->number, kRememberedRequests + 2);
  EXPECT_EQ(*store_->LastRequestNumber(1), kRememberedRequests + 2);
}

TEST_P(StoreContract, DeletingAModelLeavesNothingAndTouchesNoOther) {
  for (ModelUid uid : {1, 2}) {
    StoredModel model;
    model.uid = uid;
    model.name = absl::StrCat("m", uid);
    ASSERT_TRUE(store_->PutModel(model).ok());
    LogAppend append = RowsAppend(uid, 1, 2);
    append.producer_id = "p";
    append.producer = ProducerPosition{3, 2};
    append.request = RequestRecord{"r", 1, "answer"};
    Commit(append);
    TrainerState state;
    state.step = 5;
    ASSERT_TRUE(store_->SaveCheckpoint(uid, state).ok());
  }
  ASSERT_TRUE(store_->DeleteModel(1).ok());
  Reopen();
  ASSERT_EQ(store_->ListModels(nullptr)->size(), 1u);
  EXPECT_EQ(store_->ListModels(nullptr)->front().name, "m2");
  EXPECT_THAT(Log(1, 0), IsEmpty());
  EXPECT_EQ(*store_->LastSequence(1), 0u);
  EXPECT_FALSE(store_->GetProducer(1, "p")->has_value());
  EXPECT_FALSE(store_->GetRequest(1, "r")->has_value());
  EXPECT_FALSE(store_->LoadCheckpoint(1)->has_value());
  EXPECT_THAT(Log(2, 0), ElementsAre("r1+2"));
  EXPECT_TRUE(store_->GetProducer(2, "p")->has_value());
  EXPECT_TRUE(store_->GetRequest(2, "r")->has_value());
  EXPECT_TRUE(store_->LoadCheckpoint(2)->has_value());
}

TEST_P(StoreContract, GroupCommitWritesForAllModels) {
  std::vector<LogAppend> group;
  for (ModelUid uid = 1; uid <= 5; ++uid) group.push_back(RowsAppend(uid, 1, uid));
  group.push_back(RowsAppend(5, 6, 2));
  ASSERT_TRUE(store_->Commit(group).ok());
  Reopen();
  for (ModelUid uid = 1; uid <= 4; ++uid) EXPECT_EQ(*store_->LastSequence(uid), uid);
  EXPECT_THAT(Log(5, 0), ElementsAre("r1+5", "r6+2"));
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, ::testing::Values(false, true),
                         [](const auto& p) { return p.param ? "RocksDb" : "Memory"; });

}  // namespace
}  // namespace kernelstream::server
