#include "core/model/trainer_impl.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/model/fingerprint.h"
#include "core/model/median_distance.h"
#include "core/model/validation_tracker.h"

namespace kernelstream {
namespace {

// Coordinates for which frequencies are made at a time while the dimension is open.
constexpr size_t kOpenDimensionStep = 16;
// Standardised targets are pulled in to this, as inputs are clipped: one wild row must not move the
// model far.
constexpr double kFarthestTarget = 30;

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer::Impl>> Trainer::Impl::Make(const ModelConfig& config,
                                                                   TrainerState state,
                                                                   const Options& options) {
  // A config that another version wrote may name what this one does not know.
  ModelConfig complete = config;
  if (absl::Status status = CompleteConfig(complete); !status.ok()) return status;
  if (complete != config) return absl::InvalidArgumentError("the config is not complete");
  auto made = MakeLoss(complete.loss);
  if (!made.ok()) return made.status();
  std::unique_ptr<Impl> impl(new Impl(config, std::move(state), options));
  impl->loss_ = *std::move(made);
  auto table = std::make_shared<LabelTable>(impl->loss_->task(), config);
  if (!impl->state_.labels.empty()) table->Restore(impl->state_.labels);
  impl->state_.labels = table->labels();
  if (impl->loss_->task() == Task::kMulticlass) {
    impl->state_.num_outputs = std::max<uint32_t>(1, static_cast<uint32_t>(table->labels().size()));
  }
  impl->table_ = std::move(table);
  if (impl->state_.warm) {
    if (absl::Status status = impl->BuildWarmParts(); !status.ok()) return status;
  }
  return impl;
}

absl::Status Trainer::Impl::CheckWarmState() const {
  const auto damaged = [](absl::string_view what) {
    return absl::DataLossError(absl::StrCat("the stored ", what, ": the checkpoint is damaged"));
  };
  if (state_.input_dim < 1 || state_.input_dim > kMaxInputDimension ||
      state_.num_features > config_.max_features) {
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
  const size_t values = PanelsFor(state_.num_features) * state_.num_outputs * kPanelWidth;
  if (state_.candidates.size() != 1 || candidate().last.values.size() != values ||
      candidate().average.values.size() != (keeps_average() ? values : 0)) {
    return damaged("coefficients have the wrong size");
  }
  return absl::OkStatus();
}

absl::Status Trainer::Impl::BuildWarmParts() {
  if (absl::Status status = CheckWarmState(); !status.ok()) return status;
  auto kernel = MakeKernel({config_.kernel.name, state_.kernel_parameters});
  if (!kernel.ok()) return kernel.status();
  kernel_ = *std::move(kernel);
  scaling_ = std::make_shared<const InputScaling>(state_.input_shift, state_.input_inverse_scale);
  features_ = std::make_shared<RandomFeatureMap>(kernel_->law(), *config_.seed, state_.input_dim,
                                                 config_.max_features, options_.budget);
  rule_ = FindUpdateRule(config_.update_rule.name)
              ->make(state_.rule_parameters, *config_.l2_penalty, *loss_);
  return absl::OkStatus();
}

std::array<uint8_t, 16> Trainer::Impl::CurrentFingerprint() const {
  return Fingerprint(config_, state_);
}

ModelPhase Trainer::Impl::phase() const {
  if (!state_.warm) return ModelPhase::kWarmingUp;
  const bool full = state_.num_features == config_.max_features;
  return full && config_.when_full == WhenFull::kFreeze ? ModelPhase::kFrozen
                                                        : ModelPhase::kLearning;
}

void Trainer::Impl::Step(const SampleBatch& batch, size_t first, size_t count, uint64_t sequence) {
  state_.sequence = sequence;
  if (!state_.warm) {
    WarmUp(batch, first, count);
    return;
  }
  state_.rows_learned += count;
  ++state_.step;
  Learn(batch, first, count);
}

absl::StatusOr<double> Trainer::Impl::LossTarget(const TargetView& target) {
  if (loss_->task() == Task::kRegression) {
    const double standardized = (target.value - state_.target_offset) / state_.target_scale;
    return std::clamp(standardized, -kFarthestTarget, kFarthestTarget);
  }
  uint32_t index = 0;
  if (const auto known = table_->Find(target);
      known.has_value() && !table_->labels()[*known].empty()) {
    index = *known;
  } else {
    auto table = std::make_shared<LabelTable>(*table_);
    auto added = table->Add(target);
    if (!added.ok()) return added.status();
    index = *added;
    state_.labels = table->labels();
    table_ = std::move(table);
  }
  return LossTargetOf(loss_->task(), index);
}

void Trainer::Impl::NoteDimension(const SampleBatch& batch, size_t row) {
  const RowView view = batch.row(row);
  if (!view.sparse && state_.dimension == 0) {
    state_.dimension = static_cast<uint32_t>(view.values.size());
  }
  size_t needed = view.MinDimension();
  if (needed <= state_.input_dim) return;
  if (view.sparse) {
    needed += state_.input_dim /
              4;  // so that a slowly growing dimension does not remake the map each time
    needed = (needed + kOpenDimensionStep - 1) / kOpenDimensionStep * kOpenDimensionStep;
  }
  state_.input_dim = static_cast<uint32_t>(std::min<size_t>(needed, kMaxInputDimension));
}

void Trainer::Impl::WarmUp(const SampleBatch& batch, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    if (!LossTarget(batch.target(i)).ok()) {
      ++state_.rows_skipped;
      continue;
    }
    NoteDimension(batch, i);
    state_.warmup.AppendRow(batch, i);
  }
  state_.rows_learned += count;
  ++state_.step;
  if (loss_->task() == Task::kMulticlass) {
    state_.num_outputs = std::max<uint32_t>(1, static_cast<uint32_t>(table_->labels().size()));
  }
  if (state_.warmup.size() >= config_.warmup_rows) FinishWarmUp();
}

void Trainer::Impl::FinishWarmUp() {
  const SampleBatch rows = std::exchange(state_.warmup, {});
  state_.input_dim = std::max<uint32_t>(state_.input_dim, 1);
  const size_t dimension = state_.input_dim;

  std::vector<float> inputs(rows.size() * dimension);
  std::vector<double> targets(rows.size());
  const InputScaling raw;
  for (size_t i = 0; i < rows.size(); ++i) {
    raw.Apply(rows.row(i), dimension, inputs.data() + i * dimension);
    targets[i] = rows.target(i).value;
  }
  const ConstMatrixView x(inputs.data(), rows.size(), dimension);
  const bool standardize =
      config_.standardize == Standardize::kOn ||
      (config_.standardize == Standardize::kAuto && !InputScaling::ShareOneUnit(x));
  if (standardize) {
    const InputScaling scaling = InputScaling::FromRows(x);
    state_.input_shift = scaling.shift();
    state_.input_inverse_scale = scaling.inverse_scale();
    for (size_t i = 0; i < rows.size(); ++i) {
      scaling.Apply(rows.row(i), dimension, inputs.data() + i * dimension);
    }
  }
  if (loss_->task() == Task::kRegression) {
    const TargetScaling scaling = TargetScaling::FromTargets(targets);
    state_.target_offset = scaling.offset;
    state_.target_scale = scaling.scale;
  }

  state_.kernel_parameters = config_.kernel.parameters;
  if (!state_.kernel_parameters.contains("bandwidth")) {
    ParameterMap unit = state_.kernel_parameters;
    unit["bandwidth"] = 1;
    const auto kernel = MakeKernel({config_.kernel.name, unit});
    state_.kernel_parameters["bandwidth"] =
        std::clamp(MedianDistance(x, **kernel) * state_.kernel_parameters.at("bandwidth_scale"),
                   kSmallestBandwidth, kLargestBandwidth);
  }
  state_.rule_parameters = config_.update_rule.parameters;
  const UpdateRuleEntry* rule = FindUpdateRule(config_.update_rule.name);
  if (rule->measure != nullptr) {
    const auto kernel = MakeKernel({config_.kernel.name, state_.kernel_parameters});
    rule->measure(x, **kernel, state_.rule_parameters);
  }
  CandidateState candidate;
  candidate.bandwidth = state_.kernel_parameters.at("bandwidth");
  state_.candidates = {candidate};
  state_.warm = true;
  // The parts follow from a state made here, so nothing of it can be wrong.
  static_cast<void>(BuildWarmParts());

  for (size_t i = 0; i < rows.size(); i += config_.batch_rows) {
    ++state_.step;
    Learn(rows, i, std::min<size_t>(config_.batch_rows, rows.size() - i));
  }
}

bool Trainer::Impl::ServesAverage() const {
  switch (config_.averaging) {
    case Averaging::kLast:
      return false;
    case Averaging::kPolynomial:
    case Averaging::kUniform:
      return true;
    case Averaging::kAuto:
      break;
  }
  return RecentLoss(candidate().average.validation) <= RecentLoss(candidate().last.validation);
}

Trainer::Impl::Served Trainer::Impl::ServedCoefficients() const {
  Served served;
  served.constant.assign(state_.num_outputs, 0);
  served.targets = {state_.target_offset, state_.target_scale};
  if (state_.warm) {
    const bool average = ServesAverage();
    const CoefficientState& coefficients = average ? candidate().average : candidate().last;
    served.values = coefficients.values;
    served.scale = coefficients.scale;
    served.inverse_bandwidth = 1 / candidate().bandwidth;
    served.validation = MetricsOf(*loss_, coefficients.validation, state_.target_scale);
    if (average) {
      served.serving =
          config_.averaging == Averaging::kUniform ? Averaging::kUniform : Averaging::kPolynomial;
    }
    return served;
  }
  // Until the warm-up has ended: the best constant for the rows so far.
  std::vector<double> targets, weights;
  for (size_t i = 0; i < state_.warmup.size(); ++i) {
    targets.push_back(state_.warmup.target(i).value);
    weights.push_back(state_.warmup.weight(i));
  }
  if (targets.empty()) return served;
  if (loss_->task() == Task::kRegression) served.targets = TargetScaling::FromTargets(targets);
  for (size_t i = 0; i < targets.size(); ++i) {
    if (loss_->task() == Task::kRegression) {
      targets[i] = (targets[i] - served.targets.offset) / served.targets.scale;
    } else {
      targets[i] = LossTargetOf(loss_->task(), *table_->Find(state_.warmup.target(i)));
    }
  }
  loss_->BestConstant(targets, weights, served.constant);
  return served;
}

}  // namespace kernelstream
