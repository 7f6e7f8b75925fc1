#include "core/model/drift_monitor.h"

#include <algorithm>
#include <cmath>

#include "core/base/portable_math.h"
#include "core/model/row_weights.h"

namespace kernelstream {
namespace {

constexpr double kFastRows = 128, kSlowRows = 4096;
constexpr uint64_t kRowsBeforeReports = 1024;
constexpr double kRatio = 1.25;
// Share of rows above the tracked quantile without drift, and the share that reports it: 7 standard
// errors of a decayed mean over kFastRows rows (which has the variance of a plain one over twice as
// many).
constexpr double kExceedingShare = 0.1, kReportShare = 0.23;
// How fast the quantile follows, in its own logarithm per row: fast enough downwards for losses
// that fall like a power of the rows while a model learns.
constexpr double kQuantileRows = 20, kSlowestRate = 0.004, kFastestRate = 0.2;
constexpr double kSmallestQuantile = 1e-12;
constexpr double kOrderRows = 2048, kRowsBeforeOrder = 1024, kShortestRun = 16;

constexpr double kUsualWeightRows = 256, kLargestOfUsual = 8;

void Add(double value, double window, DecayedMean& mean, double weight = 1) {
  const double keep = 1 - weight / window;
  mean.sum = keep * mean.sum + weight * value;
  mean.weight = keep * mean.weight + weight;
}

}  // namespace

std::vector<double> DriftWeights(std::span<const double> weights, double usual_weight) {
  double sum = 0, squares = 0;
  for (const double weight : weights) {
    sum += weight;
    squares += weight * weight;
  }
  const bool equal = UnlessEqual(weights).empty();
  std::vector<double> out;
  for (const double weight : weights) {
    const double here = equal ? 1 : weight * (sum / squares);
    const double ever = usual_weight > 0 ? weight / usual_weight : here;
    out.push_back(std::min(here, ever));
  }
  return out;
}

double NextUsualWeight(std::span<const double> weights, uint64_t rows, double usual_weight) {
  if (usual_weight == 0 && !weights.empty()) {
    std::vector<double> sorted(weights.begin(), weights.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::ranges::nth_element(sorted, middle);
    usual_weight = *middle;
  }
  for (const double weight : weights) {
    ++rows;
    if (weight == usual_weight) continue;
    const double ratio = std::clamp(weight / usual_weight, 1 / kLargestOfUsual, kLargestOfUsual);
    const double window = std::min(static_cast<double>(rows), kUsualWeightRows);
    usual_weight *= PortableExp(PortableLog(ratio) / window);
  }
  return usual_weight;
}

bool NoteLosses(std::span<const double> losses, std::span<const double> weights, uint64_t row,
                DriftState& state) {
  const std::vector<double> counts = DriftWeights(weights, state.usual_weight);
  state.usual_weight = NextUsualWeight(weights, state.rows, state.usual_weight);
  for (size_t i = 0; i < losses.size(); ++i) {
    const double loss = losses[i], count = counts[i];
    const double window = std::clamp(static_cast<double>(state.rows) / 3, 2 * kFastRows, kSlowRows);
    if (state.rows == 0) state.quantile = loss;
    const double exceeds = loss > state.quantile ? 1 : 0;
    Add(exceeds, kFastRows, state.exceeding, count);
    Add(loss, kFastRows, state.fast, count);
    Add(loss, window, state.slow, count);
    const double rate =
        std::clamp(kQuantileRows / static_cast<double>(state.rows + 1), kSlowestRate, kFastestRate);
    state.quantile =
        std::max(kSmallestQuantile,
                 state.quantile * PortableExp(count * rate * (exceeds - kExceedingShare)));
    ++state.rows;
  }
  if (state.rows < kRowsBeforeReports) return false;
  if (state.exceeding.Mean() <= kReportShare) return false;
  if (state.fast.Mean() <= kRatio * state.slow.Mean()) return false;
  state.fast = state.slow = state.exceeding = {};
  state.rows = 0;
  ++state.reports;
  state.last_report_row = row;
  return true;
}

void NoteLabels(std::span<const double> labels, DriftState& state) {
  double total = 0;
  for (const double weight : state.label_weights) total += weight;
  for (const double label : labels) {
    const auto index = static_cast<size_t>(std::max(0.0, label));
    if (state.label_weights.size() <= index) state.label_weights.resize(index + 1, 0.0);
    const auto here = static_cast<double>(index);
    if (state.last_label >= 0) {
      Add(here == state.last_label ? 1 : 0, kOrderRows, state.same_label);
    }
    state.label_weights[index] += 1;
    total += 1;
    state.last_label = here;
  }
  const double changes = state.same_label.weight - state.same_label.sum;
  if (total < kRowsBeforeOrder) return;
  // Chance as the shares of all labels so far give it: within a first long run this is 1.
  double expected = 0;
  for (const double weight : state.label_weights) expected += (weight / total) * (weight / total);
  const double same = state.same_label.Mean();
  const double run = state.same_label.weight / std::max(changes, 1.0);
  state.ordered = run > kShortestRun && same > expected + 0.5 * (1 - expected);
}

}  // namespace kernelstream
