#include "server/service/model_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "core/feature/sampler.h"
#include "core/kernel/kernel.h"
#include "core/loss/loss.h"
#include "server/service/status_mapping.h"
#include "server/service/wire_bytes.h"
#include "server/service/wire_model.h"

namespace kernelstream::server {
namespace {

constexpr char kModelService[] = "kernelstream.v1.ModelService";
constexpr uint32_t kDefaultPageSize = 100;
constexpr uint32_t kMaxPageSize = 1000;

// Errors of the registry are about "name", or about the config without saying so.
absl::Status CreateError(const absl::Status& status, const std::string& name) {
  const std::string path = FieldPathOf(status);
  absl::Status error = path.empty() || path == "name" ? status : PrefixField("config.", status);
  if (absl::IsResourceExhausted(error)) error = WithReason(error, kModelLimit);
  return WithModel(error, name);
}

absl::Status TooBusy() {
  return absl::ResourceExhaustedError(
      "too many models are being created and deleted at once; nothing was done. Try again");
}

void Create(const ServiceContext& context, const v1::CreateModelRequest& request,
            const UnaryReply& reply) {
  auto config = ConfigFromWire(request.config());
  if (!config.ok()) return reply.Error(PrefixField("config.", config.status()));
  auto created = context.registry->Create(request.name(), *config);
  if (!created.ok()) return reply.Error(CreateError(created.status(), request.name()));
  v1::CreateModelResponse response;
  response.set_created(created->created);
  ModelToWire(*created->model, ModelDetail::kAll, response.mutable_model());
  reply.Ok(response);
}

}  // namespace

ModelServiceImpl::ModelServiceImpl(const ServiceContext& context)
    : context_(context),
      create_(context.metrics->ForRpc(kModelService, "CreateModel")),
      get_(context.metrics->ForRpc(kModelService, "GetModel")),
      list_(context.metrics->ForRpc(kModelService, "ListModels")),
      delete_(context.metrics->ForRpc(kModelService, "DeleteModel")),
      kernels_(context.metrics->ForRpc(kModelService, "ListKernels")),
      losses_(context.metrics->ForRpc(kModelService, "ListLosses")),
      samplers_(context.metrics->ForRpc(kModelService, "ListSamplers")) {}

grpc::ServerUnaryReactor* ModelServiceImpl::CreateModel(grpc::CallbackServerContext* call,
                                                        const grpc::ByteBuffer* bytes,
                                                        grpc::ByteBuffer* response) {
  const UnaryReply reply(create_, call, response);
  v1::CreateModelRequest request;
  absl::Status status = ParseMessage(*bytes, context_.max_message_bytes, &request, nullptr);
  if (status.ok() && !context_.disk->Submit([this, reply, request = std::move(request)] {
        Create(context_, request, reply);
      })) {
    status = TooBusy();
  }
  if (!status.ok()) reply.Error(status);
  return reply.reactor();
}

grpc::ServerUnaryReactor* ModelServiceImpl::GetModel(grpc::CallbackServerContext* call,
                                                     const grpc::ByteBuffer* bytes,
                                                     grpc::ByteBuffer* response) {
  const UnaryReply reply(get_, call, response);
  v1::GetModelRequest request;
  absl::Status status = ParseMessage(*bytes, context_.max_message_bytes, &request, nullptr);
  if (status.ok()) {
    const auto model = FindModel(context_, "name", request.name());
    if (model.ok()) {
      v1::GetModelResponse answer;
      ModelToWire(**model, ModelDetail::kAll, answer.mutable_model());
      reply.Ok(answer);
      return reply.reactor();
    }
    status = model.status();
  }
  reply.Error(status);
  return reply.reactor();
}

grpc::ServerUnaryReactor* ModelServiceImpl::ListModels(grpc::CallbackServerContext* call,
                                                       const grpc::ByteBuffer* bytes,
                                                       grpc::ByteBuffer* response) {
  const UnaryReply reply(list_, call, response);
  v1::ListModelsRequest request;
  absl::Status status = ParseMessage(*bytes, context_.max_message_bytes, &request, nullptr);
  std::string after;  // a page token is the last name of the page before
  if (status.ok() && !request.page_token().empty() &&
      !(absl::WebSafeBase64Unescape(request.page_token(), &after) && CheckModelName(after).ok())) {
    status = InvalidField("page_token",
                          "it is not a next_page_token of this server; leave it empty "
                          "for the first page");
  }
  if (!status.ok()) {
    reply.Error(status);
    return reply.reactor();
  }
  const uint32_t page =
      request.page_size() == 0 ? kDefaultPageSize : std::min(request.page_size(), kMaxPageSize);
  v1::ListModelsResponse answer;
  for (const std::shared_ptr<HostedModel>& model : context_.registry->List()) {
    if (!after.empty() && model->name() <= after) continue;
    if (static_cast<uint32_t>(answer.models_size()) == page) {
      answer.set_next_page_token(
          absl::WebSafeBase64Escape(answer.models(answer.models_size() - 1).name()));
      break;
    }
    ModelToWire(*model, ModelDetail::kListed, answer.add_models());
  }
  reply.Ok(answer);
  return reply.reactor();
}

grpc::ServerUnaryReactor* ModelServiceImpl::DeleteModel(grpc::CallbackServerContext* call,
                                                        const grpc::ByteBuffer* bytes,
                                                        grpc::ByteBuffer* response) {
  const UnaryReply reply(delete_, call, response);
  v1::DeleteModelRequest request;
  absl::Status status = ParseMessage(*bytes, context_.max_message_bytes, &request, nullptr);
  if (status.ok()) status = FindModel(context_, "name", request.name()).status();
  if (status.ok() && !context_.disk->Submit([this, reply, name = request.name()] {
        const absl::Status deleted = context_.registry->Delete(name);
        if (deleted.ok()) {
          reply.Ok(v1::DeleteModelResponse());
        } else {
          reply.Error(WithModel(deleted, name));
        }
      })) {
    status = TooBusy();
  }
  if (!status.ok()) reply.Error(status);
  return reply.reactor();
}

grpc::ServerUnaryReactor* ModelServiceImpl::ListKernels(grpc::CallbackServerContext* call,
                                                        const grpc::ByteBuffer*,
                                                        grpc::ByteBuffer* response) {
  const UnaryReply reply(kernels_, call, response);
  v1::ListKernelsResponse answer;
  for (const KernelEntry& entry : KernelRegistry()) {
    v1::ComponentInfo* kernel = answer.add_kernels();
    ComponentToWire(entry.doc, kernel);
    kernel->set_inputs(std::string(entry.inputs));
  }
  reply.Ok(answer);
  return reply.reactor();
}

grpc::ServerUnaryReactor* ModelServiceImpl::ListLosses(grpc::CallbackServerContext* call,
                                                       const grpc::ByteBuffer*,
                                                       grpc::ByteBuffer* response) {
  const UnaryReply reply(losses_, call, response);
  v1::ListLossesResponse answer;
  for (const LossEntry& entry : LossRegistry()) ComponentToWire(entry.doc, answer.add_losses());
  reply.Ok(answer);
  return reply.reactor();
}

grpc::ServerUnaryReactor* ModelServiceImpl::ListSamplers(grpc::CallbackServerContext* call,
                                                         const grpc::ByteBuffer*,
                                                         grpc::ByteBuffer* response) {
  const UnaryReply reply(samplers_, call, response);
  v1::ListSamplersResponse answer;
  for (const SamplerEntry& entry : SamplerRegistry()) {
    v1::ComponentInfo* sampler = answer.add_samplers();
    ComponentToWire(entry.doc, sampler);
    const auto takes = [&](const FeatureSpec& features) { return SamplerApplies(entry, features); };
    for (const absl::string_view name : KernelsWith(takes)) {
      sampler->add_kernels(std::string(name));
    }
  }
  reply.Ok(answer);
  return reply.reactor();
}

}  // namespace kernelstream::server
