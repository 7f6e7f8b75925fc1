#include "core/feature/sampler.h"

#include <vector>

namespace kernelstream {

#define KERNELSTREAM_SAMPLER(name) SamplerEntry name();
#include "core/feature/sampler_list.inc"
#undef KERNELSTREAM_SAMPLER

SamplerEntry IidSampler() {
  return {.doc = {.name = "iid",
                  .doc = "every frequency by itself: any kernel, any inputs",
                  .parameters = {}},
          .sampler = Sampler::kIid,
          .applies = [](const FeatureSpec&) { return true; }};
}

std::span<const SamplerEntry> SamplerRegistry() {
  static const std::vector<SamplerEntry>& entries = *new std::vector<SamplerEntry>{
#define KERNELSTREAM_SAMPLER(name) name(),
#include "core/feature/sampler_list.inc"
#undef KERNELSTREAM_SAMPLER
  };
  return entries;
}

const SamplerEntry* FindSampler(absl::string_view name) {
  for (const SamplerEntry& entry : SamplerRegistry()) {
    if (entry.doc.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace kernelstream
