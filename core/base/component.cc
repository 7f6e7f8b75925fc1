#include "core/base/component.h"

#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/field_error.h"

namespace kernelstream {
namespace {

constexpr absl::string_view kTermPrefix = "terms[";
std::string TermName(size_t i) { return absl::StrCat(kTermPrefix, i, "]."); }

}  // namespace

bool ComponentConfig::operator==(const ComponentConfig& other) const {
  return name == other.name && parameters == other.parameters && terms == other.terms;
}

ParameterMap FlatParameters(const ComponentConfig& config) {
  ParameterMap flat = config.parameters;
  for (size_t i = 0; i < config.terms.size(); ++i) {
    for (const auto& [name, value] : FlatParameters(config.terms[i].component)) {
      flat.emplace(absl::StrCat(TermName(i), name), value);
    }
  }
  return flat;
}

ComponentConfig WithParameters(ComponentConfig config, const ParameterMap& flat) {
  for (const auto& [name, value] : flat) {
    if (!absl::StartsWith(name, kTermPrefix)) config.parameters[name] = value;
  }
  for (size_t i = 0; i < config.terms.size(); ++i) {
    ParameterMap of_term;
    for (const auto& [name, value] : flat) {
      absl::string_view rest = name;
      if (absl::ConsumePrefix(&rest, TermName(i))) of_term.emplace(rest, value);
    }
    ComponentConfig& component = config.terms[i].component;
    component = WithParameters(std::move(component), of_term);
  }
  return config;
}

absl::StatusOr<ParameterMap> CompleteParameters(absl::string_view kind, const ComponentDoc& doc,
                                                const ComponentConfig& config) {
  if (!config.terms.empty() && !doc.takes_terms) {
    return InvalidField(absl::StrCat(kind, ".terms"),
                        absl::StrCat(kind, " \"", doc.name, "\" has ", config.terms.size(),
                                     " terms; only kernels \"sum\" and \"product\" take terms. "
                                     "Leave them out"));
  }
  const ParameterMap& given = config.parameters;
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
        absl::StrCat(kind, ".parameters[", Shortened(name), "]"),
        absl::StrCat(kind, " \"", doc.name, "\" has no parameter \"", Shortened(name), "\"; ",
                     known.empty() ? "it takes none" : "known: ", absl::StrJoin(known, ", ")));
  }
  return complete;
}

absl::Status UnknownComponent(absl::string_view kind, absl::string_view name,
                              std::span<const absl::string_view> known) {
  return InvalidField(
      absl::StrCat(kind, ".name"),
      absl::StrCat(name.empty() ? absl::StrCat("no ", kind, " is named")
                                : absl::StrCat("unknown ", kind, " \"", Shortened(name), "\""),
                   "; known: ", absl::StrJoin(known, ", ")));
}

}  // namespace kernelstream
