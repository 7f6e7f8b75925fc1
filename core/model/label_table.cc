#include "core/model/label_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/field_error.h"
#include "core/model/row_rules.h"

namespace kernelstream {
namespace {

constexpr uint32_t kListedLabels = 20;

std::string Listed(const std::vector<std::string>& labels) {
  std::vector<absl::string_view> shown;
  for (const std::string& label : labels) {
    if (!label.empty() && shown.size() < kListedLabels) shown.push_back(label);
  }
  return absl::StrCat(
      absl::StrJoin(shown, ", "),
      labels.size() > kListedLabels ? absl::StrCat(", ... (", labels.size(), " in all)") : "");
}

}  // namespace

LabelTable::LabelTable(Task task, const ModelConfig& config)
    : task_(task), fixed_(!config.labels.empty()), max_labels_(config.max_labels) {
  if (task == Task::kBinary && !fixed_) labels_ = {"", ""};
  if (fixed_) Restore(config.labels, false);
}

void LabelTable::Restore(std::vector<std::string> labels, bool numbers) {
  labels_ = std::move(labels);
  numbers_ = numbers;
  index_.clear();
  for (uint32_t i = 0; i < labels_.size(); ++i) {
    if (!labels_[i].empty()) index_.emplace(labels_[i], i);
  }
}

std::optional<uint32_t> LabelTable::NumberIndex(const TargetView& target) const {
  if (target.kind != TargetKind::kLabel) return target.value > 0 ? 1 : 0;
  if (target.label == "1") return 1;
  return target.label == "-1" || target.label == "0" ? std::optional(0u) : std::nullopt;
}

std::optional<uint32_t> LabelTable::Find(const TargetView& target) const {
  if (!HasLabels(task_)) return std::nullopt;
  if (numbers_) return NumberIndex(target);
  // By text first: "1" as a label and 1 as a number are the same label, whichever came first.
  const auto it = target.kind == TargetKind::kLabel ? index_.find(target.label)
                                                    : index_.find(RowRules::CanonicalLabel(target));
  if (it != index_.end()) return it->second;
  if (task_ != Task::kBinary || fixed_ || target.kind == TargetKind::kLabel) return std::nullopt;
  const uint32_t index = target.value > 0 ? 1 : 0;
  const std::string& name = labels_[index];
  // Both -1 and 0 are the negative label; the first one seen names it.
  const bool same = name.empty() || (index == 0 && (name == "-1" || name == "0"));
  return same ? std::optional(index) : std::nullopt;
}

absl::StatusOr<uint32_t> LabelTable::Add(const TargetView& target) {
  if (!HasLabels(task_)) {
    return InvalidField("label", "the model's loss takes no labels");
  }
  const std::optional<uint32_t> known = Find(target);
  if (known.has_value() && !labels_[*known].empty()) return *known;
  const std::string text = RowRules::CanonicalLabel(target);
  const absl::string_view field = target.kind == TargetKind::kLabel ? "label" : "value";
  if (fixed_) {
    return InvalidField(
        field,
        absl::StrCat("label \"", text, "\" is not one of the model's labels: ", Listed(labels_)));
  }
  if (task_ == Task::kBinary) {
    uint32_t index = 0;
    if (numbers_ && !known.has_value()) {
      return InvalidField(
          field, absl::StrCat("label \"", text,
                              "\" in a model whose labels are numbers: ", Listed(labels_),
                              ". Send targets as numbers -1 (or 0) and 1, or create a model with "
                              "the labels you want"));
    }
    if (numbers_) {
      index = *known;
    } else if (target.kind != TargetKind::kLabel) {
      if (!known.has_value()) {
        return InvalidField(
            field, absl::StrCat("number target ", text, " in a model whose labels are text: ",
                                Listed(labels_), ". Send targets as labels"));
      }
      index = *known;
    } else if (labels_[0].empty()) {
      index = 0;
    } else if (labels_[1].empty()) {
      index = 1;
    } else {
      return InvalidField(
          field, absl::StrCat("label \"", text,
                              "\" would be a third one; a model with this loss has two: ",
                              Listed(labels_), ". For more, create one with loss softmax"));
    }
    numbers_ |= target.kind != TargetKind::kLabel && labels_[1 - index].empty();
    labels_[index] = text;
    index_.emplace(text, index);
    return index;
  }
  if (labels_.size() >= max_labels_) {
    return InvalidField(field,
                        absl::StrCat("label \"", text, "\" would be number ", labels_.size() + 1,
                                     "; the model has room for max_labels = ", max_labels_,
                                     ". Create one with a larger max_labels"));
  }
  const uint32_t index = static_cast<uint32_t>(labels_.size());
  labels_.push_back(text);
  index_.emplace(text, index);
  return index;
}

}  // namespace kernelstream
