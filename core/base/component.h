// Parts chosen by name with numeric parameters: kernels, losses, update rules.
#ifndef KERNELSTREAM_CORE_BASE_COMPONENT_H_
#define KERNELSTREAM_CORE_BASE_COMPONENT_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/term_list.h"

namespace kernelstream {

using ParameterMap = std::map<std::string, double>;

struct ComponentTerm;

// What somebody asked for.
struct ComponentConfig {
  std::string name;
  ParameterMap parameters;
  // What a sum or product of kernels is made of; empty for all other parts.
  TermList<ComponentTerm> terms = {};
  bool operator==(const ComponentConfig& other) const;
};

struct ComponentTerm {
  double weight = 1;
  ComponentConfig component;
  bool operator==(const ComponentTerm&) const = default;
};

// The parameters of a part and those of its terms, the latter as "terms[1].bandwidth".
ParameterMap FlatParameters(const ComponentConfig& config);
// The part with these in place of the parameters of the same names, terms included. Names of terms
// that it does not have are left out.
ComponentConfig WithParameters(ComponentConfig config, const ParameterMap& flat);

// One parameter of a registered part.
struct ParameterDoc {
  absl::string_view name;
  absl::string_view doc;
  double min;
  double max;
  // Absent: chosen from the data.
  std::optional<double> default_value;
  bool integer = false;
};

// A registered part, for catalogues and messages.
struct ComponentDoc {
  absl::string_view name;
  absl::string_view doc;
  std::span<const ParameterDoc> parameters;
  bool takes_terms = false;
  // Who described it first, or where its formula is from; empty: common knowledge.
  absl::string_view source = "";
};

// Checks names and ranges, and fills in the parameters that have a default. `kind` is "kernel",
// "loss", ...: it starts the field path and the message. INVALID_ARGUMENT lists the known
// parameters and their ranges, or says that the part takes no terms; terms are not looked into.
absl::StatusOr<ParameterMap> CompleteParameters(absl::string_view kind, const ComponentDoc& doc,
                                                const ComponentConfig& given);

// INVALID_ARGUMENT: unknown `kind` named `name`; lists the known ones.
absl::Status UnknownComponent(absl::string_view kind, absl::string_view name,
                              std::span<const absl::string_view> known);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_COMPONENT_H_
