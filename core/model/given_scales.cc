#include "core/model/given_scales.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "core/model/check_range.h"

namespace kernelstream {
namespace {

// Rows may hold values up to 1e30, and what is chosen from them may be a little larger.
constexpr double kLargestOffset = 1e31;
constexpr double kLargestScale = 1e31;
constexpr double kSmallestInputScale = 1e-31;  // its inverse is a float32
constexpr double kSmallestTargetScale = 1e-300;

// The field that was sent, or the first of both.
std::string FieldOf(absl::string_view prefix, const GivenScales& given) {
  return absl::StrCat(prefix, given.scales.empty() ? "offsets" : "scales");
}

absl::Status Complete(absl::string_view prefix, double smallest_scale, GivenScales& given) {
  if (given.offsets.empty()) given.offsets.assign(given.scales.size(), 0);
  if (given.scales.empty()) given.scales.assign(given.offsets.size(), 1);
  const std::string scales = absl::StrCat(prefix, "scales"),
                    offsets = absl::StrCat(prefix, "offsets");
  if (given.offsets.size() != given.scales.size()) {
    return InvalidField(
        scales, absl::StrCat(scales, " has ", given.scales.size(), " values and ", offsets, " has ",
                             given.offsets.size(), "; send as many of both, or leave one out"));
  }
  for (size_t i = 0; i < given.scales.size(); ++i) {
    absl::Status status = CheckRange(absl::StrCat(offsets, "[", i, "]"), given.offsets[i],
                                     -kLargestOffset, kLargestOffset);
    status.Update(CheckRange(absl::StrCat(scales, "[", i, "]"), given.scales[i], smallest_scale,
                             kLargestScale));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CompleteTargets(Task task, ModelConfig& config) {
  if (config.target_scales.empty()) return absl::OkStatus();
  const std::string field = FieldOf("target_", config.target_scales);
  if (task != Task::kRegression) {
    return InvalidField(field, absl::StrCat("loss \"", config.loss.name,
                                            "\" is no regression, and its targets have no scale; "
                                            "leave target_offsets and target_scales out"));
  }
  absl::Status status = Complete("target_", kSmallestTargetScale, config.target_scales);
  if (!status.ok()) return status;
  const size_t targets = config.target_scales.scales.size();
  if (config.variance.method != VarianceMethod::kNone && targets > 1) {
    return InvalidField(field, absl::StrCat(field, " has ", targets,
                                            " values, and a model with a variance method takes 1 "
                                            "target; send 1 value, or leave the variance out"));
  }
  if (targets > kMaxTargets) {
    return InvalidField(field, absl::StrCat(field, " has ", targets,
                                            " values; send one for each "
                                            "target of a row, at most ",
                                            kMaxTargets));
  }
  return absl::OkStatus();
}

absl::Status CompleteInputs(ModelConfig& config) {
  if (config.input_scales.empty()) return absl::OkStatus();
  const std::string field = FieldOf("input.", config.input_scales);
  if (config.hashed) {
    return InvalidField(field,
                        "with input.hashed inputs are used as they come; leave input.offsets and "
                        "input.scales out");
  }
  if (config.standardize == Standardize::kOff) {
    return InvalidField("input.standardize",
                        "input.offsets and input.scales say how inputs are standardized, and "
                        "standardize is OFF; leave it out, or them");
  }
  absl::Status status = Complete("input.", kSmallestInputScale, config.input_scales);
  if (!status.ok()) return status;
  const size_t inputs = config.input_scales.scales.size();
  if (inputs > kMaxInputDimension) {
    return InvalidField(field, absl::StrCat(field, " has ", inputs,
                                            " values; send one for each "
                                            "input, at most ",
                                            kMaxInputDimension));
  }
  if (config.dimension == 0) config.dimension = static_cast<uint32_t>(inputs);
  if (config.dimension != inputs) {
    return InvalidField(
        field, absl::StrCat(field, " has ", inputs, " values, and input.dimension is ",
                            config.dimension, "; send as many values, or leave dimension out"));
  }
  config.standardize = Standardize::kOn;
  return absl::OkStatus();
}

}  // namespace

absl::Status CompleteScales(Task task, ModelConfig& config) {
  absl::Status status = CompleteInputs(config);
  status.Update(CompleteTargets(task, config));
  return status;
}

}  // namespace kernelstream
