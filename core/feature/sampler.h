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

inline constexpr size_t kAnyDimension = std::numeric_limits<size_t>::max();

// Whatever the sampler, each feature alone has the law that the spec gives it, so that every block,
// and every range of features, is unbiased.
struct SamplerEntry {
  ComponentDoc doc;  // no parameters
  Sampler sampler;
  // What `applies` asks of features, in words, for messages: "it takes ...". Empty: nothing.
  absl::string_view takes = "";
  // Whether it can draw features of this spec of one kernel, no composition. What is right for
  // compositions follows: SamplerApplies.
  bool (*applies)(const FeatureSpec& spec);
  // Most coordinates of an input of this spec, which it applies to and which Sampled has made.
  size_t (*max_dimension)(const FeatureSpec& spec) = [](const FeatureSpec&) {
    return kAnyDimension;
  };
  // True if frequencies depend on the number of coordinates: it must not change while a model
  // learns.
  bool fixes_dimension = false;
};

// All samplers, in the order of sampler_list.inc. Lives for ever.
std::span<const SamplerEntry> SamplerRegistry();
// Null if there is none of this name.
const SamplerEntry* FindSampler(absl::string_view name);

// Whether the sampler can draw features of `spec`: for a composition, those of one of its terms at
// least. Terms have independent seeds. A feature of a sum is one of a term, which is unbiased
// however it is drawn; one of a product is made of one frequency of each term, which are
// independent of each other, so their product, and the cosine of their sum, are unbiased too. What
// a sampler promises about the frequencies of a group (right angles, nets) holds term by term:
// sums of orthogonal frequencies are not orthogonal.
bool SamplerApplies(const SamplerEntry& sampler, const FeatureSpec& spec);
// `spec` drawn by a sampler that applies to it; terms that it does not apply to are drawn as "iid".
FeatureSpec Sampled(const FeatureSpec& spec, const SamplerEntry& sampler);
// Features, from a multiple of it to the next, that do not depend on those before: who learns new
// features alone (Algorithm 1 of the paper) takes whole groups, so that each step is unbiased
// whatever the steps before have drawn. 1: all are independent. 0: there is no such number (sums
// whose terms have groups, which lie across each other), or it is not known without `inputs`, the
// coordinates of an input. spec is from Sampled.
size_t IndependentGroup(const FeatureSpec& spec, size_t inputs);
// Most coordinates of an input; spec is from Sampled.
size_t MaxDimension(const FeatureSpec& spec, const SamplerEntry& sampler);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_SAMPLER_H_
