// Labels and their places among the outputs.
#ifndef KERNELSTREAM_CORE_MODEL_LABEL_TABLE_H_
#define KERNELSTREAM_CORE_MODEL_LABEL_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/loss/loss.h"
#include "core/model/model_config.h"
#include "core/model/sample_batch.h"

namespace kernelstream {

// A label's index as the loss sees it: kBinary -1 for 0 and +1 for 1, kMulticlass the index itself.
inline double LossTargetOf(Task task, uint32_t index) {
  if (task == Task::kBinary) return index == 1 ? 1 : -1;
  return index;
}
// kDensityRatio: a row's population as the loss sees it.
inline double LossTargetOf(Population population) {
  return population == Population::kNumerator ? 1 : -1;
}

// Thread-compatible. Which label has which index. Fixed by the config, or discovered in the order
// of the log: so the same log gives the same table. Binary models have at most two, and the kind of
// the first target decides: after a number, -1 or 0 is index 0 and 1 is index 1, and other text is
// refused; text labels take the indices in order of appearance (so score > 0 means the second one
// seen; give `labels` to choose), and a number whose index has another label is refused. A number
// and its text ("1") are one label.
class LabelTable {
 public:
  // For a model without labels the table stays empty and takes nothing.
  LabelTable(Task task, const ModelConfig& config);

  // Index of the target's label, adding it if there is room. INVALID_ARGUMENT about "label" or
  // "value": not one of the fixed labels (they are listed, as far as that is short), or no room
  // left.
  absl::StatusOr<uint32_t> Add(const TargetView& target);
  // The same without adding. nullopt: not known. A number of a binary model has its index before it
  // was seen, unless that index has a text label.
  std::optional<uint32_t> Find(const TargetView& target) const;

  // By index. A binary index whose label was not seen yet has the text "".
  const std::vector<std::string>& labels() const { return labels_; }
  // A discovered binary table whose first target was a number.
  bool numbers() const { return numbers_; }
  // Puts a saved table back.
  void Restore(std::vector<std::string> labels, bool numbers);

 private:
  // The place of a number target in a discovered binary table. nullopt: text that is none.
  std::optional<uint32_t> NumberIndex(const TargetView& target) const;

  Task task_;
  bool fixed_ = false;
  bool numbers_ = false;
  uint32_t max_labels_ = 0;
  std::vector<std::string> labels_;
  std::map<std::string, uint32_t, std::less<>> index_;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_LABEL_TABLE_H_
