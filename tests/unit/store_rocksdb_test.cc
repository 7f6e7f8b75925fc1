// Damage, crashes and other processes: what only a store on disk has to stand.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "server/store/codec.h"
#include "server/store/keys.h"
#include "server/store/rocksdb_store.h"
#include "server/store/store.h"
#include "tests/unit/store_random.h"

namespace kernelstream::server {
namespace {

using ::testing::HasSubstr;

class RocksDbStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = absl::StrCat(::testing::TempDir(), "store_rocksdb_XXXXXX");
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
    Open();
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  void Open() {
    store_.reset();
    auto store = OpenRocksDbStore(directory_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  static LogAppend Rows(ModelUid uid, uint64_t first, size_t count, size_t width = 3) {
    LogAppend append;
    append.uid = uid;
    append.rows.emplace();
    append.rows->first_sequence = first;
    for (size_t i = 0; i < count; ++i) {
      append.rows->rows.AddDense(std::vector<float>(width, static_cast<float>(first + i)));
    }
    return append;
  }
  void PutModel(ModelUid uid, const std::string& name) {
    StoredModel model;
    model.uid = uid;
    model.name = name;
    ASSERT_TRUE(store_->PutModel(model).ok());
  }
  absl::Status ReadAll(ModelUid uid) {
    return store_->ReadLog(uid, 0, [](LogEntry) { return absl::OkStatus(); });
  }

  // Runs `change` on the closed database's column family.
  template <typename Change>
  void Tamper(const std::string& family, Change change) {
    store_.reset();
    std::vector<std::string> names;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, directory_, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    for (const std::string& name : names)
      descriptors.emplace_back(name, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(
        rocksdb::DB::Open(rocksdb::DBOptions(), directory_, descriptors, &handles, &db).ok());
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == family) change(db, handles[i]);
    }
    for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
    delete db;
  }
  // Flips one bit of every value under keys of the model; `from` bytes into the value.
  void FlipBits(const std::string& family, ModelUid uid, size_t from) {
    Tamper(family, [&](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
      std::unique_ptr<rocksdb::Iterator> it(db->NewIterator({}, handle));
      for (it->Seek(keys::OfModel(uid)); it->Valid() && it->key().starts_with(keys::OfModel(uid));
           it->Next()) {
        std::string value = it->value().ToString();
        value[from % value.size()] ^= 0x10;
        ASSERT_TRUE(db->Put({}, handle, it->key(), value).ok());
      }
    });
  }
  std::string NewestWal() const {
    std::string newest;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      const std::string path = entry.path().string();
      if (entry.path().extension() == ".log" && path > newest) newest = path;
    }
    return newest;
  }

  std::string directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(RocksDbStoreTest, FlippedBitIsDataLossOfThatModelOnly) {
  for (ModelUid uid : {1, 2}) {
    PutModel(uid, uid == 1 ? "churn" : "other");
    LogAppend append = Rows(uid, 1, 3);
    append.producer_id = "p";
    append.producer = ProducerPosition{4, 3};
    append.request = RequestRecord{"r", 1, "answer"};
    ASSERT_TRUE(store_->Commit({append}).ok());
    TrainerState state;
    state.candidates.resize(1);
    state.candidates[0].last.values.assign(100, 0.5f);
    ASSERT_TRUE(store_->SaveCheckpoint(uid, state).ok());
  }
  // In the checksum, at its end, and in the record.
  for (size_t at : {0, 7, 9}) {
    SCOPED_TRACE(absl::StrCat("byte ", at));
    for (const char* family : {"log", "producers", "requests", "checkpoints"})
      FlipBits(family, 1, at);
    Open();
    ASSERT_TRUE(store_->ListModels(nullptr).ok());
    const absl::Status errors[] = {ReadAll(1), store_->GetProducer(1, "p").status(),
                                   store_->GetRequest(1, "r").status(),
                                   store_->LoadCheckpoint(1).status()};
    for (const absl::Status& error : errors) {
      EXPECT_EQ(error.code(), absl::StatusCode::kDataLoss) << error;
      EXPECT_THAT(std::string(error.message()),
                  HasSubstr("model \"churn\" (uid 0000000000000001)"));
    }
    EXPECT_TRUE(ReadAll(2).ok());
    EXPECT_TRUE(store_->GetProducer(2, "p")->has_value());
    EXPECT_TRUE(store_->GetRequest(2, "r")->has_value());
    EXPECT_TRUE(store_->LoadCheckpoint(2)->has_value());
    for (const char* family : {"log", "producers", "requests", "checkpoints"})
      FlipBits(family, 1, at);
    Open();
    EXPECT_TRUE(ReadAll(1).ok());
  }
}

TEST_F(RocksDbStoreTest, DamagedModelRecordIsListedByName) {
  PutModel(1, "churn");
  PutModel(2, "other");
  FlipBits("models", 1, 10);
  Open();
  std::vector<DamagedModel> damaged;
  const auto models = store_->ListModels(&damaged);
  ASSERT_TRUE(models.ok());
  ASSERT_EQ(models->size(), 1u);
  EXPECT_EQ(models->front().name, "other");
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0].uid, 1u);
  EXPECT_EQ(damaged[0].name, "churn");
  EXPECT_THAT(damaged[0].message, HasSubstr("checksum"));
  // It can be deleted like any other.
  ASSERT_TRUE(store_->DeleteModel(1).ok());
  damaged.clear();
  ASSERT_TRUE(store_->ListModels(&damaged).ok());
  EXPECT_TRUE(damaged.empty());
}

TEST_F(RocksDbStoreTest, DeletedModelGivesTheDiskBack) {
  PutModel(1, "large");
  PutModel(2, "other");
  constexpr uint64_t kRecords = 24;
  for (uint64_t i = 0; i < kRecords; ++i) {  // 2 MiB each: many files
    ASSERT_TRUE(store_->Commit({Rows(1, 1 + 8 * i, 8, 65536), Rows(2, 1 + i, 1)}).ok());
  }
  ASSERT_TRUE(store_->DeleteModel(1).ok());
  static_cast<RocksDbStore&>(*store_).WaitUntilReclaimed();
  Open();  // also lets go of files that are not needed any more
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    if (entry.path().extension() == ".sst") bytes += entry.file_size();
  }
  EXPECT_LT(bytes, uint64_t{4} << 20);
  uint64_t records = 0;
  ASSERT_TRUE(store_
                  ->ReadLog(2, 0,
                            [&](LogEntry) {
                              ++records;
                              return absl::OkStatus();
                            })
                  .ok());
  EXPECT_EQ(records, kRecords);
}

TEST_F(RocksDbStoreTest, ValueUnderAnotherKeyIsDataLoss) {
  ASSERT_TRUE(store_->Commit({Rows(1, 1, 2), Rows(1, 3, 2)}).ok());
  Tamper("log", [](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
    std::string value;
    ASSERT_TRUE(db->Get({}, handle, keys::OfLog(1, 1, keys::kRows), &value).ok());
    ASSERT_TRUE(db->Put({}, handle, keys::OfLog(1, 3, keys::kRows), value).ok());
  });
  Open();
  EXPECT_EQ(ReadAll(1).code(), absl::StatusCode::kDataLoss);
}

TEST_F(RocksDbStoreTest, MissingRecordIsDataLoss) {
  ASSERT_TRUE(store_->Commit({Rows(1, 1, 2), Rows(1, 3, 2), Rows(1, 5, 2)}).ok());
  Tamper("log", [](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
    ASSERT_TRUE(db->Delete({}, handle, keys::OfLog(1, 3, keys::kRows)).ok());
  });
  Open();
  const absl::Status status = ReadAll(1);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("missing"));
}

TEST_F(RocksDbStoreTest, MissingChunkIsDataLoss) {
  TrainerState state;
  state.candidates.resize(1);
  state.candidates[0].last.values.assign(codec::kChunkValues + 1, 1.0f);
  ASSERT_TRUE(store_->SaveCheckpoint(1, state).ok());
  Tamper("checkpoints", [](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
    ASSERT_TRUE(db->Delete({}, handle, keys::OfChunk(1, 0, 1)).ok());
  });
  Open();
  EXPECT_EQ(store_->LoadCheckpoint(1).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(RocksDbStoreTest, RowsOfACheckpointAreInChunksAndAMissingOneIsDataLoss) {
  TrainerState state;
  for (int i = 0; i < 900; ++i) {
    state.reservoir.rows.AddDense(std::vector<float>(700, static_cast<float>(i)));
    state.reservoir.rows.SetTarget(i);
  }
  EXPECT_EQ(codec::EncodeRowChunks(state.reservoir.rows).size(), 3u);  // of 2.5 MB
  ASSERT_TRUE(store_->SaveCheckpoint(1, state).ok());
  EXPECT_TRUE(Same(**store_->LoadCheckpoint(1), state));
  Tamper("checkpoints", [](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
    ASSERT_TRUE(db->Delete({}, handle, keys::OfRowsChunk(1, 2, 2)).ok());
  });
  Open();
  EXPECT_EQ(store_->LoadCheckpoint(1).status().code(), absl::StatusCode::kDataLoss);
  // A smaller state leaves nothing of the larger one behind.
  ASSERT_TRUE(store_->SaveCheckpoint(1, TrainerState()).ok());
  Tamper("checkpoints", [](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
    std::string value;
    EXPECT_TRUE(db->Get({}, handle, keys::OfRowsChunk(1, 2, 0), &value).IsNotFound());
  });
}

TEST_F(RocksDbStoreTest, AnOlderFormatIsReadAndBecomesThisOne) {
  ASSERT_TRUE(store_->SaveCheckpoint(1, TrainerState()).ok());
  Tamper("default", [](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
    ASSERT_TRUE(
        db->Put({}, handle, keys::kFormat, keys::Seal(keys::kFormat, codec::EncodeFormat(1))).ok());
  });
  Open();
  EXPECT_TRUE(store_->LoadCheckpoint(1)->has_value());
  Tamper("default", [](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
    std::string value;
    ASSERT_TRUE(db->Get({}, handle, keys::kFormat, &value).ok());
    EXPECT_EQ(*codec::DecodeFormat(*keys::Unseal(keys::kFormat, value)), codec::kFormatVersion);
  });
}

TEST_F(RocksDbStoreTest, NewerFormatIsRefusedWithAnExplanation) {
  Tamper("default", [](rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
    ASSERT_TRUE(db->Put({}, handle, keys::kFormat,
                        keys::Seal(keys::kFormat, codec::EncodeFormat(codec::kFormatVersion + 1)))
                    .ok());
    rocksdb::ColumnFamilyHandle* added = nullptr;
    ASSERT_TRUE(db->CreateColumnFamily({}, "of_the_future", &added).ok());
    db->DestroyColumnFamilyHandle(added);
  });
  const auto store = OpenRocksDbStore(directory_);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()),
              HasSubstr(absl::StrCat("format ", codec::kFormatVersion + 1)));
}

// Runs `body` in a child process and gives back its exit status, -1 for a signal.
template <typename Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(RocksDbStoreTest, DirectoryInUseNamesTheProcess) {
  const pid_t parent = getpid();
  const int result = InChild([&] {
    const auto store = OpenRocksDbStore(directory_);
    if (store.status().code() != absl::StatusCode::kFailedPrecondition) _exit(1);
    const std::string message(store.status().message());
    if (message.find("in use by another kernelstream-server") == std::string::npos) _exit(2);
    if (message.find(absl::StrCat("process ", parent)) == std::string::npos) _exit(3);
    if (message.find("--data_dir") == std::string::npos) _exit(4);
  });
  // The child had a copy of this process's list of locks; what counts is that the message is right.
  EXPECT_EQ(result, 0);
}

TEST_F(RocksDbStoreTest, KilledProcessLosesNothingCommitted) {
  store_.reset();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = OpenRocksDbStore(directory_);
    if (!store.ok()) _exit(1);
    for (uint64_t i = 0; i < 20; ++i) {
      if (!(*store)->Commit({Rows(1, 1 + 5 * i, 5)}).ok()) _exit(2);
    }
    if (write(ready[1], "x", 1) != 1) _exit(3);
    pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  close(ready[0]);
  close(ready[1]);
  Open();
  EXPECT_EQ(*store_->LastSequence(1), 100u);
  EXPECT_TRUE(ReadAll(1).ok());
}

TEST_F(RocksDbStoreTest, CutOffTailLosesOnlyTheWriteThatWasCut) {
  store_.reset();
  // A child that is killed: closing would flush, and there would be no tail.
  const pid_t child = fork();
  if (child == 0) {
    auto store = OpenRocksDbStore(directory_);
    if (!store.ok()) _exit(1);
    for (uint64_t i = 0; i < 10; ++i) {
      if (!(*store)->Commit({Rows(1, 1 + 2 * i, 2)}).ok()) _exit(2);
    }
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::string wal = NewestWal();
  ASSERT_FALSE(wal.empty());
  const auto size = std::filesystem::file_size(wal);
  ASSERT_GT(size, 20u);
  std::filesystem::resize_file(wal, size - 7);
  Open();
  EXPECT_EQ(*store_->LastSequence(1), 18u);
  EXPECT_TRUE(ReadAll(1).ok());
  // And it goes on from there.
  ASSERT_TRUE(store_->Commit({Rows(1, 19, 2)}).ok());
  Open();
  EXPECT_EQ(*store_->LastSequence(1), 20u);
}

// Mounts a disk of its own in a child process, which runs this test again: RocksDB's threads do not
// survive a fork.
TEST(RocksDbStoreOnASmallDisk, GoesOnAfterItWasFull) {
  constexpr char kDisk[] = "KERNELSTREAM_TEST_SMALL_DISK";
  constexpr int kNotPermitted = 77;
  if (getenv(kDisk) == nullptr) {
    std::string disk = absl::StrCat(::testing::TempDir(), "store_disk_XXXXXX");
    ASSERT_NE(mkdtemp(disk.data()), nullptr);
    const int result = InChild([&disk, &kDisk] {
      if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        _exit(kNotPermitted);
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
      if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=128m") != 0) _exit(kNotPermitted);
      setenv(kDisk, disk.c_str(), 1);
      execl("/proc/self/exe", "store_rocksdb_test",
            "--gtest_filter=RocksDbStoreOnASmallDisk.GoesOnAfterItWasFull", nullptr);
      _exit(kNotPermitted);
    });
    std::filesystem::remove_all(disk);
    if (result == kNotPermitted) GTEST_SKIP() << "may not mount a small disk here";
    EXPECT_EQ(result, 0);
    return;
  }
  const std::string disk = getenv(kDisk);
  const std::string ballast = absl::StrCat(disk, "/ballast");
  // RocksDB goes on only when all of its buffers have room: the disk is far larger than what is
  // written.
  const int file = open(ballast.c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_EQ(posix_fallocate(file, 0, off_t{126} << 20), 0);
  close(file);
  auto store = OpenRocksDbStore(absl::StrCat(disk, "/data"));
  ASSERT_TRUE(store.ok()) << store.status();
  const auto rows = [](uint64_t first, size_t count) {
    LogAppend append;
    append.uid = 1;
    append.rows.emplace();
    append.rows->first_sequence = first;
    for (size_t i = 0; i < count; ++i) append.rows->rows.AddDense(std::vector<float>(100, 1.0f));
    return append;
  };
  uint64_t last = 0;
  absl::Status status;
  while (last < 100000 && (status = (*store)->Commit({rows(last + 1, 10)})).ok()) last += 10;
  ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("disk is full"));
  // Still full; what was there can be read.
  EXPECT_EQ((*store)->Commit({rows(last + 1, 10)}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(*(*store)->LastSequence(1), last);
  std::filesystem::remove(ballast);
  // Within seconds it is noticed that there is room again.
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  do {
    status = (*store)->Commit({rows(last + 1, 3)});
  } while (!status.ok() && absl::Now() < deadline);
  ASSERT_TRUE(status.ok()) << status;
  store->reset();
  store = OpenRocksDbStore(absl::StrCat(disk, "/data"));
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(*(*store)->LastSequence(1), last + 3);
  EXPECT_TRUE((*store)->ReadLog(1, 0, [](LogEntry) { return absl::OkStatus(); }).ok());
}

TEST_F(RocksDbStoreTest, FailedWriteIsUnavailableAndLeavesNothing) {
  store_.reset();
  // Files may not grow beyond a limit: writing fails as on a broken disk.
  const int result = InChild([&] {
    signal(SIGXFSZ, SIG_IGN);
    auto store = OpenRocksDbStore(directory_);
    if (!store.ok()) _exit(1);
    if (!(*store)->Commit({Rows(1, 1, 10)}).ok()) _exit(2);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 20000;
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status failed = (*store)->Commit({Rows(1, 11, 1000, 100)});
    if (failed.code() != absl::StatusCode::kUnavailable) _exit(3);
    if (failed.message().find("restart the server") == absl::string_view::npos) _exit(4);
    if (*(*store)->LastSequence(1) != 10) _exit(5);
    kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(result, -1);
  Open();
  EXPECT_EQ(*store_->LastSequence(1), 10u);
  EXPECT_TRUE(ReadAll(1).ok());
}

TEST_F(RocksDbStoreTest, DamagedDatabaseFileIsExplained) {
  store_.reset();
  std::ofstream(absl::StrCat(directory_, "/CURRENT"), std::ios::trunc) << "MANIFEST-000000\n";
  const auto store = OpenRocksDbStore(directory_);
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(std::string(store.status().message()), HasSubstr(directory_));
}

TEST_F(RocksDbStoreTest, DirectoryThatCannotBeMadeIsExplained) {
  const std::string file = absl::StrCat(directory_, "/file");
  std::ofstream(file) << "x";
  const auto store = OpenRocksDbStore(absl::StrCat(file, "/data"));
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("--data_dir"));
}

}  // namespace
}  // namespace kernelstream::server
