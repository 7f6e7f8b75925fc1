// Noise and prediction intervals from predict-then-learn errors.
#ifndef KERNELSTREAM_CORE_MODEL_INTERVAL_CALIBRATION_H_
#define KERNELSTREAM_CORE_MODEL_INTERVAL_CALIBRATION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace kernelstream {

// Everything an IntervalCalibration needs to go on: at most 16 KiB.
struct CalibrationState {
  uint64_t rows = 0;
  // Decayed sums of squared errors and of the variances that were predicted for them, each times
  // the row's weight, and of the weights.
  double squared_errors = 0, variances = 0, weight = 0;
  std::vector<float> ratios;   // of the last kWindow rows, a ring: row i (from 0) at i % kWindow
  std::vector<float> weights;  // of these; empty while all were 1
};

// Thread-compatible; deterministic. Watches rows that were predicted before they were learned: with
// residual r = target - prediction and v the variance of f that was predicted with it,
//   noise variance = mean r^2 - mean v over recent rows (unless it is given),
//   interval       = prediction +- factor * sqrt(noise variance + v),
// where factor is the `coverage` quantile of |r| / sqrt(noise variance + v) over recent rows: an
// online split-conformal interval (Vovk, Gammerman & Shafer 2005), so the coverage holds whatever
// the noise's shape and however wrong the variance's size. Recent: the later half of the stream, at
// least 64 and at most kWindow rows, as early rows met a worse model. For a pair of quantile
// estimates low <= high of the residual the ratio is max(low - r, r - high) / sqrt(noise variance),
// and the interval reaches factor * sqrt(noise variance) beyond both (Romano, Patterson & Candes
// 2019). A squared error counts as at
// most 16 times what was expected, so that a wild target does not widen intervals for long. All in
// standardised target units.
class IntervalCalibration {
 public:
  static constexpr size_t kWindow = 2048;

  // coverage: in (0, 1). noise_variance: > 0 where it is given.
  IntervalCalibration(double coverage, std::optional<double> noise_variance)
      : coverage_(coverage), given_noise_variance_(noise_variance) {}
  // DATA_LOSS for a state that does not fit together.
  absl::Status Restore(CalibrationState state);

  // residuals, variances, weights (empty: ones): [rows], in the order of the stream; variances >=
  // 0, weights > 0. A row counts by its weight in means and quantiles. An infinite or NaN residual
  // is passed over.
  void Observe(std::span<const double> residuals, std::span<const double> variances,
               std::span<const double> weights);

  // The same for rows with estimated quantiles of their residuals.
  void ObservePair(std::span<const double> residuals, std::span<const double> lows,
                   std::span<const double> highs, std::span<const double> weights);

  // At least kSmallestNoiseVariance and a twentieth of the mean squared error; 1 before any row.
  double noise_variance() const;
  // Before kFewRows rows, the normal distribution's quantile.
  double factor() const;
  const CalibrationState& state() const { return state_; }

 private:
  static constexpr uint64_t kFewRows = 64;
  void Add(double residual, double variance, double ratio, double weight);
  // As that of row number state_.rows of a ring.
  void Keep(float value, std::vector<float>& ring) const;
  double coverage_;
  std::optional<double> given_noise_variance_;
  CalibrationState state_;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_INTERVAL_CALIBRATION_H_
