#include "core/model/label_table.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/field_error.h"
#include "core/model/row_rules.h"

namespace kernelstream {
namespace {

constexpr uint32_t kListedLabels = 20;

std::string Listed(const std::vector<std::string>& labels) {
  std::vector<std::string> shown(labels.begin(),
                                 labels.begin() + std::min<size_t>(labels.size(), kListedLabels));
  return absl::StrCat(absl::StrJoin(shown, ", "),
                      labels.size() > kListedLabels
                          ? absl::StrCat(", ... (", labels.size(), " in all)")
                          : "");
}

}  // namespace

LabelTable::LabelTable(Task task, const ModelConfig& config)
    : task_(task), fixed_(!config.labels.empty()), max_labels_(config.max_labels) {
  if (task == Task::kBinary && !fixed_) labels_ = {"", ""};
  if (fixed_) Restore(config.labels);
}

void LabelTable::Restore(std::vector<std::string> labels) {
  labels_ = std::move(labels);
  index_.clear();
  for (uint32_t i = 0; i < labels_.size(); ++i) {
    if (!labels_[i].empty()) index_.emplace(labels_[i], i);
  }
}

LabelTable::Key LabelTable::KeyOf(const TargetView& target) const {
  Key key;
  key.text = RowRules::CanonicalLabel(target);
  if (task_ == Task::kBinary && !fixed_ && !target.is_label) {
    key.binary_index = target.value > 0 ? 1 : 0;
  }
  return key;
}

std::optional<uint32_t> LabelTable::Find(const TargetView& target) const {
  if (task_ == Task::kRegression) return std::nullopt;
  const Key key = KeyOf(target);
  if (key.binary_index.has_value()) return key.binary_index;
  const auto it = index_.find(key.text);
  if (it == index_.end()) return std::nullopt;
  return it->second;
}

absl::StatusOr<uint32_t> LabelTable::Add(const TargetView& target) {
  if (task_ == Task::kRegression) {
    return InvalidField("label", "the model is a regression; it takes a number as target");
  }
  const Key key = KeyOf(target);
  if (const auto it = index_.find(key.text); it != index_.end()) return it->second;
  const absl::string_view field = target.is_label ? "label" : "value";
  if (fixed_) {
    return InvalidField(field, absl::StrCat("label \"", key.text, "\" is not one of the model's labels: ",
                                            Listed(labels_)));
  }
  if (task_ == Task::kBinary) {
    uint32_t index = 0;
    if (key.binary_index.has_value()) {
      index = *key.binary_index;
      // Both -1 and 0 are the negative label; the first one seen names it.
      if (!labels_[index].empty() && index_.contains(labels_[index]) && labels_[index] != key.text) {
        double number = 0;
        if (absl::SimpleAtod(labels_[index], &number)) return index;
        return InvalidField(field, absl::StrCat("number target ", key.text,
                                                " in a model whose labels are text: ", Listed(labels_)));
      }
    } else if (labels_[0].empty()) {
      index = 0;
    } else if (labels_[1].empty()) {
      index = 1;
    } else {
      return InvalidField(field, absl::StrCat("label \"", key.text, "\" would be a third one; a model with this loss has two: ",
                                              Listed(labels_), ". For more, create one with loss softmax"));
    }
    labels_[index] = key.text;
    index_.emplace(key.text, index);
    return index;
  }
  if (labels_.size() >= max_labels_) {
    return InvalidField(field, absl::StrCat("label \"", key.text, "\" would be number ", labels_.size() + 1,
                                            "; the model has room for max_labels = ", max_labels_,
                                            ". Create one with a larger max_labels"));
  }
  const uint32_t index = static_cast<uint32_t>(labels_.size());
  labels_.push_back(key.text);
  index_.emplace(key.text, index);
  return index;
}

}  // namespace kernelstream
