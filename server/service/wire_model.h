// Models and the catalogue: wire <-> core.
#ifndef KERNELSTREAM_SERVER_SERVICE_WIRE_MODEL_H_
#define KERNELSTREAM_SERVER_SERVICE_WIRE_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/component.h"
#include "core/model/model_config.h"
#include "core/model/validation.h"
#include "kernelstream/v1/model.pb.h"
#include "kernelstream/v1/model_service.pb.h"
#include "server/hosting/hosted_model.h"

namespace kernelstream::server {

// kListed: without what grows with the inputs.
enum class ModelDetail { kAll, kListed };

// INVALID_ARGUMENT (path relative to the config): an unknown enum value, a duration that is none.
// Everything else is checked by CompleteConfig.
absl::StatusOr<ModelConfig> ConfigFromWire(const v1::ModelConfig& wire);
void ConfigToWire(const ModelConfig& config, v1::ModelConfig* wire);

void ModelToWire(const HostedModel& model, ModelDetail detail, v1::Model* wire);
// What an ack takes: without `total` and without classes.
void ValidationToWire(const ValidationMetrics& metrics, v1::ValidationMetrics* wire);
// labels: in the order of the outputs.
void ClassesToWire(const std::vector<ClassMetrics>& classes, const std::vector<std::string>& labels,
                   google::protobuf::RepeatedPtrField<v1::ClassMetrics>* wire);
void ComponentToWire(const ComponentDoc& doc, v1::ComponentInfo* wire);
// 16 hexadecimal digits.
std::string UidText(ModelUid uid);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_WIRE_MODEL_H_
