#include "core/model/model_features.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/field_error.h"
#include "core/feature/sampler.h"
#include "core/model/text.h"

namespace kernelstream {
namespace {

// Kernels of the registry, with default parameters, whose features are cosines.
std::string CosineKernels() {
  std::vector<absl::string_view> names;
  for (const KernelEntry& entry : KernelRegistry()) {
    const auto complete = CompleteKernel({std::string(entry.doc.name), {}});
    if (!complete.ok()) continue;  // needs terms
    const auto kernel = MakeUnitKernel(*complete);
    if (kernel.ok() && (*kernel)->features().takes_pairs()) {
      names.push_back(entry.doc.name);
    }
  }
  return absl::StrJoin(names, ", ");
}

absl::Status CheckSampler(const FeatureSpec& features, const ModelConfig& config) {
  const SamplerEntry* sampler = FindSampler(config.sampler);
  std::vector<absl::string_view> known, applying;
  for (const SamplerEntry& entry : SamplerRegistry()) {
    known.push_back(entry.doc.name);
    if (entry.applies(features)) applying.push_back(entry.doc.name);
  }
  if (sampler == nullptr) {
    return InvalidField("sampler", absl::StrCat("unknown sampler \"", Shortened(config.sampler),
                                                "\"; known: ", absl::StrJoin(known, ", ")));
  }
  if (!sampler->applies(features)) {
    return InvalidField(
        "sampler",
        absl::StrCat("sampler \"", config.sampler, "\" does not apply to the features of kernel \"",
                     config.kernel.name, "\"; those that do: ", absl::StrJoin(applying, ", ")));
  }
  if (config.dimension > sampler->max_dimension) {
    return InvalidField(
        "sampler",
        absl::StrCat("sampler \"", config.sampler, "\" takes at most ", sampler->max_dimension,
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
        absl::StrCat("PAIR needs a kernel whose features are cosines: ", CosineKernels(),
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
  features.sampler = FindSampler(config.sampler)->sampler;
  return features;
}

}  // namespace kernelstream
