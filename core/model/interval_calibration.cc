#include "core/model/interval_calibration.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/portable_math.h"
#include "core/base/quantile.h"
#include "core/model/posterior.h"

namespace kernelstream {
namespace {

constexpr double kMostSurprise = 16;
constexpr double kSmallestNoiseShare = 0.05;
constexpr double kLongestMemoryRows = 4096, kShortestMemoryRows = 256;

// The smallest value up to which the weights make `coverage` of all of them and one more of the
// mean weight; the largest value if none does. With equal weights, split-conformal prediction's
// rank.
double WeightedQuantile(std::span<const float> values, std::span<const float> weights,
                        double coverage) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t i, size_t j) { return values[i] < values[j]; });
  double total = 0;
  for (const float weight : weights) total += double{weight};
  const double wanted = coverage * (total + total / static_cast<double>(values.size()));
  double below = 0;
  for (const size_t i : order) {
    below += double{weights[i]};
    if (below >= wanted) return double{values[i]};
  }
  return double{values[order.back()]};
}

}  // namespace

absl::Status IntervalCalibration::Restore(CalibrationState state) {
  const bool fits = state.ratios.size() == std::min<uint64_t>(state.rows, kWindow) &&
                    state.squared_errors >= 0 && state.variances >= 0 && state.weight >= 0 &&
                    std::isfinite(state.squared_errors) && std::isfinite(state.variances) &&
                    std::isfinite(state.weight) &&
                    (state.weights.empty() || state.weights.size() == state.ratios.size()) &&
                    std::ranges::all_of(state.weights, [](float w) { return w > 0; });
  if (!fits) {
    return absl::DataLossError(absl::StrCat("interval state: ", state.ratios.size(),
                                            " errors kept of ", state.rows,
                                            " rows, or a sum is out of range"));
  }
  state_ = std::move(state);
  return absl::OkStatus();
}

void IntervalCalibration::Observe(std::span<const double> residuals,
                                  std::span<const double> variances,
                                  std::span<const double> weights) {
  for (size_t i = 0; i < residuals.size(); ++i) {
    const double expected = noise_variance() + variances[i];
    Add(residuals[i], variances[i], std::abs(residuals[i]) / std::sqrt(expected),
        weights.empty() ? 1 : weights[i]);
  }
}

void IntervalCalibration::ObservePair(std::span<const double> residuals,
                                      std::span<const double> lows, std::span<const double> highs,
                                      std::span<const double> weights) {
  for (size_t i = 0; i < residuals.size(); ++i) {
    const double beyond = std::max(lows[i] - residuals[i], residuals[i] - highs[i]);
    Add(residuals[i], 0, beyond / std::sqrt(noise_variance()), weights.empty() ? 1 : weights[i]);
  }
}

void IntervalCalibration::Keep(float value, std::vector<float>& ring) const {
  if (ring.size() < kWindow) {
    ring.push_back(value);
  } else {
    ring[state_.rows % kWindow] = value;
  }
}

void IntervalCalibration::Add(double residual, double variance, double ratio, double weight) {
  const double square = residual * residual;
  if (!std::isfinite(square)) return;
  const double expected = noise_variance() + variance;
  const auto kept_weight = static_cast<float>(weight);
  if (state_.weights.empty() && kept_weight != 1) state_.weights.assign(state_.ratios.size(), 1.0f);
  if (!state_.weights.empty() || kept_weight != 1) Keep(kept_weight, state_.weights);
  Keep(static_cast<float>(ratio), state_.ratios);
  ++state_.rows;
  const double memory =
      std::clamp(static_cast<double>(state_.rows) / 2, kShortestMemoryRows, kLongestMemoryRows);
  const double keep = PortableExp(-weight / memory);
  state_.squared_errors =
      keep * state_.squared_errors + weight * std::min(square, kMostSurprise * expected);
  state_.variances = keep * state_.variances + weight * variance;
  state_.weight = keep * state_.weight + weight;
}

double IntervalCalibration::noise_variance() const {
  if (given_noise_variance_.has_value()) {
    return std::max(*given_noise_variance_, kSmallestNoiseVariance);
  }
  if (state_.weight == 0) return 1;
  const double mean_square = state_.squared_errors / state_.weight;
  return std::max({mean_square - state_.variances / state_.weight,
                   kSmallestNoiseShare * mean_square, kSmallestNoiseVariance});
}

double IntervalCalibration::factor() const {
  if (state_.rows < kFewRows) return NormalQuantile((1 + coverage_) / 2);
  const uint64_t recent = std::min<uint64_t>({std::max(state_.rows / 2, kFewRows), kWindow});
  const auto recent_of = [&](const std::vector<float>& ring) {
    std::vector<float> values(recent);
    for (uint64_t i = 0; i < recent; ++i) values[i] = ring[(state_.rows - 1 - i) % kWindow];
    return values;
  };
  std::vector<float> ratios = recent_of(state_.ratios);
  if (!state_.weights.empty()) {
    return WeightedQuantile(ratios, recent_of(state_.weights), coverage_);
  }
  // The ceil(coverage (m + 1))-th smallest of m: split-conformal prediction's rank.
  const auto rank = static_cast<uint64_t>(std::ceil(coverage_ * static_cast<double>(recent + 1)));
  const auto nth = ratios.begin() + static_cast<ptrdiff_t>(std::min(rank, recent) - 1);
  std::nth_element(ratios.begin(), nth, ratios.end());
  return double{*nth};
}

}  // namespace kernelstream
