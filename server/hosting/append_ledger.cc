#include "server/hosting/append_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"

namespace kernelstream::server {
namespace {

// Positions kept in memory; the store has them all.
constexpr size_t kMostCachedProducers = 4096;

constexpr char kAnswerVersion = 1;

void AppendNumber(uint64_t value, std::string& out) {
  for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

void AppendText(absl::string_view text, std::string& out) {
  AppendNumber(text.size(), out);
  out.append(text.data(), text.size());
}

// Reads what was appended; false once, false for ever.
class AnswerReader {
 public:
  explicit AnswerReader(absl::string_view bytes) : bytes_(bytes) {}
  uint64_t Number() {
    if (bytes_.size() < 8) return Fail();
    uint64_t value = 0;
    for (int i = 7; i >= 0; --i) value = (value << 8) | static_cast<unsigned char>(bytes_[i]);
    bytes_.remove_prefix(8);
    return value;
  }
  std::string Text() {
    const uint64_t size = Number();
    if (size > bytes_.size()) {
      Fail();
      return "";
    }
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }

 private:
  uint64_t Fail() {
    ok_ = false;
    bytes_ = {};
    return 0;
  }
  absl::string_view bytes_;
  bool ok_ = true;
};

}  // namespace

std::string EncodeAnswer(const AppendResult& result) {
  std::string out(1, kAnswerVersion);
  AppendNumber(result.sequence, out);
  AppendNumber(result.rows_accepted, out);
  AppendNumber(result.rejected.size(), out);
  for (const RejectedRow& row : result.rejected) {
    AppendNumber(row.number, out);
    AppendNumber(static_cast<uint64_t>(row.status.code()), out);
    AppendText(row.status.message(), out);
    AppendText(FieldPathOf(row.status), out);
  }
  return out;
}

absl::StatusOr<AppendResult> DecodeAnswer(absl::string_view bytes) {
  const absl::Status damaged = absl::DataLossError("a remembered answer is damaged");
  if (bytes.empty() || bytes[0] != kAnswerVersion) return damaged;
  AnswerReader reader(bytes.substr(1));
  AppendResult result;
  result.sequence = reader.Number();
  result.rows_accepted = reader.Number();
  const uint64_t rejected = reader.Number();
  for (uint64_t i = 0; i < rejected && reader.ok(); ++i) {
    RejectedRow row;
    row.number = reader.Number();
    const auto code = static_cast<absl::StatusCode>(reader.Number());
    const std::string message = reader.Text();
    const std::string path = reader.Text();
    row.status = absl::Status(code, message);
    if (!path.empty()) row.status = PrefixField(path, row.status);
    result.rejected.push_back(std::move(row));
  }
  if (!reader.at_end()) return damaged;
  return result;
}

AppendLedger::AppendLedger(Store* store, ModelUid uid, std::string model_name)
    : store_(store), uid_(uid), model_name_(std::move(model_name)) {}

absl::Status AppendLedger::Load() {
  const auto sequence = store_->LastSequence(uid_);
  if (!sequence.ok()) return sequence.status();
  const auto request = store_->LastRequestNumber(uid_);
  if (!request.ok()) return request.status();
  committed_ = staged_ = {*sequence, *request};
  return absl::OkStatus();
}

absl::StatusOr<ProducerPosition> AppendLedger::Position(const std::string& producer_id) {
  if (const auto it = staged_producers_.find(producer_id); it != staged_producers_.end()) {
    return it->second;
  }
  if (const auto it = producers_.find(producer_id); it != producers_.end()) return it->second;
  const auto stored = store_->GetProducer(uid_, producer_id);
  if (!stored.ok()) return stored.status();
  const ProducerPosition position = stored->value_or(ProducerPosition{});
  if (producers_.size() >= kMostCachedProducers) producers_.clear();
  producers_[producer_id] = position;
  return position;
}

absl::StatusOr<std::optional<AppendResult>> AppendLedger::FindRequest(
    const std::string& request_id) {
  if (const auto it = staged_requests_.find(request_id); it != staged_requests_.end()) {
    return it->second;
  }
  const auto stored = store_->GetRequest(uid_, request_id);
  if (!stored.ok()) return stored.status();
  if (!stored->has_value()) return std::nullopt;
  auto answer = DecodeAnswer((*stored)->answer);
  if (!answer.ok()) return answer.status();
  return *std::move(answer);
}

absl::StatusOr<std::optional<LogAppend>> AppendLedger::Stage(AppendRequest& request,
                                                             const absl::Status& refusal,
                                                             AppendResult& result) {
  if (!request.request_id.empty()) {
    auto earlier = FindRequest(request.request_id);
    if (!earlier.ok()) return earlier.status();
    if (earlier->has_value()) {
      result = **std::move(earlier);
      result.duplicate = true;
      return std::nullopt;
    }
  }
  size_t first_new = 0;
  if (!request.producer_id.empty()) {
    const auto position = Position(request.producer_id);
    if (!position.ok()) return position.status();
    const uint64_t expected = position->next_producer_sequence;
    if (request.producer_sequence > expected) {
      return absl::FailedPreconditionError(absl::StrCat(
          "model \"", model_name_, "\": rows of producer \"", request.producer_id,
          "\" begin at number ", request.producer_sequence, "; expected ", expected,
          ". Nothing of the batch was learned. Send the rows from number ", expected, " on"));
    }
    result.next_producer_sequence = std::max(expected, request.next_producer_sequence);
    if (request.next_producer_sequence <= expected) {
      result.sequence = position->sequence;
      result.rejected = std::move(request.rejected);
      result.duplicate = true;
      return std::nullopt;
    }
    while (first_new < request.numbers.size() && request.numbers[first_new] < expected) ++first_new;
  }
  if (!refusal.ok()) return refusal;

  LogAppend append;
  append.uid = uid_;
  result.rejected = std::move(request.rejected);
  if (first_new < request.rows.size()) {
    RowsRecord& record = append.rows.emplace();
    if (first_new == 0) {
      record.rows = std::move(request.rows);
    } else {
      for (size_t i = first_new; i < request.rows.size(); ++i)
        record.rows.AppendRow(request.rows, i);
    }
    record.first_sequence = staged_.last_sequence + 1;
    record.producer_id = request.producer_id;
    record.producer_sequence = request.producer_sequence;
    record.next_producer_sequence = request.next_producer_sequence;
    staged_.last_sequence = record.last_sequence();
    result.sequence = record.last_sequence();
    result.rows_accepted = record.rows.size();
  }
  if (!request.producer_id.empty()) {
    ProducerPosition next = *Position(request.producer_id);
    next.next_producer_sequence = request.next_producer_sequence;
    if (append.rows) next.sequence = result.sequence;
    append.producer_id = request.producer_id;
    append.producer = next;
    staged_producers_[request.producer_id] = next;
  }
  if (!request.request_id.empty()) {
    append.request =
        RequestRecord{request.request_id, ++staged_.last_request, EncodeAnswer(result)};
    staged_requests_[request.request_id] = result;
  }
  return append;
}

void AppendLedger::Commit() {
  committed_ = staged_;
  for (auto& [producer_id, position] : staged_producers_) producers_[producer_id] = position;
  staged_producers_.clear();
  staged_requests_.clear();
}

void AppendLedger::Rollback() {
  staged_ = committed_;
  staged_producers_.clear();
  staged_requests_.clear();
}

}  // namespace kernelstream::server
