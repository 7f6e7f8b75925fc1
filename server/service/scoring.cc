#include "server/service/scoring.h"

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "server/service/wire_model.h"

namespace kernelstream::server {
namespace {

// Multiply-adds of about a millisecond.
constexpr uint64_t kSmallWork = uint64_t{1} << 23;
// Of one message: rows times outputs, so that an answer stays below some hundred MiB.
constexpr uint64_t kMaxScores = uint64_t{1} << 22;
// An answer with more lines for classes would not fit in a message of the usual size.
constexpr size_t kMostListedClasses = 1000;

absl::Status NotAnOutput(int i, absl::string_view output, absl::string_view why) {
  return InvalidField(absl::StrCat("outputs[", i, "]"), absl::StrCat(output, " ", why));
}

}  // namespace

absl::Status CheckInputs(const HostedModel& model, const Snapshot& snapshot, const WireRows& rows,
                         absl::string_view list) {
  if (rows.count * snapshot.num_outputs() > kMaxScores) {
    return InvalidField(rows.matrix ? "matrix.rows" : list,
                        absl::StrCat(rows.count, " rows with ", snapshot.num_outputs(),
                                     " outputs each; one message may ask for ", kMaxScores,
                                     " outputs. Send fewer rows at a time"));
  }
  const uint32_t dimension = snapshot.resolved().dimension;
  absl::Status error;
  uint64_t place = rows.count;
  for (size_t i = 0; i < rows.rows.size() && error.ok(); ++i) {
    error = model.rules().CheckInput(model.name(), dimension, rows.rows.row(i));
    place = rows.places[i];
  }
  if (!rows.rejected.empty() && (error.ok() || rows.rejected.front().number < place)) {
    place = rows.rejected.front().number;
    error = rows.rejected.front().status;
  }
  if (error.ok()) return error;
  return InvalidField(rows.Path(list, place, FieldPathOf(error)), error.message());
}

bool IsSmall(const Snapshot& snapshot, const WireRows& rows, uint64_t work_per_row) {
  return snapshot.WorkOf(rows.rows) + rows.rows.size() * work_per_row <= kSmallWork;
}

absl::StatusOr<OutputMask> OutputsFromWire(const v1::PredictRequest& request,
                                           const VarianceConfig& variance,
                                           const Snapshot& snapshot) {
  const bool labels = HasLabels(snapshot.loss().task());
  OutputMask mask;
  if (request.outputs().empty()) {
    mask.score = true;
    mask.value = !labels;
    mask.label = labels;
    return mask;
  }
  for (int i = 0; i < request.outputs_size(); ++i) {
    switch (request.outputs(i)) {
      case v1::PREDICTION_OUTPUT_SCORE:
        mask.score = true;
        break;
      case v1::PREDICTION_OUTPUT_LABEL:
        if (!labels) {
          return NotAnOutput(i, "LABEL",
                             "is not an output of a model without labels; ask for VALUE");
        }
        mask.label = true;
        break;
      case v1::PREDICTION_OUTPUT_PROBABILITIES:
        if (!snapshot.loss().has_probabilities()) {
          return NotAnOutput(
              i, "PROBABILITIES",
              "is not an output of a model with this loss; losses logistic and softmax "
              "have it");
        }
        mask.probabilities = true;
        break;
      case v1::PREDICTION_OUTPUT_VALUE:
        if (labels) {
          return NotAnOutput(i, "VALUE", "is not an output of a classifier; ask for LABEL");
        }
        mask.value = true;
        break;
      case v1::PREDICTION_OUTPUT_VARIANCE:
        if (variance.method == VarianceMethod::kNone ||
            variance.method == VarianceMethod::kQuantilePair) {
          return NotAnOutput(i, "VARIANCE",
                             "is an output of models created with variance method EXACT, OPERATOR "
                             "or TEST_POINTS only");
        }
        mask.variance = true;
        break;
      case v1::PREDICTION_OUTPUT_PREDICTION_INTERVAL:
        if (variance.method == VarianceMethod::kNone) {
          return NotAnOutput(i, "PREDICTION_INTERVAL",
                             "is an output of regressions created with a variance method only");
        }
        mask.interval = true;
        break;
      default:
        return NotAnOutput(i, absl::StrCat("value ", static_cast<int>(request.outputs(i))),
                           "is unknown; known: 1 (score), 2 (label), 3 (probabilities), 4 (value), "
                           "5 (variance), 6 (prediction interval)");
    }
  }
  return mask;
}

void PredictRows(const Snapshot& snapshot, const WireRows& rows, const OutputMask& outputs,
                 Executor& executor, v1::PredictResponse* response) {
  const size_t width = snapshot.num_outputs();
  std::vector<double> scores(rows.rows.size() * width);
  snapshot.Score(rows.rows, executor, scores.data());
  std::vector<RowUncertainty> uncertainty;
  if (outputs.uncertainty() && snapshot.has_uncertainty()) {
    uncertainty.resize(rows.rows.size());
    snapshot.Assess(rows.rows, executor, uncertainty.data());
  }
  response->mutable_predictions()->Reserve(static_cast<int>(rows.rows.size()));
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    Prediction prediction = snapshot.Link({scores.data() + i * width, width});
    if (!uncertainty.empty()) snapshot.AddUncertainty(uncertainty[i], prediction);
    v1::Prediction* wire = response->add_predictions();
    if (outputs.score)
      wire->mutable_scores()->Add(prediction.scores.begin(), prediction.scores.end());
    if (outputs.label) wire->set_label(prediction.label);
    if (outputs.value) wire->set_value(prediction.value);
    if (outputs.value && prediction.values.size() > 1) {
      wire->mutable_values()->Add(prediction.values.begin(), prediction.values.end());
    }
    if (outputs.variance && prediction.variance) wire->set_variance(*prediction.variance);
    if (outputs.interval && prediction.interval) {
      wire->mutable_interval()->set_low(prediction.interval->low);
      wire->mutable_interval()->set_high(prediction.interval->high);
    }
    if (!outputs.probabilities) continue;
    for (size_t k = 0; k < prediction.probabilities.size(); ++k) {
      v1::ClassProbability* probability = wire->add_probabilities();
      probability->set_label(snapshot.labels()[k]);
      probability->set_value(prediction.probabilities[k]);
    }
  }
  response->set_step(snapshot.step());
  response->set_sequence(snapshot.sequence());
  response->set_num_features(snapshot.num_features());
}

void EvaluationToWire(const Snapshot& snapshot, const Evaluator& evaluator,
                      v1::EvaluateResponse* response) {
  const TaskMetrics metrics = evaluator.Metrics(snapshot);
  for (const NamedMetric& metric : NamedMetrics(metrics)) {
    (*response->mutable_metrics())[std::string(metric.name)] = metric.value;
  }
  if (metrics.classes.size() <= kMostListedClasses) {
    ClassesToWire(metrics.classes, snapshot.labels(), response->mutable_classes());
  }
  response->set_rows(evaluator.rows());
  response->set_step(snapshot.step());
  response->set_sequence(snapshot.sequence());
  response->set_num_features(snapshot.num_features());
}

}  // namespace kernelstream::server
