#include "server/service/scoring.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "core/base/finite.h"
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

// What a row's uncertainty makes of its prediction; uncertainty may be empty.
Prediction Uncertain(const Snapshot& snapshot, std::span<const double> scores,
                     const std::vector<RowUncertainty>& uncertainty, size_t row) {
  Prediction prediction;  // strings and vectors stay empty: nothing is allocated
  if (uncertainty.empty()) return prediction;
  prediction.value = snapshot.ValueOf(scores, 0);
  snapshot.AddUncertainty(uncertainty[row], prediction);
  return prediction;
}

// Into the message, without a Prediction of ours in between.
void AddPredictions(const Snapshot& snapshot, size_t rows, std::span<const double> scores,
                    const std::vector<RowUncertainty>& uncertainty, const OutputMask& outputs,
                    google::protobuf::RepeatedPtrField<v1::Prediction>* out) {
  const size_t width = snapshot.num_outputs();
  const std::vector<std::string>& labels = snapshot.labels();
  const bool regression = snapshot.loss().task() == Task::kRegression;
  std::vector<double> probabilities(outputs.probabilities ? labels.size() : 0);
  out->Reserve(static_cast<int>(rows));
  for (size_t i = 0; i < rows; ++i) {
    const std::span<const double> row = scores.subspan(i * width, width);
    v1::Prediction* wire = out->Add();
    if (outputs.score) wire->mutable_scores()->Add(row.begin(), row.end());
    if (outputs.label) {
      const size_t index = snapshot.LabelOf(row);
      if (index < labels.size()) wire->set_label(labels[index]);
    }
    if (outputs.value) wire->set_value(snapshot.ValueOf(row, 0));
    if (outputs.value && regression && width > 1) {
      wire->mutable_values()->Reserve(static_cast<int>(width));
      for (size_t k = 0; k < width; ++k) wire->add_values(snapshot.ValueOf(row, k));
    }
    if (outputs.uncertainty()) {
      const Prediction prediction = Uncertain(snapshot, row, uncertainty, i);
      if (outputs.variance && prediction.variance) wire->set_variance(*prediction.variance);
      if (outputs.interval && prediction.interval) {
        wire->mutable_interval()->set_low(prediction.interval->low);
        wire->mutable_interval()->set_high(prediction.interval->high);
      }
    }
    if (probabilities.empty()) continue;
    snapshot.ProbabilitiesOf(row, probabilities);
    wire->mutable_probabilities()->Reserve(static_cast<int>(labels.size()));
    for (size_t k = 0; k < labels.size(); ++k) {
      v1::ClassProbability* probability = wire->add_probabilities();
      probability->set_label(labels[k]);
      probability->set_value(probabilities[k]);
    }
  }
}

// size: of the column. Where it is, to be filled.
double* Column(size_t size, google::protobuf::RepeatedField<double>* column) {
  column->Resize(static_cast<int>(size), 0);
  return column->mutable_data();
}

void FillLabels(const Snapshot& snapshot, std::span<const double> scores, size_t rows,
                const OutputMask& outputs, v1::PredictionMatrix* out) {
  const size_t width = snapshot.num_outputs();
  const size_t known = snapshot.labels().size();
  for (const std::string& label : snapshot.labels()) out->add_labels(label);
  if (outputs.label) {
    out->mutable_label_indices()->Reserve(static_cast<int>(rows));
    for (size_t i = 0; i < rows; ++i) {
      const size_t index = snapshot.LabelOf(scores.subspan(i * width, width));
      while (static_cast<size_t>(out->labels_size()) <= index) out->add_labels("");
      out->add_label_indices(static_cast<uint32_t>(index));
    }
  }
  if (!outputs.probabilities || known == 0) return;
  double* const probabilities = Column(rows * known, out->mutable_probabilities());
  for (size_t i = 0; i < rows; ++i) {
    snapshot.ProbabilitiesOf(scores.subspan(i * width, width), {probabilities + i * known, known});
  }
}

void FillUncertainty(const Snapshot& snapshot, std::span<const double> scores,
                     const std::vector<RowUncertainty>& uncertainty, size_t rows,
                     const OutputMask& outputs, v1::PredictionMatrix* out) {
  constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
  const size_t width = snapshot.num_outputs();
  const int size = static_cast<int>(rows);
  if (outputs.variance) out->mutable_variances()->Reserve(size);
  if (outputs.interval) {
    out->mutable_interval_lows()->Reserve(size);
    out->mutable_interval_highs()->Reserve(size);
  }
  for (size_t i = 0; i < rows; ++i) {
    const Prediction prediction =
        Uncertain(snapshot, scores.subspan(i * width, width), uncertainty, i);
    if (outputs.variance) out->add_variances(prediction.variance.value_or(kAbsent));
    if (outputs.interval) {
      out->add_interval_lows(prediction.interval ? prediction.interval->low : kAbsent);
      out->add_interval_highs(prediction.interval ? prediction.interval->high : kAbsent);
    }
  }
}

void FillColumns(const Snapshot& snapshot, size_t rows, std::span<const double> scores,
                 const std::vector<RowUncertainty>& uncertainty, const OutputMask& outputs,
                 v1::PredictionMatrix* out) {
  const size_t width = snapshot.num_outputs();
  out->set_rows(static_cast<uint32_t>(rows));
  if (outputs.score) out->mutable_scores()->Add(scores.begin(), scores.end());
  if (outputs.label || outputs.probabilities) FillLabels(snapshot, scores, rows, outputs, out);
  if (outputs.value) {
    const size_t targets = snapshot.loss().task() == Task::kRegression ? width : 1;
    double* const values = Column(rows * targets, out->mutable_values());
    for (size_t i = 0; i < rows * targets; ++i) {
      values[i] = snapshot.ValueOf(scores.subspan(i / targets * width, width), i % targets);
    }
  }
  if (outputs.uncertainty()) FillUncertainty(snapshot, scores, uncertainty, rows, outputs, out);
}

template <typename Response>
void NameSnapshot(const Snapshot& snapshot, Response* response) {
  response->set_step(snapshot.step());
  response->set_sequence(snapshot.sequence());
  response->set_num_features(snapshot.num_features());
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
  const RowWidth width = snapshot.width();
  absl::Status error;
  uint64_t place = rows.count;
  for (size_t i = 0; i < rows.rows.size() && error.ok(); ++i) {
    error = model.rules().CheckInput(model.name(), width, rows.rows.row(i));
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

absl::StatusOr<OutputMask> OutputsFromWire(const google::protobuf::RepeatedField<int>& outputs,
                                           const VarianceConfig& variance,
                                           const Snapshot& snapshot) {
  const bool labels = HasLabels(snapshot.loss().task());
  OutputMask mask;
  if (outputs.empty()) {
    mask.score = true;
    mask.value = !labels;
    mask.label = labels;
    return mask;
  }
  for (int i = 0; i < outputs.size(); ++i) {
    switch (outputs[i]) {
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
        return NotAnOutput(i, absl::StrCat("value ", outputs[i]),
                           "is unknown; known: 1 (score), 2 (label), 3 (probabilities), 4 (value), "
                           "5 (variance), 6 (prediction interval)");
    }
  }
  return mask;
}

std::vector<RowUncertainty> UncertaintyOf(const Snapshot& snapshot, const SampleBatch& rows,
                                          const OutputMask& outputs, Executor& executor) {
  std::vector<RowUncertainty> uncertainty;
  if (outputs.uncertainty() && snapshot.has_uncertainty()) {
    uncertainty.resize(rows.size());
    snapshot.Assess(rows, executor, uncertainty.data());
  }
  return uncertainty;
}

std::optional<size_t> FirstOverflow(std::span<const double> scores, size_t width,
                                    const std::vector<RowUncertainty>& uncertainty) {
  if (const auto bad = FirstRowNotFinite(scores, width); bad.has_value()) return bad;
  for (size_t i = 0; i < uncertainty.size(); ++i) {
    const RowUncertainty& row = uncertainty[i];
    const double numbers[] = {row.below, row.above, row.variance.value_or(0)};
    if (!AllFinite(numbers)) return i;
  }
  return std::nullopt;
}

absl::Status Overflow(const HostedModel& model, const WireRows& rows, absl::string_view list,
                      size_t row) {
  return InvalidField(
      rows.Path(list, rows.places[row], "features"),
      absl::StrCat("its score is not a finite number: values so large overflow under kernel \"",
                   model.config().kernel.name,
                   "\", whose features grow with them. Send values like those that model \"",
                   model.name(),
                   "\" learned from, or use a kernel such as gaussian, which has a "
                   "finite score for every row"));
}

void PredictionsToWire(const Snapshot& snapshot, const WireRows& rows,
                       std::span<const double> scores,
                       const std::vector<RowUncertainty>& uncertainty, const OutputMask& outputs,
                       v1::PredictResponse* response) {
  AddPredictions(snapshot, rows.rows.size(), scores, uncertainty, outputs,
                 response->mutable_predictions());
  NameSnapshot(snapshot, response);
}

void PredictionsToWire(const Snapshot& snapshot, const WireRows& rows,
                       std::span<const double> scores,
                       const std::vector<RowUncertainty>& uncertainty, const OutputMask& outputs,
                       v1::StreamPredictResponse* response) {
  if (rows.matrix) {
    FillColumns(snapshot, rows.rows.size(), scores, uncertainty, outputs,
                response->mutable_matrix());
  } else {
    AddPredictions(snapshot, rows.rows.size(), scores, uncertainty, outputs,
                   response->mutable_predictions());
  }
  NameSnapshot(snapshot, response);
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
  NameSnapshot(snapshot, response);
}

}  // namespace kernelstream::server
