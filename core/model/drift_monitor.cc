#include "core/model/drift_monitor.h"

#include <algorithm>
#include <cmath>

namespace kernelstream {
namespace {

constexpr double kFastRows = 128, kSlowRows = 4096;
constexpr uint64_t kRowsBeforeReports = 1024;
constexpr double kRatio = 1.25, kStandardErrors = 7, kLargestLoss = 50;
constexpr double kOrderRows = 2048, kRowsBeforeOrder = 1024, kShortestRun = 16;

double MeanOf(const DecayedMean& mean) { return mean.weight > 0 ? mean.sum / mean.weight : 0; }

void Add(double value, double window, DecayedMean& mean) {
  const double keep = 1 - 1 / window;
  mean.sum = keep * mean.sum + value;
  mean.weight = keep * mean.weight + 1;
}

}  // namespace

bool NoteLosses(std::span<const double> losses, uint64_t row, DriftState& state) {
  for (const double loss : losses) {
    const double mean = MeanOf(state.slow);
    const double value = state.rows < kFastRows ? loss : std::min(loss, kLargestLoss * mean);
    Add(value, kFastRows, state.fast);
    Add(value, kSlowRows, state.slow);
    Add(value * value, kSlowRows, state.slow_squares);
    ++state.rows;
  }
  if (state.rows < kRowsBeforeReports) return false;
  const double fast = MeanOf(state.fast), slow = MeanOf(state.slow);
  const double variance = std::max(0.0, MeanOf(state.slow_squares) - slow * slow);
  // A decayed mean with window w has the variance of a plain mean of 2 w rows.
  const double error = std::sqrt(variance / (2 * kFastRows));
  if (fast <= kRatio * slow || fast - slow <= kStandardErrors * error) return false;
  const uint64_t reports = state.reports + 1;
  state.fast = state.slow = state.slow_squares = {};
  state.rows = 0;
  state.reports = reports;
  state.last_report_row = row;
  return true;
}

void NoteLabels(std::span<const double> labels, DriftState& state) {
  double total = 0;
  for (const double weight : state.label_weights) total += weight;
  for (const double label : labels) {
    const auto index = static_cast<size_t>(std::max(0.0, label));
    if (state.label_weights.size() <= index) state.label_weights.resize(index + 1, 0.0);
    if (state.last_label >= 0) {
      Add(label == state.last_label ? 1 : 0, kOrderRows, state.same_label);
    }
    state.label_weights[index] += 1;
    total += 1;
    state.last_label = label;
  }
  const double changes = state.same_label.weight - state.same_label.sum;
  if (total < kRowsBeforeOrder) return;
  // Chance as the shares of all labels so far give it: within a first long run this is 1.
  double expected = 0;
  for (const double weight : state.label_weights) expected += (weight / total) * (weight / total);
  const double same = MeanOf(state.same_label);
  const double run = state.same_label.weight / std::max(changes, 1.0);
  state.ordered = run > kShortestRun && same > expected + 0.5 * (1 - expected);
}

}  // namespace kernelstream
