// The ways to draw the frequencies of a block, by name.
#ifndef KERNELSTREAM_CORE_FEATURE_SAMPLER_H_
#define KERNELSTREAM_CORE_FEATURE_SAMPLER_H_

#include <cstddef>
#include <limits>
#include <span>

#include "absl/strings/string_view.h"
#include "core/base/component.h"
#include "core/base/feature_spec.h"

namespace kernelstream {

// Whatever the sampler, each feature alone has the law that the spec gives it, so that every block,
// and every range of features, is unbiased.
struct SamplerEntry {
  ComponentDoc doc;  // no parameters
  Sampler sampler;
  // Whether it can draw features of this spec.
  bool (*applies)(const FeatureSpec& spec);
  // Most coordinates of an input.
  size_t max_dimension = std::numeric_limits<size_t>::max();
  // True if frequencies depend on the number of coordinates: it must not change while a model
  // learns.
  bool fixes_dimension = false;
};

// All samplers, in the order of sampler_list.inc. Lives for ever.
std::span<const SamplerEntry> SamplerRegistry();
// Null if there is none of this name.
const SamplerEntry* FindSampler(absl::string_view name);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_SAMPLER_H_
