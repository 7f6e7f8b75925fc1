// What the server keeps on disk, as an interface.
#ifndef KERNELSTREAM_SERVER_STORE_STORE_H_
#define KERNELSTREAM_SERVER_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/model/model_config.h"
#include "core/model/sample_batch.h"
#include "core/model/trainer_state.h"

namespace kernelstream::server {

// A model's identity on disk. Never reused. Printed as 16 hexadecimal digits on the wire.
using ModelUid = uint64_t;

struct StoredModel {
  ModelUid uid = 0;
  std::string name;
  ModelConfig config;  // complete
  absl::Time create_time;
};

// A model whose record cannot be read. The name is known all the same: it is in the key.
struct DamagedModel {
  ModelUid uid = 0;
  std::string name;
  std::string message;
};

// Rows of one accepted batch: one log record.
struct RowsRecord {
  uint64_t first_sequence = 0;  // log position of rows.row(0); the others follow without gaps
  SampleBatch rows;             // at least one
  // Who sent them; empty if nobody said. Numbers of the batch's first row and of the row after its
  // last, refused rows included.
  std::string producer_id;
  uint64_t producer_sequence = 0;
  uint64_t next_producer_sequence = 0;

  uint64_t last_sequence() const { return first_sequence + rows.size() - 1; }
};

// A mini-batch that ended before it was full: it holds the rows after the previous cut up to
// `sequence`. Cuts of full mini-batches (config.batch_rows rows) are not recorded: they follow from
// the rule.
struct CutRecord {
  uint64_t sequence = 0;
};

// The answer to a unary call, kept so that a repeated call gets it again.
struct RequestRecord {
  std::string request_id;
  uint64_t number =
      0;  // counts the model's remembered requests from 1; old ones are forgotten by number
  std::string answer;  // opaque to the store
};

// Where a producer stands: everything below next_producer_sequence has been dealt with.
struct ProducerPosition {
  uint64_t next_producer_sequence = 1;
  uint64_t sequence = 0;  // log position of its last row
};

// One model's part of a group commit.
struct LogAppend {
  ModelUid uid = 0;
  std::optional<RowsRecord> rows;
  std::optional<CutRecord> cut;
  // Set also where every row of the batch was refused, so that the position moves on.
  std::string producer_id;
  std::optional<ProducerPosition> producer;
  std::optional<RequestRecord> request;
};

// One record read back; rows and cuts come in the order in which they have to be applied: a cut at
// sequence s comes after every rows record that begins at or before s, and before those that begin
// after it.
using LogEntry = std::variant<RowsRecord, CutRecord>;

// Thread-safe. Durable models, logs and checkpoints. Everything a successful call wrote is there
// after kill -9 and power loss. Errors: DATA_LOSS (damaged record: says which model),
// RESOURCE_EXHAUSTED (disk full), UNAVAILABLE (other I/O errors; nothing of the call was written).
class Store {
 public:
  virtual ~Store() = default;

  // A number never given out before.
  virtual absl::StatusOr<ModelUid> NextUid() = 0;
  virtual absl::Status PutModel(const StoredModel& model) = 0;
  // Models whose record can be read; `damaged` gets those whose record cannot.
  virtual absl::StatusOr<std::vector<StoredModel>> ListModels(
      std::vector<DamagedModel>* damaged) = 0;
  // Removes the model with its log, checkpoint, producers and requests. OK if there is none.
  virtual absl::Status DeleteModel(ModelUid uid) = 0;

  // Group commit: all appends of all models, or none. One synchronous write.
  virtual absl::Status Commit(const std::vector<LogAppend>& appends) = 0;
  // Calls `apply` for each entry that has a row after `after_sequence` (or a cut after it), in
  // order. Stops at the first error of `apply`.
  virtual absl::Status ReadLog(ModelUid uid, uint64_t after_sequence,
                               const std::function<absl::Status(LogEntry)>& apply) = 0;
  // Largest sequence ever logged, also if it was trimmed since; 0 if none.
  virtual absl::StatusOr<uint64_t> LastSequence(ModelUid uid) = 0;

  // nullopt: never heard of.
  virtual absl::StatusOr<std::optional<ProducerPosition>> GetProducer(
      ModelUid uid, const std::string& producer_id) = 0;
  virtual absl::StatusOr<std::optional<RequestRecord>> GetRequest(
      ModelUid uid, const std::string& request_id) = 0;
  // Number of the newest remembered request; 0 if none.
  virtual absl::StatusOr<uint64_t> LastRequestNumber(ModelUid uid) = 0;

  // Writes the state and drops the log up to state.sequence, in one atomic write.
  virtual absl::Status SaveCheckpoint(ModelUid uid, const TrainerState& state) = 0;
  // nullopt: none yet. DATA_LOSS: damaged.
  virtual absl::StatusOr<std::optional<TrainerState>> LoadCheckpoint(ModelUid uid) = 0;
};

// Requests remembered per model; Commit forgets older ones.
inline constexpr uint64_t kRememberedRequests = 65536;

// In memory, for tests: same behaviour, nothing survives the object. Commits can be made to fail.
class MemoryStore;

// RocksDB in `directory`, created if absent. FAILED_PRECONDITION: another process has it open, or
// it was written by a newer format; the message says what to do.
absl::StatusOr<std::unique_ptr<Store>> OpenRocksDbStore(const std::string& directory);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_STORE_STORE_H_
