#include "core/model/trainer_impl.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/finite.h"
#include "core/base/philox.h"
#include "core/model/fingerprint.h"
#include "core/model/median_distance.h"
#include "core/model/model_features.h"
#include "core/model/row_weights.h"
#include "core/model/validation_tracker.h"

namespace kernelstream {
namespace {

// Copies `from` to the empty `to`, looking at each part of it while it is in the first-level cache;
// false if there is a number that is not finite. Small parts: longer ones are copied by string
// instructions, which begin slowly.
bool CopyFinite(std::span<const float> from, std::vector<float>& to) {
  constexpr size_t kPart = 128;
  to.reserve(from.size());
  bool finite = true;
  for (size_t i = 0; i < from.size(); i += kPart) {
    const std::span<const float> part = from.subspan(i, std::min(kPart, from.size() - i));
    to.insert(to.end(), part.begin(), part.end());
    finite = finite && AllFinite(part);
  }
  return finite;
}

// Held-out rows, the last ones, that the served threshold of a novelty model is taken from.
constexpr size_t kThresholdRows = 2048;
// Hashed inputs: of the warm-up rows that parameters are chosen from, as a matrix (64 MiB).
constexpr size_t kMostCompactValues = size_t{1} << 24;
// A model of fewer rows is not worth showing; and the blocks its rows are learned in, so that its
// learners have losses to be compared by.
constexpr size_t kFewestProvisionalRows = 32;
constexpr size_t kProvisionalBlocks = 8;

// Target k of all rows, as it was sent.
std::vector<double> TargetColumn(const SampleBatch& rows, size_t k) {
  std::vector<double> column(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const TargetView target = rows.target(i);
    column[i] = target.kind == TargetKind::kVector ? target.values[k] : target.value;
  }
  return column;
}

bool AllRowsEqual(ConstMatrixView x) {
  for (size_t i = 1; i < x.rows; ++i) {
    if (!std::ranges::equal(x.row(i), x.row(0))) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer::Impl>> Trainer::Impl::Make(const ModelConfig& config,
                                                                   TrainerState state,
                                                                   const Options& options) {
  // A config that another version wrote may name what this one does not know.
  ModelConfig complete = config;
  if (absl::Status status = CompleteConfig(complete); !status.ok()) return status;
  // 0 has a meaning of its own, which models keep from before novelty had another default.
  if (config.block_features == 0) complete.block_features = 0;
  if (complete != config) return absl::InvalidArgumentError("the config is not complete");
  auto made = MakeLoss(complete.loss);
  if (!made.ok()) return made.status();
  std::unique_ptr<Impl> impl(new Impl(config, std::move(state), options));
  impl->loss_ = *std::move(made);
  auto table = std::make_shared<LabelTable>(impl->loss_->task(), config);
  if (!impl->state_.labels.empty()) {
    table->Restore(impl->state_.labels, impl->state_.labels_are_numbers);
  }
  impl->state_.labels = table->labels();
  if (impl->loss_->task() == Task::kMulticlass) {
    impl->state_.num_outputs = std::max<uint32_t>(1, static_cast<uint32_t>(table->labels().size()));
  }
  if (!complete.target_scales.empty()) {
    impl->state_.num_outputs = static_cast<uint32_t>(complete.target_scales.scales.size());
  }
  impl->table_ = std::move(table);
  if (impl->state_.warm) {
    if (absl::Status status = impl->BuildWarmParts(); !status.ok()) return status;
  }
  // A state from before the usual weight was kept.
  DriftState& drift = impl->state_.drift;
  const MetricSums& before = impl->state_.metrics.total;
  if (impl->notes_drift() && drift.usual_weight == 0 && before.rows > 0) {
    drift.usual_weight = before.weight / static_cast<double>(before.rows);
  }
  return impl;
}

Trainer::Impl::Impl(const ModelConfig& config, TrainerState state, const Options& options)
    : config_(config),
      options_(options),
      state_(std::move(state)),
      reservoir_(*config.seed, config.replay.reservoir_rows),
      held_out_(~*config.seed, kHeldOutRows) {
  recent_.Restore(std::exchange(state_.recent, {}));
  reservoir_.Restore(std::exchange(state_.reservoir, {}));
  held_out_.Restore(std::exchange(state_.held_out, {}));
}

bool Trainer::Impl::keeps_recent() const {
  return config_.input_metric != InputMetric::kOff || loss_->task() == Task::kNovelty ||
         config_.variance.method != VarianceMethod::kNone;
}

TrainerState Trainer::Impl::Save() const {
  TrainerState state = state_;
  state.recent = recent_.Save();
  state.reservoir = reservoir_.Save();
  state.held_out = held_out_.Save();
  if (variance_ != nullptr) state.variance = variance_->state();
  state.fingerprint = CurrentFingerprint();
  return state;
}

absl::Status Trainer::Impl::CheckWarmState() const {
  const auto damaged = [](absl::string_view what) {
    return absl::DataLossError(absl::StrCat("the stored ", what, ": the checkpoint is damaged"));
  };
  if (state_.input_dim < 1 || state_.input_dim > kMaxInputDimension ||
      state_.num_features > std::min(config_.max_features, kMaxFeatures)) {
    return damaged("sizes are out of range");
  }
  if (state_.input_shift.size() != state_.input_inverse_scale.size() ||
      state_.input_shift.size() > state_.input_dim) {
    return damaged("input scales have the wrong size");
  }
  const UpdateRuleEntry& rule = *FindUpdateRule(config_.update_rule.name);
  for (const ParameterDoc& parameter : rule.doc.parameters) {
    if (!state_.rule_parameters.contains(std::string(parameter.name))) {
      return damaged(absl::StrCat("update rule lacks its parameter ", parameter.name));
    }
  }
  std::map<uint64_t, bool> used;
  for (const GenerationState& generation : state_.generations) {
    size_t values = 0;
    if (generation.form == MetricForm::kDiagonal) values = generation.metric_dim;
    if (generation.form == MetricForm::kFull) {
      values = size_t{generation.metric_dim} * generation.metric_dim;
    }
    if (generation.metric.size() != values || generation.metric_dim > state_.input_dim) {
      return damaged("metric has the wrong size");
    }
    if (!used.emplace(generation.id, false).second) return damaged("generations repeat");
  }
  if (loss_->task() == Task::kRegression && (state_.target_scales.size() != state_.num_outputs ||
                                             state_.target_offsets.size() != state_.num_outputs)) {
    return damaged("target scales have the wrong size");
  }
  if (has_variance() && !(state_.variance_bandwidth >= kSmallestBandwidth &&
                          used.contains(state_.variance_generation))) {
    return damaged("kernel of the variance is missing");
  }
  const size_t values = PanelsFor(state_.num_features) * state_.num_outputs * kPanelWidth;
  for (const CandidateState& candidate : state_.candidates) {
    if (candidate.last.values.size() != values ||
        candidate.average.values.size() != (keeps_average() ? values : 0)) {
      return damaged("coefficients have the wrong size");
    }
    if (!(candidate.bandwidth >= kSmallestBandwidth && candidate.bandwidth <= kLargestBandwidth)) {
      return damaged("bandwidth is out of range");
    }
    const auto generation = used.find(candidate.generation);
    if (generation == used.end()) return damaged("candidate has no generation");
    generation->second = true;
  }
  for (const auto& [id, is_used] : used) {
    const bool for_variance = has_variance() && id == state_.variance_generation;
    if (!is_used && !for_variance) return damaged("generation has no candidate");
  }
  if (state_.candidates.empty()) return damaged("candidates are missing");
  return absl::OkStatus();
}

absl::Status Trainer::Impl::BuildWarmParts() {
  if (absl::Status status = CheckWarmState(); !status.ok()) return status;
  auto kernel = MakeKernel(WithParameters(config_.kernel, state_.kernel_parameters));
  if (!kernel.ok()) return kernel.status();
  kernel_ = *std::move(kernel);
  if (absl::Status status = kernel_->CheckDimension(state_.input_dim); !status.ok()) {
    return absl::DataLossError(
        absl::StrCat("the stored number of inputs does not fit the kernel: ", status.message()));
  }
  scaling_ = std::make_shared<const InputScaling>(state_.input_shift, state_.input_inverse_scale);
  for (const GenerationState& generation : state_.generations) {
    streams_.emplace(generation.id, MakeStream(generation));
  }
  for (const CandidateState& candidate : state_.candidates) {
    rules_.push_back(MakeRule(candidate));
  }
  MakeVariance();
  if (variance_ == nullptr) return absl::OkStatus();
  StartVariance();
  return variance_->Restore(std::exchange(state_.variance, {}));
}

void Trainer::Impl::MakeVariance() {
  if (!has_variance()) return;
  variance_ = std::make_unique<VarianceEstimator>(config_, state_.target_scales[0],
                                                  MakeRule(CandidateState{}));
}

Trainer::Impl::Stream Trainer::Impl::MakeStream(const GenerationState& generation) const {
  uint64_t seed = *config_.seed;
  if (generation.id != 0) {
    const PhiloxBlock words =
        Philox4x32(StreamCounter(RandomStream::kGenerationSeed, generation.id, 0), PhiloxKey(seed));
    seed = uint64_t{words[0]} << 32 | words[1];
  }
  Stream stream;
  stream.metric = generation.form == MetricForm::kIsotropic
                      ? std::make_shared<const LearnedMetric>()
                      : std::make_shared<const LearnedMetric>(
                            generation.form, generation.metric_dim, generation.metric);
  stream.features = MakeFeatureMap(ModelFeatures(*kernel_, config_), seed, state_.input_dim,
                                   std::min(config_.max_features, kMaxFeatures), options_.budget);
  return stream;
}

std::unique_ptr<const UpdateRule> Trainer::Impl::MakeRule(const CandidateState& candidate) const {
  ParameterMap parameters = state_.rule_parameters;
  if (candidate.step_constant > 0) parameters["step_constant"] = candidate.step_constant;
  return FindUpdateRule(config_.update_rule.name)->make(parameters, *config_.l2_penalty, *loss_);
}

std::array<uint8_t, 16> Trainer::Impl::CurrentFingerprint() const {
  return Fingerprint(config_, state_, variance_.get());
}

ModelPhase Trainer::Impl::phase() const {
  if (!state_.warm) return ModelPhase::kWarmingUp;
  const bool full = state_.num_features >= FeatureLimit();
  return full && config_.when_full == WhenFull::kFreeze ? ModelPhase::kFrozen
                                                        : ModelPhase::kLearning;
}

void Trainer::Impl::Step(const SampleBatch& batch, size_t first, size_t count, uint64_t sequence) {
  state_.sequence = sequence;
  NoteWidth(batch, first, count);
  if (!state_.warm) {
    WarmUp(batch, first, count);
    return;
  }
  state_.rows_learned += count;
  ++state_.step;
  LearnInBlocks(batch, first, count);
}

void Trainer::Impl::NoteWidth(const SampleBatch& batch, size_t first, size_t count) {
  if (config_.hashed || state_.dimension != 0) return;
  RowWidth width(0, state_.sparse_dim);
  for (size_t i = first; i < first + count; ++i) width = width.With(batch.row(i));
  state_.dimension = width.dimension;
  state_.sparse_dim = width.least;
}

void Trainer::Impl::WarmUp(const SampleBatch& batch, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    const TargetView target = batch.target(i);
    const bool learnable =
        loss_->task() == Task::kRegression ? NoteTargetSize(target).ok() : LabelTarget(target).ok();
    if (!learnable) {
      ++state_.rows_skipped;
      continue;
    }
    NoteDimension(batch, i);
    state_.waiting.AppendRow(batch, i);
  }
  state_.rows_learned += count;
  ++state_.step;
  if (loss_->task() == Task::kMulticlass) {
    state_.num_outputs = std::max<uint32_t>(1, static_cast<uint32_t>(table_->labels().size()));
  }
  if (state_.waiting.size() >= config_.warmup_rows) FinishWarmUp();
}

TargetScaling Trainer::Impl::ScaleOf(std::span<const double> targets,
                                     std::span<const double> weights, size_t k) const {
  const GivenScales& given = config_.target_scales;
  if (given.empty()) return TargetScaling::FromTargets(targets, weights, loss_->is_robust());
  return {given.offsets[k], given.scales[k]};
}

void Trainer::Impl::ChooseScales(const SampleBatch& rows) {
  const std::vector<double> weights = WeightsOf(rows);
  if (loss_->task() == Task::kRegression) {
    for (size_t k = 0; k < state_.num_outputs; ++k) {
      const TargetScaling target = ScaleOf(TargetColumn(rows, k), weights, k);
      state_.target_offsets.push_back(target.offset);
      state_.target_scales.push_back(target.scale);
    }
  }
  if (config_.hashed) {
    return ChooseParameters(MakeCompactRows(rows, kMostCompactValues).x, weights);
  }
  const size_t dimension = state_.input_dim;
  std::vector<float> inputs(rows.size() * dimension);
  for (size_t i = 0; i < rows.size(); ++i) {
    Densify(rows.row(i), dimension, inputs.data() + i * dimension);
  }
  const ConstMatrixView x(inputs.data(), rows.size(), dimension);
  const bool standardize =
      config_.standardize == Standardize::kOn ||
      (config_.standardize == Standardize::kAuto &&
       (*MakeUnitKernel(config_.kernel))->takes_any_input() && !InputScaling::ShareOneUnit(x));
  const InputScaling scaling = !standardize                   ? InputScaling()
                               : config_.input_scales.empty() ? InputScaling::FromRows(x, weights)
                                                              : InputScaling(config_.input_scales);
  state_.input_shift = scaling.shift();
  state_.input_inverse_scale = scaling.inverse_scale();
  for (size_t i = 0; i < rows.size(); ++i) {
    scaling.Apply(rows.row(i), dimension, inputs.data() + i * dimension);
  }
  ChooseParameters(x, weights);
}

void Trainer::Impl::ChooseParameters(ConstMatrixView x, std::span<const double> weights) {
  state_.constant_inputs = AllRowsEqual(x);
  ComponentConfig chosen = config_.kernel;
  ChooseKernel(x, chosen, weights);
  state_.kernel_parameters = FlatParameters(chosen);
  state_.rule_parameters = config_.update_rule.parameters;
  const UpdateRuleEntry* rule = FindUpdateRule(config_.update_rule.name);
  if (rule->measure != nullptr) {
    const auto kernel = MakeKernel(chosen);
    rule->measure(x, **kernel, state_.rule_parameters);
  }
}

void Trainer::Impl::FinishWarmUp() {
  const SampleBatch rows = std::exchange(state_.waiting, {});
  state_.input_dim = std::max<uint32_t>(state_.input_dim, 1);
  ChooseScales(rows);
  auto kernel = MakeKernel(WithParameters(config_.kernel, state_.kernel_parameters));
  kernel_ = *std::move(kernel);
  scaling_ = std::make_shared<const InputScaling>(state_.input_shift, state_.input_inverse_scale);
  GenerationState generation;
  generation.median_distance = state_.kernel_parameters.at("bandwidth");
  streams_.emplace(generation.id, MakeStream(generation));
  state_.generations.push_back(generation);
  const std::vector<double> rule_default = {0};
  AddCandidates(
      generation, config_.candidates.bandwidth_scales,
      config_.candidates.step_constants.empty() ? rule_default : config_.candidates.step_constants);
  state_.warm = true;
  FitMemory();
  MakeVariance();
  if (variance_ != nullptr) {
    state_.variance_bandwidth = generation.median_distance;
    StartVariance();
  }

  for (size_t i = 0; i < rows.size(); i += config_.batch_rows) {
    ++state_.step;
    LearnInBlocks(rows, i, std::min<size_t>(config_.batch_rows, rows.size() - i));
  }
}

std::unique_ptr<Trainer::Impl> Trainer::Impl::WithWaitingRows() const {
  if (!state_.warm || state_.waiting.empty()) return nullptr;
  const CandidateState& candidate = state_.candidates[ServedChoice().candidate];
  TrainerState state;
  state.updates = state_.updates + 1;
  state.num_features = state_.num_features;
  state.dimension = state_.dimension;
  state.sparse_dim = state_.sparse_dim;
  state.input_dim = state_.input_dim;
  state.num_outputs = state_.num_outputs;
  state.warm = true;
  state.target_offsets = state_.target_offsets;
  state.target_scales = state_.target_scales;
  state.population_weights = state_.population_weights;
  state.kernel_parameters = state_.kernel_parameters;
  state.rule_parameters = state_.rule_parameters;
  state.labels = state_.labels;
  state.candidates.push_back(candidate);
  for (const GenerationState& generation : state_.generations) {
    if (generation.id == candidate.generation) state.generations.push_back(generation);
  }
  state.learned_since_warm = state_.learned_since_warm;
  state.drift = state_.drift;
  state.metrics = state_.metrics;
  ModelConfig config = config_;
  config.max_features = static_cast<uint32_t>(FeatureLimit());  // which depends on all candidates
  std::unique_ptr<Impl> impl(new Impl(config, std::move(state), options_));
  impl->loss_ = loss_;
  impl->table_ = table_;
  impl->scaling_ = scaling_;
  impl->kernel_ = kernel_;
  impl->streams_.emplace(candidate.generation, streams_.at(candidate.generation));
  impl->rules_.push_back(MakeRule(candidate));
  Work work;
  impl->Update(
      state_.waiting, 0, state_.waiting.size(), Rows::kNew,
      [](const CandidateState&) { return true; }, work);
  return impl;
}

const Trainer::Impl* Trainer::Impl::Provisional() const {
  const size_t rows = std::bit_floor(state_.waiting.size());
  const bool ranks = loss_->task() == Task::kNovelty || loss_->task() == Task::kDensityRatio;
  if (state_.warm || ranks || rows < kFewestProvisionalRows) return nullptr;
  if (provisional_rows_ == rows) return provisional_.get();
  ModelConfig config = config_;
  config.replay.ratio = 0;
  config.variance.method = VarianceMethod::kNone;
  config.max_features =
      std::min({config_.max_features, kMaxFeatures, static_cast<uint32_t>(4 * rows)});
  config.block_features = config.max_features;
  TrainerState state;
  state.dimension = state_.dimension;
  state.sparse_dim = state_.sparse_dim;
  state.input_dim = state_.input_dim;
  state.num_outputs = state_.num_outputs;
  state.labels = state_.labels;
  for (size_t i = 0; i < rows; ++i) state.waiting.AppendRow(state_.waiting, i);
  Options options = options_;
  options.budget = nullptr;
  std::unique_ptr<Impl> impl(new Impl(config, std::move(state), options));
  impl->loss_ = loss_;
  impl->table_ = table_;
  impl->block_rows_ = rows / kProvisionalBlocks;
  impl->FinishWarmUp();
  provisional_ = std::move(impl);
  provisional_rows_ = rows;
  return provisional_.get();
}

double Trainer::Impl::NoveltyThresholdOf(const Snapshot& snapshot) const {
  // The threshold that learning moves follows scores that grow; what is served has one value for
  // these very coefficients.
  const SampleBatch rows = recent_.Last(kThresholdRows);
  if (rows.empty()) return snapshot.threshold();
  std::vector<double> scores(rows.size());
  snapshot.Score(rows, *options_.executor, scores.data());
  // Rows whose features overflow are in no step either.
  std::vector<std::pair<double, double>> weighted;  // score, weight
  for (size_t i = 0; i < rows.size(); ++i) {
    if (std::isfinite(scores[i])) weighted.emplace_back(scores[i], rows.weight(i));
  }
  if (weighted.empty()) return snapshot.threshold();
  return ValueAbove(config_.loss.parameters.at("fraction"), std::move(weighted));
}

void Trainer::Impl::AddNotServed(Served& served) const {
  if (variance_ != nullptr) AddVariance(served);
  served.candidates.clear();
  const Choice choice = ServedChoice();
  for (size_t c = 0; c < state_.candidates.size(); ++c) {
    const CandidateState& other = state_.candidates[c];
    CandidateReport report;
    report.generation = other.generation;
    for (const GenerationState& generation : state_.generations) {
      if (generation.id == other.generation) report.form = generation.form;
    }
    report.bandwidth = other.bandwidth;
    report.step_constant = other.step_constant;
    report.replays = other.replays && replays();
    report.recent_loss = RecentLoss(other.last.validation);
    report.recent_average_loss =
        keeps_average() ? RecentLoss(other.average.validation) : report.recent_loss;
    report.served = c == choice.candidate;
    served.candidates.push_back(report);
  }
}

Trainer::Impl::Served Trainer::Impl::ServedModel() const {
  Served served;
  served.constant.assign(state_.num_outputs, 0);
  for (size_t k = 0; k < state_.target_scales.size(); ++k) {
    served.targets.push_back({state_.target_offsets[k], state_.target_scales[k]});
  }
  if (state_.warm) {
    const Choice choice = ServedChoice();
    const CandidateState& candidate = state_.candidates[choice.candidate];
    const CoefficientState& coefficients = choice.average ? candidate.average : candidate.last;
    const Stream& stream = streams_.at(candidate.generation);
    served.features = stream.features;
    served.metric = stream.metric;
    // Overflowed in the last step: nothing; the next one sets them back.
    if (!CopyFinite(coefficients.values, served.values)) std::ranges::fill(served.values, 0.0f);
    served.num_features = state_.num_features;
    served.scale = coefficients.scale;
    served.inverse_bandwidth = 1 / candidate.bandwidth;
    served.validation =
        ServedValidation(MetricsOf(*loss_, state_.metrics.recent, state_.target_scales),
                         MetricsOf(*loss_, state_.metrics.total, state_.target_scales));
    // The threshold that learning moves lags behind what is served; see NoveltyThresholdOf.
    served.validation.recent.fraction_below_threshold.reset();
    served.validation.total.fraction_below_threshold.reset();
    served.threshold = coefficients.threshold.value;
    if (choice.average) {
      served.serving =
          config_.averaging == Averaging::kUniform ? Averaging::kUniform : Averaging::kPolynomial;
    }
    AddNotServed(served);
    return served;
  }
  // Until the warm-up has ended: the best constant for the rows so far.
  if (state_.waiting.empty()) {
    for (size_t k = 0; k < config_.target_scales.scales.size(); ++k) {
      served.targets.push_back(ScaleOf({}, {}, k));
    }
    return served;
  }
  if (loss_->task() == Task::kNovelty) return served;
  std::vector<double> targets;
  const std::vector<double> weights = WeightsOf(state_.waiting);
  if (loss_->task() == Task::kRegression) {
    for (size_t k = 0; k < state_.num_outputs; ++k) {
      targets = TargetColumn(state_.waiting, k);
      const TargetScaling scaling = ScaleOf(targets, weights, k);
      for (double& target : targets) target = (target - scaling.offset) / scaling.scale;
      loss_->BestConstant(targets, weights, std::span(served.constant).subspan(k, 1));
      served.targets.push_back(scaling);
    }
    return served;
  }
  for (size_t i = 0; i < state_.waiting.size(); ++i) {
    const TargetView target = state_.waiting.target(i);
    targets.push_back(HasLabels(loss_->task()) ? LossTargetOf(loss_->task(), *table_->Find(target))
                                               : LossTargetOf(target.population));
  }
  loss_->BestConstant(targets, weights, served.constant);
  return served;
}

}  // namespace kernelstream
