#include "server/service/append_wire.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "server/service/status_mapping.h"

namespace kernelstream::server {
namespace {

constexpr size_t kExplainedRows = 1000;
constexpr size_t kMaxRowMessageBytes = 400;

// The status with exactly this path.
absl::Status WithPath(const std::string& path, const absl::Status& status) {
  return PrefixField(
      path, FieldPathOf(status).empty() ? status : absl::Status(status.code(), status.message()));
}

}  // namespace

absl::Status CheckId(absl::string_view field, const std::string& id) {
  if (id.size() <= kMaxIdBytes) return absl::OkStatus();
  return InvalidField(field,
                      absl::StrCat("it has ", id.size(), " bytes; expected up to ", kMaxIdBytes));
}

absl::StatusOr<AckLevel> AckFromWire(absl::string_view field, v1::AckLevel ack) {
  switch (ack) {
    case v1::ACK_LEVEL_UNSPECIFIED:
    case v1::ACK_LEVEL_DURABLE:
      return AckLevel::kDurable;
    case v1::ACK_LEVEL_ACCEPTED:
      return AckLevel::kAccepted;
    case v1::ACK_LEVEL_APPLIED:
      return AckLevel::kApplied;
    default:
      return InvalidField(field, absl::StrCat("unknown value ", static_cast<int>(ack),
                                              "; known: 1 (accepted), 2 (durable), 3 (applied)"));
  }
}

absl::Status BatchShape::Locate(uint64_t number, const absl::Status& status) const {
  return WithPath(
      absl::StrCat(prefix, rows.Path("samples", number - first_number, FieldPathOf(status))),
      status);
}

absl::Status BatchShape::Locate(const absl::Status& status) const {
  if (FieldPathOf(status).empty()) return status;
  return PrefixField(prefix, status);
}

void FillAppend(WireRows rows, BatchShape& shape, AppendRequest& request) {
  request.rows = std::move(rows.rows);
  rows.rows = SampleBatch();
  request.numbers = std::move(rows.places);
  rows.places.clear();
  for (uint64_t& number : request.numbers) number += shape.first_number;
  request.rejected = std::move(rows.rejected);
  rows.rejected.clear();
  for (RejectedRow& row : request.rejected) row.number += shape.first_number;
  shape.rows = std::move(rows);
}

absl::Status AllRefused(const std::vector<RejectedRow>& rejected, const BatchShape& shape) {
  const absl::Status first = shape.Locate(rejected.front().number, rejected.front().status);
  if (shape.rows.count == 1) return first;
  return InvalidField(FieldPathOf(first),
                      absl::StrCat(first.message(), ". ", rejected.size(), " of the ",
                                   shape.rows.count, " rows are bad, and none was learned"));
}

void RejectedToWire(const std::vector<RejectedRow>& rejected, const BatchShape& shape,
                    google::protobuf::RepeatedPtrField<v1::RejectedSample>* wire) {
  wire->Reserve(static_cast<int>(rejected.size()));
  size_t explained = 0;
  for (const RejectedRow& row : rejected) {
    v1::RejectedSample* sample = wire->Add();
    sample->set_producer_sequence(row.number);
    if (++explained > kExplainedRows) {
      sample->mutable_status()->set_code(static_cast<int>(row.status.code()));
    } else {
      ToRpcStatus(shape.Locate(row.number, row.status), kMaxRowMessageBytes,
                  sample->mutable_status());
    }
  }
}

}  // namespace kernelstream::server
