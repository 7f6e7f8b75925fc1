// Which candidate is served, which stay in the race, and which join it. Everything is decided by
// predict-then-learn losses at fixed row counts, so that the same log gives the same race.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "core/base/philox.h"
#include "core/model/median_distance.h"
#include "core/model/row_weights.h"
#include "core/model/trainer_impl.h"
#include "core/model/validation_tracker.h"

namespace kernelstream {
namespace {

// Rows after which only the best step constant of each bandwidth stays.
constexpr uint64_t kPruneRows = 4096;
// Rows at which the first learned metric is made; then at each doubling.
constexpr uint64_t kFirstGenerationRows = 2048;
constexpr size_t kGradientRows = 2000;
constexpr size_t kFewestGradientRows = 512;
constexpr size_t kMedianRows = 1000;
// Bandwidths of a new generation, and the smallest step constant it may try.
constexpr size_t kNewBandwidths = 3;
constexpr double kSmallestNewStepConstant = 0.01;
// Older candidates that race a new generation, and new ones that learn its rows more than once.
constexpr size_t kOldRacers = 3;
constexpr size_t kNewReplaying = 3;
// The generation without a metric stays until its best loss is this much worse, after this many
// rows.
constexpr double kClearlyBeaten = 1.1;
constexpr uint64_t kRowsBeforeBeaten = 8192;

}  // namespace

double Trainer::Impl::BestLoss(const CandidateState& candidate) const {
  const double last = RecentLoss(candidate.last.validation);
  return keeps_average() ? std::min(last, RecentLoss(candidate.average.validation)) : last;
}

double Trainer::Impl::LossOfBest(size_t count, CandidateFilter of) const {
  std::vector<double> losses;
  for (const CandidateState& c : state_.candidates) {
    if (of(c)) losses.push_back(BestLoss(c));
  }
  std::sort(losses.begin(), losses.end());
  return losses.empty() ? 0 : losses[std::min(count, losses.size()) - 1];
}

Trainer::Impl::Choice Trainer::Impl::ServedChoice() const {
  Choice best;
  best.average = config_.averaging != Averaging::kLast;
  double best_loss = std::numeric_limits<double>::infinity();
  for (size_t c = 0; c < state_.candidates.size(); ++c) {
    const CandidateState& candidate = state_.candidates[c];
    const bool last =
        config_.averaging == Averaging::kLast || config_.averaging == Averaging::kAuto;
    if (keeps_average()) {
      const double loss = RecentLoss(candidate.average.validation);
      if (loss < best_loss) {
        best_loss = loss;
        best = {c, true};
      }
    }
    if (last) {
      const double loss = RecentLoss(candidate.last.validation);
      if (loss < best_loss) {
        best_loss = loss;
        best = {c, false};
      }
    }
  }
  return best;
}

void Trainer::Impl::AddCandidates(const GenerationState& generation, std::span<const double> scales,
                                  std::span<const double> step_constants) {
  const double unit = generation.median_distance;
  for (const double scale : scales) {
    for (const double step_constant : step_constants) {
      CandidateState candidate;
      candidate.generation = generation.id;
      candidate.bandwidth = std::clamp(unit * scale, kSmallestBandwidth, kLargestBandwidth);
      candidate.step_constant = step_constant;
      rules_.push_back(MakeRule(candidate));
      state_.candidates.push_back(std::move(candidate));
    }
  }
  GrowFeatures(state_.num_features);
}

void Trainer::Impl::KeepCandidates(CandidateFilter keep) {
  size_t kept = 0;
  for (size_t c = 0; c < state_.candidates.size(); ++c) {
    if (!keep(state_.candidates[c])) continue;
    if (kept != c) {
      state_.candidates[kept] = std::move(state_.candidates[c]);
      rules_[kept] = std::move(rules_[c]);
    }
    ++kept;
  }
  state_.candidates.resize(kept);
  rules_.resize(kept);
  std::erase_if(state_.generations, [&](const GenerationState& generation) {
    const bool used =
        std::any_of(state_.candidates.begin(), state_.candidates.end(),
                    [&](const CandidateState& c) { return c.generation == generation.id; });
    // A variance that is estimated under this stream needs it until another one is chosen.
    const bool needed =
        used || (variance_ != nullptr && generation.id == state_.variance_generation);
    if (!needed) streams_.erase(generation.id);
    return !needed;
  });
}

void Trainer::Impl::PruneStepConstants(uint64_t generation) {
  // Per bandwidth the best, and the second of the best bandwidth.
  std::map<double, std::vector<std::pair<double, double>>> by_bandwidth;  // (loss, step constant)
  for (const CandidateState& c : state_.candidates) {
    if (c.generation != generation || !c.replays) continue;
    by_bandwidth[c.bandwidth].push_back({BestLoss(c), c.step_constant});
  }
  double best_loss = std::numeric_limits<double>::infinity(), best_bandwidth = 0;
  for (auto& [bandwidth, entries] : by_bandwidth) {
    std::sort(entries.begin(), entries.end());
    if (entries[0].first < best_loss) {
      best_loss = entries[0].first;
      best_bandwidth = bandwidth;
    }
  }
  KeepCandidates([&](const CandidateState& c) {
    if (c.generation != generation || !c.replays) return true;
    const auto& entries = by_bandwidth.at(c.bandwidth);
    const size_t keep = c.bandwidth == best_bandwidth ? 2 : 1;
    for (size_t i = 0; i < std::min(keep, entries.size()); ++i) {
      if (entries[i].second == c.step_constant) return true;
    }
    return false;
  });
}

void Trainer::Impl::PruneGenerations() {
  std::map<uint64_t, double> best;  // by generation
  uint64_t winner = 0;
  for (const CandidateState& c : state_.candidates) {
    const double loss = BestLoss(c);
    const auto [at, is_new] = best.try_emplace(c.generation, loss);
    if (!is_new) at->second = std::min(at->second, loss);
  }
  for (const auto& [id, loss] : best) {
    if (loss < best.at(best.contains(winner) ? winner : id) || !best.contains(winner)) winner = id;
  }
  const bool beaten = best.contains(0) && winner != 0 &&
                      state_.learned_since_warm >= kRowsBeforeBeaten &&
                      best.at(0) > TimesLoss(kClearlyBeaten, best.at(winner));
  KeepCandidates([&](const CandidateState& c) {
    return c.generation == winner || (c.generation == 0 && !beaten);
  });
  PruneStepConstants(winner);
}

// Step constants go before bandwidths, whoever has shown a loss before who has not, the worst
// first; of those who have shown nothing, the farthest from the middle of the grid. The served one
// stays.
size_t Trainer::Impl::FirstToDrop() const {
  const auto off_middle = [](double value, std::vector<double> grid) {
    if (grid.empty()) return 1.0;
    std::sort(grid.begin(), grid.end());
    const double middle = grid[grid.size() / 2];
    return std::max(value / middle, middle / value);
  };
  const auto rank = [&](const CandidateState& candidate) {
    size_t alike = 0;  // but for their step constant, itself included
    double unit = 1;
    for (const CandidateState& c : state_.candidates) {
      if (c.generation == candidate.generation && c.bandwidth == candidate.bandwidth) ++alike;
    }
    for (const GenerationState& generation : state_.generations) {
      if (generation.id == candidate.generation) unit = generation.median_distance;
    }
    const double loss = BestLoss(candidate);
    const bool known = std::isfinite(loss);
    const double off =
        alike > 1 ? off_middle(candidate.step_constant, config_.candidates.step_constants)
                  : off_middle(candidate.bandwidth / unit, config_.candidates.bandwidth_scales);
    return std::tuple(alike > 1, known, known ? loss : off);
  };
  const size_t served = ServedChoice().candidate;
  const bool spare_served = std::isfinite(BestLoss(state_.candidates[served]));
  size_t first = state_.candidates.size();
  for (size_t c = 0; c < state_.candidates.size(); ++c) {
    if (spare_served && c == served) continue;
    if (first == state_.candidates.size() ||
        rank(state_.candidates[c]) > rank(state_.candidates[first])) {
      first = c;
    }
  }
  return first;
}

// The pruning before may have taken the one there was along with its generation.
void Trainer::Impl::KeepShadow() {
  const bool has_one =
      std::ranges::any_of(state_.candidates, [](const CandidateState& c) { return !c.replays; });
  if (!replays() || is_ordered() || !state_.pruned || has_one ||
      !FitsMemory(state_.candidates.size() + 1)) {
    return;
  }
  CandidateState shadow = state_.candidates[ServedChoice().candidate];
  shadow.replays = false;
  rules_.push_back(MakeRule(shadow));
  state_.candidates.push_back(std::move(shadow));
}

bool Trainer::Impl::FitsMemory(size_t candidates) const {
  const uint64_t features =
      config_.max_features == kUnlimitedFeatures ? state_.num_features : config_.max_features;
  const uint64_t bytes_each =
      features * state_.num_outputs * (keeps_average() ? 2 : 1) * sizeof(float);
  return candidates * bytes_each <= uint64_t{config_.memory_mib} << 20;
}

void Trainer::Impl::FitMemory() {
  while (state_.candidates.size() > 1 && !FitsMemory(state_.candidates.size())) {
    const CandidateState* drop = &state_.candidates[FirstToDrop()];
    KeepCandidates([&](const CandidateState& c) { return &c != drop; });
  }
  // Labels that come late may leave less room than the features have taken.
  if (state_.num_features > FeatureLimit()) GrowFeatures(FeatureLimit());
}

SampleBatch Trainer::Impl::RowsLikeThoseToCome(size_t count) {
  if (!is_ordered()) return recent_.Last(count);
  SampleBatch rows;
  reservoir_.Draw(std::min(count, reservoir_.size()), rows);
  return rows;
}

void Trainer::Impl::MakeGenerations() {
  const Choice choice = ServedChoice();
  const size_t dim = state_.input_dim;
  std::vector<MetricForm> forms;
  const InputMetric wanted = config_.input_metric;
  if (wanted != InputMetric::kFull && dim <= kMaxDiagonalMetricDim) {
    forms.push_back(MetricForm::kDiagonal);
  }
  if (wanted != InputMetric::kDiagonal && dim <= kMaxFullMetricDim) {
    forms.push_back(MetricForm::kFull);
  }

  Work work;
  const SampleBatch rows = RowsLikeThoseToCome(kGradientRows);
  if (rows.size() < kFewestGradientRows) return;  // drift has just emptied them
  for (size_t i = 0; i < rows.size(); ++i) work.rows.push_back(i);
  TakeInputs(rows, work);
  const std::vector<double> weights = WeightsOf(rows);
  const CandidateState& served = state_.candidates[choice.candidate];
  const CoefficientState& coefficients = choice.average ? served.average : served.last;
  const Stream& stream = streams_.at(served.generation);
  GradientModel model;
  model.features = stream.features->AsRandom();
  model.metric = stream.metric.get();
  model.coefficients = coefficients.values;
  model.scale = choice.average ? 1 : coefficients.scale;
  model.num_outputs = state_.num_outputs;
  model.num_features = state_.num_features;
  model.inverse_bandwidth = 1 / served.bandwidth;

  std::vector<GenerationState> made;
  for (const MetricForm form : forms) {
    GenerationState generation;
    generation.id = state_.next_generation++;
    generation.form = form;
    generation.metric_dim = static_cast<uint32_t>(dim);
    generation.first_row = state_.learned_since_warm;
    const std::vector<double> product = AverageGradientProduct(
        model, work.x.dense, form, *config_.seed ^ generation.id, *options_.executor, weights);
    generation.metric = MetricRoot(product, dim, form);
    if (generation.metric.empty()) continue;
    const LearnedMetric metric(form, dim, generation.metric);
    const size_t count = std::min(kMedianRows, work.x.rows);
    std::vector<float> mapped(count * dim);
    metric.Apply(work.x.dense.Rows(work.x.rows - count, count), mapped.data());
    generation.median_distance =
        MedianDistance({mapped.data(), count, dim}, *kernel_, std::span(weights).last(count)) *
        state_.kernel_parameters.at("bandwidth_scale");
    made.push_back(std::move(generation));
  }
  if (made.empty()) return;

  // The new candidates: step constants of the best so far and a third of it, and the bandwidths of
  // the grid that are nearest to the best, as multiples of the median distance.
  std::vector<double> step_constants = {served.step_constant};
  const double smaller = std::max(kSmallestNewStepConstant, served.step_constant / 3);
  if (smaller < served.step_constant) step_constants.push_back(smaller);
  double unit = 1;
  for (const GenerationState& generation : state_.generations) {
    if (generation.id == served.generation) unit = generation.median_distance;
  }
  std::vector<double> scales = config_.candidates.bandwidth_scales;
  const auto distance = [&](double scale) {
    const double ratio = scale * unit / served.bandwidth;
    return std::max(ratio, 1 / ratio);
  };
  std::stable_sort(scales.begin(), scales.end(),
                   [&](double a, double b) { return distance(a) < distance(b); });
  scales.resize(std::min(scales.size(), kNewBandwidths));

  // The old ones: the best, and all bandwidths without a metric. The shadow, a copy of one of them,
  // takes nobody's place.
  const double bar = LossOfBest(kOldRacers, [](const CandidateState& c) { return c.replays; });
  if (streams_.contains(0) && !is_ordered()) PruneStepConstants(0);
  KeepCandidates([&](const CandidateState& c) {
    return c.generation == 0 || !c.replays || BestLoss(c) <= bar;
  });

  const uint64_t first_new = made.front().id;
  for (GenerationState& generation : made) {
    streams_.emplace(generation.id, MakeStream(generation));
    state_.generations.push_back(std::move(generation));
    AddCandidates(state_.generations.back(), scales, step_constants);
  }
  FitMemory();
  const SampleBatch known = RowsLikeThoseToCome(kRecentRows);
  // As often as the older candidates did; the rows of an ordered stream are too few for that.
  const uint64_t again = is_ordered() ? 1 : *config_.replay.ratio;
  const auto is_new = [&](const CandidateState& c) { return c.generation >= first_new; };
  double limit = std::numeric_limits<double>::infinity();
  for (uint64_t time = 0; time <= again; ++time) {
    const Rows kind = time == 0 ? Rows::kKnown : Rows::kReplayed;
    if (time == 1) limit = LossOfBest(kNewReplaying, is_new);
    for (size_t i = 0; i < known.size(); i += BlockRows()) {
      Work pass;
      Update(
          known, i, std::min(BlockRows(), known.size() - i), kind,
          [&](const CandidateState& c) { return is_new(c) && BestLoss(c) <= limit; }, pass);
    }
  }
}

bool Trainer::Impl::Race() {
  if (config_.update_rule.name != "proximal") return false;
  bool moved = false;
  // The first rows of an ordered stream are too much alike to choose by.
  if (!state_.pruned && !is_ordered() && state_.learned_since_warm >= kPruneRows) {
    state_.pruned = moved = true;
    if (streams_.contains(0)) PruneStepConstants(0);
    KeepShadow();
  }
  if (config_.input_metric == InputMetric::kOff) return moved;
  if (state_.next_generation_row == 0) state_.next_generation_row = kFirstGenerationRows;
  if (state_.learned_since_warm >= state_.next_generation_row) {
    PruneGenerations();
    KeepShadow();
    MakeGenerations();
    state_.next_generation_row = 2 * state_.learned_since_warm;
    state_.next_prune_row = state_.learned_since_warm + kPruneRows;
    moved = true;
  } else if (state_.next_prune_row != 0 && state_.learned_since_warm >= state_.next_prune_row) {
    PruneGenerations();
    KeepShadow();
    state_.next_prune_row = 0;
    moved = true;
  }
  return moved;
}

}  // namespace kernelstream
