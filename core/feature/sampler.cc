#include "core/feature/sampler.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "core/feature/quasi_monte_carlo.h"
#include "core/simd/simd.h"

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

bool SamplerApplies(const SamplerEntry& sampler, const FeatureSpec& spec) {
  if (spec.composition == Composition::kNone) return sampler.applies(spec);
  return std::any_of(spec.terms.begin(), spec.terms.end(),
                     [&](const FeatureTerm& term) { return SamplerApplies(sampler, term.spec); });
}

namespace {

// Sobol dimensions that a coordinate needs: terms of a sum are never drawn together.
size_t NetSlots(const FeatureSpec& spec) {
  if (spec.composition == Composition::kNone) return 1;
  size_t most = 0, sum = 0;
  for (const FeatureTerm& term : spec.terms) {
    const size_t slots = NetSlots(term.spec);
    most = std::max(most, slots);
    sum += slots;
  }
  return spec.composition == Composition::kSum ? most : sum;
}

void SetSampler(const SamplerEntry& sampler, size_t slot, size_t slots, FeatureSpec& spec) {
  spec.sampler = SamplerApplies(sampler, spec) ? sampler.sampler : Sampler::kIid;
  spec.net_slot = slot;
  spec.net_slots = slots;
  for (FeatureTerm& term : spec.terms) {
    SetSampler(sampler, slot, slots, term.spec);
    if (spec.composition == Composition::kProduct) slot += NetSlots(term.spec);
  }
}

}  // namespace

FeatureSpec Sampled(const FeatureSpec& spec, const SamplerEntry& sampler) {
  FeatureSpec sampled = spec;
  SetSampler(sampler, 0, NetSlots(spec), sampled);
  return sampled;
}

size_t IndependentGroup(const FeatureSpec& spec, size_t inputs) {
  if (spec.composition == Composition::kSum) {
    const bool independent = std::ranges::all_of(spec.terms, [inputs](const FeatureTerm& term) {
      return IndependentGroup(term.spec, inputs) == 1;
    });
    return independent ? 1 : 0;
  }
  size_t group = 1;
  for (const FeatureTerm& term : spec.terms) {
    const size_t of_term = IndependentGroup(term.spec, inputs);
    if (of_term == 0) return 0;
    group = std::max(group, of_term);  // powers of two
  }
  switch (spec.sampler) {
    case Sampler::kIid:
      return group;
    case Sampler::kOrthogonal:
      return std::max(group, kFeaturesPerBlock);
    case Sampler::kQuasiMonteCarlo:
      return std::max(group, spec.waves() << kNetBits);
    case Sampler::kStructured:
      if (inputs == 0) return 0;
      return std::max({group, kFeaturesPerBlock, spec.waves() * std::bit_ceil(inputs)});
  }
  return 0;
}

size_t MaxDimension(const FeatureSpec& spec, const SamplerEntry& sampler) {
  if (spec.sampler != sampler.sampler) return kAnyDimension;
  if (spec.composition == Composition::kNone) return sampler.max_dimension(spec);
  size_t most = kAnyDimension;
  for (const FeatureTerm& term : spec.terms) {
    most = std::min(most, MaxDimension(term.spec, sampler));
  }
  return most;
}

}  // namespace kernelstream
