// Digests of configs and trainers.
#ifndef KERNELSTREAM_CORE_MODEL_FINGERPRINT_H_
#define KERNELSTREAM_CORE_MODEL_FINGERPRINT_H_

#include <array>
#include <cstdint>

#include "core/model/model_config.h"
#include "core/model/trainer_state.h"

namespace kernelstream {

// Digest of the config (without max_batch_delay, which changes no bit by itself) and of everything
// that decides predictions, their uncertainty and later steps. The same on every machine.
// `variance`: null without a variance; in place of state.variance, which a running trainer does not
// fill. `state.fingerprint` itself is left out.
std::array<uint8_t, 16> Fingerprint(const ModelConfig& config, const TrainerState& state,
                                    const VarianceEstimator* variance);

// The digest that versions saved which left the variance's config and state out; of a model without
// variance, the same. Never changes, so that what they saved can still be checked.
std::array<uint8_t, 16> FingerprintWithoutVariance(const ModelConfig& config,
                                                   const TrainerState& state);

// The digest that the first versions saved, of what they had: one learner. Never changes, so that
// what they saved can still be checked.
std::array<uint8_t, 16> FirstFingerprint(const ModelConfig& config, const TrainerState& state);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_FINGERPRINT_H_
