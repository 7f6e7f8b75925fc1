// Rows that somebody wants a model to learn, and what became of them.
#ifndef KERNELSTREAM_SERVER_HOSTING_APPEND_H_
#define KERNELSTREAM_SERVER_HOSTING_APPEND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/sample_batch.h"
#include "server/hosting/queue_room.h"

namespace kernelstream::server {

// kAccepted: numbered and in memory. kDurable: survives kill -9 and power loss. kApplied: durable,
// and in the published snapshot.
enum class AckLevel { kAccepted, kDurable, kApplied };

// `status` is INVALID_ARGUMENT with a field path relative to the row (core/base/field_error.h).
struct RejectedRow {
  uint64_t number = 0;  // as in AppendRequest::numbers
  absl::Status status;
};

struct AppendRequest {
  // Rows as decoded, not yet checked.
  SampleBatch rows;
  // One per row, increasing: its producer number; its position in the call if there is no
  // producer_id.
  std::vector<uint64_t> numbers;
  // Rows that could not be decoded, by number. They come back in the result.
  std::vector<RejectedRow> rejected;

  // Empty: rows are not deduplicated by number. Otherwise the batch covers numbers
  // [producer_sequence, next_producer_sequence), refused rows included.
  std::string producer_id;
  uint64_t producer_sequence = 0;
  uint64_t next_producer_sequence = 0;
  // Empty, or identifies the call. Not together with producer_id.
  std::string request_id;

  AckLevel ack = AckLevel::kDurable;
  // One refused row refuses all of them.
  bool all_or_nothing = false;

  // The caller waits for room where there is none (HostedModel::WaitForSpace) ...
  bool waits_for_room = false;
  // ... and this is what it was granted.
  std::optional<QueueRoom::Space> granted;
};

struct AppendResult {
  // Log position of the last row taken, by this call or, for a repetition, by the one before. 0 if
  // there is none. Not yet durable for kAccepted.
  uint64_t sequence = 0;
  uint64_t rows_accepted = 0;
  std::vector<RejectedRow> rejected;    // by number
  uint64_t next_producer_sequence = 0;  // with producer_id: number that the next row should have
  // Nothing was taken because all of it had been logged before.
  bool duplicate = false;
  // Nothing was taken because of `rejected`, and no position moved on: all_or_nothing, or every row
  // bad and no producer.
  bool refused = false;
};

// Called once, on any thread, possibly before the call that takes it returns. Must not block.
using AppendCallback = absl::AnyInvocable<void(absl::StatusOr<AppendResult>)>;

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_HOSTING_APPEND_H_
