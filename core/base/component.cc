#include "core/base/component.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/field_error.h"

namespace kernelstream {

absl::StatusOr<ParameterMap> CompleteParameters(absl::string_view kind, const ComponentDoc& doc,
                                                const ParameterMap& given) {
  ParameterMap complete;
  for (const ParameterDoc& parameter : doc.parameters) {
    const auto it = given.find(std::string(parameter.name));
    if (it == given.end()) {
      if (parameter.default_value.has_value()) {
        complete.emplace(parameter.name, *parameter.default_value);
      }
      continue;
    }
    const double value = it->second;
    const bool in_range = value >= parameter.min && value <= parameter.max;  // false for NaN
    if (!in_range || (parameter.integer && value != std::floor(value))) {
      return InvalidField(
          absl::StrCat(kind, ".parameters[", parameter.name, "]"),
          absl::StrCat(kind, " \"", doc.name, "\" parameter ", parameter.name, " is ", value,
                       "; expected ", parameter.integer ? "a whole number from " : "a number from ",
                       parameter.min, " to ", parameter.max, ": ", parameter.doc));
    }
    complete.emplace(parameter.name, value);
  }
  for (const auto& [name, value] : given) {
    if (complete.contains(name)) continue;
    std::vector<std::string> known;
    for (const ParameterDoc& parameter : doc.parameters) known.emplace_back(parameter.name);
    return InvalidField(
        absl::StrCat(kind, ".parameters[", name, "]"),
        absl::StrCat(kind, " \"", doc.name, "\" has no parameter \"", name, "\"; ",
                     known.empty() ? "it takes none" : "known: ", absl::StrJoin(known, ", ")));
  }
  return complete;
}

absl::Status UnknownComponent(absl::string_view kind, absl::string_view name,
                              std::span<const absl::string_view> known) {
  return InvalidField(absl::StrCat(kind, ".name"),
                      absl::StrCat(name.empty() ? absl::StrCat("no ", kind, " is named")
                                                : absl::StrCat("unknown ", kind, " \"", name, "\""),
                                   "; known: ", absl::StrJoin(known, ", ")));
}

}  // namespace kernelstream
