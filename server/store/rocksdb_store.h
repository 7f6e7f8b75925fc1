// The embedded durable store.
#ifndef KERNELSTREAM_SERVER_STORE_ROCKSDB_STORE_H_
#define KERNELSTREAM_SERVER_STORE_ROCKSDB_STORE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "server/store/space_reclaimer.h"
#include "server/store/store.h"

namespace kernelstream::server {

// Thread-safe. See FORMAT.md.
class RocksDbStore final : public Store {
 public:
  // The names of its column families, in the order of Family.
  static constexpr std::array<const char*, 7> kFamilyNames = {
      "default", "models", "log", "positions", "producers", "requests", "checkpoints"};

  static absl::StatusOr<std::unique_ptr<RocksDbStore>> Open(const std::string& directory);
  ~RocksDbStore() override;

  absl::StatusOr<ModelUid> NextUid() override;
  absl::Status PutModel(const StoredModel& model) override;
  absl::StatusOr<std::vector<StoredModel>> ListModels(std::vector<DamagedModel>* damaged) override;
  absl::Status DeleteModel(ModelUid uid) override;
  absl::Status Commit(const std::vector<LogAppend>& appends) override;
  absl::Status ReadLog(ModelUid uid, uint64_t after_sequence,
                       const std::function<absl::Status(LogEntry)>& apply) override;
  absl::StatusOr<uint64_t> LastSequence(ModelUid uid) override;
  absl::StatusOr<std::optional<ProducerPosition>> GetProducer(
      ModelUid uid, const std::string& producer_id) override;
  absl::StatusOr<std::optional<RequestRecord>> GetRequest(ModelUid uid,
                                                          const std::string& request_id) override;
  absl::StatusOr<uint64_t> LastRequestNumber(ModelUid uid) override;
  absl::Status SaveCheckpoint(ModelUid uid, const TrainerState& state) override;
  absl::StatusOr<std::optional<TrainerState>> LoadCheckpoint(ModelUid uid) override;

  // Until the disk has what deleted models took.
  void WaitUntilReclaimed() { reclaimer_->WaitUntilIdle(); }

 private:
  enum Family { kDefault, kModels, kLog, kPositions, kProducers, kRequests, kCheckpoints };

  RocksDbStore() = default;
  absl::Status CheckFormat();
  rocksdb::ColumnFamilyHandle* family(Family f) const { return families_[f]; }
  // Seals the payload into the batch.
  void Put(rocksdb::WriteBatch& batch, Family f, const std::string& key,
           absl::string_view payload) const;
  // One synchronous, atomic write. After a failure RocksDB refuses writes until it has been told to
  // go on.
  absl::Status Write(absl::string_view doing, rocksdb::WriteBatch& batch);
  // The payload; nullopt if there is no such key. `uid` 0: not about a model.
  absl::StatusOr<std::optional<std::string>> Get(Family f, const std::string& key, ModelUid uid,
                                                 absl::string_view what,
                                                 const rocksdb::ReadOptions& options) const;
  absl::StatusOr<uint64_t> GetCounter(Family f, const std::string& key, ModelUid uid) const;
  // DATA_LOSS that names the model.
  absl::Status Damaged(ModelUid uid, absl::string_view what, absl::string_view why) const;
  void StageAppend(const LogAppend& append, rocksdb::WriteBatch& batch);
  absl::Status ForgetRequests(ModelUid uid, uint64_t up_to, rocksdb::WriteBatch& batch);
  absl::Status TrimLog(ModelUid uid, uint64_t sequence, rocksdb::WriteBatch& batch);
  absl::Status LoadChunks(ModelUid uid, uint32_t set, const rocksdb::ReadOptions& options,
                          std::vector<float>& values) const;
  absl::Status LoadRows(ModelUid uid, uint32_t set, uint64_t count,
                        const rocksdb::ReadOptions& options, SampleBatch& rows) const;

  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;  // kFamilyNames, then any others there are
  std::unique_ptr<SpaceReclaimer> reclaimer_;
  std::atomic<bool> write_failed_{false};
  absl::Mutex uid_mutex_;  // one NextUid at a time
  mutable absl::Mutex names_mutex_;
  std::map<ModelUid, std::string> names_ ABSL_GUARDED_BY(names_mutex_);  // for messages
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_STORE_ROCKSDB_STORE_H_
