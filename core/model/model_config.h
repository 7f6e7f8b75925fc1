// What a model is made of, as plain values. The wire's ModelConfig documents each field for users.
#ifndef KERNELSTREAM_CORE_MODEL_MODEL_CONFIG_H_
#define KERNELSTREAM_CORE_MODEL_MODEL_CONFIG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/component.h"

namespace kernelstream {

enum class Standardize { kAuto, kOn, kOff };
enum class Averaging { kAuto, kLast, kPolynomial, kUniform };
enum class WhenFull { kKeepLearning, kFreeze };

// Upper ends of what may be asked for.
inline constexpr uint32_t kMaxInputDimension = 65536;
inline constexpr uint32_t kMaxLabels = 65536;
inline constexpr uint32_t kMaxBatchRows = 1024;
inline constexpr uint32_t kMaxFeatures = 4194304;
inline constexpr uint32_t kMaxWarmupRows = 4096;
inline constexpr size_t kMaxLabelBytes = 256;

// 0 and empty mean "the default"; CompleteConfig writes the defaults in.
struct ModelConfig {
  ComponentConfig loss;
  ComponentConfig kernel;  // default gaussian
  uint32_t dimension = 0;  // stays 0: taken from the first row
  Standardize standardize = Standardize::kAuto;
  std::vector<std::string> labels;
  uint32_t max_labels = 0;  // default 1000
  std::optional<double> l2_penalty;
  ComponentConfig update_rule;  // default proximal
  Averaging averaging = Averaging::kAuto;
  std::optional<uint64_t> seed;                   // default 42
  std::string sampler;                            // default iid
  uint32_t batch_rows = 0;                        // default 64
  std::optional<double> max_batch_delay_seconds;  // default 0.020
  uint32_t block_features = 0;                    // stays 0: as many as the batch has rows
  uint32_t max_features = 0;                      // default 8192
  WhenFull when_full = WhenFull::kKeepLearning;
  uint32_t warmup_rows = 0;  // default 500

  bool operator==(const ModelConfig&) const = default;
};

// Checks every field and fills the defaults in. INVALID_ARGUMENT with a field path
// (core/base/field_error.h) if something is unknown (known names are listed) or out of range.
// Completing a complete config changes nothing.
absl::Status CompleteConfig(ModelConfig& config);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_MODEL_CONFIG_H_
