// Between the plain structs of client.h and the wire messages. The command line uses it to print
// messages as JSON.
#ifndef KERNELSTREAM_CLIENT_SRC_CONVERT_H_
#define KERNELSTREAM_CLIENT_SRC_CONVERT_H_

#include "client/include/kernelstream/client.h"
#include "google/rpc/status.pb.h"
#include "kernelstream/v1/model.pb.h"
#include "kernelstream/v1/model_service.pb.h"
#include "kernelstream/v1/online_update_service.pb.h"
#include "kernelstream/v1/prediction_service.pb.h"

namespace kernelstream::client {

// Lossless in both directions.
v1::ModelConfig ToProto(const ModelConfig& config);
v1::Model ToProto(const ModelInfo& model);
v1::ComponentInfo ToProto(const ComponentInfo& info);
v1::Prediction ToProto(const Prediction& prediction);
v1::EvaluateResponse ToProto(const EvaluateResult& result);
v1::ValidationMetrics ToProto(const ValidationMetrics& metrics);
ModelConfig FromProto(const v1::ModelConfig& config);
ModelInfo FromProto(const v1::Model& model);
ComponentInfo FromProto(const v1::ComponentInfo& info);
PredictResult FromProto(v1::PredictResponse response);
// Columns become rows. A response whose columns do not fit together: DataLoss.
absl::StatusOr<PredictResult> FromProto(v1::StreamPredictResponse response);
EvaluateResult FromProto(const v1::EvaluateResponse& response);
UpdateResult FromProto(const v1::UpdateResponse& response);
ValidationMetrics FromProto(const v1::ValidationMetrics& metrics);
RejectedRow FromProto(const v1::RejectedSample& rejected);

v1::AckLevel ToProto(AckLevel ack);

// A status sent inside a message, its details kept as payload.
absl::Status FromProto(const google::rpc::Status& status);

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_CONVERT_H_
