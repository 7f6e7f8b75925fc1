#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "core/kernel/kernel.h"
#include "core/loss/loss.h"
#include "core/model/model_config.h"
#include "core/model/text.h"
#include "core/model/update_rule.h"

namespace kernelstream {
namespace {

template <typename T>
absl::Status CheckRange(absl::string_view field, T value, T low, T high) {
  if (value >= low && value <= high) return absl::OkStatus();  // false for NaN
  return InvalidField(field, absl::StrCat(field, " is ", value, "; expected ", low, " to ", high));
}

absl::Status CompleteRule(ModelConfig& config) {
  if (config.update_rule.name.empty()) config.update_rule.name = "proximal";
  const UpdateRuleEntry* rule = FindUpdateRule(config.update_rule.name);
  if (rule == nullptr) {
    std::vector<absl::string_view> known;
    for (const UpdateRuleEntry& entry : UpdateRuleRegistry()) known.push_back(entry.doc.name);
    return UnknownComponent("update_rule", config.update_rule.name, known);
  }
  auto parameters = CompleteParameters("update_rule", rule->doc, config.update_rule.parameters);
  if (!parameters.ok()) return parameters.status();
  config.update_rule.parameters = *std::move(parameters);
  if (!config.l2_penalty.has_value()) config.l2_penalty = rule->default_l2_penalty;
  return CheckRange("l2_penalty", *config.l2_penalty, 0.0, 1e6);
}

absl::Status CheckLabels(Task task, ModelConfig& config) {
  if (config.max_labels == 0) config.max_labels = 1000;
  if (absl::Status s = CheckRange("max_labels", config.max_labels, 2u, kMaxLabels); !s.ok())
    return s;
  if (config.labels.empty()) return absl::OkStatus();
  if (task == Task::kRegression) {
    return InvalidField("labels",
                        absl::StrCat("loss \"", config.loss.name,
                                     "\" is a regression and takes no labels; leave them out"));
  }
  if (task == Task::kBinary && config.labels.size() != 2) {
    return InvalidField("labels", absl::StrCat("loss \"", config.loss.name, "\" takes two labels; ",
                                               config.labels.size(), " are given"));
  }
  if (config.labels.size() < 2 || config.labels.size() > config.max_labels) {
    return InvalidField("labels", absl::StrCat(config.labels.size(),
                                               " labels are given; expected 2 to max_labels = ",
                                               config.max_labels));
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < config.labels.size(); ++i) {
    const std::string& label = config.labels[i];
    const std::string field = absl::StrCat("labels[", i, "]");
    if (label.empty() || label.size() > kMaxLabelBytes || !IsUtf8(label)) {
      return InvalidField(field,
                          absl::StrCat("label is not 1 to ", kMaxLabelBytes, " bytes of UTF-8"));
    }
    if (!seen.insert(label).second) {
      return InvalidField(field, absl::StrCat("label \"", Shortened(label), "\" is given twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CompleteConfig(ModelConfig& config) {
  auto loss = MakeLoss(config.loss);
  if (!loss.ok()) return loss.status();
  if (config.kernel.name.empty()) config.kernel.name = "gaussian";
  auto kernel = CompleteKernel(config.kernel);
  if (!kernel.ok()) return kernel.status();
  config.kernel.parameters = *std::move(kernel);
  if (absl::Status s = CompleteRule(config); !s.ok()) return s;
  if (absl::Status s = CheckLabels((*loss)->task(), config); !s.ok()) return s;
  if (config.sampler.empty()) config.sampler = "iid";
  if (config.sampler != "iid") {
    return InvalidField(
        "sampler", absl::StrCat("unknown sampler \"", Shortened(config.sampler), "\"; known: iid"));
  }
  if (!config.seed.has_value()) config.seed = 42;
  if (config.batch_rows == 0) config.batch_rows = 64;
  if (!config.max_batch_delay_seconds.has_value()) config.max_batch_delay_seconds = 0.020;
  if (config.max_features == 0) config.max_features = 8192;
  if (config.warmup_rows == 0) config.warmup_rows = 500;
  absl::Status status = CheckRange("input.dimension", config.dimension, 0u, kMaxInputDimension);
  status.Update(CheckRange("batch_rows", config.batch_rows, 1u, kMaxBatchRows));
  status.Update(CheckRange("max_batch_delay", *config.max_batch_delay_seconds, 0.0, 3600.0));
  status.Update(CheckRange("max_features", config.max_features, 16u, kMaxFeatures));
  status.Update(CheckRange("block_features", config.block_features, 0u, config.max_features));
  status.Update(CheckRange("warmup_rows", config.warmup_rows, 2u, kMaxWarmupRows));
  return status;
}

}  // namespace kernelstream
