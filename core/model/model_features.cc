#include "core/model/model_features.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/field_error.h"
#include "core/feature/sampler.h"

namespace kernelstream {
namespace {

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
                     config.kernel.name, "\"; those that do: ", absl::StrJoin(applying, ", ")));
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
