// Rows, and what a model is made of and knows of itself, as plain values; kernelstream/client.h
// includes it.
#ifndef KERNELSTREAM_CLIENT_INCLUDE_KERNELSTREAM_MODEL_H_
#define KERNELSTREAM_CLIENT_INCLUDE_KERNELSTREAM_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
namespace kernelstream::client {

// ---- Rows

// One value per input.
struct DenseFeatures {
  std::vector<float> values;
};
// indices: strictly increasing, from 0; as many values as indices. Inputs not named are zero.
struct SparseFeatures {
  std::vector<uint64_t> indices;
  std::vector<float> values;
};
// Inputs by name, for models created with `hashed`: numbers, and categories, each of which counts
// as an input of its own. Names are 1 or more bytes of UTF-8; those not given are zero.
struct NamedFeatures {
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> categories;
};
using Features = std::variant<DenseFeatures, SparseFeatures, NamedFeatures>;

// Which of two populations a row was drawn from; a density ratio is numerator / denominator.
enum class Population { kNumerator = 1, kDenominator };

// A number (regression; or a label written as a number), a label, a population (density ratios),
// several numbers (regression with several targets), or nothing (rows to predict, and those of a
// model that learns from rows alone).
using Target = std::variant<std::monostate, double, std::string, Population, std::vector<double>>;

struct Row {
  Features features = {};
  Target target = {};
  // How much the row counts, above 0. Absent: 1.
  std::optional<double> weight = std::nullopt;
};

// Rows to predict without a copy per row. values: [rows, dimension] row-major, borrowed.
struct Matrix {
  size_t rows = 0;
  size_t dimension = 0;
  absl::Span<const float> values;
};

// ---- Models

struct ComponentTerm;

struct Component {
  std::string name;
  std::map<std::string, double> parameters;
  // Of kernels "sum" and "product".
  std::vector<ComponentTerm> terms;
};

struct ComponentTerm {
  double weight = 1;
  Component component;
};

enum class Averaging { kUnspecified = 0, kAuto, kLast, kPolynomial, kUniform };
enum class WhenFull { kUnspecified = 0, kKeepLearning, kFreeze };
enum class Standardize { kUnspecified = 0, kAuto, kOn, kOff };
enum class VarianceMethod {
  kUnspecified = 0,
  kNone,
  kExact,
  kOperator,
  kTestPoints,
  kQuantilePair
};
enum class FeatureForm { kUnspecified = 0, kAuto, kSingle, kPair };
enum class InputMetric { kUnspecified = 0, kAuto, kOff, kDiagonal, kFull };
enum class StreamOrder { kUnspecified = 0, kDrifting, kOrdered };
enum class Phase { kUnspecified = 0, kWarmingUp, kLearning, kFrozen, kFailed };

// How uncertain predictions are.
struct VarianceConfig {
  VarianceMethod method = VarianceMethod::kUnspecified;
  uint32_t features = 0;
  std::optional<double> noise_variance;
  double coverage = 0;
  std::vector<std::vector<float>> test_points;
};

// Learners that race: every bandwidth with every step constant. Empty: the server's default.
struct CandidateGrid {
  // Multiples of the median distance, or of the kernel's bandwidth where the config has one.
  std::vector<double> bandwidth_scales;
  std::vector<double> step_constants;
};

// Old rows learned again between new ones.
struct ReplayConfig {
  // Per new row. 0: no replay.
  std::optional<uint32_t> ratio;
  uint32_t reservoir_rows = 0;
  StreamOrder order = StreamOrder::kUnspecified;
};

// Only loss is required, and enough for a good model. 0, "" and absent: the server's default.
struct ModelConfig {
  Component loss;
  Component kernel;
  uint32_t dimension = 0;
  // Rows may have any indices below 2^64, or names; there is no dimension.
  bool hashed = false;
  Standardize standardize = Standardize::kUnspecified;
  // Given, not chosen: an input is learned as (x - offset) / scale, a target (regression) likewise.
  // One each per input or target; either may be left out for 0 and 1.
  std::vector<double> input_offsets, input_scales, target_offsets, target_scales;
  std::vector<std::string> labels;
  uint32_t max_labels = 0;
  std::optional<double> l2_penalty;
  Component update_rule;
  Averaging averaging = Averaging::kUnspecified;
  std::optional<uint64_t> seed;
  std::string sampler;
  uint32_t batch_rows = 0;
  std::optional<absl::Duration> max_batch_delay;
  uint32_t block_features = 0;
  // 0: they grow as long as memory_mib allows.
  std::optional<uint32_t> max_features;
  WhenFull when_full = WhenFull::kUnspecified;
  uint32_t warmup_rows = 0;
  VarianceConfig variance;
  CandidateGrid candidates;
  InputMetric input_metric = InputMetric::kUnspecified;
  ReplayConfig replay;
  uint32_t memory_mib = 0;
  FeatureForm feature_form = FeatureForm::kUnspecified;
};

// Of one label; shares are 0 where there is nothing to divide by.
struct ClassMetrics {
  std::string label;
  double weight = 0;  // of its rows
  double precision = 0;
  double recall = 0;
  double f1 = 0;
};

// How good predictions are. values: by name, those that the task has (loss, error_rate, auc, r2,
// ...); proto/kernelstream/v1/model.proto defines each. classes: classification with few labels.
struct Metrics {
  std::map<std::string, double> values;
  std::vector<ClassMetrics> classes;
  uint64_t rows = 0;
};

// Errors on rows that were predicted before they were learned.
struct ValidationMetrics {
  double recent_loss = 0;
  double mean_loss = 0;
  double recent_error_rate = 0;
  double mean_error_rate = 0;
  double recent_squared_error = 0;
  double mean_squared_error = 0;
  uint64_t rows = 0;
  // Of what was served: recent rows weighing more, and since the first step.
  Metrics recent;
  Metrics total;
};

// A learner in the race.
struct CandidateReport {
  uint64_t generation = 0;
  // kOff: no learned metric.
  InputMetric metric = InputMetric::kUnspecified;
  double bandwidth = 0;
  double step_constant = 0;
  bool replays = false;
  // Of the newest coefficients, and of their average; infinite before the first row.
  double recent_loss = 0;
  double recent_average_loss = 0;
  bool served = false;
};

enum class WarningKind {
  kUnspecified = 0,
  kDrift,
  kOrdered,
  kOneLabel,
  kConstantTarget,
  kConstantInputs,
  kDiverged,
  kNoMetric,
  kFarTargets
};

// What a person should know about the stream.
struct Warning {
  WarningKind kind = WarningKind::kUnspecified;
  std::string text;
};

// What predictions' uncertainty comes from now. The proto documents each field.
struct ResolvedVariance {
  VarianceMethod method = VarianceMethod::kUnspecified;
  uint32_t features = 0;
  double coverage = 0;
  double noise_variance = 0;  // target units squared
  double interval_factor = 0;
  double bandwidth = 0;
  uint64_t rows = 0;
  bool serves_mean = false;
};

// What the server chose where the config was silent.
struct ResolvedConfig {
  uint32_t dimension = 0;
  Component kernel;
  Component loss;
  Component update_rule;
  std::vector<std::string> labels;
  uint32_t standardized_inputs = 0;
  std::vector<double> input_offsets, input_scales;  // empty: as they come; not in ListModels
  // Of the learned metric: 0 to 1 of the input that counts most. Empty without one, and in
  // ListModels.
  std::vector<double> input_relevance;
  double target_offset = 0, target_scale = 0;
  std::vector<double> target_offsets, target_scales;  // regression: of every output
  double threshold = 0;                               // novelty
  // 0: as many as the memory allows.
  uint32_t max_features = 0;
  uint32_t batch_rows = 0;
  uint64_t seed = 0;
  Averaging serving = Averaging::kUnspecified;
  double l2_penalty = 0;
  std::vector<CandidateReport> candidates;
  std::optional<ResolvedVariance> variance;
};

struct ModelInfo {
  std::string name;
  std::string uid;
  absl::Time create_time;
  ModelConfig config;
  Phase phase = Phase::kUnspecified;
  uint64_t step = 0;
  uint64_t num_features = 0;
  uint64_t rows_learned = 0;
  uint64_t rows_pending = 0;
  uint64_t rows_rejected = 0;
  uint64_t sequence = 0;
  std::string fingerprint;
  uint64_t fingerprint_step = 0;
  std::optional<ResolvedConfig> resolved;
  std::optional<ValidationMetrics> validation;
  std::string failure;
  std::vector<Warning> warnings;
  uint64_t drift_reports = 0;
  // Of the random frequencies that predictions read: all, and those that the server keeps now; the
  // others are drawn again at each use.
  uint64_t frequency_bytes = 0, kept_frequency_bytes = 0;
  // The SIMD instructions that the server's CPU computes features with: "AVX3", "AVX2", "NEON", ...
  std::string simd_target;
};

struct ParameterInfo {
  std::string name;
  std::string documentation;
  double min = 0;
  double max = 0;
  // Absent: chosen from the warm-up rows.
  std::optional<double> default_value;
};

// A kernel, a loss or a sampler that a config can name.
struct ComponentInfo {
  std::string name;
  std::string documentation;
  std::vector<ParameterInfo> parameters;
  // Kernels: which inputs it is defined for, in words. Rows with others are rejected.
  std::string inputs;
  // Samplers: names of the kernels whose frequencies it can draw.
  std::vector<std::string> kernels;
};

struct CreatedModel {
  ModelInfo model;
  // False if a model of that name and equal config was there already.
  bool created = false;
};

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_INCLUDE_KERNELSTREAM_MODEL_H_
