// Which rows are new, and which numbers they get.
#ifndef KERNELSTREAM_SERVER_HOSTING_APPEND_LEDGER_H_
#define KERNELSTREAM_SERVER_HOSTING_APPEND_LEDGER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/hosting/append.h"
#include "server/store/store.h"

namespace kernelstream::server {

// Thread-compatible. One model's sequence numbers, producers' positions and remembered requests.
// Exactly once is decided here. What is staged counts for what is staged after it, and becomes true
// with Commit or untrue with Rollback.
class AppendLedger {
 public:
  AppendLedger(Store* store, ModelUid uid, std::string model_name);

  // Reads where the log stands. Before anything else, unless the model is new.
  absl::Status Load();

  // Decides about a batch. Fills `result` in; nullopt: nothing to write, all of it was dealt with
  // before (result.duplicate). Rows that were dealt with before are dropped from what is written.
  // FAILED_PRECONDITION: the producer's numbers leave a gap. Errors of the store.
  // `refusal`: why new rows are refused, or OK; duplicates are acknowledged nevertheless.
  absl::StatusOr<std::optional<LogAppend>> Stage(AppendRequest& request,
                                                 const absl::Status& refusal, AppendResult& result);
  absl::StatusOr<ProducerPosition> Position(const std::string& producer_id);

  // About everything staged since the last of these calls.
  void Commit();
  void Rollback();

  // Largest sequence given out and committed.
  uint64_t last_sequence() const { return committed_.last_sequence; }

 private:
  struct Numbers {
    uint64_t last_sequence = 0;
    uint64_t last_request = 0;
  };
  absl::StatusOr<std::optional<AppendResult>> FindRequest(const std::string& request_id);

  Store* const store_;
  const ModelUid uid_;
  const std::string model_name_;
  Numbers committed_, staged_;
  std::unordered_map<std::string, ProducerPosition> producers_;  // a cache of the store
  std::unordered_map<std::string, ProducerPosition> staged_producers_;
  std::unordered_map<std::string, AppendResult> staged_requests_;
};

// A result as the store keeps it for a repeated call: little-endian, first byte a format version.
std::string EncodeAnswer(const AppendResult& result);
// DATA_LOSS: not such a string.
absl::StatusOr<AppendResult> DecodeAnswer(absl::string_view bytes);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_HOSTING_APPEND_LEDGER_H_
