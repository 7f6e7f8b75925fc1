// One step: scores, loss derivative, growth, update, averages. The members of Trainer::Impl that do
// the work.
#include <algorithm>
#include <cmath>

#include "core/model/trainer_impl.h"
#include "core/model/validation_tracker.h"

namespace kernelstream {
namespace {

// Features of a mini-batch are kept between scoring and updating up to this size, and computed
// again beyond it.
constexpr size_t kMostKeptFeatures = size_t{64} << 20;  // floats

// Below this the scale is multiplied into the coefficients, long before it could underflow.
constexpr double kSmallestScale = 1e-6;

// Scores beyond this many standardised units mean that the steps are too large and will not
// recover.
constexpr double kLargestScore = 1e6;

// Polynomial-decay average: weight (eta + 1) / (t + eta) of the t-th step.
constexpr double kAverageEta = 8;
// The average is set back to the last coefficients when those have done this much better for this
// many steps.
constexpr double kRestartRatio = 0.97;
constexpr uint64_t kStepsBeforeRestart = 20;

std::vector<float> WithOutputs(const std::vector<float>& old, size_t panels, size_t from,
                               size_t to) {
  std::vector<float> fresh(panels * to * kPanelWidth, 0.0f);
  if (old.empty()) return fresh;
  for (size_t p = 0; p < panels; ++p) {
    std::copy_n(old.data() + p * from * kPanelWidth, std::min(from, to) * kPanelWidth,
                fresh.data() + p * to * kPanelWidth);
  }
  return fresh;
}

}  // namespace

void Trainer::Impl::GrowOutputs(uint32_t outputs) {
  if (outputs <= state_.num_outputs) return;
  const size_t panels = PanelsFor(state_.num_features);
  CandidateState& c = candidate();
  c.last.values = WithOutputs(c.last.values, panels, state_.num_outputs, outputs);
  if (keeps_average()) {
    c.average.values = WithOutputs(c.average.values, panels, state_.num_outputs, outputs);
  }
  state_.num_outputs = outputs;
}

void Trainer::Impl::GrowFeatures(uint64_t num_features) {
  state_.num_features = num_features;
  const size_t values = PanelsFor(num_features) * state_.num_outputs * kPanelWidth;
  candidate().last.values.resize(values, 0.0f);
  if (keeps_average()) candidate().average.values.resize(values, 0.0f);
}

void Trainer::Impl::TakeTargets(const SampleBatch& batch, size_t first, size_t count, Work& work) {
  for (size_t i = first; i < first + count; ++i) {
    const auto target = LossTarget(batch.target(i));
    if (!target.ok()) {
      ++state_.rows_skipped;
      continue;
    }
    work.rows.push_back(i);
    work.targets.push_back(*target);
    work.weights.push_back(batch.weight(i));
    NoteDimension(batch, i);
  }
  if (loss_->task() == Task::kMulticlass) {
    GrowOutputs(static_cast<uint32_t>(table_->labels().size()));
  }
  if (state_.input_dim > features_->input_dim()) {
    features_ = features_->Widen(state_.input_dim, /*keep=*/true);
  }
}

void Trainer::Impl::TakeInputs(const SampleBatch& batch, Work& work) {
  const size_t dimension = features_->input_dim();
  work.inputs.resize(work.rows.size() * dimension);
  for (size_t i = 0; i < work.rows.size(); ++i) {
    scaling_->Apply(batch.row(work.rows[i]), dimension, work.inputs.data() + i * dimension);
  }
  work.x = {work.inputs.data(), work.rows.size(), dimension};
}

void Trainer::Impl::MaskedFeatures(ConstMatrixView x, size_t first_panel, size_t num_panels,
                                   uint64_t begin, uint64_t end, float* out) const {
  const auto inverse_bandwidth = static_cast<float>(1 / candidate().bandwidth);
  for (size_t p = 0; p < num_panels;) {
    const size_t panel = first_panel + p;
    const size_t left_in_block = kPanelsPerBlock - panel % kPanelsPerBlock;
    const size_t run = std::min(left_in_block, num_panels - p);
    features_->Features(x, inverse_bandwidth, panel, run, out + p * x.rows * kPanelWidth);
    p += run;
  }
  const auto clear = [&](uint64_t feature) {
    float* lanes = out + (feature / kPanelWidth - first_panel) * x.rows * kPanelWidth;
    for (size_t i = 0; i < x.rows; ++i) lanes[i * kPanelWidth + feature % kPanelWidth] = 0;
  };
  for (uint64_t f = first_panel * kPanelWidth; f < begin; ++f) clear(f);
  for (uint64_t f = end; f < (first_panel + num_panels) * kPanelWidth; ++f) clear(f);
}

void Trainer::Impl::Evaluate(uint64_t num_features, bool with_gram, Work& work) {
  const size_t rows = work.x.rows, outputs = state_.num_outputs;
  const size_t panel_floats = rows * kPanelWidth;
  const FeatureChunks chunks(num_features);
  const bool keep = with_gram && PanelsFor(num_features) * panel_floats <= kMostKeptFeatures;
  if (keep) work.features.resize(PanelsFor(num_features) * panel_floats);

  const CandidateState& c = candidate();
  const bool with_average = keeps_average();
  struct Partial {
    std::vector<double> last, average;
    std::vector<float> gram;
  };
  std::vector<Partial> partials(chunks.size());
  options_.executor->ParallelFor(chunks.size(), [&](size_t i) {
    thread_local std::vector<float> scratch;
    const FeatureChunk chunk = chunks[i];
    float* features = nullptr;
    if (keep) {
      features = work.features.data() + chunk.first_panel * panel_floats;
    } else {
      scratch.resize(std::max(scratch.size(), chunk.num_panels * panel_floats));
      features = scratch.data();
    }
    MaskedFeatures(work.x, chunk.first_panel, chunk.num_panels, 0, num_features, features);
    Partial& partial = partials[i];
    const size_t offset = chunk.first_panel * outputs * kPanelWidth;
    partial.last.resize(rows * outputs);
    FeatureSums(features, chunk.num_panels, rows, c.last.values.data() + offset, outputs,
                partial.last.data());
    if (with_average) {
      partial.average.resize(rows * outputs);
      FeatureSums(features, chunk.num_panels, rows, c.average.values.data() + offset, outputs,
                  partial.average.data());
    }
    if (with_gram) {
      partial.gram.resize(rows * rows);
      FeatureGram(features, chunk.num_panels, rows, partial.gram.data());
    }
  });

  work.last_scores.assign(rows * outputs, 0);
  work.average_scores.assign(with_average ? rows * outputs : 0, 0);
  work.gram.assign(with_gram ? rows * rows : 0, 0);
  for (const Partial& partial : partials) {
    for (size_t k = 0; k < work.last_scores.size(); ++k) work.last_scores[k] += partial.last[k];
    for (size_t k = 0; k < work.average_scores.size(); ++k) {
      work.average_scores[k] += partial.average[k];
    }
    for (size_t k = 0; k < work.gram.size(); ++k) work.gram[k] += partial.gram[k];
  }
  for (double& score : work.last_scores) score *= c.last.scale;
}

Trainer::Impl::Range Trainer::Impl::NextRange(size_t rows) const {
  const uint64_t wanted = config_.block_features != 0 ? config_.block_features : rows;
  const uint64_t full = config_.max_features;
  if (rule_->updates_all_features()) {
    return {0, std::min(state_.num_features + wanted, full)};
  }
  if (state_.num_features < full) {
    return {state_.num_features, std::min(wanted, full - state_.num_features)};
  }
  return {state_.cursor, std::min(wanted, full - state_.cursor)};  // the oldest block again
}

bool Trainer::Impl::CoefficientsDiverged(const Work& work) const {
  return std::any_of(work.last_scores.begin(), work.last_scores.end(),
                     [](double score) { return !(std::abs(score) <= kLargestScore); });
}

void Trainer::Impl::SetCoefficientsToZero() {
  ++state_.divergences;
  CandidateState& c = candidate();
  c.last.scale = 1;
  std::fill(c.last.values.begin(), c.last.values.end(), 0.0f);
  std::fill(c.average.values.begin(), c.average.values.end(), 0.0f);
  c.last.validation = c.average.validation = {};
  c.steps_since_restart = 0;
}

void Trainer::Impl::Learn(const SampleBatch& batch, size_t first, size_t count) {
  Work work;
  TakeTargets(batch, first, count, work);
  if (work.rows.empty()) return;
  TakeInputs(batch, work);
  ++state_.updates;

  const Range range = NextRange(work.rows.size());
  if (rule_->updates_all_features()) GrowFeatures(range.begin + range.size);
  Evaluate(state_.num_features, rule_->needs_gram(), work);
  if (CoefficientsDiverged(work)) {
    SetCoefficientsToZero();
    std::fill(work.last_scores.begin(), work.last_scores.end(), 0.0);
    std::fill(work.average_scores.begin(), work.average_scores.end(), 0.0);
  }
  Validate(work);

  const size_t outputs = state_.num_outputs;
  std::vector<double> derivative(work.last_scores.size());
  for (size_t i = 0; i < work.rows.size(); ++i) {
    loss_->Derivative({work.last_scores.data() + i * outputs, outputs}, work.targets[i],
                      {derivative.data() + i * outputs, outputs});
  }
  for (double& value : work.gram) value /= static_cast<double>(range.size);
  StepInput input;
  input.update = state_.updates;
  input.rows = work.rows.size();
  input.num_outputs = outputs;
  input.range_size = range.size;
  input.derivative = derivative;
  input.weights = work.weights;
  input.gram = work.gram;
  const StepOutput output = rule_->Step(input);

  if (!rule_->updates_all_features()) {
    GrowFeatures(std::max(state_.num_features, range.begin + range.size));
    state_.cursor = (range.begin + range.size) % config_.max_features;
  }
  Move(output, range, work);
  if (keeps_average()) UpdateAverage();
}

void Trainer::Impl::Move(const StepOutput& output, const Range& range, const Work& work) {
  CoefficientState& last = candidate().last;
  last.scale *= output.decay;
  if (last.scale < kSmallestScale) {
    for (float& value : last.values) value = static_cast<float>(last.scale * value);
    last.scale = 1;
  }
  std::vector<float> dual = output.dual;
  if (last.scale != 1) {
    for (float& value : dual) value = static_cast<float>(value / last.scale);
  }
  const size_t rows = work.x.rows, outputs = state_.num_outputs;
  const size_t panel_floats = rows * kPanelWidth;
  const uint64_t end = range.begin + range.size;
  const size_t first_panel = range.begin / kPanelWidth;
  const FeatureChunks chunks(end - first_panel * kPanelWidth);
  options_.executor->ParallelFor(chunks.size(), [&](size_t i) {
    thread_local std::vector<float> scratch;
    const size_t panel = first_panel + chunks[i].first_panel;
    const size_t panels = chunks[i].num_panels;
    const float* features = work.features.data() + panel * panel_floats;
    if (work.features.empty()) {
      scratch.resize(std::max(scratch.size(), panels * panel_floats));
      MaskedFeatures(work.x, panel, panels, range.begin, end, scratch.data());
      features = scratch.data();
    }
    AddWeightedFeatures(features, panels, rows, dual.data(), outputs,
                        last.values.data() + panel * outputs * kPanelWidth);
  });
}

void Trainer::Impl::UpdateAverage() {
  CandidateState& c = candidate();
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
  if (RecentLoss(c.last.validation) < kRestartRatio * RecentLoss(c.average.validation)) {
    for (size_t i = 0; i < c.last.values.size(); ++i) {
      c.average.values[i] = static_cast<float>(c.last.scale * c.last.values[i]);
    }
    c.average.validation = c.last.validation;
    c.steps_since_restart = 0;
  }
}

void Trainer::Impl::Validate(const Work& work) {
  CandidateState& c = candidate();
  AddToValidation(*loss_, work.last_scores, work.targets, work.weights, c.last.validation);
  if (keeps_average()) {
    AddToValidation(*loss_, work.average_scores, work.targets, work.weights, c.average.validation);
  }
}

}  // namespace kernelstream
