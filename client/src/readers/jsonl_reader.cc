#include "client/src/readers/jsonl_reader.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/src/readers/numbers.h"
#include "nlohmann/json.hpp"

namespace kernelstream::client {
namespace {

using Json = nlohmann::json;

// Set when a value is missing and such rows are to be left out.
constexpr absl::StatusCode kSkipRow = absl::StatusCode::kNotFound;

absl::Status Invalid(absl::string_view message) { return absl::InvalidArgumentError(message); }

// Duplicate keys would silently lose values, so keys are counted while parsing. What the library
// throws ends here.
absl::Status ParseObject(const std::string& line, Json* object) {
  size_t keys = 0;
  size_t feature_keys = 0;
  bool in_features = false;
  bool too_deep = false;
  const Json::parser_callback_t count = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > 3) too_deep = true;
    if (event != Json::parse_event_t::key) return true;
    if (depth == 1) {
      ++keys;
      in_features = parsed == "features";
    } else if (depth == 2 && in_features) {
      ++feature_keys;
    }
    return true;
  };
  try {
    *object = Json::parse(line, count);
  } catch (const Json::parse_error& error) {
    return Invalid(absl::StrCat("not JSON at byte ", error.byte,
                                "; each line has to be one object like "
                                "{\"features\": [0.5, 2], \"target\": 1}"));
  } catch (const Json::exception&) {
    return Invalid("a number is too large; values go up to 1e30, so rescale that input");
  }
  if (!object->is_object() || too_deep) {
    return Invalid("not an object like {\"features\": [0.5, 2], \"target\": 1}");
  }
  const auto features = object->find("features");
  if (keys != object->size()) return Invalid("a key occurs twice; name each key once");
  if (features != object->end() && features->is_object() && features->size() != feature_keys) {
    return Invalid("an index in features occurs twice; give each index one value");
  }
  return absl::OkStatus();
}

// null, or a text that stands for it in CSV too.
bool HasNoValue(const Json& json) {
  return json.is_null() || (json.is_string() && IsMissing(json.get_ref<const std::string&>()));
}

// The message lacks where: see At.
absl::Status ParseValue(const Json& json, Missing missing, float* value) {
  if (HasNoValue(json)) {
    *value = 0;
    if (missing == Missing::kZero) return absl::OkStatus();
    if (missing == Missing::kSkip) return absl::Status(kSkipRow, "missing");
    const std::string shown = json.is_null() ? "null" : Quote(json.get_ref<const std::string&>());
    return Invalid(absl::StrCat("has no value (", shown,
                                "); correct the line, or give --missing skip or zero"));
  }
  if (!json.is_number()) return Invalid(absl::StrCat("is ", json.type_name(), "; give a number"));
  const double wide = json.get<double>();
  if (std::abs(wide) > FLT_MAX) {
    return Invalid(absl::StrCat("is ", wide, "; values go up to 1e30, so rescale it"));
  }
  *value = static_cast<float>(wide);
  return absl::OkStatus();
}

template <typename Index>
absl::Status At(const Index& index, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("features[", index, "] ", status.message()));
}

bool HasNames(const Json& object) {
  for (const auto& [key, value] : object.items()) {
    if (!IsDigits(key) || (value.is_string() && !HasNoValue(value))) return true;
  }
  return false;
}

absl::Status ParseNamed(const Json& object, Missing missing, Features* features) {
  auto& named = features->emplace<NamedFeatures>();
  for (const auto& [key, value] : object.items()) {
    if (IsDigits(key)) {
      return Invalid(absl::StrCat("features has the index ", Quote(key),
                                  " among names; give it a name too, such as \"x", key, "\""));
    }
    if (value.is_string() && !HasNoValue(value)) {
      named.categories[key] = value.get<std::string>();
      continue;
    }
    float number = 0;
    if (absl::Status status = ParseValue(value, missing, &number); !status.ok()) {
      return At(key, status);
    }
    if (!HasNoValue(value)) named.numbers[key] = value.get<double>();
  }
  return absl::OkStatus();
}

absl::Status ParseFeatures(const Json& json, Missing missing, Features* features) {
  if (json.is_array()) {
    DenseFeatures dense;
    dense.values.resize(json.size());
    for (size_t i = 0; i < json.size(); ++i) {
      if (absl::Status status = ParseValue(json[i], missing, &dense.values[i]); !status.ok()) {
        return At(i, status);
      }
    }
    *features = std::move(dense);
    return absl::OkStatus();
  }
  if (!json.is_object()) {
    return Invalid(
        absl::StrCat("features is ", json.type_name(),
                     "; give an array of numbers, an object from index to number, or one "
                     "from name to number or category"));
  }
  if (HasNames(json)) return ParseNamed(json, missing, features);
  std::vector<std::pair<uint64_t, float>> entries;
  for (const auto& [key, value] : json.items()) {
    uint64_t index = 0;
    if (!absl::SimpleAtoi(key, &index)) {
      return Invalid(absl::StrCat("the index ", Quote(key), " in features is 2^64 or more"));
    }
    float number = 0;
    if (absl::Status status = ParseValue(value, missing, &number); !status.ok()) {
      return At(key, status);
    }
    entries.emplace_back(index, number);
  }
  std::sort(entries.begin(), entries.end());
  SparseFeatures sparse;
  for (const auto& [index, value] : entries) {
    if (!sparse.indices.empty() && sparse.indices.back() == index) {
      return Invalid(absl::StrCat("index ", index, " in features occurs twice; give it one value"));
    }
    sparse.indices.push_back(index);
    sparse.values.push_back(value);
  }
  *features = std::move(sparse);
  return absl::OkStatus();
}

absl::Status ParseVector(const Json& target, Row* row) {
  std::vector<double>& values = row->target.emplace<std::vector<double>>();
  for (size_t i = 0; i < target.size(); ++i) {
    if (!target[i].is_number()) {
      return Invalid(absl::StrCat("target[", i, "] is ", target[i].type_name(), "; give a number"));
    }
    values.push_back(target[i].get<double>());
  }
  return absl::OkStatus();
}

absl::Status ParseTargetOf(const Json& object, TargetType type, Row* row) {
  const auto target = object.find("target");
  if (target == object.end() || target->is_null()) {
    return Invalid("there is no \"target\"; give a number or a label");
  }
  const bool text = target->is_string();
  if (!text && !target->is_number() && !target->is_array()) {
    return Invalid(absl::StrCat("target is ", target->type_name(), "; give a number or a label"));
  }
  if (type == TargetType::kPopulation && !target->is_array()) {
    return ParsePopulation(text ? target->get<std::string>() : target->dump(),
                           &row->target.emplace<Population>());
  }
  if (target->is_array()) {
    if (type == TargetType::kAuto || type == TargetType::kNumber) return ParseVector(*target, row);
    return Invalid("target is an array; labels and populations are one per row (--target-type)");
  }
  if (text && type == TargetType::kNumber) {
    return Invalid(absl::StrCat("target is ", Quote(target->get<std::string>()),
                                "; numbers are expected (--target-type)"));
  }
  if (text) {
    row->target = target->get<std::string>();
  } else if (type == TargetType::kLabel) {
    row->target = target->dump();
  } else {
    row->target = target->get<double>();
  }
  return absl::OkStatus();
}

absl::Status ParseRow(const std::string& line, const ReaderOptions& options, Row* row) {
  Json object;
  if (absl::Status status = ParseObject(line, &object); !status.ok()) return status;
  const auto features = object.find("features");
  if (features == object.end())
    return Invalid("there is no \"features\"; give an array of numbers");
  if (absl::Status status = ParseFeatures(*features, options.missing, &row->features);
      !status.ok()) {
    return status;
  }
  if (options.target_required) {
    if (absl::Status status = ParseTargetOf(object, options.target_type, row); !status.ok()) {
      return status;
    }
  }
  if (const auto weight = object.find("weight"); weight != object.end() && !weight->is_null()) {
    if (!weight->is_number()) {
      return Invalid(absl::StrCat("weight is ", weight->type_name(), "; give a number above 0"));
    }
    row->weight = weight->get<double>();
  }
  for (const auto& [key, value] : object.items()) {
    if (key != "features" && key != "target" && key != "weight") {
      return Invalid(absl::StrCat("unknown key ", Quote(key), "; known: features, target, weight"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

JsonLinesReader::JsonLinesReader(std::unique_ptr<ByteSource> source, ReaderOptions options)
    : source_(std::move(source)), options_(std::move(options)) {}

absl::StatusOr<bool> JsonLinesReader::Next(SourceRow* row) {
  while (true) {
    absl::StatusOr<bool> more = source_->ReadLine(&line_);
    if (!more.ok() || !*more) return more;
    if (absl::StripAsciiWhitespace(line_).empty()) continue;
    row->line = source_->line_number();
    row->row = Row();
    const absl::Status status = ParseRow(line_, options_, &row->row);
    if (status.ok()) return true;
    if (status.code() == kSkipRow) {
      ++skipped_rows_;
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(source_->name(), ", line ", row->line, ": ", status.message()));
  }
}

}  // namespace kernelstream::client
