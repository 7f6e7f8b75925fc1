#include "core/model/model_features.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/field_error.h"
#include "core/feature/sampler.h"
#include "core/kernel/kernel.h"

namespace kernelstream {
namespace {

// What samplers go by, for messages.
absl::string_view InWords(const FeatureSpec& features) {
  if (features.composition != Composition::kNone) return "made of terms that have none of these";
  switch (features.form) {
    case FeatureForm::kCosine:
      if (features.law != SpectralLaw::kNormal) return "cosines on frequencies of another law";
      return features.image.size() > 0 ? "cosines of the patches of an image"
                                       : "cosines of transformed inputs";
    case FeatureForm::kCosineExponential:
      return "cosines times exponentials of the length of the inputs";
    case FeatureForm::kExponential:
      return "exponentials";
    case FeatureForm::kLinear:
      return "projections on random signs";
    case FeatureForm::kRectifiedPower:
      return "powers of projections";
    case FeatureForm::kProduct:
    case FeatureForm::kSketch:
    case FeatureForm::kRandomProduct:
      return "products of several projections on random signs";
  }
  return "others";
}

// " (with function 0 or 1 it does)" where that is what it takes; else nothing.
std::string WhereItApplies(const SamplerEntry& sampler, const ComponentConfig& kernel) {
  constexpr double kMostValues = 20;
  const KernelEntry& entry = *FindKernel(kernel.name);  // there is one: its features are known
  if (entry.doc.takes_terms) return "";
  for (const ParameterDoc& parameter : entry.doc.parameters) {
    std::vector<double> values;
    for (double value = parameter.min;
         parameter.integer && value <= std::min(parameter.max, kMostValues); value += 1) {
      ComponentConfig other = kernel;
      other.parameters[std::string(parameter.name)] = value;
      const auto made = MakeUnitKernel(other);
      if (made.ok() && SamplerApplies(sampler, (*made)->features())) values.push_back(value);
    }
    if (values.empty()) continue;
    return absl::StrCat(" (with ", parameter.name, " ", absl::StrJoin(values, " or "), " it does)");
  }
  return "";
}

absl::Status CheckSampler(const FeatureSpec& features, const ModelConfig& config) {
  const SamplerEntry* sampler = FindSampler(config.sampler);
  std::vector<absl::string_view> known, applying;
  for (const SamplerEntry& entry : SamplerRegistry()) {
    known.push_back(entry.doc.name);
    if (SamplerApplies(entry, features)) applying.push_back(entry.doc.name);
  }
  if (sampler == nullptr) {
    return InvalidField("sampler", absl::StrCat("unknown sampler \"", Shortened(config.sampler),
                                                "\"; known: ", absl::StrJoin(known, ", ")));
  }
  if (!SamplerApplies(*sampler, features)) {
    return InvalidField(
        "sampler",
        absl::StrCat("sampler \"", config.sampler, "\" does not apply to the features of kernel \"",
                     config.kernel.name, "\"", WhereItApplies(*sampler, config.kernel),
                     ": it takes ", sampler->takes, ", and these are ", InWords(features),
                     "; those that do: ", absl::StrJoin(applying, ", ")));
  }
  const size_t most = MaxDimension(Sampled(features, *sampler), *sampler);
  if (config.dimension > most) {
    return InvalidField("sampler",
                        absl::StrCat("sampler \"", config.sampler, "\" takes at most ", most,
                                     " values per row; input.dimension is ", config.dimension));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CompleteFeatures(const Kernel& kernel, ModelConfig& config) {
  FeatureSpec features = kernel.features();
  if (config.feature_form == CosineForm::kPair && !features.takes_pairs()) {
    return InvalidField(
        "feature_form",
        absl::StrCat(
            "PAIR needs a kernel whose features are cosines: ",
            absl::StrJoin(KernelsWith([](const FeatureSpec& f) { return f.takes_pairs(); }), ", "),
            "; the model has \"", config.kernel.name, "\". Leave feature_form out"));
  }
  if (config.feature_form == CosineForm::kAuto) {
    config.feature_form = features.pairs_pay() ? CosineForm::kPair : CosineForm::kSingle;
  }
  features.pairs = config.feature_form == CosineForm::kPair;
  if (config.sampler.empty()) config.sampler = "iid";
  return CheckSampler(features, config);
}

FeatureSpec ModelFeatures(const Kernel& kernel, const ModelConfig& config) {
  FeatureSpec features = kernel.features();
  features.pairs = config.feature_form == CosineForm::kPair;
  return Sampled(features, *FindSampler(config.sampler));
}

}  // namespace kernelstream
