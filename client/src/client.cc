#include "client/include/kernelstream/client.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/src/convert.h"
#include "client/src/encode.h"
#include "client/src/predict_stream.h"
#include "client/src/transport.h"
#include "client/src/update_stream.h"

namespace kernelstream::client {
namespace {

// Keeps evaluation messages well below any usual message limit.
constexpr size_t kEvaluateMessageBytes = size_t{1} << 20;

}  // namespace

struct Client::Impl {
  explicit Impl(std::shared_ptr<Transport> t) : transport(std::move(t)) {}

  absl::StatusOr<PredictResult> Predict(const v1::PredictRequest& request,
                                        const PredictOptions& options) {
    v1::PredictResponse response;
    const absl::Status status =
        transport->Call(options.timeout, RetryOn::kUnavailable, [&](grpc::ClientContext* context) {
          return transport->predictions().Predict(context, request, &response);
        });
    if (!status.ok()) return status;
    return FromProto(std::move(response));
  }

  const std::shared_ptr<Transport> transport;
};

Client::Client(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& address,
                                                        ConnectOptions options) {
  if (address.empty()) {
    return absl::InvalidArgumentError("the address is empty; give host:port, like localhost:50051");
  }
  const absl::Duration timeout = options.connect_timeout;
  auto transport = std::make_shared<Transport>(address, std::move(options));
  if (absl::Status status = transport->WaitConnected(timeout); !status.ok()) return status;
  return absl::WrapUnique(new Client(std::make_shared<Impl>(std::move(transport))));
}

absl::StatusOr<CreatedModel> Client::CreateModel(const std::string& name,
                                                 const ModelConfig& config) {
  v1::CreateModelRequest request;
  request.set_name(name);
  *request.mutable_config() = ToProto(config);
  v1::CreateModelResponse response;
  const absl::Status status = impl_->transport->Call(
      std::nullopt, RetryOn::kUnavailable, [&](grpc::ClientContext* context) {
        return impl_->transport->models().CreateModel(context, request, &response);
      });
  if (!status.ok()) return status;
  return CreatedModel{.model = FromProto(response.model()), .created = response.created()};
}

absl::StatusOr<ModelInfo> Client::GetModel(const std::string& name) {
  v1::GetModelRequest request;
  request.set_name(name);
  v1::GetModelResponse response;
  const absl::Status status = impl_->transport->Call(
      std::nullopt, RetryOn::kUnavailable, [&](grpc::ClientContext* context) {
        return impl_->transport->models().GetModel(context, request, &response);
      });
  if (!status.ok()) return status;
  return FromProto(response.model());
}

absl::StatusOr<std::vector<ModelInfo>> Client::ListModels() {
  std::vector<ModelInfo> models;
  v1::ListModelsRequest request;
  do {
    v1::ListModelsResponse response;
    const absl::Status status = impl_->transport->Call(
        std::nullopt, RetryOn::kUnavailable, [&](grpc::ClientContext* context) {
          return impl_->transport->models().ListModels(context, request, &response);
        });
    if (!status.ok()) return status;
    for (const v1::Model& model : response.models()) models.push_back(FromProto(model));
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return models;
}

absl::Status Client::DeleteModel(const std::string& name) {
  v1::DeleteModelRequest request;
  request.set_name(name);
  v1::DeleteModelResponse response;
  int attempts = 0;
  const absl::Status status = impl_->transport->Call(
      std::nullopt, RetryOn::kUnavailable,
      [&](grpc::ClientContext* context) {
        return impl_->transport->models().DeleteModel(context, request, &response);
      },
      &attempts);
  // The attempt whose answer was lost has deleted it.
  if (attempts > 1 && absl::IsNotFound(status)) return absl::OkStatus();
  return status;
}

absl::Status Client::CheckHealth(const std::string& model) {
  grpc::health::v1::HealthCheckRequest request;
  if (!model.empty()) request.set_service(absl::StrCat("model/", model));
  grpc::health::v1::HealthCheckResponse response;
  grpc::ClientContext context;
  const absl::Duration timeout = impl_->transport->options().call_timeout;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  const grpc::Status answer = impl_->transport->health().Check(&context, request, &response);
  if (absl::Status status = impl_->transport->FromGrpc(answer, timeout); !status.ok())
    return status;
  if (response.status() == grpc::health::v1::HealthCheckResponse::SERVING) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(model.empty() ? "the server" : absl::StrCat("model ", model), " at ",
                   impl_->transport->address(), " is not serving: it is loading or stopping"));
}

absl::StatusOr<std::vector<ComponentInfo>> Client::ListKernels() {
  v1::ListKernelsResponse response;
  const absl::Status status = impl_->transport->Call(
      std::nullopt, RetryOn::kUnavailable, [&](grpc::ClientContext* context) {
        return impl_->transport->models().ListKernels(context, v1::ListKernelsRequest(), &response);
      });
  if (!status.ok()) return status;
  std::vector<ComponentInfo> kernels;
  for (const v1::ComponentInfo& info : response.kernels()) kernels.push_back(FromProto(info));
  return kernels;
}

absl::StatusOr<std::vector<ComponentInfo>> Client::ListLosses() {
  v1::ListLossesResponse response;
  const absl::Status status = impl_->transport->Call(
      std::nullopt, RetryOn::kUnavailable, [&](grpc::ClientContext* context) {
        return impl_->transport->models().ListLosses(context, v1::ListLossesRequest(), &response);
      });
  if (!status.ok()) return status;
  std::vector<ComponentInfo> losses;
  for (const v1::ComponentInfo& info : response.losses()) losses.push_back(FromProto(info));
  return losses;
}

absl::StatusOr<std::vector<ComponentInfo>> Client::ListSamplers() {
  v1::ListSamplersResponse response;
  const absl::Status status = impl_->transport->Call(
      std::nullopt, RetryOn::kUnavailable, [&](grpc::ClientContext* context) {
        return impl_->transport->models().ListSamplers(context, v1::ListSamplersRequest(),
                                                       &response);
      });
  if (!status.ok()) return status;
  std::vector<ComponentInfo> samplers;
  for (const v1::ComponentInfo& info : response.samplers()) samplers.push_back(FromProto(info));
  return samplers;
}

absl::StatusOr<UpdateResult> Client::Update(const std::string& model, absl::Span<const Row> rows,
                                            const UpdateOptions& options) {
  if (!options.producer_id.empty() && !options.request_id.empty()) {
    return absl::InvalidArgumentError(
        "request_id and producer_id are both set; give the one that names this call");
  }
  if (!options.producer_id.empty() && options.producer_sequence == 0) {
    return absl::InvalidArgumentError(
        "producer_id needs producer_sequence, the number of the first row, counted from 1");
  }
  if (absl::Status status =
          CheckRows(rows, options.producer_id.empty() ? 0 : options.producer_sequence);
      !status.ok()) {
    return status;
  }
  v1::UpdateRequest request;
  request.set_model(model);
  if (options.producer_id.empty()) {
    request.set_request_id(options.request_id.empty() ? RandomId() : options.request_id);
  } else {
    request.set_producer_id(options.producer_id);
    request.set_producer_sequence(options.producer_sequence);
  }
  request.set_ack(ToProto(options.ack));
  EncodeRows(rows, &request);
  v1::UpdateResponse response;
  const absl::Status status = impl_->transport->Call(
      options.timeout, RetryOn::kUnavailableOrFull, [&](grpc::ClientContext* context) {
        return impl_->transport->updates().Update(context, request, &response);
      });
  if (!status.ok()) return status;
  return FromProto(response);
}

absl::StatusOr<std::unique_ptr<UpdateStream>> Client::OpenUpdateStream(const std::string& model,
                                                                       StreamOptions options) {
  auto impl = std::make_unique<UpdateStream::Impl>(impl_->transport, model, std::move(options));
  if (absl::Status status = impl->Open(); !status.ok()) return status;
  return absl::WrapUnique(new UpdateStream(std::move(impl)));
}

absl::StatusOr<PredictResult> Client::Predict(const std::string& model, absl::Span<const Row> rows,
                                              const PredictOptions& options) {
  if (absl::Status status = CheckRows(rows, 0); !status.ok()) {
    return status;
  }
  v1::PredictRequest request;
  request.set_model(model);
  EncodeOptions(options, &request);
  EncodeInstances(rows, &request);
  return impl_->Predict(request, options);
}

absl::StatusOr<PredictResult> Client::Predict(const std::string& model, const Matrix& matrix,
                                              const PredictOptions& options) {
  v1::PredictRequest request;
  request.set_model(model);
  EncodeOptions(options, &request);
  if (absl::Status status = EncodeMatrix(matrix, request.mutable_matrix()); !status.ok()) {
    return status;
  }
  return impl_->Predict(request, options);
}

absl::StatusOr<std::unique_ptr<PredictStream>> Client::OpenPredictStream(
    const std::string& model, const PredictOptions& options) {
  auto impl = std::make_unique<PredictStream::Impl>(impl_->transport, model, options);
  if (absl::Status status = impl->Open(); !status.ok()) return status;
  return absl::WrapUnique(new PredictStream(std::move(impl)));
}

absl::StatusOr<EvaluateResult> Client::Evaluate(const std::string& model, const RowSource& source,
                                                absl::Duration timeout) {
  Transport& transport = *impl_->transport;
  if (absl::Status status =
          transport.WaitConnected(std::min(timeout, transport.options().connect_timeout));
      !status.ok()) {
    return status;
  }
  grpc::ClientContext context;
  if (timeout != absl::InfiniteDuration()) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
  v1::EvaluateResponse response;
  auto writer = transport.predictions().Evaluate(&context, &response);
  absl::Status source_status;
  bool first = true;
  uint64_t sent = 0;
  for (bool open = true; open;) {
    absl::StatusOr<std::vector<Row>> rows = source();
    source_status = rows.status();
    if (source_status.ok()) source_status = CheckRows(*rows, sent);
    if (!source_status.ok() || rows->empty()) break;
    absl::Span<const Row> rest(*rows);
    while (open && !rest.empty()) {
      size_t count = 0;
      for (size_t bytes = 0; count < rest.size(); ++count) {
        bytes += EncodedBytes(rest[count]);
        if (count > 0 && bytes > kEvaluateMessageBytes) break;
      }
      v1::EvaluateRequest request;
      if (first) request.set_model(model);
      first = false;
      EncodeRows(rest.first(count), &request);
      open = writer->Write(request);
      rest.remove_prefix(count);
      sent += count;
    }
  }
  if (!source_status.ok()) {
    context.TryCancel();
    writer->Finish().ok();
    return source_status;
  }
  if (first) {
    context.TryCancel();
    writer->Finish().ok();
    return absl::InvalidArgumentError("there are no rows to evaluate; check the input");
  }
  writer->WritesDone();
  const absl::Status status = transport.FromGrpc(writer->Finish(), timeout);
  if (!status.ok()) return status;
  return FromProto(response);
}

absl::StatusOr<EvaluateResult> Client::Evaluate(const std::string& model,
                                                absl::Span<const Row> rows) {
  bool handed_out = false;
  return Evaluate(
      model,
      [&]() -> absl::StatusOr<std::vector<Row>> {
        if (handed_out) return std::vector<Row>();
        handed_out = true;
        return std::vector<Row>(rows.begin(), rows.end());
      },
      impl_->transport->options().call_timeout);
}

}  // namespace kernelstream::client
