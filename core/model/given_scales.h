// Scales of inputs and targets that the config gives.
#ifndef KERNELSTREAM_CORE_MODEL_GIVEN_SCALES_H_
#define KERNELSTREAM_CORE_MODEL_GIVEN_SCALES_H_

#include "absl/status/status.h"
#include "core/loss/loss.h"
#include "core/model/model_config.h"

namespace kernelstream {

// Part of CompleteConfig. Fills in the offsets or scales that are missing and, of inputs, the
// dimension and that they are standardised. INVALID_ARGUMENT with a field path.
absl::Status CompleteScales(Task task, ModelConfig& config);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_GIVEN_SCALES_H_
