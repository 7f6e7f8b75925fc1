#include "client/cli/lines.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace kernelstream::client {
namespace {

// The field that an error of the server is about; empty if it names none.
std::string FieldOf(const absl::Status& error) {
  const absl::optional<absl::Cord> payload = error.GetPayload(kErrorDetailsUrl);
  google::rpc::Status details;
  if (!payload.has_value() || !details.ParseFromString(std::string(*payload))) return "";
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::BadRequest bad;
    if (detail.Is<google::rpc::BadRequest>() && detail.UnpackTo(&bad) &&
        !bad.field_violations().empty()) {
      return bad.field_violations(0).field();
    }
  }
  return "";
}

// Its message; without the field that it begins with, which the file knows by another name.
std::string MessageOf(const absl::Status& error, bool without_field) {
  absl::string_view message = error.message();
  if (without_field) absl::ConsumePrefix(&message, absl::StrCat(FieldOf(error), ": "));
  return std::string(message);
}

// The number in the first brackets of the text, if there is one.
std::optional<uint64_t> Bracketed(absl::string_view text) {
  const size_t open = text.find('[');
  if (open == absl::string_view::npos) return std::nullopt;
  const size_t length = text.substr(open + 1).find(']');
  uint64_t number = 0;
  if (!absl::SimpleAtoi(text.substr(open + 1, length), &number)) return std::nullopt;
  return number;
}

// Where in its row the input stands: K of "...dense.values[K]", "...sparse.values[K]",
// "...sparse.indices[K]"; of "...matrix.values[N]", all rows' values, with `num_inputs` for each.
std::optional<size_t> PlaceInRow(absl::string_view field, size_t num_inputs) {
  const size_t bracket = std::min(field.rfind('['), field.size());
  const std::optional<uint64_t> number = Bracketed(field.substr(bracket));
  if (!number) return std::nullopt;
  const absl::string_view list = field.substr(0, bracket);
  if (absl::EndsWith(list, "matrix.values") && num_inputs != 0) return *number % num_inputs;
  for (const absl::string_view inputs : {"dense.values", "sparse.values", "sparse.indices"}) {
    if (absl::EndsWith(list, inputs)) return *number;
  }
  return std::nullopt;
}

// Which row of a request: N of "instances[N]...", and of "matrix.values[...]".
std::optional<size_t> RowInRequest(absl::string_view field, size_t num_inputs) {
  const std::optional<uint64_t> number = Bracketed(field);
  if (!number || absl::StartsWith(field, "instances[")) return number;
  if (!absl::StartsWith(field, "matrix.values[") || num_inputs == 0) return std::nullopt;
  return *number / num_inputs;
}

}  // namespace

SentLine LineOf(const SourceRow& row) {
  const auto* sparse = std::get_if<SparseFeatures>(&row.row.features);
  return {row.line, sparse != nullptr ? sparse->indices : std::vector<uint64_t>()};
}

std::string InputOf(const absl::Status& error, const RowReader& reader, const SentLine& row) {
  const std::optional<size_t> place = PlaceInRow(FieldOf(error), reader.num_inputs());
  return place ? reader.InputName(row.indices, *place) : "";
}

std::string PlaceOf(const absl::Status& error, const RowReader& reader,
                    absl::Span<const SentLine> rows) {
  const std::optional<size_t> row = RowInRequest(FieldOf(error), reader.num_inputs());
  if (!row || *row >= rows.size()) return "";
  const std::string input = InputOf(error, reader, rows[*row]);
  return absl::StrCat("line ", rows[*row].line, input.empty() ? "" : ", ", input);
}

void Lines::Sent(SentLine line) {
  absl::MutexLock lock(&mu_);
  last_line_ = line.line;
  lines_.push_back(std::move(line));
}

void Lines::Acknowledged(const StreamAck& ack) {
  absl::MutexLock lock(&mu_);
  model_is_known_ |= !ack.recovered;
  for (const RejectedRow& rejected : ack.rejected) {
    ++rejected_;
    if (listed_.size() >= kMostListed) continue;
    const uint64_t at = rejected.row - first_row_;
    const SentLine row = rejected.row >= first_row_ && at < lines_.size() ? lines_[at] : SentLine();
    const std::string input = InputOf(rejected.status, reader_, row);
    listed_.push_back({row.line, input, MessageOf(rejected.status, !input.empty())});
  }
  for (; first_row_ < ack.next_row && !lines_.empty(); ++first_row_) lines_.pop_front();
}

std::vector<LineProblem> Lines::listed() const {
  absl::MutexLock lock(&mu_);
  return listed_;
}

uint64_t Lines::rejected() const {
  absl::MutexLock lock(&mu_);
  return rejected_;
}

uint64_t Lines::next_line() const {
  absl::MutexLock lock(&mu_);
  return lines_.empty() ? last_line_ : lines_.front().line;
}

bool Lines::model_is_known() const {
  absl::MutexLock lock(&mu_);
  return model_is_known_;
}

}  // namespace kernelstream::client
