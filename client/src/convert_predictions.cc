// Predictions between the plain structs of client.h and the wire messages.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/convert.h"

namespace kernelstream::client {
namespace {

std::vector<Prediction> FromProto(google::protobuf::RepeatedPtrField<v1::Prediction>* from) {
  std::vector<Prediction> to;
  to.reserve(from->size());
  for (v1::Prediction& prediction : *from) {
    Prediction& added = to.emplace_back();
    added.scores.assign(prediction.scores().begin(), prediction.scores().end());
    added.label = std::move(*prediction.mutable_label());
    for (v1::ClassProbability& probability : *prediction.mutable_probabilities()) {
      added.probabilities.push_back(
          {.label = std::move(*probability.mutable_label()), .value = probability.value()});
    }
    added.value = prediction.value();
    added.values.assign(prediction.values().begin(), prediction.values().end());
    if (prediction.has_variance()) added.variance = prediction.variance();
    if (prediction.has_interval()) {
      added.interval = {.low = prediction.interval().low(), .high = prediction.interval().high()};
    }
  }
  return to;
}

template <typename Response>
PredictResult StepOf(const Response& from) {
  PredictResult to;
  to.step = from.step();
  to.sequence = from.sequence();
  to.num_features = from.num_features();
  to.model_uid = from.model_uid();
  return to;
}

bool ColumnsFit(const v1::PredictionMatrix& matrix) {
  const auto rows = static_cast<int64_t>(matrix.rows());
  if (rows == 0) return false;
  for (const int size : {matrix.scores_size(), matrix.probabilities_size(), matrix.values_size()}) {
    if (size % rows != 0) return false;
  }
  for (const int size : {matrix.label_indices_size(), matrix.variances_size(),
                         matrix.interval_lows_size(), matrix.interval_highs_size()}) {
    if (size != 0 && size != rows) return false;
  }
  for (const uint32_t index : matrix.label_indices()) {
    if (index >= static_cast<uint32_t>(matrix.labels_size())) return false;
  }
  return matrix.probabilities_size() / rows <= matrix.labels_size() &&
         matrix.interval_lows_size() == matrix.interval_highs_size();
}

// Row i of a column with any number of values per row.
void AssignRow(const google::protobuf::RepeatedField<double>& column, size_t i, size_t rows,
               std::vector<double>* out) {
  const size_t width = static_cast<size_t>(column.size()) / rows;
  out->assign(column.data() + i * width, column.data() + (i + 1) * width);
}

}  // namespace

v1::Prediction ToProto(const Prediction& from) {
  v1::Prediction to;
  to.mutable_scores()->Add(from.scores.begin(), from.scores.end());
  to.set_label(from.label);
  for (const ClassProbability& probability : from.probabilities) {
    v1::ClassProbability* added = to.add_probabilities();
    added->set_label(probability.label);
    added->set_value(probability.value);
  }
  to.set_value(from.value);
  to.mutable_values()->Add(from.values.begin(), from.values.end());
  if (from.variance) to.set_variance(*from.variance);
  if (from.interval) {
    to.mutable_interval()->set_low(from.interval->low);
    to.mutable_interval()->set_high(from.interval->high);
  }
  return to;
}

PredictResult FromProto(v1::PredictResponse from) {
  PredictResult to = StepOf(from);
  to.predictions = FromProto(from.mutable_predictions());
  return to;
}

absl::StatusOr<PredictResult> FromProto(v1::StreamPredictResponse from) {
  PredictResult to = StepOf(from);
  if (!from.has_matrix()) {
    to.predictions = FromProto(from.mutable_predictions());
    return to;
  }
  const v1::PredictionMatrix& matrix = from.matrix();
  if (!ColumnsFit(matrix)) {
    return absl::DataLossError(
        absl::StrCat("the columns of an answer do not have ", matrix.rows(),
                     " rows each; check that what answers is a kernelstream server"));
  }
  to.predictions.resize(matrix.rows());
  for (size_t i = 0; i < to.predictions.size(); ++i) {
    Prediction& row = to.predictions[i];
    const auto at = static_cast<int>(i);
    AssignRow(matrix.scores(), i, matrix.rows(), &row.scores);
    AssignRow(matrix.values(), i, matrix.rows(), &row.values);
    // As Prediction.value and .values on the wire: several targets only.
    if (!row.values.empty()) row.value = row.values[0];
    if (row.values.size() == 1) row.values.clear();
    if (!matrix.label_indices().empty()) {
      row.label = matrix.labels(static_cast<int>(matrix.label_indices(at)));
    }
    const int labels = matrix.probabilities_size() / static_cast<int>(matrix.rows());
    for (int k = 0; k < labels; ++k) {
      row.probabilities.push_back(
          {.label = matrix.labels(k), .value = matrix.probabilities(at * labels + k)});
    }
    if (!matrix.variances().empty() && !std::isnan(matrix.variances(at))) {
      row.variance = matrix.variances(at);
    }
    if (!matrix.interval_lows().empty() && !std::isnan(matrix.interval_lows(at))) {
      row.interval = {.low = matrix.interval_lows(at), .high = matrix.interval_highs(at)};
    }
  }
  return to;
}

}  // namespace kernelstream::client
