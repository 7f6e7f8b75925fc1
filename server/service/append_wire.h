// Batches of rows to learn: wire <-> hosting.
#ifndef KERNELSTREAM_SERVER_SERVICE_APPEND_WIRE_H_
#define KERNELSTREAM_SERVER_SERVICE_APPEND_WIRE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernelstream/v1/online_update_service.pb.h"
#include "server/hosting/append.h"
#include "server/service/wire_rows.h"

namespace kernelstream::server {

// Of request_id and producer_id.
inline constexpr size_t kMaxIdBytes = 128;

// INVALID_ARGUMENT about `field`: longer than kMaxIdBytes.
absl::Status CheckId(absl::string_view field, const std::string& id);
// INVALID_ARGUMENT about "ack": unknown value.
absl::StatusOr<AckLevel> AckFromWire(absl::string_view field, v1::AckLevel ack);

// What has to be remembered of a batch to tell its caller about its rows.
struct BatchShape {
  std::string prefix;         // path of the batch in the message: "" or "batch."
  uint64_t first_number = 0;  // number of the row at place 0
  WireRows rows;              // without the rows themselves

  // The path of an error about the row of that number.
  absl::Status Locate(uint64_t number, const absl::Status& status) const;
  // The path of an error about the batch.
  absl::Status Locate(const absl::Status& status) const;
};

// Moves the rows to `request`, numbered from shape.first_number on, and keeps their shape.
void FillAppend(WireRows rows, BatchShape& shape, AppendRequest& request);

// The error of a call all of whose rows were refused: the first of them. Not empty.
absl::Status AllRefused(const std::vector<RejectedRow>& rejected, const BatchShape& shape);

// Why and details are given for the first 1000 rows, so that an answer stays small; the others have
// only a code.
void RejectedToWire(const std::vector<RejectedRow>& rejected, const BatchShape& shape,
                    google::protobuf::RepeatedPtrField<v1::RejectedSample>* wire);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_APPEND_WIRE_H_
