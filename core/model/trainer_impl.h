// Inside Trainer.
#ifndef KERNELSTREAM_CORE_MODEL_TRAINER_IMPL_H_
#define KERNELSTREAM_CORE_MODEL_TRAINER_IMPL_H_

#include <array>
#include <memory>
#include <vector>

#include "core/kernel/kernel.h"
#include "core/model/feature_chunks.h"
#include "core/model/label_table.h"
#include "core/model/scaling.h"
#include "core/model/trainer.h"
#include "core/model/update_rule.h"

namespace kernelstream {

// Thread-compatible. state_ is all there is to save; the other members follow from config and
// state.
class Trainer::Impl {
 public:
  // What a snapshot takes over.
  struct Served {
    std::vector<float> values;
    double scale = 1;
    double inverse_bandwidth = 1;
    std::vector<double> constant;
    Averaging serving = Averaging::kLast;
    ValidationMetrics validation;
    TargetScaling targets;
  };

  static absl::StatusOr<std::unique_ptr<Impl>> Make(const ModelConfig& config, TrainerState state,
                                                    const Options& options);

  void Step(const SampleBatch& batch, size_t first, size_t count, uint64_t sequence);
  Served ServedCoefficients() const;
  std::array<uint8_t, 16> CurrentFingerprint() const;
  ModelPhase phase() const;

  const TrainerState& state() const { return state_; }
  std::shared_ptr<const Loss> loss() const { return loss_; }
  std::shared_ptr<const LabelTable> label_table() const { return table_; }
  std::shared_ptr<const RandomFeatureMap> features() const { return features_; }
  std::shared_ptr<const InputScaling> scaling() const { return scaling_; }

 private:
  // A mini-batch after checks and scaling, and what is computed from it.
  struct Work {
    std::vector<size_t> rows;     // indices into the batch
    std::vector<double> targets;  // as the loss sees them
    std::vector<double> weights;
    std::vector<float> inputs;    // [rows][input_dim], scaled
    std::vector<float> features;  // [panel][row][16] of all features, if they are kept
    std::vector<double> last_scores, average_scores;  // [rows][num_outputs]
    std::vector<double> gram;                         // [rows][rows], sums
    ConstMatrixView x;
  };
  // Features that a step moves: [begin, begin + size).
  struct Range {
    uint64_t begin = 0;
    uint64_t size = 0;
  };

  Impl(const ModelConfig& config, TrainerState state, const Options& options)
      : config_(config), options_(options), state_(std::move(state)) {}

  CandidateState& candidate() { return state_.candidates[0]; }
  const CandidateState& candidate() const { return state_.candidates[0]; }
  bool keeps_average() const { return config_.averaging != Averaging::kLast; }

  void WarmUp(const SampleBatch& batch, size_t first, size_t count);
  void FinishWarmUp();
  // DATA_LOSS: a warmed-up state that cannot be computed with.
  absl::Status CheckWarmState() const;
  // Makes what follows from the state of a warmed-up trainer.
  absl::Status BuildWarmParts();
  void Learn(const SampleBatch& batch, size_t first, size_t count);

  // Rows whose targets can be learned; adds new labels and outputs.
  void TakeTargets(const SampleBatch& batch, size_t first, size_t count, Work& work);
  void TakeInputs(const SampleBatch& batch, Work& work);
  void NoteDimension(const SampleBatch& batch, size_t row);
  absl::StatusOr<double> LossTarget(const TargetView& target);
  // Changes the coefficient layout to `outputs` outputs, new ones 0.
  void GrowOutputs(uint32_t outputs);
  void GrowFeatures(uint64_t num_features);

  // Scores of work.x with `num_features` features and, if asked for, the Gram matrix; fills work.
  void Evaluate(uint64_t num_features, bool with_gram, Work& work);
  Range NextRange(size_t rows) const;
  bool CoefficientsDiverged(const Work& work) const;
  void SetCoefficientsToZero();
  void Move(const StepOutput& output, const Range& range, const Work& work);
  void UpdateAverage();
  void Validate(const Work& work);
  bool ServesAverage() const;

  // Features of panels [first, first + count) of work.x, 0 beyond features [begin, end).
  void MaskedFeatures(ConstMatrixView x, size_t first_panel, size_t num_panels, uint64_t begin,
                      uint64_t end, float* out) const;

  const ModelConfig config_;
  const Options options_;
  TrainerState state_;
  std::shared_ptr<const Loss> loss_;
  std::shared_ptr<const LabelTable> table_;
  std::shared_ptr<const InputScaling> scaling_ = std::make_shared<const InputScaling>();
  std::shared_ptr<const Kernel> kernel_;              // once warm
  std::shared_ptr<const RandomFeatureMap> features_;  // once warm
  std::unique_ptr<const UpdateRule> rule_;            // once warm
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_TRAINER_IMPL_H_
