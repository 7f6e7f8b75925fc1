#include "server/service/call.h"

#include "absl/time/clock.h"
#include "core/base/field_error.h"
#include "server/service/status_mapping.h"
#include "server/service/wire_bytes.h"

namespace kernelstream::server {

CallRecord::CallRecord(RpcMetrics& metrics) : metrics_(&metrics), start_(absl::Now()) {
  metrics_->Started();
}

void CallRecord::Ended(grpc::StatusCode code) const {
  metrics_->Handled(static_cast<absl::StatusCode>(code), absl::Now() - start_);
}

void UnaryReply::Ok(const google::protobuf::Message& response) const {
  *response_ = SerializeMessage(response);
  record_.Ended(grpc::StatusCode::OK);
  reactor_->Finish(grpc::Status::OK);
}

void UnaryReply::Error(const absl::Status& status) const {
  const grpc::Status answer = ToGrpc(status);
  record_.Ended(answer.error_code());
  reactor_->Finish(answer);
}

absl::StatusOr<std::shared_ptr<HostedModel>> FindModel(const ServiceContext& context,
                                                       absl::string_view field,
                                                       const std::string& name) {
  if (name.empty()) return InvalidField(field, "no model is named; ListModels lists them");
  auto model = context.registry->Get(name);
  if (!model.ok()) return WithModel(model.status(), name);
  return model;
}

}  // namespace kernelstream::server
