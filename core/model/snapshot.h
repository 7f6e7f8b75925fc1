// The immutable model that predictions are made from.
#ifndef KERNELSTREAM_CORE_MODEL_SNAPSHOT_H_
#define KERNELSTREAM_CORE_MODEL_SNAPSHOT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/executor.h"
#include "core/base/published_cell.h"
#include "core/feature/feature_map.h"
#include "core/loss/loss.h"
#include "core/model/label_table.h"
#include "core/model/learned_metric.h"
#include "core/model/model_config.h"
#include "core/model/row_rules.h"
#include "core/model/sample_batch.h"
#include "core/model/scaling.h"
#include "core/model/sparse_inputs.h"
#include "core/model/validation.h"
#include "core/model/variance_estimator.h"

namespace kernelstream {

// kFrozen: full, and created to freeze then. Whoever feeds the trainer stops taking rows in.
enum class ModelPhase { kWarmingUp, kLearning, kFrozen };

// One learner in the race, as `describe` shows it.
struct CandidateReport {
  uint64_t generation = 0;
  MetricForm form = MetricForm::kIsotropic;
  double bandwidth = 1;
  double step_constant = 0;  // 0: not the proximal rule
  bool replays = false;
  double recent_loss = 0, recent_average_loss = 0;  // of the last and the averaged coefficients
  bool served = false;                              // unless VarianceReport::serves_mean
};

// What a person should know about a model that learns. kOneLabel, kConstantTarget and
// kConstantInputs come once the warm-up is over and 256 rows were learned; the first two go when a
// row says otherwise, the third stays, because scales and bandwidth were chosen from such rows.
// kFarTargets: recent targets are so many scales away that many are pulled in.
// kNoMetric: the metric that the config asks for cannot be learned of as many inputs as there are.
enum class WarningKind {
  kDrift,
  kOrdered,
  kOneLabel,
  kConstantTarget,
  kConstantInputs,
  kDiverged,
  kNoMetric,
  kFarTargets
};
// text: what was seen, and what to do.
struct ModelWarning {
  WarningKind kind;
  std::string text;
};

// Of a model with uncertainty, once warm.
struct VarianceReport {
  VarianceMethod method = VarianceMethod::kNone;
  uint32_t features = 0;       // that it is estimated on
  double coverage = 0;         // that intervals promise
  double bandwidth = 1;        // of the kernel that it is estimated under
  uint64_t rows = 0;           // learned under this kernel
  double noise_variance = 0;   // estimated or given, target units squared
  double interval_factor = 0;  // intervals reach so many deviations of noise and function
  bool serves_mean = false;    // kExact: scores are the posterior's mean, no candidate's
};

// What was chosen from the data.
struct ResolvedConfig {
  uint32_t dimension = 0;  // 0 while open: no dense row was learned and the config names none
  ParameterMap kernel_parameters;  // complete once the warm-up has ended
  ParameterMap rule_parameters;    // complete once the warm-up has ended, with what was measured
  uint32_t standardized_inputs = 0;
  double target_offset = 0;  // of the first target
  double target_scale = 1;
  std::vector<TargetScaling> targets;    // regression: one per output
  Averaging serving = Averaging::kLast;  // kLast, kPolynomial or kUniform
  std::vector<CandidateReport> candidates;
  std::optional<VarianceReport> variance;
};

// Immutable. Shared by counted reference. Evaluates rows with the coefficients of one step.
class Snapshot final : public RefCounted {
 public:
  // Rows -> scores. out: [rows.size()][num_outputs()], score space. Rows must have passed
  // RowRules::CheckInput; a sparse index beyond the dimension is evaluated like any other
  // (frequencies are a pure function of the coordinate). Hashed inputs: time for a row's own
  // values. A row's scores do not depend on the other rows, the executor, or the feature cache.
  // Uses thread-local scratch. Finite, unless a row's features overflow float32, which takes a
  // kernel whose k(x, x) has no bound and a row far beyond those it learned from.
  void Score(const SampleBatch& rows, Executor& executor, double* out) const;

  // What Score(rows) takes, in multiply-adds, roughly: to decide where to run it. Frequencies that
  // have to be drawn count too.
  uint64_t WorkOf(const SampleBatch& rows) const;

  // Whether a row has an input beyond the dimension: all rows that are scored with it take the time
  // of a model so wide.
  bool IsWide(const SampleBatch& rows) const {
    return features_ != nullptr && DimensionFor(rows) > features_->input_dim();
  }

  size_t num_outputs() const { return num_outputs_; }
  // Scores of one row -> what a user reads (label, probabilities, value in target units).
  Prediction Link(std::span<const double> scores) const;
  // Link's parts, without its allocations. Models with labels: index of the label, which may be one
  // that labels() does not have yet.
  size_t LabelOf(std::span<const double> scores) const;
  // loss().has_probabilities() and labels() is not empty: out: [labels().size()].
  void ProbabilitiesOf(std::span<const double> scores, std::span<double> out) const;
  // Models without labels: the value, of target k where there are several (target units).
  double ValueOf(std::span<const double> scores, size_t k) const;

  ModelPhase phase() const { return phase_; }
  uint64_t step() const { return step_; }
  uint64_t sequence() const { return sequence_; }
  uint64_t rows_learned() const { return rows_learned_; }
  uint64_t num_features() const { return num_features_; }
  // In the order of the outputs; a binary label that was not seen yet is "".
  const std::vector<std::string>& labels() const { return table_->labels(); }
  const ResolvedConfig& resolved() const { return resolved_; }
  RowWidth width() const { return {resolved_.dimension, sparse_dim_}; }
  const ValidationMetrics& validation() const { return validation_; }
  const std::vector<ModelWarning>& warnings() const { return warnings_; }
  // Times drift was reported since the model was created.
  uint64_t drift_reports() const { return drift_reports_; }
  // Of inputs; none before the warm-up has ended.
  const InputScaling& scaling() const { return *scaling_; }
  // How much each input counts under the served learner's metric: LearnedMetric::Relevance.
  std::vector<double> InputRelevance() const;
  // Bytes of the frequencies of what is served: all, and those that are kept now. 0 before any.
  struct FrequencyBytes {
    int64_t all = 0, kept = 0;
  };
  FrequencyBytes frequency_bytes() const;
  // Digest of config and the trainer's coefficients (all of them, not only the served ones) at
  // fingerprint_step(), which is step() unless Trainer::MakeSnapshot was given an older digest.
  const std::array<uint8_t, 16>& fingerprint() const { return fingerprint_; }
  uint64_t fingerprint_step() const { return fingerprint_step_; }
  // Loss and target units, for evaluation of labelled rows.
  const Loss& loss() const { return *loss_; }
  // Target as the loss sees it: label index, or standardised value. NOT_FOUND for a label the model
  // does not know.
  absl::StatusOr<double> LossTarget(const TargetView& target) const;
  // The same, appended to `out`: one value, or one per output for a regression with several (then
  // INVALID_ARGUMENT for a row with another number of targets).
  absl::Status AppendLossTargets(const TargetView& target, std::vector<double>& out) const;
  // kNovelty: rows that score below are novel.
  double threshold() const { return threshold_; }

  // True if predictions have an uncertainty (the config names a method and the warm-up has ended).
  bool has_uncertainty() const { return variance_ != nullptr; }
  // Of each row, standardised. out: [rows.size()]. As Score, of which it is independent.
  void Assess(const SampleBatch& rows, Executor& executor, RowUncertainty* out) const;
  // Puts it into a prediction, in target units.
  void AddUncertainty(const RowUncertainty& uncertainty, Prediction& prediction) const;

 private:
  friend class Trainer;
  Snapshot(std::shared_ptr<const Loss> loss, std::shared_ptr<const LabelTable> table)
      : loss_(std::move(loss)), table_(std::move(table)) {}
  // Of target k; the identity before any row.
  TargetScaling ScalingOf(size_t k) const;
  // One tile of rows as features take them; x points into it.
  struct TileInputs {
    std::vector<float> scaled, mapped;
    SparseRows sparse;
    InputsView x;
  };
  // Under `metric`. dimension: of dense inputs.
  void TakeInputs(const SampleBatch& rows, size_t first, size_t count, size_t dimension,
                  const LearnedMetric& metric, TileInputs& out) const;
  // Inputs that frequencies are needed for: the model's, or more where a sparse row has more.
  size_t DimensionFor(const SampleBatch& rows) const;

  std::shared_ptr<const Loss> loss_;
  std::shared_ptr<const LabelTable> table_;
  std::shared_ptr<const FeatureMap> features_;  // null while warming up
  std::shared_ptr<const InputScaling> scaling_;
  bool hashed_ = false;
  uint32_t sparse_dim_ = 0;
  std::shared_ptr<const LearnedMetric> metric_;  // null while warming up
  std::vector<float> coefficients_;              // [panel][output][16]
  double coefficient_scale_ = 1;
  double inverse_bandwidth_ = 1;
  std::vector<double> constant_;  // added to every score, [num_outputs]
  size_t num_outputs_ = 1;
  ModelPhase phase_ = ModelPhase::kWarmingUp;
  uint64_t step_ = 0, sequence_ = 0, rows_learned_ = 0, num_features_ = 0;
  uint64_t num_scored_ = 0;  // features that coefficients_ are of
  ResolvedConfig resolved_;
  ValidationMetrics validation_;
  std::vector<ModelWarning> warnings_;
  uint64_t drift_reports_ = 0;
  double threshold_ = 0;
  // Null without uncertainty, the last one also for methods with one family of features.
  std::shared_ptr<const PredictiveVariance> variance_;
  std::shared_ptr<const LearnedMetric> variance_metric_;
  std::shared_ptr<const FeatureMap> variance_features_, second_features_;
  double variance_inverse_bandwidth_ = 1;
  std::array<uint8_t, 16> fingerprint_{};
  uint64_t fingerprint_step_ = 0;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_SNAPSHOT_H_
