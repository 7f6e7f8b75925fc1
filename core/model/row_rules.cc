#include "core/model/row_rules.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/field_error.h"
#include "core/base/finite.h"
#include "core/model/text.h"

namespace kernelstream {
namespace {

constexpr float kLargestInput = 1e30f;
constexpr float kLargestWeight = 1e6f;
constexpr double kFarthestTargetDeviations = 1e4;

}  // namespace

absl::StatusOr<std::unique_ptr<const RowRules>> RowRules::Create(const ModelConfig& config) {
  std::unique_ptr<RowRules> rules(new RowRules);
  ComponentConfig loss = config.loss;
  auto made = MakeLoss(loss);
  if (!made.ok()) return made.status();
  rules->loss_ = *std::move(made);
  // Which inputs a kernel is defined for does not depend on what is chosen from the data.
  auto made_kernel = MakeUnitKernel(config.kernel);
  if (!made_kernel.ok()) return made_kernel.status();
  rules->kernel_ = *std::move(made_kernel);
  rules->hashed_ = config.hashed;
  rules->variance_ = config.variance.method != VarianceMethod::kNone;
  const GivenScales& given = config.target_scales;
  for (size_t k = 0; k < given.scales.size(); ++k) {
    rules->given_scales_.push_back({given.offsets[k], given.scales[k]});
  }
  rules->sampler_ = FindSampler(config.sampler);
  if (rules->sampler_ == nullptr) {
    return InvalidField("sampler",
                        absl::StrCat("unknown sampler \"", Shortened(config.sampler), "\""));
  }
  rules->max_inputs_ =
      MaxDimension(Sampled(rules->kernel_->features(), *rules->sampler_), *rules->sampler_);
  return std::unique_ptr<const RowRules>(std::move(rules));
}

absl::Status RowRules::CheckSampler(absl::string_view model, const RowView& row) const {
  if (row.sparse && sampler_->fixes_dimension) {
    return InvalidField(
        "features.sparse",
        absl::StrCat("model \"", model, "\": sampler \"", sampler_->doc.name,
                     "\" needs the number of inputs before the first sparse row; create the model "
                     "with input.dimension, or send a dense row first"));
  }
  const bool sparse = row.sparse && !row.indices.empty();
  const uint64_t size = sparse ? uint64_t{row.indices.back()} + 1 : row.values.size();
  if (size > max_inputs_) {
    return InvalidField(row.sparse ? "features.sparse" : "features.dense",
                        absl::StrCat("model \"", model, "\": sampler \"", sampler_->doc.name,
                                     "\" takes inputs of at most ", max_inputs_,
                                     " values; this row has ", size, ". Take another sampler"));
  }
  return absl::OkStatus();
}

absl::Status RowRules::CheckShape(absl::string_view model, RowWidth width,
                                  const RowView& row) const {
  const uint32_t dimension = width.dimension;
  if (!row.sparse) {
    constexpr absl::string_view kField = "features.dense.values";
    if (row.values.empty() && !hashed_) {
      return InvalidField(
          kField,
          absl::StrCat("model \"", model, "\": the row has no values; send ",
                       dimension == 0 ? std::string("at least one") : absl::StrCat(dimension)));
    }
    if (dimension == 0 && row.values.size() > kMaxInputDimension) {
      return InvalidField(kField,
                          absl::StrCat("model \"", model, "\": the row has ", row.values.size(),
                                       " values; at most ", kMaxInputDimension, " are possible"));
    }
    if (dimension != 0 && row.values.size() != dimension) {
      return InvalidField(kField, absl::StrCat("model \"", model, "\" takes ", dimension,
                                               " values per row; this row has ", row.values.size(),
                                               ". Send ", dimension));
    }
    if (dimension == 0 && row.values.size() < width.least) {
      return InvalidField(
          kField, absl::StrCat("model \"", model, "\" has taken sparse rows with indices up to ",
                               width.least - 1, "; this row has ", row.values.size(),
                               " values. Send at least ", width.least, ", or a sparse row"));
    }
    return absl::OkStatus();
  }
  if (row.named && !hashed_) {
    return InvalidField("features.named",
                        absl::StrCat("model \"", model,
                                     "\" takes no named rows: it was created without "
                                     "input.hashed. Send dense or sparse rows, or create a model "
                                     "with input.hashed"));
  }
  if (hashed_ && row.values.size() > kMaxInputDimension) {
    return InvalidField(row.named ? "features.named" : "features.sparse.values",
                        absl::StrCat("model \"", model, "\": the row has ", row.values.size(),
                                     " values; at most ", kMaxInputDimension, " are possible"));
  }
  const uint32_t limit = dimension != 0 ? dimension : kMaxInputDimension;
  for (size_t i = 0; i < row.indices.size(); ++i) {
    const auto invalid = [&](absl::string_view message) {
      return InvalidField(absl::StrCat("features.sparse.indices[", i, "]"),
                          absl::StrCat("model \"", model, "\": index ", row.indices[i], message));
    };
    if (!hashed_ && row.indices[i] >= limit) {
      return invalid(absl::StrCat(
          " is out of range; indices run from 0 to ", limit - 1,
          dimension != 0 ? "" : ". Create the model with input.hashed for any index below 2^64"));
    }
    if (i > 0 && row.indices[i] <= row.indices[i - 1]) {
      return invalid(absl::StrCat(
          " follows ", row.indices[i - 1],
          "; indices must be strictly increasing. Sort them and add repeated ones up"));
    }
  }
  return absl::OkStatus();
}

absl::Status RowRules::CheckInput(absl::string_view model, RowWidth width,
                                  const RowView& row) const {
  if (absl::Status status = CheckShape(model, width, row); !status.ok()) return status;
  const uint32_t dimension = width.dimension;
  if (dimension == 0 && !hashed_) {
    if (absl::Status status = CheckSampler(model, row); !status.ok()) return status;
  }
  const absl::string_view prefix = row.sparse ? "features.sparse." : "features.dense.";
  if (!AllWithin(row.values, kLargestInput)) {
    const auto bad = std::ranges::find_if(
        row.values, [](float value) { return !(std::abs(value) <= kLargestInput); });  // also NaN
    return InvalidField(
        row.named ? "features.named.numbers"
                  : absl::StrCat(prefix, "values[", bad - row.values.begin(), "]"),
        absl::StrCat("model \"", model, "\": value is ", *bad, "; expected a finite number up to ",
                     kLargestInput, " in size. Fix or leave out the row"));
  }
  // An open dimension is fixed by the first row, if that is dense.
  const size_t inputs = dimension != 0 || row.sparse ? dimension : row.values.size();
  absl::Status status = kernel_->CheckDimension(inputs);
  if (!status.ok()) {
    return InvalidField(absl::StrCat(prefix, row.sparse ? "indices" : "values"),
                        absl::StrCat(status.message(),
                                     inputs == 0 ? "; create the model with input.dimension" : ""));
  }
  if (!row.named || row.values.empty()) return PrefixField(prefix, kernel_->CheckInput(row.values));
  // The values are in the order of hashes, in which nobody counts. Domains have a lower end only.
  const float smallest = *std::min_element(row.values.begin(), row.values.end());
  status = kernel_->CheckInput({&smallest, 1});
  if (status.ok()) return status;
  return InvalidField(kSmallestNumberPath,
                      absl::StrReplaceAll(status.message(), {{FieldPathOf(status), "a number"}}));
}

RowWidth RowWidth::With(const RowView& row) const {
  if (dimension != 0) return *this;
  const auto values = static_cast<uint32_t>(row.MinDimension());
  if (row.sparse) return {0, std::max(least, values)};
  return least > 0 ? *this : RowWidth(values);
}

RowWidth RowRules::WidthWith(RowWidth width, const RowView& row) const {
  return hashed_ ? width : width.With(row);
}

absl::Status RowRules::CheckKind(absl::string_view model, const TargetView& target) const {
  const auto refused = [&](absl::string_view field, absl::string_view has) {
    static constexpr absl::string_view kWanted[] = {
        "a number in \"value\" or numbers in \"vector\"", "a label in \"label\" or \"value\"",
        "a label in \"label\" or \"value\"", "no target", "its population in \"population\""};
    return InvalidField(field, absl::StrCat("model \"", model, "\": the row has ", has,
                                            "; a model with this loss takes ",
                                            kWanted[static_cast<size_t>(task())], " per row"));
  };
  switch (target.kind) {
    case TargetKind::kNone:
      if (task() == Task::kNovelty) return absl::OkStatus();
      return refused(task() == Task::kDensityRatio ? "population" : "value", "no target");
    case TargetKind::kValue:
      if (task() == Task::kRegression || HasLabels(task())) return absl::OkStatus();
      return refused("value", "a number as target");
    case TargetKind::kLabel:
      if (HasLabels(task())) return absl::OkStatus();
      return refused("label", absl::StrCat("label \"", Shortened(target.label), "\""));
    case TargetKind::kVector:
      if (task() == Task::kRegression) return absl::OkStatus();
      return refused("vector", "several targets");
    case TargetKind::kPopulation:
      if (task() == Task::kDensityRatio) return absl::OkStatus();
      return refused("population", "a population");
  }
  return absl::OkStatus();
}

uint32_t RowRules::NumTargets(const TargetView& target) {
  if (target.kind == TargetKind::kVector) return static_cast<uint32_t>(target.values.size());
  return target.kind == TargetKind::kValue ? 1 : 0;
}

absl::Status RowRules::CheckNumbers(absl::string_view model, const TargetView& target,
                                    uint32_t targets, std::span<const TargetScaling> scales) const {
  const bool vector = target.kind == TargetKind::kVector;
  const absl::string_view whole = vector ? "vector" : "value";
  const std::span<const double> values =
      vector ? target.values : std::span<const double>(&target.value, 1);
  if (values.empty() || values.size() > kMaxTargets) {
    return InvalidField(whole, absl::StrCat("model \"", model, "\": the row has ", values.size(),
                                            " targets; expected 1 to ", kMaxTargets));
  }
  if (variance_ && targets == 0 && values.size() != 1) {
    return InvalidField(
        whole, absl::StrCat("model \"", model, "\": the row has ", values.size(),
                            " targets; a model with a variance method takes 1. Send one, or create "
                            "the model without variance, or one model for each target"));
  }
  const bool given = !given_scales_.empty();
  if (given) targets = static_cast<uint32_t>(given_scales_.size());
  if (targets != 0 && values.size() != targets) {
    return InvalidField(
        whole,
        absl::StrCat("model \"", model, "\": the row has ", values.size(), " targets; ",
                     given ? "its config has target_scales for " : "the model's first row had ",
                     targets, ". Send ", targets));
  }
  if (given) scales = given_scales_;
  for (size_t k = 0; k < values.size(); ++k) {
    const std::string field = vector ? absl::StrCat("vector.values[", k, "]") : "value";
    if (absl::Status status = loss_->CheckTarget(values[k]); !status.ok()) {
      return InvalidField(field, status.message());
    }
    if (k >= scales.size()) continue;
    const auto [offset, scale] = scales[k];
    if (!(std::abs(values[k] - offset) > kFarthestTargetDeviations * scale)) continue;
    return InvalidField(field,
                        absl::StrCat("model \"", model, "\": target ", values[k], " is more than ",
                                     kFarthestTargetDeviations,
                                     given ? " target_scales (" : " standard deviations (", scale,
                                     given ? ") away from its target_offset ("
                                           : ") away from the mean of the warm-up rows (",
                                     offset, "). Check its unit"));
  }
  return absl::OkStatus();
}

absl::Status RowRules::CheckTarget(absl::string_view model, const TargetView& target, float weight,
                                   uint32_t targets, std::span<const TargetScaling> scales) const {
  if (!(weight > 0) || !(weight <= kLargestWeight)) {
    return InvalidField("weight",
                        absl::StrCat("model \"", model, "\": weight is ", weight,
                                     "; expected a number above 0, at most ", kLargestWeight));
  }
  if (absl::Status status = CheckKind(model, target); !status.ok()) return status;
  if (task() == Task::kRegression) return CheckNumbers(model, target, targets, scales);
  if (!HasLabels(task())) return absl::OkStatus();
  if (target.kind == TargetKind::kLabel) {
    if (target.label.empty() || target.label.size() > kMaxLabelBytes) {
      return InvalidField("label",
                          absl::StrCat("model \"", model, "\": label has ", target.label.size(),
                                       " bytes; expected 1 to ", kMaxLabelBytes));
    }
    if (!IsUtf8(target.label)) {
      return InvalidField("label", absl::StrCat("model \"", model, "\": label is not UTF-8"));
    }
    return absl::OkStatus();
  }
  if (!std::isfinite(target.value)) {
    return InvalidField("value", absl::StrCat("model \"", model, "\": target is ", target.value,
                                              "; expected a finite number or a label"));
  }
  if (task() == Task::kBinary) {
    return loss_->CheckTarget(target.value == 0 ? -1 : target.value);
  }
  return absl::OkStatus();
}

std::string RowRules::CanonicalLabel(const TargetView& target) {
  if (target.kind == TargetKind::kLabel) return std::string(target.label);
  return ShortestDecimal(target.value);
}

}  // namespace kernelstream
