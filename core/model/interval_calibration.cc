#include "core/model/interval_calibration.h"

#include <algorithm>
#include <cmath>
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

}  // namespace

absl::Status IntervalCalibration::Restore(CalibrationState state) {
  const bool fits = state.ratios.size() == std::min<uint64_t>(state.rows, kWindow) &&
                    state.squared_errors >= 0 && state.variances >= 0 && state.weight >= 0 &&
                    std::isfinite(state.squared_errors) && std::isfinite(state.variances) &&
                    std::isfinite(state.weight);
  if (!fits) {
    return absl::DataLossError(absl::StrCat("interval state: ", state.ratios.size(),
                                            " errors kept of ", state.rows,
                                            " rows, or a sum is out of range"));
  }
  state_ = std::move(state);
  return absl::OkStatus();
}

void IntervalCalibration::Observe(std::span<const double> residuals,
                                  std::span<const double> variances) {
  for (size_t i = 0; i < residuals.size(); ++i) {
    const double expected = noise_variance() + variances[i];
    Add(residuals[i], variances[i], std::abs(residuals[i]) / std::sqrt(expected));
  }
}

void IntervalCalibration::ObservePair(std::span<const double> residuals,
                                      std::span<const double> lows, std::span<const double> highs) {
  for (size_t i = 0; i < residuals.size(); ++i) {
    const double beyond = std::max(lows[i] - residuals[i], residuals[i] - highs[i]);
    Add(residuals[i], 0, beyond / std::sqrt(noise_variance()));
  }
}

void IntervalCalibration::Add(double residual, double variance, double ratio) {
  const double square = residual * residual;
  if (!std::isfinite(square)) return;
  const double expected = noise_variance() + variance;
  if (state_.ratios.size() < kWindow) {
    state_.ratios.push_back(static_cast<float>(ratio));
  } else {
    state_.ratios[state_.rows % kWindow] = static_cast<float>(ratio);
  }
  ++state_.rows;
  const double memory =
      std::clamp(static_cast<double>(state_.rows) / 2, kShortestMemoryRows, kLongestMemoryRows);
  const double keep = PortableExp(-1 / memory);
  state_.squared_errors = keep * state_.squared_errors + std::min(square, kMostSurprise * expected);
  state_.variances = keep * state_.variances + variance;
  state_.weight = keep * state_.weight + 1;
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
  std::vector<float> ratios(recent);
  for (uint64_t i = 0; i < recent; ++i) {
    ratios[i] = state_.ratios[(state_.rows - 1 - i) % kWindow];
  }
  // The ceil(coverage (m + 1))-th smallest of m: split-conformal prediction's rank.
  const auto rank = static_cast<uint64_t>(std::ceil(coverage_ * static_cast<double>(recent + 1)));
  const auto nth = ratios.begin() + static_cast<ptrdiff_t>(std::min(rank, recent) - 1);
  std::nth_element(ratios.begin(), nth, ratios.end());
  return double{*nth};
}

}  // namespace kernelstream
