// A store that forgets, and fails when it is told to.
#ifndef KERNELSTREAM_SERVER_STORE_MEMORY_STORE_H_
#define KERNELSTREAM_SERVER_STORE_MEMORY_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/store/store.h"

namespace kernelstream::server {

// Thread-safe. For tests: behaves like the durable store as long as the object lives.
class MemoryStore final : public Store {
 public:
  enum class Op {
    kNextUid,
    kPutModel,
    kListModels,
    kDeleteModel,
    kCommit,
    kReadLog,
    kGetProducer,
    kGetRequest,
    kSaveCheckpoint,
    kLoadCheckpoint
  };
  // Called at the start of every operation, without a lock held; an error is returned and nothing
  // is done.
  void SetHook(std::function<absl::Status(Op, ModelUid)> hook);
  // A model whose record cannot be read.
  void AddDamaged(DamagedModel model);

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

 private:
  struct Model {
    std::optional<StoredModel> stored;
    // By sequence, rows before the cut at the same number.
    std::map<std::pair<uint64_t, int>, LogEntry> log;
    uint64_t last_sequence = 0;
    std::map<std::string, ProducerPosition> producers;
    std::map<std::string, RequestRecord> requests;
    uint64_t last_request = 0;
    std::optional<TrainerState> checkpoint;
  };
  absl::Status Enter(Op op, ModelUid uid) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  std::function<absl::Status(Op, ModelUid)> hook_ ABSL_GUARDED_BY(mutex_);
  ModelUid last_uid_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<ModelUid, Model> models_ ABSL_GUARDED_BY(mutex_);
  std::vector<DamagedModel> damaged_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_STORE_MEMORY_STORE_H_
