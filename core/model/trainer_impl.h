// Inside Trainer.
#ifndef KERNELSTREAM_CORE_MODEL_TRAINER_IMPL_H_
#define KERNELSTREAM_CORE_MODEL_TRAINER_IMPL_H_

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/aligned_floats.h"
#include "core/kernel/kernel.h"
#include "core/model/feature_chunks.h"
#include "core/model/label_table.h"
#include "core/model/large_features.h"
#include "core/model/learned_metric.h"
#include "core/model/reservoir.h"
#include "core/model/scaling.h"
#include "core/model/sparse_inputs.h"
#include "core/model/trainer.h"
#include "core/model/update_rule.h"
#include "core/model/variance_estimator.h"

namespace kernelstream {

// Rows of one proximal step. Steps of more rows learn more from each row and cost more time; all of
// one size make the model independent of how rows arrive.
inline constexpr size_t kProximalBlockRows = 64;

// Thread-compatible. state_ (with the reservoirs, which Save writes into it) is all there is to
// save; the other members follow from config and state.
class Trainer::Impl {
 public:
  // What follows from a GenerationState.
  struct Stream {
    std::shared_ptr<const LearnedMetric> metric;
    std::shared_ptr<const FeatureMap> features;
  };

  // What a snapshot takes over.
  struct Served {
    std::vector<float> values;
    double scale = 1;
    double inverse_bandwidth = 1;
    std::shared_ptr<const FeatureMap> features;
    std::shared_ptr<const LearnedMetric> metric;
    std::vector<double> constant;
    Averaging serving = Averaging::kLast;
    ValidationMetrics validation;
    std::vector<TargetScaling> targets;  // regression: one per output
    std::vector<CandidateReport> candidates;
    double threshold = 0;
    std::shared_ptr<const PredictiveVariance> variance;
    std::optional<VarianceReport> variance_report;
    Stream variance_stream, second_stream;
    uint64_t num_features = 0;  // that values are of
    double variance_inverse_bandwidth = 1;
  };

  static absl::StatusOr<std::unique_ptr<Impl>> Make(const ModelConfig& config, TrainerState state,
                                                    const Options& options);

  void Step(const SampleBatch& batch, size_t first, size_t count, uint64_t sequence);
  // A trainer of the served candidate alone that has learned the waiting rows too; null if none
  // wait. Only to be shown: its variance and its other candidates are missing.
  std::unique_ptr<Impl> WithWaitingRows() const;
  // While warming up: a trainer that has learned the first rows, as many as a power of two; null
  // while they are too few, and for losses that rank rows. Only to be shown. A function of the
  // state, made once for each power.
  const Impl* Provisional() const;
  Served ServedModel() const;
  // The uncertainty (with the posterior's mean, where that is served) and the report of all
  // candidates.
  void AddNotServed(Served& served) const;
  // Novelty: where the wanted fraction of the rows that were held out scores below.
  double NoveltyThresholdOf(const Snapshot& snapshot) const;
  TrainerState Save() const;
  std::array<uint8_t, 16> CurrentFingerprint() const;
  ModelPhase phase() const;
  // trainer_warnings.cc. A function of config and state. shown: with the waiting rows, or this one.
  std::vector<ModelWarning> Warnings(const Impl& shown) const;

  const TrainerState& state() const { return state_; }
  std::shared_ptr<const Loss> loss() const { return loss_; }
  std::shared_ptr<const LabelTable> label_table() const { return table_; }
  std::shared_ptr<const InputScaling> scaling() const { return scaling_; }
  bool hashed() const { return config_.hashed; }

 private:
  // Candidates of one bandwidth on one stream share features and Gram matrix.
  struct BandwidthWork {
    double bandwidth = 1;
    std::vector<size_t> candidates;
    // [panel][row][16] of all features, if they are kept: scratch of this thread, until the next
    // Evaluate, of whatever model, or the Work's large_features, until its Move has ended.
    float* features = nullptr;
    std::vector<double> gram;    // [rows][rows], sums
    uint64_t gram_features = 0;  // that the sums are over; 1 for a matrix of the kernel's values
    size_t gram_chunks = 0;      // chunks of features that the Gram matrix is taken from
  };
  struct StreamWork {
    const Stream* stream = nullptr;
    std::vector<float> inputs;           // [rows][input_dim], under the metric
    ConstMatrixView dense;               // these, or the inputs themselves; empty for hashed ones
    std::unique_ptr<SparseRows> sparse;  // what x is in their place if most of them are 0
    InputsView x;
    std::vector<BandwidthWork> bandwidths;
  };
  // A mini-batch after checks and scaling, and what is computed from it. Stays where it is: x
  // points into it.
  struct Work {
    Work() = default;
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    std::vector<size_t> rows;     // indices into the batch
    std::vector<double> targets;  // as the loss sees them, [rows][targets_per_row]
    size_t targets_per_row = 1;
    std::vector<double> weights;      // as learning counts rows
    std::vector<double> row_weights;  // as they were sent
    std::vector<float> inputs;        // [rows][input_dim], scaled
    SparseRows sparse_inputs;         // in place of these, hashed inputs
    InputsView x;                     // of either
    std::vector<StreamWork> streams;
    LargeFeatures::Buffers large_features;  // of bandwidths, where they are large
    // By candidate, empty for those that do not take part: [rows][num_outputs].
    std::vector<std::vector<double>> last_scores, average_scores;
  };
  // Features that a step moves: [begin, begin + size).
  struct Range {
    uint64_t begin = 0;
    uint64_t size = 0;
  };
  // Coefficients that are served.
  struct Choice {
    size_t candidate = 0;
    bool average = false;
  };
  // kKnown: rows that the model has learned and new candidates have not.
  enum class Rows { kNew, kKnown, kReplayed };
  // What the variance takes of a mini-batch.
  struct VarianceInputs {
    std::vector<float> first, second;
    VarianceFeatures view() const { return {first.data(), second.data()}; }
  };
  using CandidateFilter = absl::FunctionRef<bool(const CandidateState&)>;

  Impl(const ModelConfig& config, TrainerState state, const Options& options);

  bool keeps_average() const { return config_.averaging != Averaging::kLast; }
  bool keeps_recent() const;
  // Several targets have none: the door refuses them where the config asks for a variance, but logs
  // and checkpoints from before it did still load.
  bool has_variance() const {
    return config_.variance.method != VarianceMethod::kNone && state_.num_outputs == 1;
  }
  // Novelty learns every row once, whatever configs that are no longer let in say.
  bool replays() const { return *config_.replay.ratio > 0 && loss_->task() != Task::kNovelty; }
  // New rows do not look like those that predictions are for.
  bool is_ordered() const { return config_.replay.order == StreamOrder::kOrdered && replays(); }
  bool notes_drift() const { return loss_->task() != Task::kNovelty && !is_ordered(); }

  // trainer_impl.cc: the warm-up and what it fixes.
  void WarmUp(const SampleBatch& batch, size_t first, size_t count);
  void FinishWarmUp();
  void ChooseScales(const SampleBatch& rows);
  // Given, or chosen from these values of target k.
  TargetScaling ScaleOf(std::span<const double> targets, std::span<const double> weights,
                        size_t k) const;
  // x: warm-up rows, scaled; weights: of these, or more.
  void ChooseParameters(ConstMatrixView x, std::span<const double> weights);
  // DATA_LOSS: a warmed-up state that cannot be computed with.
  absl::Status CheckWarmState() const;
  // Makes what follows from the state of a warmed-up trainer.
  absl::Status BuildWarmParts();
  Stream MakeStream(const GenerationState& generation) const;
  std::unique_ptr<const UpdateRule> MakeRule(const CandidateState& candidate) const;

  // trainer_step.cc: one step.
  // Rows that learning takes at a time, however many came at a time.
  size_t BlockRows() const;
  // Learns full blocks; what does not fill one waits. Rules of the newest block learn at once.
  void LearnInBlocks(const SampleBatch& batch, size_t first, size_t count);
  void Learn(const SampleBatch& batch, size_t first, size_t count);
  // One update of the candidates that `takes_part` names. New rows grow the features and are noted
  // as the served model's errors; all but replayed rows count for validation and averages.
  void Update(const SampleBatch& batch, size_t first, size_t count, Rows kind,
              CandidateFilter takes_part, Work& work);
  // Rows whose targets can be learned; adds new labels and outputs.
  void TakeTargets(const SampleBatch& batch, size_t first, size_t count, Rows kind, Work& work);
  void TakeInputs(const SampleBatch& batch, Work& work);
  // As the door does (RowWidth::With).
  void NoteWidth(const SampleBatch& batch, size_t first, size_t count);
  void NoteDimension(const SampleBatch& batch, size_t row);
  // Standardised values or the label's index, appended to `out`. INVALID_ARGUMENT: not learnable.
  absl::Status AppendTargets(const TargetView& target, std::vector<double>& out);
  absl::Status NoteTargetSize(const TargetView& target);
  absl::StatusOr<double> LabelTarget(const TargetView& target);
  void BalancePopulations(Work& work);
  // work.targets, or the threshold of these coefficients for every row.
  std::span<const double> TargetsFor(const Work& work, const CoefficientState& coefficients,
                                     std::vector<double>& thresholds) const;
  void MoveThresholds(const Work& work);
  // Row i of the next ones is not learned. Novelty: it only serves to choose the threshold; ordered
  // streams: only to compare candidates.
  bool IsHeldOut(size_t i) const;
  // Ordered streams: validation on `rows` of the rows that were held out.
  void ValidateHeldOut(size_t rows);
  // The served model's errors on rows it has not learned yet.
  void NoteServed(const Work& work);
  void Validate(const Work& work);
  void UpdateAverage(CandidateState& candidate);
  void Replay(size_t rows);
  // After a drift report: old rows, old errors and averages of old coefficients mislead.
  void ForgetBeforeDrift();

  // trainer_candidates.cc: the heavy loops, over all candidates at once.
  void GrowOutputs(uint32_t outputs);
  void GrowFeatures(uint64_t num_features);
  // Most features that config and memory allow.
  uint64_t FeatureLimit() const;
  Range NextRange(size_t rows) const;
  void PlanWork(CandidateFilter takes_part, Work& work);
  double SmallestStepConstant(const BandwidthWork& bandwidth) const;
  size_t GramChunks(const BandwidthWork& bandwidth, size_t rows) const;
  // Gram matrices of the bandwidths for which the kernel's own values are as good and quicker.
  void TakeKernelMatrices(StreamWork& stream) const;
  // Scores of all candidates in `work`; with_gram: also Gram matrices over all features, if the
  // rule needs them.
  void Evaluate(bool with_averages, bool with_gram, Work& work);
  // For rules of the newest block: its features' Gram matrices.
  void EvaluateRange(const Range& range, Work& work);
  void Move(const Range& range, Work& work);
  // Features of panels [first, first + count) at all bandwidths of the stream, 0 beyond features
  // [begin, end).
  void MaskedFeatures(const StreamWork& work, size_t first_panel, size_t num_panels, uint64_t begin,
                      uint64_t end, std::span<float* const> out) const;
  // Limits scores of candidates that grow without bound; returns who cannot go on.
  std::vector<size_t> FindDiverged(Work& work) const;
  // Back to zero. What it has shown so far stays: who is served is chosen by it.
  void Reset(CandidateState& candidate);

  // trainer_variance.cc: uncertainty under one kernel.
  void AddVariance(Served& served) const;
  // Starts anew from the recent rows if another kernel is served by now; `event`: the race has
  // just moved, so it is time to look.
  void ChooseVarianceKernel(bool event);
  VarianceInputs TakeVarianceInputs(const Work& work) const;
  // residuals: standardised, empty for rows that are learned again; intervals (may be null): of
  // each row around its prediction, from before it was learned.
  void LearnVariance(const Work& work, const VarianceInputs& inputs,
                     std::span<const double> residuals, std::vector<ScoreInterval>* intervals);
  void MakeVariance();
  void StartVariance();
  Stream SecondStream(const Stream& stream) const;

  // trainer_warnings.cc: empty without a reason to warn.
  std::string OneLabelText() const;
  std::string ConstantTargetText() const;
  std::string FarTargetsText() const;
  std::string ConstantInputsText() const;
  std::string DivergedText() const;
  std::string NoMetricText() const;

  // trainer_race.cc: who is served, who stays, who joins.
  Choice ServedChoice() const;
  double BestLoss(const CandidateState& candidate) const;
  // The largest BestLoss of the `count` best of those that `of` names; 0 if it names none.
  double LossOfBest(size_t count, CandidateFilter of) const;
  void AddCandidates(const GenerationState& generation, std::span<const double> scales,
                     std::span<const double> step_constants);
  void KeepCandidates(CandidateFilter keep);
  void PruneStepConstants(uint64_t generation);
  void PruneGenerations();
  // The served learner once more, without replay, if none is left that learns new rows only.
  void KeepShadow();
  // Drops candidates, then features, until the coefficients fit into memory_mib.
  void FitMemory();
  bool FitsMemory(size_t candidates) const;
  size_t FirstToDrop() const;
  void MakeGenerations();
  // Rows that have been learned, oldest first: the last ones, or of an ordered stream a sample.
  SampleBatch RowsLikeThoseToCome(size_t count);
  // True if candidates came or went.
  bool Race();

  const ModelConfig config_;
  const Options options_;
  TrainerState state_;
  RecentRows recent_;
  Reservoir reservoir_, held_out_;
  std::shared_ptr<const Loss> loss_;
  std::shared_ptr<const LabelTable> table_;
  std::shared_ptr<const InputScaling> scaling_ = std::make_shared<const InputScaling>();
  // Once warm:
  std::shared_ptr<const Kernel> kernel_;
  std::map<uint64_t, Stream> streams_;                    // by generation id
  std::vector<std::unique_ptr<const UpdateRule>> rules_;  // by candidate
  std::unique_ptr<VarianceEstimator> variance_;           // null without a method
  Stream variance_stream_, second_stream_;
  std::unique_ptr<const LargeFeatures> large_features_;  // from the first large step on
  size_t block_rows_ = kProximalBlockRows;               // fewer in what Provisional() makes
  mutable std::unique_ptr<Impl> provisional_;
  mutable size_t provisional_rows_ = 0;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_TRAINER_IMPL_H_
