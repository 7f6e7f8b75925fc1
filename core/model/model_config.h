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
#include "core/base/inputs_view.h"

namespace kernelstream {

enum class Standardize { kAuto, kOn, kOff };
enum class Averaging { kAuto, kLast, kPolynomial, kUniform };
enum class WhenFull { kKeepLearning, kFreeze };
// Of features that are cosines: each with its own frequency, or two on one (FeatureSpec::pairs).
enum class CosineForm { kAuto, kSingle, kPair };
enum class InputMetric { kAuto, kOff, kDiagonal, kFull };
// Whether what a stream shows changes with time, or only the order in which it is sent.
enum class StreamOrder { kDrifting, kOrdered };
// How the uncertainty of a regression's predictions is estimated (core/model/variance_estimator.h).
enum class VarianceMethod { kNone, kExact, kOperator, kTestPoints, kQuantilePair };

// Upper ends of what may be asked for.
inline constexpr uint32_t kMaxLabels = 65536;
inline constexpr uint32_t kMaxBatchRows = 1024;
inline constexpr uint32_t kMaxFeatures = 4194304;
// ModelConfig::max_features of a model that grows as long as its memory allows.
inline constexpr uint32_t kUnlimitedFeatures = 0xffffffff;
inline constexpr uint32_t kMaxMemoryMib = 1 << 20;
inline constexpr uint32_t kMaxGridValues = 16;
inline constexpr uint32_t kMaxReservoirRows = 1 << 20;
inline constexpr uint32_t kMaxReplayRatio = 16;
inline constexpr uint32_t kMaxVarianceFeatures = 2048;
inline constexpr uint32_t kMaxTestPoints = 256;
inline constexpr uint32_t kMaxWarmupRows = 4096;
inline constexpr size_t kMaxTargets = 256;  // of a row
inline constexpr size_t kMaxLabelBytes = 256;

// Learners that race on one stream of frequencies: every bandwidth with every step constant.
struct CandidateGrid {
  // Multiples of the median distance (of the kernel's bandwidth where it is given). Default: 1/8,
  // 1/4, 1/2, 1, 2; only 1 where the bandwidth is given and for rules other than proximal;
  // 1/4 for novelty, whose losses cannot be compared between bandwidths. Density ratios: 1/2, 1, 2,
  // 4.
  std::vector<double> bandwidth_scales;
  // Default: 0.1, 0.3, 1, 3 (density ratios: 30, 100, 300, 1000; novelty: 100); only the rule's
  // where it is given. Empty for rules other than proximal.
  std::vector<double> step_constants;

  bool operator==(const CandidateGrid&) const = default;
};

// Old rows learned again between new ones.
struct ReplayConfig {
  // Replayed rows per new one; 0: no replay. Default for the proximal rule: 6 for ordered streams,
  // 3 for regressions, 1 for labels; 0 for the other rules, for novelty and for density ratios.
  std::optional<uint32_t> ratio;
  uint32_t reservoir_rows = 0;  // default 16384
  StreamOrder order = StreamOrder::kDrifting;

  bool operator==(const ReplayConfig&) const = default;
};

// Variance of predictions and prediction intervals, of regressions with one output.
struct VarianceConfig {
  // Default kNone. The three that estimate a Gaussian process's variance need the square loss; a
  // quantile pair gives intervals with any loss.
  VarianceMethod method = VarianceMethod::kNone;
  // Of the model's features, the first ones: a multiple of 16, at most kMaxVarianceFeatures.
  // Default 1024.
  uint32_t features = 0;
  // Of the targets around the function, target units squared. Default: estimated as rows are
  // learned.
  std::optional<double> noise_variance;
  double coverage = 0;  // of prediction intervals. Default 0.9
  // kTestPoints: the inputs whose variance is asked for, all of one size.
  std::vector<std::vector<float>> test_points;

  bool operator==(const VarianceConfig&) const = default;
};

// value -> (value - offset) / scale, one each per value; both empty: chosen from the data. Offsets
// in +-1e31, scales from 1e-31 (targets: 1e-300) to 1e31.
struct GivenScales {
  std::vector<double> offsets, scales;

  bool empty() const { return offsets.empty() && scales.empty(); }
  bool operator==(const GivenScales&) const = default;
};

// 0 and empty mean "the default"; CompleteConfig writes the defaults in.
struct ModelConfig {
  ComponentConfig loss;
  ComponentConfig kernel;  // default gaussian
  uint32_t dimension = 0;  // stays 0: taken from the first row
  bool hashed = false;     // no dimension: any index below 2^64
  Standardize standardize = Standardize::kAuto;
  GivenScales input_scales;   // as many as inputs, whose dimension and standardize they decide
  GivenScales target_scales;  // regression: as many as targets
  std::vector<std::string> labels;
  uint32_t max_labels = 0;  // default 1000
  std::optional<double> l2_penalty;
  ComponentConfig update_rule;  // default proximal
  CandidateGrid candidates;
  InputMetric input_metric = InputMetric::kAuto;
  ReplayConfig replay;
  VarianceConfig variance;
  Averaging averaging = Averaging::kAuto;
  std::optional<uint64_t> seed;  // default 42
  std::string sampler;           // default iid
  // Default kAuto, which CompleteConfig decides from the kernel.
  CosineForm feature_form = CosineForm::kAuto;
  uint32_t batch_rows = 0;                        // default 64
  std::optional<double> max_batch_delay_seconds;  // default 0.020
  // 0: as many as the batch has rows, which is the default but for novelty and for more than 8192
  // features (CompleteConfig).
  uint32_t block_features = 0;
  uint32_t max_features = 0;  // default 8192; kUnlimitedFeatures: as memory_mib allows
  // Most memory of the coefficients of all candidates; what does not fit is not grown, or not
  // raced. Default 1024.
  uint32_t memory_mib = 0;
  WhenFull when_full = WhenFull::kKeepLearning;
  uint32_t warmup_rows = 0;  // default 500

  bool operator==(const ModelConfig&) const = default;
};

// Checks every field and fills the defaults in. INVALID_ARGUMENT with a field path
// (core/base/field_error.h) if something is unknown (known names are listed) or out of range.
// Completing a complete config changes nothing.
absl::Status CompleteConfig(ModelConfig& config);
// INVALID_ARGUMENT with a field path: the complete config asks for something that would have no
// effect. Only new models pass through: stored ones keep what they were created with.
absl::Status CheckNewConfig(const ModelConfig& config);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_MODEL_CONFIG_H_
