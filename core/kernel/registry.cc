#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/kernel/kernel.h"

namespace kernelstream {

#define KERNELSTREAM_KERNEL(name) KernelEntry name();
#include "core/kernel/kernel_list.inc"
#undef KERNELSTREAM_KERNEL

namespace {

constexpr double kSmallestTermWeight = 1e-6, kLargestTermWeight = 1e6;

absl::Status Unknown(absl::string_view name) {
  std::vector<absl::string_view> known;
  for (const KernelEntry& entry : KernelRegistry()) known.push_back(entry.doc.name);
  return UnknownComponent("kernel", name, known);
}

// An error about "kernel...", as one about term i of the kernel.
absl::Status AboutTerm(size_t i, const absl::Status& status) {
  const std::string path = FieldPathOf(status);
  absl::string_view rest = path;
  absl::ConsumePrefix(&rest, "kernel");
  return InvalidField(absl::StrCat("kernel.terms[", i, "].component", rest), status.message());
}

absl::Status CheckTerms(const KernelEntry& entry, const ComponentConfig& config, size_t depth) {
  const size_t terms = config.terms.size();
  if (terms < 1 || terms > kMaxKernelTerms) {
    return InvalidField("kernel.terms", absl::StrCat("kernel \"", config.name, "\" has ", terms,
                                                     " terms; expected 1 to ", kMaxKernelTerms,
                                                     ", each with a component: another kernel"));
  }
  if (depth >= kMaxKernelDepth) {
    return InvalidField("kernel.terms",
                        absl::StrCat("sums and products are nested more than ", kMaxKernelDepth,
                                     " deep; expected at most that. Multiply them out"));
  }
  for (size_t i = 0; i < terms; ++i) {
    const double weight = config.terms[i].weight;
    const bool possible = entry.takes_weights
                              ? weight >= kSmallestTermWeight && weight <= kLargestTermWeight
                              : weight == 1;
    if (possible) continue;
    return InvalidField(
        absl::StrCat("kernel.terms[", i, "].weight"),
        absl::StrCat(
            "kernel \"", config.name, "\": weight is ", weight, "; expected ",
            entry.takes_weights
                ? absl::StrCat("a number from ", kSmallestTermWeight, " to ", kLargestTermWeight)
                : std::string("none, or 1: a weight of a product is one of a sum")));
  }
  return absl::OkStatus();
}

absl::StatusOr<ComponentConfig> CompleteAt(const ComponentConfig& config, size_t depth) {
  const KernelEntry* entry = FindKernel(config.name);
  if (entry == nullptr) return Unknown(config.name);
  ComponentConfig complete = config;
  auto parameters = CompleteParameters("kernel", entry->doc, config);
  if (!parameters.ok()) return parameters.status();
  complete.parameters = *std::move(parameters);
  if (!entry->doc.takes_terms) return complete;
  if (absl::Status status = CheckTerms(*entry, config, depth); !status.ok()) return status;
  for (size_t i = 0; i < config.terms.size(); ++i) {
    auto component = CompleteAt(config.terms[i].component, depth + 1);
    if (!component.ok()) return AboutTerm(i, component.status());
    complete.terms[i].component = *std::move(component);
  }
  return complete;
}

void SetUnitBandwidths(ComponentConfig& config) {
  config.parameters.try_emplace("bandwidth", 1.0);
  for (ComponentTerm& term : config.terms) SetUnitBandwidths(term.component);
}

// The kernel at `factor` times its bandwidth.
absl::StatusOr<std::unique_ptr<const Kernel>> MakeTimes(const ComponentConfig& config,
                                                        double factor) {
  const KernelEntry* entry = FindKernel(config.name);
  if (entry == nullptr) return Unknown(config.name);
  const auto bandwidth = config.parameters.find("bandwidth");
  if (bandwidth == config.parameters.end()) {
    return InvalidField("kernel.parameters[bandwidth]", "bandwidth has not been chosen yet");
  }
  if (!entry->doc.takes_terms) {
    ParameterMap parameters = config.parameters;
    parameters["bandwidth"] *= factor;
    return entry->make(parameters);
  }
  if (absl::Status status = CheckTerms(*entry, config, 0); !status.ok()) return status;
  std::vector<KernelTerm> terms;
  for (size_t i = 0; i < config.terms.size(); ++i) {
    const ComponentConfig& component = config.terms[i].component;
    auto kernel = MakeTimes(component, factor * bandwidth->second);
    if (!kernel.ok()) return AboutTerm(i, kernel.status());
    terms.push_back(
        {config.terms[i].weight, *std::move(kernel), component.parameters.at("bandwidth")});
  }
  return entry->compose(factor * bandwidth->second, std::move(terms));
}

}  // namespace

std::span<const KernelEntry> KernelRegistry() {
  static const std::vector<KernelEntry>& entries = *new std::vector<KernelEntry>{
#define KERNELSTREAM_KERNEL(name) name(),
#include "core/kernel/kernel_list.inc"
#undef KERNELSTREAM_KERNEL
  };
  return entries;
}

const KernelEntry* FindKernel(absl::string_view name) {
  for (const KernelEntry& entry : KernelRegistry()) {
    if (entry.doc.name == name) return &entry;
  }
  return nullptr;
}

absl::StatusOr<ComponentConfig> CompleteKernel(const ComponentConfig& config) {
  return CompleteAt(config, 0);
}

absl::Status CheckNewKernel(const ComponentConfig& config) {
  const KernelEntry* entry = FindKernel(config.name);
  if (entry == nullptr) return Unknown(config.name);
  const auto scale = config.parameters.find("bandwidth_scale");
  if (config.parameters.contains("bandwidth") && scale != config.parameters.end() &&
      scale->second != 1) {
    return InvalidField(
        "kernel.parameters[bandwidth_scale]",
        absl::StrCat("kernel \"", config.name, "\": bandwidth_scale is ", scale->second,
                     " and bandwidth is ", config.parameters.at("bandwidth"),
                     "; bandwidth_scale multiplies the bandwidth that is chosen from the data, "
                     "so it has no effect beside a given one. Leave one of them out"));
  }
  if (entry->check_new != nullptr) {
    if (absl::Status status = entry->check_new(config.parameters); !status.ok()) return status;
  }
  for (size_t i = 0; i < config.terms.size(); ++i) {
    const absl::Status status = CheckNewKernel(config.terms[i].component);
    if (!status.ok()) return AboutTerm(i, status);
  }
  return absl::OkStatus();
}

void ChooseKernelParameters(ConstMatrixView rows, ComponentConfig& config) {
  const KernelEntry* entry = FindKernel(config.name);
  if (entry != nullptr && entry->choose != nullptr) entry->choose(rows, config.parameters);
}

absl::StatusOr<std::unique_ptr<const Kernel>> MakeKernel(const ComponentConfig& config) {
  return MakeTimes(config, 1);
}

absl::StatusOr<std::unique_ptr<const Kernel>> MakeUnitKernel(const ComponentConfig& config) {
  ComponentConfig unit = config;
  SetUnitBandwidths(unit);
  return MakeKernel(unit);
}

std::vector<absl::string_view> KernelsWith(
    absl::FunctionRef<bool(const FeatureSpec& features)> accepts) {
  std::vector<absl::string_view> names;
  for (const KernelEntry& entry : KernelRegistry()) {
    ComponentConfig named = {std::string(entry.doc.name), {}};
    if (entry.doc.takes_terms) named.terms = {{1, {"gaussian", {}}}};
    const auto config = CompleteKernel(named);
    if (!config.ok()) continue;
    const auto kernel = MakeUnitKernel(*config);
    if (kernel.ok() && accepts((*kernel)->features())) names.push_back(entry.doc.name);
  }
  return names;
}

}  // namespace kernelstream
