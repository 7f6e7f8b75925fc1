#include "server/store/variance_codec.h"

#include <span>
#include <string>
#include <vector>

#include "server/store/rows_codec.h"

namespace kernelstream::server::codec {
namespace {

namespace v1 = storage::v1;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(BytesOf(std::span<const T>(values)));
}

}  // namespace

void EncodeVariance(const TrainerState& state, v1::CheckpointRecord& out) {
  if (state.variance_bandwidth == 0) return;  // nothing was chosen
  out.set_variance_generation(state.variance_generation);
  out.set_variance_bandwidth(state.variance_bandwidth);
  out.set_next_variance_row(state.next_variance_row);
  const VarianceState& variance = state.variance;
  v1::VarianceStateRecord& record = *out.mutable_variance();
  record.set_rows(variance.rows);
  if (variance.row_weight != static_cast<double>(variance.rows)) {
    record.set_row_weight(variance.row_weight);
  }
  const PosteriorState& posterior = variance.posterior;
  record.set_posterior_rows(posterior.rows);
  record.set_products(Bytes(posterior.products));
  record.set_target_products(Bytes(posterior.target_products));
  record.set_factor_rows(posterior.factor_rows);
  record.set_factor_noise_variance(posterior.factor_noise_variance);
  record.set_factor(Bytes(posterior.factor));
  record.set_mean(Bytes(posterior.mean));
  record.set_coefficients(Bytes(variance.regression.coefficients));
  const CalibrationState& calibration = variance.calibration;
  record.set_calibration_rows(calibration.rows);
  record.set_squared_errors(calibration.squared_errors);
  record.set_variances(calibration.variances);
  record.set_weight(calibration.weight);
  record.set_ratios(Bytes(calibration.ratios));
  record.set_ratio_weights(Bytes(calibration.weights));
  record.set_mean_error_rows(variance.mean_errors.rows);
  record.set_posterior_squared_errors(variance.mean_errors.posterior);
  record.set_learner_squared_errors(variance.mean_errors.learner);
}

absl::Status DecodeVariance(const v1::CheckpointRecord& in, TrainerState& out) {
  if (!in.has_variance()) return absl::OkStatus();
  out.variance_generation = in.variance_generation();
  out.variance_bandwidth = in.variance_bandwidth();
  out.next_variance_row = in.next_variance_row();
  const v1::VarianceStateRecord& record = in.variance();
  VarianceState& variance = out.variance;
  variance.rows = record.rows();
  variance.row_weight =
      record.row_weight() == 0 ? static_cast<double>(record.rows()) : record.row_weight();
  PosteriorState& posterior = variance.posterior;
  posterior.rows = record.posterior_rows();
  posterior.factor_rows = record.factor_rows();
  posterior.factor_noise_variance = record.factor_noise_variance();
  CalibrationState& calibration = variance.calibration;
  calibration.rows = record.calibration_rows();
  calibration.squared_errors = record.squared_errors();
  calibration.variances = record.variances();
  calibration.weight = record.weight();
  variance.mean_errors = {record.mean_error_rows(), record.posterior_squared_errors(),
                          record.learner_squared_errors()};
  if (!ReadArray(record.products(), posterior.products) ||
      !ReadArray(record.target_products(), posterior.target_products) ||
      !ReadArray(record.factor(), posterior.factor) || !ReadArray(record.mean(), posterior.mean) ||
      !ReadArray(record.coefficients(), variance.regression.coefficients) ||
      !ReadArray(record.ratios(), calibration.ratios) ||
      !ReadArray(record.ratio_weights(), calibration.weights)) {
    return absl::DataLossError("a checkpoint record's variance is cut");
  }
  return absl::OkStatus();
}

}  // namespace kernelstream::server::codec
