#include "server/service/status_mapping.h"

#include <array>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "google/rpc/error_details.pb.h"

namespace kernelstream::server {
namespace {

constexpr absl::string_view kReasonPayload = "kernelstream/reason";
constexpr absl::string_view kModelPayload = "kernelstream/model";

// A byte of text takes up to three in the trailer grpc-message, and the details hold the text again
// in base64.
constexpr size_t kMaxMessageBytes = 1000;
constexpr size_t kMaxPathBytes = 256;
constexpr size_t kMaxNameBytes = 160;

struct CodeEntry {
  absl::StatusCode code;
  const char* reason;
};
constexpr std::array<CodeEntry, 17> kCodes = {{
    {absl::StatusCode::kOk, ""},
    {absl::StatusCode::kCancelled, "CANCELLED"},
    {absl::StatusCode::kUnknown, "INTERNAL_ERROR"},
    {absl::StatusCode::kInvalidArgument, "INVALID_REQUEST"},
    {absl::StatusCode::kDeadlineExceeded, "NOT_IN_TIME"},
    {absl::StatusCode::kNotFound, "MODEL_NOT_FOUND"},
    {absl::StatusCode::kAlreadyExists, "MODEL_EXISTS"},
    {absl::StatusCode::kPermissionDenied, "NOT_ALLOWED"},
    {absl::StatusCode::kResourceExhausted, "QUEUE_FULL"},
    {absl::StatusCode::kFailedPrecondition, "WRONG_STATE"},
    {absl::StatusCode::kAborted, "ABORTED"},
    {absl::StatusCode::kOutOfRange, "OUT_OF_RANGE"},
    {absl::StatusCode::kUnimplemented, "UNIMPLEMENTED"},
    {absl::StatusCode::kInternal, "INTERNAL_ERROR"},
    {absl::StatusCode::kUnavailable, "NOT_READY"},
    {absl::StatusCode::kDataLoss, "DAMAGED_STATE"},
    {absl::StatusCode::kUnauthenticated, "NO_CREDENTIAL"},
}};

const CodeEntry& Entry(absl::StatusCode code) {
  for (const CodeEntry& entry : kCodes) {
    if (entry.code == code) return entry;
  }
  return kCodes[2];
}

// At most `max_bytes`, cut between characters.
std::string Cut(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t end = max_bytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

std::string Payload(const absl::Status& status, absl::string_view key) {
  const auto payload = status.GetPayload(key);
  return payload.has_value() ? std::string(*payload) : std::string();
}

absl::Duration RetryDelay(absl::StatusCode code) {
  return code == absl::StatusCode::kUnavailable ? absl::Seconds(1) : absl::Milliseconds(100);
}

}  // namespace

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  if (!status.ok()) status.SetPayload(kReasonPayload, absl::Cord(reason));
  return status;
}

absl::Status WithModel(absl::Status status, absl::string_view name) {
  if (!status.ok()) status.SetPayload(kModelPayload, absl::Cord(name));
  return status;
}

void ToRpcStatus(const absl::Status& status, size_t max_message_bytes, google::rpc::Status* out) {
  const CodeEntry& entry = Entry(status.code());
  const std::string path = Cut(FieldPathOf(status), kMaxPathBytes);
  out->set_code(static_cast<int>(entry.code));
  out->set_message(
      Cut(path.empty() ? std::string(status.message()) : absl::StrCat(path, ": ", status.message()),
          max_message_bytes));

  google::rpc::ErrorInfo info;
  const std::string reason = Payload(status, kReasonPayload);
  info.set_reason(reason.empty() ? entry.reason : reason);
  info.set_domain("kernelstream");
  out->add_details()->PackFrom(info);

  if (!path.empty()) {
    google::rpc::BadRequest bad_request;
    auto* violation = bad_request.add_field_violations();
    violation->set_field(path);
    violation->set_description(Cut(status.message(), max_message_bytes));
    out->add_details()->PackFrom(bad_request);
  }
  const bool curable = entry.code == absl::StatusCode::kUnavailable ||
                       (entry.code == absl::StatusCode::kResourceExhausted &&
                        reason != kMessageTooLarge && reason != kModelLimit);
  if (curable) {
    google::rpc::RetryInfo retry;
    const absl::Duration delay = RetryDelay(entry.code);
    retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(delay));
    retry.mutable_retry_delay()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(delay % absl::Seconds(1))));
    out->add_details()->PackFrom(retry);
  }
  const std::string model = Payload(status, kModelPayload);
  if (!model.empty() && (entry.code == absl::StatusCode::kNotFound ||
                         entry.code == absl::StatusCode::kAlreadyExists)) {
    google::rpc::ResourceInfo resource;
    resource.set_resource_type("kernelstream.v1.Model");
    resource.set_resource_name(Cut(model, kMaxNameBytes));
    out->add_details()->PackFrom(resource);
  }
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status details;
  ToRpcStatus(status, kMaxMessageBytes, &details);
  return grpc::Status(static_cast<grpc::StatusCode>(details.code()), details.message(),
                      details.SerializeAsString());
}

}  // namespace kernelstream::server
