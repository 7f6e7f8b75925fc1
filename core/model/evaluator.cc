#include "core/model/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/finite.h"

namespace kernelstream {

void Evaluator::Rank(std::span<const double> scores, std::span<const double> targets,
                     std::span<const double> weights) {
  if (!ranks_) return;
  if (ranked_.size() + weights.size() > kMaxRankedRows) {
    ranks_ = false;
    ranked_ = {};
    return;
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    if (std::isnan(targets[i])) continue;
    const auto weight = static_cast<float>(weights[i]);
    ranked_.push_back({scores[i], targets[i] > 0 ? 0 : weight, targets[i] > 0 ? weight : 0});
  }
}

std::optional<size_t> Evaluator::Add(const Snapshot& snapshot, const SampleBatch& rows,
                                     Executor& executor) {
  const Loss& loss = snapshot.loss();
  const size_t outputs = snapshot.num_outputs();
  std::vector<double> scores(rows.size() * outputs);
  snapshot.Score(rows, executor, scores.data());
  if (const auto bad = FirstRowNotFinite(scores, outputs); bad.has_value()) return bad;
  std::vector<double> targets, weights(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    weights[i] = rows.weight(i);
    if (!snapshot.AppendLossTargets(rows.target(i), targets).ok()) {
      targets.push_back(std::numeric_limits<double>::quiet_NaN());
    }
  }
  std::vector<ScoreInterval> intervals;
  if (snapshot.has_uncertainty() && outputs == 1) {
    std::vector<RowUncertainty> uncertainty(rows.size());
    snapshot.Assess(rows, executor, uncertainty.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      intervals.push_back(
          {scores[i] - uncertainty[i].below, scores[i] + uncertainty[i].above, interval_coverage_});
    }
  }
  AddToMetricSums(loss, scores, targets, weights, intervals, sums_);
  if (loss.task() == Task::kBinary) Rank(scores, targets, weights);
  return std::nullopt;
}

TaskMetrics Evaluator::Metrics(const Snapshot& snapshot) const {
  std::vector<double> scales;
  for (const TargetScaling& scaling : snapshot.resolved().targets) scales.push_back(scaling.scale);
  if (scales.empty()) scales.push_back(snapshot.resolved().target_scale);
  TaskMetrics metrics = MetricsOf(snapshot.loss(), sums_, scales);
  if (!metrics.auc.has_value() || !ranks_) return metrics;
  std::vector<Ranked> ranked = ranked_;
  std::sort(ranked.begin(), ranked.end(),
            [](const Ranked& a, const Ranked& b) { return a.score < b.score; });
  double pairs = 0, first = 0, second = 0;
  for (size_t i = 0; i < ranked.size();) {
    double tied_first = 0, tied_second = 0;
    const double score = ranked[i].score;
    for (; i < ranked.size() && ranked[i].score == score; ++i) {
      tied_first += ranked[i].first;
      tied_second += ranked[i].second;
    }
    pairs += tied_second * (first + 0.5 * tied_first);
    first += tied_first;
    second += tied_second;
  }
  metrics.auc = pairs / (first * second);
  return metrics;
}

}  // namespace kernelstream
