#include <algorithm>
#include <deque>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/globals.h"
#include "client/cli/input_flags.h"
#include "client/cli/lines.h"
#include "client/cli/print.h"
#include "client/src/convert.h"

namespace kernelstream::client {
namespace {

struct PredictFlags {
  std::string name;
  InputFlags input;
  std::string output;
  std::vector<PredictionOutput> outputs;
  bool variance = false;
  size_t batch_rows = 256;
  uint64_t min_sequence = 0;
};

std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// Thread-compatible. Predictions as CSV, the columns settled by the first one, or as JSON lines.
class PredictionWriter {
 public:
  // outputs: those that a prediction may lack have their columns all the same.
  PredictionWriter(std::ostream* out, bool json, const std::vector<PredictionOutput>& outputs)
      : out_(out),
        json_(json),
        variance_(Has(outputs, PredictionOutput::kVariance)),
        interval_(Has(outputs, PredictionOutput::kPredictionInterval)) {}

  absl::Status Write(const Prediction& prediction) {
    if (json_) {
      *out_ << ToJson(ToProto(prediction), /*compact=*/true) << "\n";
      return Written();
    }
    if (!started_) WriteHeader(prediction);
    if (prediction.scores.size() != scores_ || prediction.probabilities.size() != probabilities_) {
      return absl::FailedPreconditionError(
          "the model has met a new label while it was asked, so the columns no longer fit; run "
          "again, "
          "or use --json");
    }
    std::string line;
    for (const double score : prediction.scores) absl::StrAppend(&line, Number(score), ",");
    if (label_) absl::StrAppend(&line, CsvCell(prediction.label), ",");
    for (const ClassProbability& probability : prediction.probabilities) {
      absl::StrAppend(&line, Number(probability.value), ",");
    }
    if (value_ && values_ == 0) absl::StrAppend(&line, Number(prediction.value), ",");
    for (const double value : prediction.values) absl::StrAppend(&line, Number(value), ",");
    if (variance_) {
      absl::StrAppend(&line, prediction.variance ? Number(*prediction.variance) : "", ",");
    }
    if (interval_) {
      absl::StrAppend(&line, prediction.interval ? Number(prediction.interval->low) : "", ",",
                      prediction.interval ? Number(prediction.interval->high) : "", ",");
    }
    if (!line.empty()) line.back() = '\n';
    *out_ << line;
    return Written();
  }

 private:
  static bool Has(const std::vector<PredictionOutput>& outputs, PredictionOutput output) {
    return std::find(outputs.begin(), outputs.end(), output) != outputs.end();
  }

  void WriteHeader(const Prediction& first) {
    started_ = true;
    scores_ = first.scores.size();
    probabilities_ = first.probabilities.size();
    label_ = !first.label.empty();
    // Regression has neither label nor probabilities.
    value_ = !label_ && probabilities_ == 0;
    std::string line;
    for (size_t i = 0; i < scores_; ++i) {
      absl::StrAppend(&line, scores_ == 1 ? "score" : absl::StrCat("score_", i), ",");
    }
    if (label_) absl::StrAppend(&line, "label,");
    for (const ClassProbability& probability : first.probabilities) {
      absl::StrAppend(&line, CsvCell(absl::StrCat("probability_", probability.label)), ",");
    }
    values_ = first.values.size();
    if (value_ && values_ == 0) absl::StrAppend(&line, "value,");
    for (size_t i = 0; i < values_; ++i) absl::StrAppend(&line, "value_", i, ",");
    if (variance_) absl::StrAppend(&line, "variance,");
    if (interval_) absl::StrAppend(&line, "interval_low,interval_high,");
    line.back() = '\n';
    *out_ << line;
  }

  absl::Status Written() const {
    return *out_ ? absl::OkStatus()
                 : absl::UnknownError("cannot write the predictions; is the disk full?");
  }

  std::ostream* out_;
  const bool json_;
  const bool variance_, interval_;
  bool started_ = false;
  size_t scores_ = 0;
  size_t probabilities_ = 0;
  size_t values_ = 0;  // of several targets
  bool label_ = false;
  bool value_ = false;
};

// Thread-compatible. Rows on their way through a stream, whose answers are written in order.
class StreamedRows {
 public:
  StreamedRows(const RowReader* reader, PredictStream* stream, PredictionWriter* writer)
      : reader_(reader), stream_(stream), writer_(writer) {}

  // lines: those of the rows.
  absl::Status Send(absl::Span<const Row> rows, std::vector<SentLine> lines) {
    lines_.push_back(std::move(lines));
    const absl::Status sent = stream_->Send(rows);
    const absl::Status written = WriteAnswers(sent.ok() ? kMostPending - 1 : 0);
    return written.ok() && !sent.ok() ? About(sent) : written;
  }

  // Writes the answers that are there, and waits for more as long as more than `left` are due.
  absl::Status WriteAnswers(size_t left) {
    while (stream_->pending() > left || stream_->answered() > 0) {
      absl::StatusOr<PredictResult> result = stream_->Next();
      if (!result.ok()) return About(result.status());
      lines_.pop_front();
      for (const Prediction& prediction : result->predictions) {
        if (absl::Status status = writer_->Write(prediction); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kMostPending = 8;

  // A failure is about the oldest rows without an answer.
  absl::Status About(const absl::Status& status) const {
    std::string place = PlaceOf(status, *reader_, lines_.front());
    if (place.empty()) {
      place =
          absl::StrCat("rows from line ", lines_.front().front().line, " on; row 0 is that line");
    }
    return absl::Status(status.code(), absl::StrCat(status.message(), " (", place, ")"));
  }

  const RowReader* const reader_;
  PredictStream* const stream_;
  PredictionWriter* const writer_;
  std::deque<std::vector<SentLine>> lines_;  // of the requests whose answers are due
};

absl::Status PredictAll(Client* client, const PredictFlags& flags, RowReader* reader,
                        PredictionWriter* writer) {
  PredictOptions options;
  options.outputs = flags.outputs;
  options.min_sequence = flags.min_sequence;
  absl::StatusOr<std::unique_ptr<PredictStream>> stream =
      client->OpenPredictStream(flags.name, options);
  if (!stream.ok()) return stream.status();
  StreamedRows streamed(reader, stream->get(), writer);
  std::vector<Row> rows;
  for (bool more = true; more;) {
    rows.clear();
    std::vector<SentLine> lines;
    while (more && rows.size() < flags.batch_rows) {
      SourceRow row;
      absl::StatusOr<bool> read = reader->Next(&row);
      if (!read.ok()) {
        const absl::Status written = streamed.WriteAnswers(0);
        return written.ok() ? read.status() : written;
      }
      more = *read;
      if (!more) break;
      lines.push_back(LineOf(row));
      rows.push_back(std::move(row.row));
    }
    if (rows.empty()) break;
    if (absl::Status status = streamed.Send(rows, std::move(lines)); !status.ok()) return status;
  }
  return streamed.WriteAnswers(0);
}

// What --variance asks for: all that the model's method knows.
void AddUncertainty(VarianceMethod method, std::vector<PredictionOutput>* outputs) {
  if (outputs->empty()) *outputs = {PredictionOutput::kScore, PredictionOutput::kValue};
  if (method != VarianceMethod::kQuantilePair) outputs->push_back(PredictionOutput::kVariance);
  outputs->push_back(PredictionOutput::kPredictionInterval);
}

int RunPredict(const Globals& globals, PredictFlags flags) {
  absl::StatusOr<std::unique_ptr<Client>> client = globals.Connect();
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<ModelInfo> model = (*client)->GetModel(flags.name);
  if (!model.ok()) return Fail(model.status());
  if (flags.variance) AddUncertainty(model->config.variance.method, &flags.outputs);
  flags.input.FitTo(model->config);
  flags.input.reader.target_required = false;
  flags.input.reader.dimension = model->resolved && model->resolved->dimension != 0
                                     ? model->resolved->dimension
                                     : model->config.dimension;
  absl::StatusOr<std::unique_ptr<RowReader>> reader = flags.input.Open();
  if (!reader.ok()) return Fail(reader.status());
  std::ofstream file;
  if (!flags.output.empty() && flags.output != "-") {
    file.open(flags.output, std::ios::trunc);
    if (!file) {
      return Fail(absl::PermissionDeniedError(absl::StrCat(
          "cannot write ", flags.output, "; check that the folder exists and is writable")));
    }
  }
  PredictionWriter writer(file.is_open() ? &file : &std::cout,
                          globals.json || absl::EndsWith(flags.output, ".jsonl"), flags.outputs);
  absl::Status status = PredictAll(client->get(), flags, reader->get(), &writer);
  if (file.is_open()) {
    file.close();
    if (status.ok() && !file) {
      status = absl::UnknownError(
          absl::StrCat("cannot write ", flags.output, " to its end; is the disk full?"));
    }
  }
  PrintNotes(reader->get());
  if ((*reader)->skipped_rows() > 0) {
    PrintError(absl::StrCat((*reader)->skipped_rows(),
                            " rows with missing cells have no prediction (--missing skip)"));
  }
  return status.ok() ? kExitOk : Fail(status);
}

int RunEvaluate(const Globals& globals, PredictFlags flags) {
  absl::StatusOr<std::unique_ptr<Client>> client = globals.Connect();
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<ModelInfo> model = (*client)->GetModel(flags.name);
  if (!model.ok()) return Fail(model.status());
  flags.input.FitTo(model->config);
  absl::StatusOr<std::unique_ptr<RowReader>> reader = flags.input.Open();
  if (!reader.ok()) {
    return absl::IsNotFound(reader.status()) &&
                   absl::StrContains(reader.status().message(), "--target")
               ? Fail(absl::NotFoundError(
                     absl::StrCat(reader.status().message(),
                                  "; evaluation compares predictions with targets, "
                                  "predict works without")))
               : Fail(reader.status());
  }
  absl::StatusOr<EvaluateResult> result =
      (*client)->Evaluate(flags.name, [&]() -> absl::StatusOr<std::vector<Row>> {
        std::vector<Row> rows;
        SourceRow row;
        while (rows.size() < flags.batch_rows) {
          absl::StatusOr<bool> more = (*reader)->Next(&row);
          if (!more.ok()) return more.status();
          if (!*more) break;
          rows.push_back(std::move(row.row));
        }
        return rows;
      });
  if (!result.ok()) return Fail(result.status());
  PrintNotes(reader->get());
  if ((*reader)->skipped_rows() > 0) {
    PrintError(absl::StrCat((*reader)->skipped_rows(), " rows with missing cells were left out"));
  }
  if (globals.json) {
    std::cout << ToJson(ToProto(*result));
    return kExitOk;
  }
  std::cout << "rows " << WithCommas(result->rows) << "  step " << WithCommas(result->step)
            << "  features " << WithCommas(result->num_features) << "\n";
  for (const auto& [name, value] : result->metrics)
    std::cout << name << " " << Number(value) << "\n";
  std::cout << ClassesText(result->classes);
  return kExitOk;
}

}  // namespace

void AddPredictAndEvaluate(CLI::App* app, Globals* globals) {
  auto flags = std::make_shared<PredictFlags>();
  CLI::App* predict = AddCommand(
      app, "predict", "Predict rows: score and label or value, as CSV or (--json) JSON lines");
  predict->add_option("NAME", flags->name, "Name of the model")->required();
  flags->input.AddTo(predict);
  predict->add_option(
      "--output,-o", flags->output,
      "File to write to (JSON lines if it ends in .jsonl); default standard output");
  predict
      ->add_option("--outputs", flags->outputs,
                   "What to predict, separated by commas: score, label, probabilities, value, "
                   "variance, prediction_interval")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(
          OneOf<PredictionOutput>({{"score", PredictionOutput::kScore},
                                   {"label", PredictionOutput::kLabel},
                                   {"probabilities", PredictionOutput::kProbabilities},
                                   {"value", PredictionOutput::kValue},
                                   {"variance", PredictionOutput::kVariance},
                                   {"prediction_interval", PredictionOutput::kPredictionInterval}}))
      ->option_text("WHAT");
  predict->add_flag("--variance", flags->variance,
                    "Also the variance and the prediction interval, of a model created with "
                    "--variance");
  predict->add_option("--batch", flags->batch_rows, "Rows per call; default 256")
      ->check(CLI::Range(1, 65536));
  predict->add_option("--min-sequence", flags->min_sequence,
                      "Wait until the row at this log position is learned");
  predict->callback([globals, flags] {
    globals->run = [globals, flags] { return RunPredict(*globals, *flags); };
  });

  auto evaluate_flags = std::make_shared<PredictFlags>();
  CLI::App* evaluate =
      AddCommand(app, "evaluate", "Compare predictions with the targets of a file; learns nothing");
  evaluate->add_option("NAME", evaluate_flags->name, "Name of the model")->required();
  evaluate_flags->input.AddTo(evaluate);
  evaluate->callback([globals, evaluate_flags] {
    globals->run = [globals, evaluate_flags] { return RunEvaluate(*globals, *evaluate_flags); };
  });
}

}  // namespace kernelstream::client
