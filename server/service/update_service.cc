#include "server/service/update_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "google/protobuf/arena.h"
#include "server/service/append_wire.h"
#include "server/service/status_mapping.h"
#include "server/service/update_stream.h"
#include "server/service/wire_bytes.h"

namespace kernelstream::server {
namespace {

constexpr char kUpdateService[] = "kernelstream.v1.OnlineUpdateService";

absl::Status CheckSender(const v1::UpdateRequest& request, uint64_t rows) {
  if (absl::Status s = CheckId("request_id", request.request_id()); !s.ok()) return s;
  if (absl::Status s = CheckId("producer_id", request.producer_id()); !s.ok()) return s;
  if (!request.request_id().empty() && !request.producer_id().empty()) {
    return InvalidField(
        "request_id",
        "request_id and producer_id are both set; each makes the call repeatable by "
        "itself, send one of them");
  }
  if (request.producer_id().empty()) {
    if (request.producer_sequence() == 0) return absl::OkStatus();
    return InvalidField("producer_sequence", "it is set without producer_id; send both or none");
  }
  if (request.producer_sequence() == 0) {
    return InvalidField("producer_sequence",
                        "it is 0; with producer_id it is the number of the first row, from 1");
  }
  if (request.producer_sequence() > UINT64_MAX - rows - 1) {
    return InvalidField("producer_sequence", absl::StrCat("it is ", request.producer_sequence(),
                                                          "; no more rows can be numbered"));
  }
  return absl::OkStatus();
}

absl::StatusOr<AppendRequest> BuildAppend(const ServiceContext& context,
                                          const v1::UpdateRequest& request,
                                          const std::vector<uint64_t>& bad_labels,
                                          BatchShape& shape) {
  const auto ack = AckFromWire("ack", request.ack());
  if (!ack.ok()) return ack.status();
  auto rows = DecodeSamples(request.samples(), request.has_matrix() ? &request.matrix() : nullptr,
                            bad_labels, context.max_pending_rows);
  if (!rows.ok()) return rows.status();
  if (absl::Status s = CheckSender(request, rows->count); !s.ok()) return s;
  AppendRequest append;
  append.ack = *ack;
  append.request_id = request.request_id();
  append.producer_id = request.producer_id();
  append.producer_sequence = request.producer_sequence();
  append.next_producer_sequence =
      request.producer_id().empty() ? 0 : request.producer_sequence() + rows->count;
  shape.first_number = request.producer_sequence();
  FillAppend(*std::move(rows), shape, append);
  return append;
}

void Answer(const UnaryReply& reply, const HostedModel& model, bool accepted_only,
            const BatchShape& shape, const absl::StatusOr<AppendResult>& result) {
  if (!result.ok()) return reply.Error(shape.Locate(result.status()));
  // A producer's position moves on past its bad rows, but the call has failed all the same.
  if (result->rows_accepted == 0 && !result->rejected.empty() && !result->duplicate) {
    return reply.Error(AllRefused(result->rejected, shape));
  }
  v1::UpdateResponse response;
  response.set_sequence(accepted_only && !result->duplicate ? 0 : result->sequence);
  if (const Ref<Snapshot> snapshot = model.snapshot()) response.set_step(snapshot->step());
  response.set_rows_accepted(result->rows_accepted);
  response.set_next_producer_sequence(result->next_producer_sequence);
  response.set_duplicate(result->duplicate);
  RejectedToWire(result->rejected, shape, response.mutable_rejected());
  reply.Ok(response);
}

}  // namespace

UpdateServiceImpl::UpdateServiceImpl(const ServiceContext& context)
    : context_(context),
      update_(context.metrics->ForRpc(kUpdateService, "Update")),
      stream_(context.metrics->ForRpc(kUpdateService, "StreamUpdate")) {}

grpc::ServerUnaryReactor* UpdateServiceImpl::Update(grpc::CallbackServerContext* call,
                                                    const grpc::ByteBuffer* bytes,
                                                    grpc::ByteBuffer* response) {
  const UnaryReply reply(update_, call, response);
  google::protobuf::Arena arena(GrowingBlocks());  // few blocks for the messages of many rows
  v1::UpdateRequest& request = *google::protobuf::Arena::CreateMessage<v1::UpdateRequest>(&arena);
  std::vector<uint64_t> bad_labels;
  absl::Status status = ParseMessage(*bytes, context_.max_message_bytes, &request, &bad_labels);
  std::shared_ptr<HostedModel> model;
  if (status.ok()) {
    auto found = FindModel(context_, "model", request.model());
    if (found.ok()) model = *std::move(found);
    status = found.status();
  }
  if (!status.ok()) {
    reply.Error(status);
    return reply.reactor();
  }
  BatchShape shape;
  auto append = BuildAppend(context_, request, bad_labels, shape);
  if (!append.ok()) {
    reply.Error(append.status());
    return reply.reactor();
  }
  const bool accepted_only = append->ack == AckLevel::kAccepted;
  model->Append(*std::move(append), [reply, model, accepted_only, shape = std::move(shape)](
                                        absl::StatusOr<AppendResult> result) {
    Answer(reply, *model, accepted_only, shape, result);
  });
  return reply.reactor();
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* UpdateServiceImpl::StreamUpdate(
    grpc::CallbackServerContext*) {
  return StartUpdateStream(context_, stream_, &streams_);
}

}  // namespace kernelstream::server
