#include "client/src/readers/libsvm_reader.h"

#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/src/readers/numbers.h"
#include "client/src/utf8.h"

namespace kernelstream::client {
namespace {

// The next word of *rest, which loses it; empty at the end.
absl::string_view TakeWord(absl::string_view* rest) {
  *rest = absl::StripLeadingAsciiWhitespace(*rest);
  size_t length = 0;
  while (length < rest->size() && !absl::ascii_isspace((*rest)[length])) ++length;
  const absl::string_view word = rest->substr(0, length);
  rest->remove_prefix(length);
  return word;
}

}  // namespace

LibsvmReader::LibsvmReader(std::unique_ptr<ByteSource> source, ReaderOptions options)
    : source_(std::move(source)), options_(std::move(options)) {}

absl::StatusOr<bool> LibsvmReader::Next(SourceRow* row) {
  while (true) {
    absl::StatusOr<bool> more = source_->ReadLine(&line_);
    if (!more.ok() || !*more) return more;
    absl::string_view text = line_;
    text = absl::StripAsciiWhitespace(text.substr(0, text.find('#')));
    if (text.empty()) continue;
    row->line = source_->line_number();
    row->row = Row();
    if (absl::Status status = ParseLine(text, &row->row); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source_->name(), ", line ", row->line, ": ", status.message()));
    }
    return true;
  }
}

std::string LibsvmReader::InputName(absl::Span<const uint64_t> indices, size_t place) const {
  if (place >= indices.size()) return "";
  const uint64_t index = indices[place];
  if (options_.index_base == 0) return absl::StrCat("index ", index);
  return absl::StrCat("index ", index + options_.index_base, " (", index, " counting from 0)");
}

absl::Status LibsvmReader::ParseTargetToken(absl::string_view token, Row* row) {
  if (!options_.target_required) return absl::OkStatus();
  if (options_.target_type == TargetType::kPopulation) {
    return ParsePopulation(token, &row->target.emplace<Population>());
  }
  if (options_.target_type == TargetType::kLabel) {
    if (!IsUtf8(token)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the label ", Quote(token),
          " is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"));
    }
    row->target = std::string(token);
    return absl::OkStatus();
  }
  double target = 0;
  if (absl::Status status = ParseTarget(token, &target); !status.ok()) {
    if (absl::StrContains(token, ',')) {
      return absl::InvalidArgumentError(
          absl::StrCat("the target ", Quote(token), " has several labels; give one per row"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the target ", status.message(),
                     "; LIBSVM lines begin with a number (or give --target-type label)"));
  }
  row->target = target;
  return absl::OkStatus();
}

absl::Status LibsvmReader::ParseLine(absl::string_view line, Row* row) {
  absl::string_view rest = line;
  absl::string_view word = TakeWord(&rest);
  if (absl::StrContains(word, ':')) {
    if (options_.target_required) {
      return absl::InvalidArgumentError(
          absl::StrCat("begins with ", Quote(word), "; a target has to come first"));
    }
  } else {
    if (absl::Status status = ParseTargetToken(word, row); !status.ok()) return status;
    word = TakeWord(&rest);
  }
  SparseFeatures features;
  for (; !word.empty(); word = TakeWord(&rest)) {
    const size_t colon = word.find(':');
    if (colon == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quote(word), " is not index:value, like 3:0.5"));
    }
    const absl::string_view key = word.substr(0, colon);
    if (key == "qid") {
      if (!qid_noted_) notes_.push_back("qid is ignored: rows are learned one by one");
      qid_noted_ = true;
      continue;
    }
    uint64_t index = 0;
    if (!IsDigits(key)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the index ", Quote(key), " in ", Quote(word), " is not a whole number"));
    }
    if (!absl::SimpleAtoi(key, &index)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the index ", Quote(key), " is 2^64 or more; indices are below that"));
    }
    if (index < options_.index_base) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", index,
                       "; LIBSVM counts inputs from 1 (--zero-based if this file counts from 0)"));
    }
    index -= options_.index_base;
    if (!features.indices.empty() && index <= features.indices.back()) {
      return absl::InvalidArgumentError(absl::StrCat("index ", key, " comes after ",
                                                     features.indices.back() + options_.index_base,
                                                     "; indices have to increase within a row"));
    }
    const absl::string_view text = word.substr(colon + 1);
    float value = 0;
    if (IsMissing(text)) {
      if (options_.missing != Missing::kZero) {
        return absl::InvalidArgumentError(
            absl::StrCat("input ", key, " has no value (", Quote(text),
                         "); correct the line, or give --missing zero"));
      }
    } else if (absl::Status status = ParseFeature(text, &value); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("input ", key, ": ", status.message()));
    }
    features.indices.push_back(index);
    features.values.push_back(value);
  }
  row->features = std::move(features);
  return absl::OkStatus();
}

}  // namespace kernelstream::client
