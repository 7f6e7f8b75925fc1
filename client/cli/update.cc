#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/globals.h"
#include "client/cli/input_flags.h"
#include "client/cli/lines.h"
#include "client/cli/print.h"
#include "client/cli/progress.h"
#include "client/src/convert.h"
#include "nlohmann/json.hpp"

namespace kernelstream::client {
namespace {

// How often waits look for Ctrl-C and redraw.
constexpr absl::Duration kLook = absl::Milliseconds(100);
// How long Ctrl-C waits for the acks of what was sent.
constexpr absl::Duration kInterruptedFlush = absl::Seconds(5);
// How long a model may stand still before waiting for it ends.
constexpr absl::Duration kStandstill = absl::Seconds(30);
constexpr uint64_t kDefaultWarmupRows = 500;

struct UpdateFlags {
  std::string name;
  InputFlags input;
  std::string producer;
  AckLevel ack = AckLevel::kDurable;
  uint64_t limit = 0;
  size_t batch_rows = 256;
  bool skip_bad_lines = false;
  bool wait_applied = true;
  bool quiet = false;
};

// Thread-compatible. One run of `kernelstream update`.
class UpdateRun {
 public:
  UpdateRun(const Globals& globals, const UpdateFlags& flags)
      : globals_(globals), flags_(flags), progress_(flags.quiet || globals.json) {}

  int Run();

 private:
  absl::Status Start();
  // Reads past the rows that are in the log already.
  absl::Status SkipLoggedRows();
  absl::Status SendAll();
  absl::Status SendBatch(std::vector<Row>* rows);
  // The next row of the input; false at its end. Bad lines are counted, and passed over if so
  // asked.
  absl::StatusOr<bool> NextRow(SourceRow* row);
  UpdateSummary Finish();
  // True if the summary tells of the model: by an ack, or by Look.
  bool ModelIsKnown() const { return looked_ || lines_->model_is_known(); }
  // What the model is now, into the summary too.
  absl::StatusOr<ModelInfo> Look(UpdateSummary* summary);
  // Waits until the rows that were taken are learned; the summary then tells of the model that has
  // learned them. Why not, if it does not.
  absl::Status WaitApplied(UpdateSummary* summary);
  int Report(const UpdateSummary& summary, const absl::Status& status);
  void PrintSummary(const UpdateSummary& summary, double seconds) const;
  void PrintJsonSummary(const UpdateSummary& summary, double seconds,
                        const absl::Status& status) const;
  std::string ResumeCommand() const;
  void PrintProblems() const;

  const Globals& globals_;
  const UpdateFlags& flags_;
  ProgressLine progress_;
  std::unique_ptr<RowReader> reader_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Lines> lines_;
  std::unique_ptr<UpdateStream> stream_;
  uint64_t rows_logged_before_ = 0;
  uint64_t rows_read_ = 0;
  std::vector<LineProblem> bad_lines_;
  uint64_t num_bad_lines_ = 0;
  bool interrupted_ = false;
  bool looked_ = false;
};

absl::StatusOr<bool> UpdateRun::NextRow(SourceRow* row) {
  if (flags_.limit != 0 && rows_read_ >= flags_.limit) return false;
  while (true) {
    absl::StatusOr<bool> more = reader_->Next(row);
    if (more.ok()) {
      rows_read_ += *more ? 1 : 0;
      return more;
    }
    if (!absl::IsInvalidArgument(more.status()) || !flags_.skip_bad_lines) return more;
    ++num_bad_lines_;
    if (bad_lines_.size() < Lines::kMostListed) {
      bad_lines_.push_back({0, "", std::string(more.status().message())});
    }
  }
}

absl::Status UpdateRun::Start() {
  absl::StatusOr<std::unique_ptr<Client>> client = globals_.Connect();
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  absl::StatusOr<ModelInfo> model = client_->GetModel(flags_.name);
  if (!model.ok()) return model.status();
  InputFlags input = flags_.input;
  input.FitTo(model->config);
  absl::StatusOr<std::unique_ptr<RowReader>> reader = input.Open();
  if (!reader.ok()) return reader.status();
  reader_ = *std::move(reader);
  StreamOptions options;
  options.producer_id = flags_.producer;
  options.ack = flags_.ack;
  options.on_ack = [this](const StreamAck& ack) { lines_->Acknowledged(ack); };
  options.on_reconnect = [](const absl::Status& why, absl::Duration delay) {
    PrintError(absl::StrCat("connection lost, trying again in ",
                            absl::FormatDuration(absl::Trunc(delay, absl::Milliseconds(1))), ": ",
                            why.message()));
  };
  absl::StatusOr<std::unique_ptr<UpdateStream>> stream =
      client_->OpenUpdateStream(flags_.name, options);
  if (!stream.ok()) return stream.status();
  stream_ = *std::move(stream);
  lines_ = std::make_unique<Lines>(reader_.get(), stream_->next_row());
  return SkipLoggedRows();
}

absl::Status UpdateRun::SkipLoggedRows() {
  rows_logged_before_ = stream_->next_row() - 1;
  SourceRow row;
  for (uint64_t i = 0; i < rows_logged_before_; ++i) {
    absl::StatusOr<bool> more = NextRow(&row);
    if (!more.ok()) return more.status();
    if (!*more) {
      rows_logged_before_ = i;
      break;
    }
  }
  if (rows_logged_before_ > 0) {
    PrintError(absl::StrCat("resuming: ", WithCommas(rows_logged_before_), " rows of producer ",
                            stream_->producer_id(), " are logged already"));
  }
  return absl::OkStatus();
}

absl::Status UpdateRun::SendBatch(std::vector<Row>* rows) {
  absl::Span<const Row> rest(*rows);
  while (!rest.empty()) {
    if (interrupts > 0) return absl::CancelledError();
    absl::StatusOr<size_t> taken = stream_->TrySend(rest, kLook);
    if (!taken.ok()) return taken.status();
    rest.remove_prefix(*taken);
    progress_.Tick(stream_->progress(), reader_->Fraction());
  }
  rows->clear();
  return absl::OkStatus();
}

absl::Status UpdateRun::SendAll() {
  std::vector<Row> rows;
  SourceRow row;
  while (interrupts == 0) {
    absl::StatusOr<bool> more = NextRow(&row);
    if (more.ok() && *more) {
      lines_->Sent(LineOf(row));
      rows.push_back(std::move(row.row));
      if (rows.size() < flags_.batch_rows) continue;
    }
    // Rows before a bad line are good ones.
    if (absl::Status status = SendBatch(&rows); !status.ok()) return status;
    if (!more.ok()) return more.status();
    if (!*more) break;
  }
  return interrupts > 0 ? absl::CancelledError() : absl::OkStatus();
}

UpdateSummary UpdateRun::Finish() {
  while (interrupts == 0) {
    const absl::Status flushed = stream_->Flush(kLook);
    progress_.Tick(stream_->progress(), reader_->Fraction());
    if (!absl::IsDeadlineExceeded(flushed)) break;
  }
  return stream_->Close(interrupts > 0 ? kInterruptedFlush : absl::InfiniteDuration());
}

absl::StatusOr<ModelInfo> UpdateRun::Look(UpdateSummary* summary) {
  absl::StatusOr<ModelInfo> model = client_->GetModel(flags_.name);
  if (model.ok()) {
    looked_ = true;
    summary->step = model->step;
    summary->num_features = model->num_features;
    summary->validation = model->validation;
  }
  return model;
}

absl::Status UpdateRun::WaitApplied(UpdateSummary* summary) {
  uint64_t last_learned = 0;
  absl::Time last_change = absl::Now();
  while (interrupts == 0) {
    absl::StatusOr<ModelInfo> model = Look(summary);
    if (!model.ok()) return model.status();
    if (model->rows_pending == 0 ||
        (summary->sequence != 0 && model->sequence >= summary->sequence)) {
      return absl::OkStatus();
    }
    if (model->phase == Phase::kFailed) {
      return absl::FailedPreconditionError(
          absl::StrCat("model ", flags_.name, " has failed: ", model->failure));
    }
    const uint64_t warmup =
        model->config.warmup_rows != 0 ? model->config.warmup_rows : kDefaultWarmupRows;
    if (model->phase == Phase::kWarmingUp && model->rows_learned + model->rows_pending < warmup) {
      PrintError(
          absl::StrCat("model ", flags_.name, " keeps the first ", warmup,
                       " rows to choose its scaling from, and learns them when it has them"));
      return absl::OkStatus();
    }
    if (model->rows_learned != last_learned) last_change = absl::Now();
    last_learned = model->rows_learned;
    if (absl::Now() - last_change > kStandstill) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the rows are logged, but model ", flags_.name, " has not learned any for ",
          absl::FormatDuration(kStandstill), "; look at kernelstream describe ", flags_.name));
    }
    absl::SleepFor(kLook / 5);
  }
  return absl::OkStatus();
}

std::string UpdateRun::ResumeCommand() const {
  return absl::StrCat("kernelstream update ", flags_.name, " --input ", flags_.input.path,
                      " --producer ", stream_->producer_id(), " (and the flags as before)");
}

void UpdateRun::PrintProblems() const {
  const std::vector<LineProblem> rejected = lines_->listed();
  for (const LineProblem& problem : bad_lines_) PrintError(problem.message);
  if (num_bad_lines_ > bad_lines_.size()) {
    PrintError(absl::StrCat("... and ", num_bad_lines_ - bad_lines_.size(), " more bad lines"));
  }
  for (const LineProblem& problem : rejected) {
    PrintError(absl::StrCat("line ", problem.line, problem.input.empty() ? "" : ", ", problem.input,
                            " was rejected: ", problem.message));
  }
  if (lines_->rejected() > rejected.size()) {
    PrintError(
        absl::StrCat("... and ", lines_->rejected() - rejected.size(), " more rejected rows"));
  }
}

void UpdateRun::PrintSummary(const UpdateSummary& summary, double seconds) const {
  const double rate = static_cast<double>(summary.rows_accepted) / std::max(seconds, 1e-3);
  std::cout << absl::StrCat(
      "rows: ", WithCommas(summary.rows_sent), " sent, ", WithCommas(summary.rows_accepted),
      " accepted, ", WithCommas(summary.rows_rejected), " rejected",
      num_bad_lines_ > 0 ? absl::StrCat(", ", num_bad_lines_, " bad lines") : "",
      rows_logged_before_ > 0
          ? absl::StrCat(", ", WithCommas(rows_logged_before_), " logged before")
          : "",
      reader_->skipped_rows() > 0
          ? absl::StrCat(", ", WithCommas(reader_->skipped_rows()), " skipped for missing cells")
          : "",
      absl::StrFormat("; %.1f s, ", seconds), WithCommas(static_cast<uint64_t>(rate)), " rows/s\n");
  if (ModelIsKnown()) {
    const std::string recent = summary.validation ? RecentText(*summary.validation) : "";
    std::cout << absl::StrCat("model: step ", WithCommas(summary.step), ", ",
                              WithCommas(summary.num_features), " features",
                              recent.empty() ? "" : ", recent ", recent, "\n");
  }
  if (summary.rows_recovered > 0) {
    std::cout << absl::StrCat(
        WithCommas(summary.rows_recovered),
        " rows were logged while the connection broke; were any of them refused, "
        "that answer was lost\n");
  }
}

void UpdateRun::PrintJsonSummary(const UpdateSummary& summary, double seconds,
                                 const absl::Status& status) const {
  nlohmann::ordered_json json;
  json["model"] = flags_.name;
  json["producerId"] = summary.producer_id;
  json["ok"] = status.ok() && num_bad_lines_ == 0 && summary.rows_rejected == 0;
  json["error"] = std::string(status.message());
  json["rowsSent"] = summary.rows_sent;
  json["rowsAccepted"] = summary.rows_accepted;
  json["rowsRejected"] = summary.rows_rejected;
  json["rowsRecovered"] = summary.rows_recovered;
  json["rowsLoggedBefore"] = rows_logged_before_;
  json["rowsSkipped"] = reader_->skipped_rows();
  json["badLines"] = num_bad_lines_;
  json["nextRow"] = summary.next_row;
  json["seconds"] = seconds;
  json["reconnects"] = summary.reconnects;
  json["sequence"] = summary.sequence;
  if (ModelIsKnown()) {
    json["step"] = summary.step;
    json["numFeatures"] = summary.num_features;
  }
  if (summary.validation) {
    json["validation"] =
        nlohmann::ordered_json::parse(ToJson(ToProto(*summary.validation)), nullptr, false);
  }
  json["rejected"] = nlohmann::ordered_json::array();
  for (const LineProblem& problem : lines_->listed()) {
    nlohmann::ordered_json rejected = {{"line", problem.line}, {"message", problem.message}};
    if (!problem.input.empty()) rejected["input"] = problem.input;
    json["rejected"].push_back(std::move(rejected));
  }
  std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

int UpdateRun::Report(const UpdateSummary& summary, const absl::Status& status) {
  const double seconds = absl::ToDoubleSeconds(progress_.elapsed());
  progress_.Clear();
  PrintNotes(reader_.get());
  PrintProblems();
  if (globals_.json) {
    PrintJsonSummary(summary, seconds, status);
  } else {
    PrintSummary(summary, seconds);
  }
  if (interrupted_) {
    PrintError(absl::StrCat("stopped; ", WithCommas(summary.next_row - 1),
                            " rows are logged, line ", lines_->next_line(),
                            " is about where to go on; resume with: ", ResumeCommand()));
    return kExitInterrupted;
  }
  if (!status.ok()) {
    Fail(status);
    // The same would be answered again.
    const bool can_go_on = !absl::IsFailedPrecondition(status);
    if (can_go_on && summary.next_row > 1) PrintError(absl::StrCat("to go on: ", ResumeCommand()));
    return kExitFailed;
  }
  return num_bad_lines_ == 0 && summary.rows_rejected == 0 ? kExitOk : kExitFailed;
}

int UpdateRun::Run() {
  CatchInterrupts();
  if (absl::Status status = Start(); !status.ok()) {
    if (interrupts == 0) return Fail(status);
    PrintError("stopped before any row was sent");
    return kExitInterrupted;
  }
  absl::Status status = SendAll();
  UpdateSummary summary = Finish();
  interrupted_ = interrupts > 0;
  if (!summary.status.ok()) status = summary.status;
  if (status.ok() && rows_read_ == 0 && num_bad_lines_ == 0 && reader_->skipped_rows() == 0) {
    status = absl::InvalidArgumentError(
        absl::StrCat(flags_.input.path == "-" ? "standard input" : flags_.input.path,
                     " has no rows; nothing was learned"));
  }
  // A model that takes no more rows still learns those it has taken.
  const bool takes_no_more = absl::IsFailedPrecondition(status);
  if (flags_.wait_applied && (takes_no_more || (status.ok() && flags_.ack != AckLevel::kApplied))) {
    const absl::Status waited = WaitApplied(&summary);
    if (status.ok()) status = waited;
    interrupted_ = interrupts > 0;
  } else if (takes_no_more || (!interrupted_ && !status.ok() && summary.status.ok())) {
    Look(&summary).status().IgnoreError();  // for the summary; `status` is what went wrong
  }
  if (!interrupted_) return Report(summary, status);
  return Report(summary, absl::CancelledError("interrupted"));
}

}  // namespace

void AddUpdate(CLI::App* app, Globals* globals) {
  auto flags = std::make_shared<UpdateFlags>();
  CLI::App* command = AddCommand(
      app, "update",
      "Teach a model from a file or a pipe; exit status 0 only if every row was learned");
  command->add_option("NAME", flags->name, "Name of the model")->required();
  flags->input.AddTo(command);
  command->add_option(
      "--producer", flags->producer,
      "Name of this input; the same name goes on where an interrupted run left off");
  command->add_option("--ack", flags->ack, "When rows count: accepted, durable or applied")
      ->transform(OneOf<AckLevel>({{"accepted", AckLevel::kAccepted},
                                   {"durable", AckLevel::kDurable},
                                   {"applied", AckLevel::kApplied}}))
      ->option_text("LEVEL (durable)");
  command->add_option("--limit", flags->limit, "Read at most this many rows; default: all");
  command->add_option("--batch", flags->batch_rows, "Rows per message; default 256")
      ->check(CLI::Range(1, 65536));
  command
      ->add_option(
          "--on-bad-line", flags->skip_bad_lines,
          "stop at a line that cannot be read, or skip it (it is listed; the exit status is 1)")
      ->transform(OneOf<bool>({{"stop", false}, {"skip", true}}))
      ->option_text("WHAT (stop)");
  command->add_flag("--wait-applied,!--no-wait-applied", flags->wait_applied,
                    "Wait at the end until all rows are learned (default)");
  command->add_flag("--quiet,-q", flags->quiet, "No progress");
  command->callback([globals, flags] {
    globals->run = [globals, flags] { return UpdateRun(*globals, *flags).Run(); };
  });
}

}  // namespace kernelstream::client
