// The features of a model: its kernel's, in the form and from the sampler of its config.
#ifndef KERNELSTREAM_CORE_MODEL_MODEL_FEATURES_H_
#define KERNELSTREAM_CORE_MODEL_MODEL_FEATURES_H_

#include "absl/status/status.h"
#include "core/base/feature_spec.h"
#include "core/kernel/kernel.h"
#include "core/model/model_config.h"

namespace kernelstream {

// Checks sampler and feature_form against `kernel`, which is config's, and fills their defaults in.
// INVALID_ARGUMENT names what applies.
absl::Status CompleteFeatures(const Kernel& kernel, ModelConfig& config);

// config must be complete.
FeatureSpec ModelFeatures(const Kernel& kernel, const ModelConfig& config);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_MODEL_FEATURES_H_
