// The one map from errors inside to errors on the wire.
#ifndef KERNELSTREAM_SERVER_SERVICE_STATUS_MAPPING_H_
#define KERNELSTREAM_SERVER_SERVICE_STATUS_MAPPING_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"

namespace kernelstream::server {

// Details are google.rpc messages:
//   ErrorInfo     always: domain "kernelstream", and the reason
//   BadRequest    the status has a field path (core/base/field_error.h)
//   RetryInfo     UNAVAILABLE, and RESOURCE_EXHAUSTED that waiting can cure (not kMessageTooLarge,
//   kModelLimit) ResourceInfo  NOT_FOUND and ALREADY_EXISTS about a model (WithModel)
// The message is "PATH: MESSAGE" where there is a path.

// Reasons that the code alone does not tell. Everything else has one reason per code.
inline constexpr char kMessageTooLarge[] = "MESSAGE_TOO_LARGE";
inline constexpr char kModelLimit[] = "MODEL_LIMIT";
inline constexpr char kDraining[] = "DRAINING";

// The same error with this reason.
absl::Status WithReason(absl::Status status, absl::string_view reason);
// The same error about this model.
absl::Status WithModel(absl::Status status, absl::string_view name);

// Message and details together fit a trailer of 8 KiB: what is too long is cut and ends in "...".
grpc::Status ToGrpc(const absl::Status& status);

// The same inside a message, at most `max_message_bytes` of text in each of its places.
void ToRpcStatus(const absl::Status& status, size_t max_message_bytes, google::rpc::Status* out);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_STATUS_MAPPING_H_
