#include "client/src/readers/csv_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/src/readers/numbers.h"
#include "client/src/utf8.h"

namespace kernelstream::client {
namespace {

constexpr size_t kMostListedColumns = 30;

char DetectSeparator(absl::string_view line) {
  char best = ',';
  ptrdiff_t most = 0;
  for (const char candidate : {',', ';', '\t'}) {
    bool quoted = false;
    ptrdiff_t count = 0;
    for (const char c : line) {
      if (c == '"') quoted = !quoted;
      count += !quoted && c == candidate ? 1 : 0;
    }
    if (count > most) {
      most = count;
      best = candidate;
    }
  }
  return best;
}

// True if text ends within quotes, beginning within them if `quoted`.
bool EndsQuoted(absl::string_view text, bool quoted) {
  return (std::count(text.begin(), text.end(), '"') % 2 == 1) != quoted;
}

bool IsNumber(absl::string_view text) {
  double value = 0;
  return ParseTarget(text, &value).ok();
}

// What the line is a row of, if it is one of another format than CSV: what to do about it.
std::string AdviceOnFormat(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  if (absl::StartsWith(line, "{\"")) return "it looks like JSON lines; give --format jsonl";
  std::string pair;
  for (absl::string_view word : absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    const bool first = word.data() == line.data();
    const size_t colon = word.find(':');
    if (colon == absl::string_view::npos && first) continue;  // the target
    if (absl::StartsWith(word, "#") && !pair.empty()) break;
    const absl::string_view key = word.substr(0, colon);
    if (colon == absl::string_view::npos || !(IsDigits(key) || key == "qid") ||
        !IsNumber(word.substr(colon + 1))) {
      return "";
    }
    if (pair.empty()) pair = std::string(word);
  }
  return pair.empty()
             ? ""
             : absl::StrCat(Quote(pair), " looks like LIBSVM's index:value; give --format libsvm");
}

std::string ListColumns(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMostListedColumns);
  // Escaped and cut like a quoted name: the file may be no table at all.
  const auto add = [](std::string* list, const std::string& name) {
    const std::string quoted = Quote(name);
    list->append(quoted, 1, quoted.size() - 2);
  };
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + shown, ", ", add),
                      shown < names.size() ? ", ..." : "");
}

}  // namespace

CsvReader::CsvReader(std::unique_ptr<ByteSource> source, ReaderOptions options)
    : source_(std::move(source)),
      options_(std::move(options)),
      target_type_(options_.target_type) {}

absl::Status CsvReader::Located(uint64_t line, absl::string_view column,
                                absl::string_view message) const {
  return absl::InvalidArgumentError(
      absl::StrCat(source_->name(), ", line ", line,
                   column.empty() ? "" : absl::StrCat(", column ", Quote(column)), ": ", message));
}

absl::StatusOr<bool> CsvReader::ReadRecord() {
  record_.clear();
  bool quoted = false;
  do {
    absl::StatusOr<bool> more = source_->ReadLine(&line_);
    if (!more.ok()) return more;
    if (!*more) {
      if (!quoted) return false;
      return Located(record_line_, "", "a quote is opened and never closed; close it");
    }
    if (quoted) {
      record_ += '\n';
    } else {
      record_line_ = source_->line_number();
      if (absl::StripAsciiWhitespace(line_).empty()) continue;
    }
    quoted = EndsQuoted(line_, quoted);
    record_ += line_;
    if (record_.size() > ByteSource::kMaxLineBytes) {
      return Located(record_line_, "",
                     absl::StrCat("the record is longer than ", ByteSource::kMaxLineBytes >> 20,
                                  " MiB; is a quote not closed?"));
    }
  } while (quoted || record_.empty());
  if (options_.separator == 0) options_.separator = DetectSeparator(record_);
  if (absl::Status status = SplitRecord(); !status.ok()) return status;
  return true;
}

absl::Status CsvReader::SplitRecord() {
  num_cells_ = 0;
  size_t at = 0;
  while (true) {
    if (cells_.size() == num_cells_) cells_.emplace_back();
    std::string& cell = cells_[num_cells_++];
    cell.clear();
    const size_t start = record_.find_first_not_of(' ', at);
    if (start != std::string::npos && record_[start] == '"') {
      at = start + 1;
      while (at < record_.size()) {
        const size_t quote = record_.find('"', at);
        cell.append(record_, at, quote - at);
        at = quote == std::string::npos ? record_.size() : quote + 1;
        if (at >= record_.size() || record_[at] != '"') break;
        cell += '"';
        ++at;
      }
      while (at < record_.size() && record_[at] == ' ') ++at;
      if (at < record_.size() && record_[at] != options_.separator) {
        return Located(record_line_, num_cells_ <= names_.size() ? names_[num_cells_ - 1] : "",
                       absl::StrCat("text after the closing quote of ", Quote(cell),
                                    "; double the quotes inside a quoted cell"));
      }
    } else {
      const size_t end = std::min(record_.find(options_.separator, at), record_.size());
      cell =
          std::string(absl::StripAsciiWhitespace(absl::string_view(record_).substr(at, end - at)));
      at = end;
    }
    if (at >= record_.size()) return absl::OkStatus();
    ++at;
  }
}

absl::Status CsvReader::Open() {
  absl::StatusOr<bool> more = ReadRecord();
  if (const std::string advice = AdviceOnFormat(record_); !advice.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(source_->name(), ", line ", record_line_, " is not CSV: ", advice));
  }
  if (!more.ok()) {
    return absl::IsInvalidArgument(more.status())
               ? absl::FailedPreconditionError(more.status().message())
               : more.status();
  }
  if (!*more) {
    return absl::FailedPreconditionError(
        absl::StrCat(source_->name(), " is empty; a CSV file has a header and rows"));
  }
  names_.assign(cells_.begin(), cells_.begin() + num_cells_);
  // Columns without names have places.
  if (!options_.header) options_.named = false;
  if (!options_.named) options_.categories.clear();
  if (options_.header) {
    if (num_cells_ > 0 && std::all_of(names_.begin(), names_.end(), IsNumber)) {
      return absl::FailedPreconditionError(
          absl::StrCat(source_->name(), ", line ", record_line_,
                       " has only numbers where the names of the columns are expected; give "
                       "--no-header if the file begins with a row"));
    }
    if (!IsUtf8(record_)) {
      return absl::FailedPreconditionError(
          absl::StrCat(source_->name(), ", line ", record_line_,
                       " is not UTF-8; convert it, for example with iconv -f latin1 -t utf-8"));
    }
  } else {
    for (size_t i = 0; i < names_.size(); ++i) names_[i] = absl::StrCat(i + 1);
    record_waiting_ = true;
  }
  return SettleColumns();
}

absl::StatusOr<std::vector<size_t>> CsvReader::ChooseTargets(size_t candidates) {
  if (!options_.target.empty()) {
    // A column's name may hold commas itself.
    std::vector<std::string> wanted = {options_.target};
    if (std::find(names_.begin(), names_.end(), options_.target) == names_.end()) {
      wanted = absl::StrSplit(options_.target, ',');
    }
    std::vector<size_t> chosen;
    for (const std::string& name : wanted) {
      const auto named = std::find(names_.begin(), names_.end(), name);
      const size_t column = named - names_.begin();
      if (named == names_.end() && !options_.target_required) continue;
      if (named == names_.end()) {
        return absl::NotFoundError(absl::StrCat(source_->name(), " has no column ", Quote(name),
                                                " (--target); it has ", ListColumns(names_)));
      }
      if (std::find(chosen.begin(), chosen.end(), column) != chosen.end()) {
        return absl::FailedPreconditionError(
            absl::StrCat("--target names the column ", Quote(name), " twice; name it once"));
      }
      chosen.push_back(column);
    }
    return chosen;
  }
  std::vector<size_t> none;
  if (!options_.target_required && options_.dimension == candidates) return none;
  std::vector<size_t> last;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (roles_[i] != Role::kFeature) continue;
    last = {i};
    for (const absl::string_view name : {"target", "label", "class", "y"}) {
      if (options_.header && absl::EqualsIgnoreCase(names_[i], name)) return last;
    }
  }
  const bool one_too_many = options_.dimension != 0 && candidates == options_.dimension + 1;
  return options_.target_required || one_too_many ? last : none;
}

absl::Status CsvReader::SettleColumns() {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (std::find(names_.begin(), names_.begin() + i, names_[i]) != names_.begin() + i) {
      return absl::FailedPreconditionError(absl::StrCat(
          source_->name(), ": the column ", Quote(names_[i]), " occurs twice; rename one"));
    }
  }
  roles_.assign(names_.size(), Role::kFeature);
  auto mark = [this](const std::string& name, Role role, absl::string_view flag) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      return absl::NotFoundError(absl::StrCat(source_->name(), " has no column ", Quote(name), " (",
                                              flag, "); it has ", ListColumns(names_)));
    }
    roles_[found - names_.begin()] = role;
    return absl::OkStatus();
  };
  for (const std::string& name : options_.drop) {
    if (absl::Status status = mark(name, Role::kDropped, "--drop"); !status.ok()) return status;
  }
  if (!options_.weight.empty()) {
    absl::Status status = mark(options_.weight, Role::kWeight, "--weight");
    if (!status.ok() && options_.target_required) return status;
  }
  const size_t candidates = std::count(roles_.begin(), roles_.end(), Role::kFeature);
  absl::StatusOr<std::vector<size_t>> targets = ChooseTargets(candidates);
  if (!targets.ok()) return targets.status();
  targets_ = *std::move(targets);
  for (const size_t column : targets_) roles_[column] = Role::kTarget;
  if (!targets_.empty() && options_.target.empty() && options_.target_required) {
    notes_.push_back(absl::StrCat("the target is column ", Quote(names_[targets_[0]]),
                                  " (--target to choose another)"));
  } else if (!targets_.empty() && options_.target.empty()) {
    notes_.push_back(
        absl::StrCat("the column ", Quote(names_[targets_[0]]),
                     " is taken for a target and left out (--target to name another)"));
  }
  if (targets_.size() > 1 && options_.target_required &&
      (target_type_ == TargetType::kLabel || target_type_ == TargetType::kPopulation)) {
    return absl::FailedPreconditionError(
        "--target names several columns; only numbers may be several targets of a row "
        "(--target-type number)");
  }
  for (const std::string& name : options_.categories) {
    const auto column = std::find(names_.begin(), names_.end(), name);
    if (column != names_.end() && roles_[column - names_.begin()] != Role::kFeature) continue;
    if (absl::Status status = mark(name, Role::kCategory, "--categories"); !status.ok()) {
      return status;
    }
  }
  for (size_t i = 0; options_.named && i < names_.size(); ++i) {
    const bool is_input = roles_[i] == Role::kFeature || roles_[i] == Role::kCategory;
    if (!is_input || !IsDigits(names_[i])) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        source_->name(), ": the column ", Quote(names_[i]),
        " is named by digits alone, which JSON rows and predictions take for an index; "
        "name it \"x",
        names_[i], "\" or so, leave it out with --drop ", names_[i],
        ", or give --no-header if the file begins with a row"));
  }
  num_features_ = std::count_if(roles_.begin(), roles_.end(), [](Role role) {
    return role == Role::kFeature || role == Role::kCategory;
  });
  if (num_features_ == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(source_->name(), " has no column left to learn from; it has ",
                     ListColumns(names_), " (is the separator right? --separator)"));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> CsvReader::Next(SourceRow* row) {
  while (true) {
    if (!std::exchange(record_waiting_, false)) {
      absl::StatusOr<bool> more = ReadRecord();
      if (!more.ok()) row->line = record_line_;
      if (!more.ok() || !*more) return more;
    }
    row->line = record_line_;
    row->row = Row();
    bool skip = false;
    if (absl::Status status = ParseRecord(&row->row, &skip); !status.ok()) return status;
    if (!skip) return true;
    ++skipped_rows_;
  }
}

std::string CsvReader::InputName(absl::Span<const uint64_t> indices, size_t place) const {
  if (!indices.empty() || options_.named) return "";
  for (size_t i = 0; i < roles_.size(); ++i) {
    if (roles_[i] != Role::kFeature) continue;
    if (place-- == 0) return absl::StrCat("column ", Quote(names_[i]));
  }
  return "";
}

absl::Status CsvReader::ParseVectorCell(const std::string& cell, size_t column, Row* row) {
  if (!std::holds_alternative<std::vector<double>>(row->target)) {
    row->target = std::vector<double>(targets_.size());
  }
  const size_t place = std::find(targets_.begin(), targets_.end(), column) - targets_.begin();
  return ParseTarget(cell, &std::get<std::vector<double>>(row->target)[place]);
}

absl::Status CsvReader::ParseTargetCell(const std::string& cell, Row* row) {
  if (target_type_ == TargetType::kPopulation) {
    return ParsePopulation(cell, &row->target.emplace<Population>());
  }
  if (target_type_ == TargetType::kAuto) {
    target_type_ = IsNumber(cell) ? TargetType::kNumber : TargetType::kLabel;
  }
  if (target_type_ == TargetType::kLabel) {
    if (!IsUtf8(cell)) {
      return absl::InvalidArgumentError(absl::StrCat(
          Quote(cell),
          " is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"));
    }
    row->target = cell;
    return absl::OkStatus();
  }
  double value = 0;
  if (absl::Status status = ParseTarget(cell, &value); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        status.message(), "; targets are numbers here (--target-type label takes them as labels)"));
  }
  row->target = value;
  return absl::OkStatus();
}

absl::Status CsvReader::ParseNamedCell(const std::string& cell, size_t column,
                                       NamedFeatures* features) {
  float number = 0;
  if (roles_[column] == Role::kFeature) {
    const absl::Status status = ParseFeature(cell, &number);
    if (status.ok()) features->numbers[names_[column]] = number;
    if (status.ok() || !absl::EndsWith(status.message(), "is not a number")) return status;
  }
  if (!IsUtf8(cell)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quote(cell), " is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"));
  }
  features->categories[names_[column]] = cell;
  return absl::OkStatus();
}

absl::Status CsvReader::ParseRecord(Row* row, bool* skip) {
  if (num_cells_ != names_.size()) {
    const std::string advice = AdviceOnFormat(record_);
    return Located(
        record_line_, "",
        absl::StrCat("has ", num_cells_, " cells where ", names_.size(), " are expected; ",
                     advice.empty() ? "check separators and quotes" : advice));
  }
  DenseFeatures features;
  NamedFeatures named;
  if (!options_.named) features.values.reserve(num_features_);
  for (size_t i = 0; i < num_cells_; ++i) {
    const std::string& cell = cells_[i];
    const Role role = roles_[i];
    const bool is_input = role == Role::kFeature || role == Role::kCategory;
    if (role == Role::kDropped || (role == Role::kTarget && !options_.target_required)) continue;
    const bool text_label = role == Role::kTarget && target_type_ == TargetType::kLabel;
    if (text_label ? cell.empty() : IsMissing(cell)) {
      if (options_.missing == Missing::kSkip) {
        *skip = true;
        return absl::OkStatus();
      }
      if (options_.missing == Missing::kError || !is_input) {
        return Located(record_line_, names_[i],
                       absl::StrCat("no value (", Quote(cell), "); fill it in, or give --missing ",
                                    is_input ? "skip or --missing zero" : "skip"));
      }
      if (!options_.named) features.values.push_back(0);
      continue;
    }
    absl::Status status;
    if (role == Role::kTarget) {
      status = targets_.size() > 1 ? ParseVectorCell(cell, i, row) : ParseTargetCell(cell, row);
    } else if (role == Role::kWeight) {
      status = ParseTarget(cell, &row->weight.emplace());
    } else if (options_.named) {
      status = ParseNamedCell(cell, i, &named);
    } else {
      status = ParseFeature(cell, &features.values.emplace_back());
      if (!status.ok() && absl::EndsWith(status.message(), "is not a number")) {
        const std::string advice = AdviceOnFormat(record_);
        status = absl::InvalidArgumentError(absl::StrCat(
            status.message(), "; ",
            !advice.empty()
                ? advice
                : absl::StrCat("encode it as numbers (one column of 0 and 1 per category), create "
                               "the model with --hashed, or leave the column out with --drop ",
                               names_[i])));
      }
    }
    if (!status.ok()) return Located(record_line_, names_[i], status.message());
  }
  if (options_.named) {
    row->features = std::move(named);
  } else {
    row->features = std::move(features);
  }
  return absl::OkStatus();
}

}  // namespace kernelstream::client
