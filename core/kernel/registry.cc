#include <vector>

#include "core/kernel/kernel.h"

namespace kernelstream {

#define KERNELSTREAM_KERNEL(name) KernelEntry name();
#include "core/kernel/kernel_list.inc"
#undef KERNELSTREAM_KERNEL

namespace {

const KernelEntry* Find(absl::string_view name) {
  for (const KernelEntry& entry : KernelRegistry()) {
    if (entry.doc.name == name) return &entry;
  }
  return nullptr;
}

absl::Status Unknown(absl::string_view name) {
  std::vector<absl::string_view> known;
  for (const KernelEntry& entry : KernelRegistry()) known.push_back(entry.doc.name);
  return UnknownComponent("kernel", name, known);
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

absl::StatusOr<ParameterMap> CompleteKernel(const ComponentConfig& config) {
  const KernelEntry* entry = Find(config.name);
  if (entry == nullptr) return Unknown(config.name);
  return CompleteParameters("kernel", entry->doc, config.parameters);
}

void ChooseKernelParameters(ConstMatrixView rows, ComponentConfig& config) {
  const KernelEntry* entry = Find(config.name);
  if (entry != nullptr && entry->choose != nullptr) entry->choose(rows, config.parameters);
}

absl::StatusOr<std::unique_ptr<const Kernel>> MakeKernel(const ComponentConfig& config) {
  const KernelEntry* entry = Find(config.name);
  if (entry == nullptr) return Unknown(config.name);
  if (!config.parameters.contains("bandwidth")) {
    return InvalidField("kernel.parameters[bandwidth]", "bandwidth has not been chosen yet");
  }
  return entry->make(config.parameters);
}

absl::StatusOr<std::unique_ptr<const Kernel>> MakeUnitKernel(const ComponentConfig& config) {
  ComponentConfig unit = config;
  unit.parameters.try_emplace("bandwidth", 1.0);
  return MakeKernel(unit);
}

}  // namespace kernelstream
