// One step: targets, scores, validation, growth, update, averages, replay.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/model/drift_monitor.h"
#include "core/model/row_loss.h"
#include "core/model/trainer_impl.h"
#include "core/model/validation_tracker.h"

namespace kernelstream {
namespace {

// Coordinates for which frequencies are made at a time while the dimension is open.
constexpr size_t kOpenDimensionStep = 16;
// Standardised targets are pulled in to this, as inputs are clipped: one wild row must not move the
// model far.
constexpr double kFarthestTarget = 30;

// Polynomial-decay average: weight (eta + 1) / (t + eta) of the t-th step.
constexpr double kAverageEta = 8;
// The average is set back to the last coefficients when those have done this much better for this
// many steps.
constexpr double kRestartRatio = 0.97;
constexpr uint64_t kStepsBeforeRestart = 20;

// One of so many rows is not learned. Novelty: so that the threshold is not taken from rows that
// the model has been lifted at. Ordered streams: new rows are of one kind, and whoever forgets the
// others fastest does best on them; candidates are compared on a sample of all rows instead.
constexpr uint64_t kRowsPerHeldOut = 4;
constexpr uint64_t kOrderedRowsPerHeldOut = 16;

// What recent losses from before a drift still weigh, and the rows after it from which a new metric
// is learned.
constexpr double kOldLossesAfterDrift = 0.05;
constexpr uint64_t kRowsToNewMetric = 4096;

// The shadow that does not replay has to be this much better before the reservoir is emptied.
constexpr double kFlushRatio = 0.95;

// Sets the average to the last coefficients.
void RestartAverage(CandidateState& c) {
  for (size_t i = 0; i < c.last.values.size(); ++i) {
    c.average.values[i] = static_cast<float>(c.last.scale * c.last.values[i]);
  }
  c.average.validation = c.last.validation;
  c.average.threshold = c.last.threshold;
  c.steps_since_restart = 0;
}

}  // namespace

absl::Status Trainer::Impl::NoteTargetSize(const TargetView& target) {
  if (loss_->task() != Task::kRegression) return absl::OkStatus();
  const size_t values = target.kind == TargetKind::kVector ? target.values.size() : 1;
  if (config_.target_scales.empty() && state_.rows_learned == state_.rows_skipped && !state_.warm &&
      state_.waiting.empty()) {
    state_.num_outputs = static_cast<uint32_t>(values);  // the first row decides
  }
  if (values == state_.num_outputs) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the row has ", values, " targets; the model learns ", state_.num_outputs));
}

absl::Status Trainer::Impl::AppendTargets(const TargetView& target, std::vector<double>& out) {
  if (loss_->task() == Task::kRegression) {
    if (absl::Status status = NoteTargetSize(target); !status.ok()) return status;
    for (size_t k = 0; k < state_.num_outputs; ++k) {
      const double value = target.kind == TargetKind::kVector ? target.values[k] : target.value;
      const double standardized = (value - state_.target_offsets[k]) / state_.target_scales[k];
      out.push_back(std::clamp(standardized, -kFarthestTarget, kFarthestTarget));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<double> index = LabelTarget(target);
  if (index.ok()) out.push_back(*index);
  return index.status();
}

absl::StatusOr<double> Trainer::Impl::LabelTarget(const TargetView& target) {
  if (loss_->task() == Task::kNovelty) return 0;  // stands for the threshold
  if (loss_->task() == Task::kDensityRatio) return LossTargetOf(target.population);
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
    state_.labels_are_numbers = table->numbers();
    table_ = std::move(table);
  }
  return LossTargetOf(loss_->task(), index);
}

void Trainer::Impl::NoteDimension(const SampleBatch& batch, size_t row) {
  if (config_.hashed) return;
  const RowView view = batch.row(row);
  size_t needed = view.MinDimension();
  if (needed <= state_.input_dim) return;
  if (view.sparse) {
    needed += state_.input_dim /
              4;  // so that a slowly growing dimension does not remake the map each time
    needed = (needed + kOpenDimensionStep - 1) / kOpenDimensionStep * kOpenDimensionStep;
  }
  state_.input_dim = static_cast<uint32_t>(std::min<size_t>(needed, kMaxInputDimension));
}

void Trainer::Impl::TakeTargets(const SampleBatch& batch, size_t first, size_t count, Rows kind,
                                Work& work) {
  for (size_t i = first; i < first + count; ++i) {
    if (kind == Rows::kNew && IsHeldOut(i - first)) continue;
    if (!AppendTargets(batch.target(i), work.targets).ok()) {
      ++state_.rows_skipped;
      continue;
    }
    work.rows.push_back(i);
    work.weights.push_back(batch.weight(i));
    NoteDimension(batch, i);
  }
  if (work.rows.empty()) return;
  work.targets_per_row = work.targets.size() / work.rows.size();
  work.row_weights = work.weights;
  if (loss_->task() == Task::kDensityRatio) BalancePopulations(work);
  if (loss_->task() == Task::kMulticlass) {
    GrowOutputs(static_cast<uint32_t>(table_->labels().size()));
  }
  for (auto& [id, stream] : streams_) {
    if (state_.input_dim > stream.features->input_dim()) {
      stream.features = stream.features->Widen(state_.input_dim, /*keep=*/true);
    }
  }
}

void Trainer::Impl::BalancePopulations(Work& work) {
  // Each population counts as much as the other, whatever their shares of the stream are.
  std::array<double, 2>& totals = state_.population_weights;
  for (size_t i = 0; i < work.weights.size(); ++i) {
    totals[work.targets[i] > 0 ? 1 : 0] += work.weights[i];
  }
  for (size_t i = 0; i < work.weights.size(); ++i) {
    const double own = totals[work.targets[i] > 0 ? 1 : 0];
    work.weights[i] *= (totals[0] + totals[1]) / (2 * own);
  }
}

std::span<const double> Trainer::Impl::TargetsFor(const Work& work,
                                                  const CoefficientState& coefficients,
                                                  std::vector<double>& thresholds) const {
  if (loss_->task() != Task::kNovelty) return work.targets;
  thresholds.assign(work.rows.size(), coefficients.threshold.value);
  return thresholds;
}

bool Trainer::Impl::IsHeldOut(size_t i) const {
  const uint64_t row = state_.learned_since_warm + i;
  if (is_ordered()) return row % kOrderedRowsPerHeldOut == kOrderedRowsPerHeldOut - 1;
  return loss_->task() == Task::kNovelty && row % kRowsPerHeldOut == kRowsPerHeldOut - 1;
}

void Trainer::Impl::TakeInputs(const SampleBatch& batch, Work& work) {
  if (config_.hashed) {
    work.sparse_inputs =
        MakeSparseRows(work.rows.size(), [&](size_t i) { return batch.row(work.rows[i]); });
    work.x = work.sparse_inputs;
    return;
  }
  const size_t dimension = state_.input_dim;
  work.inputs.resize(work.rows.size() * dimension);
  for (size_t i = 0; i < work.rows.size(); ++i) {
    scaling_->Apply(batch.row(work.rows[i]), dimension, work.inputs.data() + i * dimension);
  }
  work.x = ConstMatrixView(work.inputs.data(), work.rows.size(), dimension);
}

size_t Trainer::Impl::BlockRows() const {
  return rules_[0]->updates_all_features() ? block_rows_ : config_.batch_rows;
}

void Trainer::Impl::LearnInBlocks(const SampleBatch& batch, size_t first, size_t count) {
  if (!rules_[0]->updates_all_features()) return Learn(batch, first, count);
  const size_t block = BlockRows(), end = first + count;
  while (first < end) {
    if (state_.waiting.empty() && end - first >= block) {
      Learn(batch, first, block);
      first += block;
      continue;
    }
    state_.waiting.AppendRow(batch, first++);
    if (state_.waiting.size() < block) continue;
    const SampleBatch rows = std::exchange(state_.waiting, {});
    Learn(rows, 0, rows.size());
  }
}

void Trainer::Impl::Learn(const SampleBatch& batch, size_t first, size_t count) {
  ++state_.updates;
  const uint64_t drifts = state_.drift.reports;
  Work work;
  Update(
      batch, first, count, Rows::kNew, [](const CandidateState&) { return true; }, work);
  if (loss_->task() == Task::kNovelty) {
    for (size_t i = first; i < first + count; ++i) {
      if (IsHeldOut(i - first)) recent_.Add(batch, i);
    }
    state_.learned_since_warm += count;
    return;
  }
  if (is_ordered()) {
    for (size_t i = first; i < first + count; ++i) {
      if (IsHeldOut(i - first)) held_out_.Offer(batch, i);
    }
    state_.learned_since_warm += count - work.rows.size();
  }
  if (work.rows.empty()) return;
  if (state_.drift.reports > drifts && config_.replay.order == StreamOrder::kDrifting) {
    ForgetBeforeDrift();
  }
  for (const size_t i : work.rows) {
    if (keeps_recent()) recent_.Add(batch, i);
    if (replays()) reservoir_.Offer(batch, i);
  }
  state_.learned_since_warm += work.rows.size();
  if (replays()) Replay(work.rows.size());
  if (is_ordered()) ValidateHeldOut(count);
  const bool moved = Race();
  if (variance_ != nullptr) ChooseVarianceKernel(moved);
}

void Trainer::Impl::Update(const SampleBatch& batch, size_t first, size_t count, Rows kind,
                           CandidateFilter takes_part, Work& work) {
  TakeTargets(batch, first, count, kind, work);
  if (work.rows.empty()) return;
  TakeInputs(batch, work);
  Range range = NextRange(work.rows.size());
  if (rules_[0]->updates_all_features()) {
    if (kind != Rows::kNew) range.size = state_.num_features;
    GrowFeatures(range.begin + range.size);
  }
  PlanWork(takes_part, work);
  Evaluate(/*with_averages=*/kind != Rows::kReplayed, /*with_gram=*/true, work);
  const std::vector<size_t> diverged = FindDiverged(work);
  if (kind == Rows::kNew) NoteServed(work);
  if (kind == Rows::kKnown || (kind == Rows::kNew && !is_ordered())) Validate(work);
  for (const size_t c : diverged) {
    Reset(state_.candidates[c]);
    std::ranges::fill(work.last_scores[c], 0.0);
    std::ranges::fill(work.average_scores[c], 0.0);
  }
  if (!rules_[0]->updates_all_features()) {
    if (rules_[0]->needs_gram()) EvaluateRange(range, work);
    GrowFeatures(std::max(state_.num_features, range.begin + range.size));
    state_.cursor = (range.begin + range.size) % FeatureLimit();
  }
  Move(range, work);
  work.large_features = {};  // for the replayed rows that come next
  if (loss_->task() == Task::kNovelty && kind != Rows::kReplayed) MoveThresholds(work);
  // In an ordered stream, replayed rows are those like the rows to come.
  const Rows not_averaged = is_ordered() ? Rows::kNew : Rows::kReplayed;
  if (kind == not_averaged || !keeps_average()) return;
  options_.executor->ParallelFor(state_.candidates.size(), [&](size_t c) {
    if (!work.last_scores[c].empty()) UpdateAverage(state_.candidates[c]);
  });
}

void Trainer::Impl::UpdateAverage(CandidateState& c) {
  const auto n = static_cast<double>(++c.steps_since_restart);
  const bool uniform = config_.averaging == Averaging::kUniform;
  const double rate = uniform ? 1 / n : std::min(1.0, (kAverageEta + 1) / (n + kAverageEta));
  if (c.last.scale == 1) {
    MoveTowards(c.last.values.data(), static_cast<float>(rate), c.last.values.size(),
                c.average.values.data());
  } else {
    for (size_t i = 0; i < c.last.values.size(); ++i) {
      const double value = c.last.scale * c.last.values[i];
      c.average.values[i] =
          static_cast<float>(c.average.values[i] + rate * (value - c.average.values[i]));
    }
  }
  if (uniform || c.steps_since_restart <= kStepsBeforeRestart) return;
  if (RecentLoss(c.last.validation) < TimesLoss(kRestartRatio, RecentLoss(c.average.validation))) {
    RestartAverage(c);
  }
}

void Trainer::Impl::MoveThresholds(const Work& work) {
  for (size_t c = 0; c < state_.candidates.size(); ++c) {
    if (work.last_scores[c].empty()) continue;
    CandidateState& candidate = state_.candidates[c];
    candidate.last.threshold =
        loss_->NextThreshold(candidate.last.threshold, work.last_scores[c], work.weights);
    if (work.average_scores[c].empty()) continue;
    candidate.average.threshold =
        loss_->NextThreshold(candidate.average.threshold, work.average_scores[c], work.weights);
  }
}

void Trainer::Impl::Validate(const Work& work) {
  options_.executor->ParallelFor(state_.candidates.size(), [&](size_t c) {
    if (work.last_scores[c].empty()) return;
    CandidateState& candidate = state_.candidates[c];
    std::vector<double> thresholds;
    AddToValidation(*loss_, work.last_scores[c], TargetsFor(work, candidate.last, thresholds),
                    work.weights, candidate.last.validation);
    if (keeps_average()) {
      AddToValidation(*loss_, work.average_scores[c],
                      TargetsFor(work, candidate.average, thresholds), work.weights,
                      candidate.average.validation);
    }
  });
}

void Trainer::Impl::ValidateHeldOut(size_t rows) {
  SampleBatch sample;
  held_out_.Draw(rows, sample);
  Work work;
  TakeTargets(sample, 0, sample.size(), Rows::kKnown, work);
  if (work.rows.empty()) return;
  TakeInputs(sample, work);
  PlanWork([](const CandidateState&) { return true; }, work);
  Evaluate(/*with_averages=*/true, /*with_gram=*/false, work);
  Validate(work);
}

void Trainer::Impl::NoteServed(const Work& work) {
  const Choice choice = ServedChoice();
  const CandidateState& candidate = state_.candidates[choice.candidate];
  std::span<const double> scores =
      choice.average ? work.average_scores[choice.candidate] : work.last_scores[choice.candidate];
  std::vector<double> thresholds;
  const std::span<const double> targets =
      TargetsFor(work, choice.average ? candidate.average : candidate.last, thresholds);
  const size_t rows = work.rows.size(), outputs = state_.num_outputs;
  const size_t per_row = work.targets_per_row;
  VarianceInputs variance_inputs;
  std::vector<double> chosen;
  if (variance_ != nullptr) {
    variance_inputs = TakeVarianceInputs(work);
    chosen.assign(scores.begin(), scores.end());
    variance_->ChooseMean(variance_inputs.view(), work.targets, work.weights, chosen);
    scores = chosen;
  }
  if (notes_drift()) {
    std::vector<double> misfits(rows);
    for (size_t i = 0; i < rows; ++i) {
      misfits[i] = RowMisfit(*loss_, {scores.data() + i * outputs, outputs},
                             targets.subspan(i * per_row, per_row));
    }
    NoteLosses(misfits, work.row_weights, state_.rows_learned, state_.drift);
  }
  if (HasLabels(loss_->task())) NoteLabels(targets, state_.drift);
  std::vector<ScoreInterval> intervals;
  if (variance_ != nullptr) {
    std::vector<double> residuals(rows);
    for (size_t i = 0; i < rows; ++i) residuals[i] = work.targets[i] - scores[i];
    LearnVariance(work, variance_inputs, residuals, &intervals);
    for (size_t i = 0; i < rows; ++i) {
      intervals[i].low += scores[i];
      intervals[i].high += scores[i];
    }
  }
  AddToTaskMetrics(*loss_, scores, targets, work.row_weights, intervals, state_.metrics);
}

void Trainer::Impl::ForgetBeforeDrift() {
  reservoir_.Flush();
  recent_.Clear();
  if (variance_ != nullptr) variance_->DiscountMeanErrors(kOldLossesAfterDrift);
  for (CandidateState& c : state_.candidates) {
    // Who does well from now on is what counts.
    for (DecayedMean* mean : {&c.last.validation.recent_loss, &c.last.validation.recent_errors,
                              &c.last.validation.recent_squares}) {
      mean->sum *= kOldLossesAfterDrift;
      mean->weight *= kOldLossesAfterDrift;
    }
    // The plain average is one of all steps.
    if (keeps_average() && config_.averaging != Averaging::kUniform) RestartAverage(c);
  }
  if (state_.next_generation_row != 0) {
    state_.next_generation_row =
        std::min(state_.next_generation_row, state_.learned_since_warm + kRowsToNewMetric);
  }
}

void Trainer::Impl::Replay(size_t rows) {
  const CandidateState* best = nullptr;
  const CandidateState* shadow = nullptr;
  for (const CandidateState& c : state_.candidates) {
    if (!c.replays) shadow = &c;
    if (c.replays && (best == nullptr || BestLoss(c) < BestLoss(*best))) best = &c;
  }
  if (shadow != nullptr && best != nullptr &&
      BestLoss(*shadow) < TimesLoss(kFlushRatio, BestLoss(*best))) {
    // The old rows mislead: forget them, and start again from what learned without them.
    reservoir_.Flush();
    const CandidateState source = *shadow;
    for (CandidateState& c : state_.candidates) {
      if (c.generation != source.generation || c.bandwidth != source.bandwidth) continue;
      c.last = source.last;
      c.average = source.average;
      c.steps_since_restart = source.steps_since_restart;
    }
  }
  // Old rows fade as the reservoir covers less and less of the stream.
  const double fade =
      std::min(1.0, 4.0 * config_.replay.reservoir_rows /
                        std::max<double>(1, static_cast<double>(reservoir_.seen())));
  const auto count = static_cast<size_t>(fade * *config_.replay.ratio * static_cast<double>(rows));
  SampleBatch old;
  reservoir_.Draw(count, old);
  for (size_t i = 0; i < old.size(); i += BlockRows()) {
    Work work;
    Update(
        old, i, std::min(BlockRows(), old.size() - i), Rows::kReplayed,
        [](const CandidateState& c) { return c.replays; }, work);
    if (variance_ != nullptr && variance_->learns_again() && !work.rows.empty()) {
      variance_->LearnAgain(TakeVarianceInputs(work).view(), work.x.rows, work.weights);
    }
  }
}

}  // namespace kernelstream
