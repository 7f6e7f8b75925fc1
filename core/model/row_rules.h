// What a row must be to enter a model's log.
#ifndef KERNELSTREAM_CORE_MODEL_ROW_RULES_H_
#define KERNELSTREAM_CORE_MODEL_ROW_RULES_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/feature/sampler.h"
#include "core/kernel/kernel.h"
#include "core/loss/loss.h"
#include "core/model/model_config.h"
#include "core/model/sample_batch.h"
#include "core/model/scaling.h"

namespace kernelstream {

// Path of an error about the smallest number of a named row, whose name is not known here: whoever
// has read the row puts it in.
inline constexpr absl::string_view kSmallestNumberPath = "features.named.numbers[smallest]";

// How many values a model's rows have. A number alone: the dimension.
struct RowWidth {
  // NOLINTNEXTLINE(google-explicit-constructor)
  RowWidth(uint32_t all = 0, uint32_t least_dense = 0) : dimension(all), least(least_dense) {}

  // After `row`. A dense row decides an open dimension if no sparse row came before it: sparse rows
  // may have larger indices still.
  RowWidth With(const RowView& row) const;

  uint32_t dimension;  // 0: open
  // While it is open: 1 + the largest index of the sparse rows so far. A dense row that is narrower
  // is of something else.
  uint32_t least;
};

// Immutable. Every check is about the row alone, given the width; the caller keeps the width (where
// the config leaves the dimension open, the first row's size if that is dense) and the set of
// labels seen.
class RowRules {
 public:
  // config: complete.
  static absl::StatusOr<std::unique_ptr<const RowRules>> Create(const ModelConfig& config);

  // Finite values of sane size, right number of them, sorted indices, kernel's domain (of named
  // rows about kSmallestNumberPath). `width`:
  // open with hashed inputs, which alone may be named. INVALID_ARGUMENT with a
  // path from "features" on
  // ("features.dense.values[7]"). `model` is named in the message.
  absl::Status CheckInput(absl::string_view model, RowWidth width, const RowView& row) const;
  // A target of the kind that the loss takes, and nothing else: none for kNovelty (a target that is
  // not learned from would be a surprise), a population for kDensityRatio; label not empty, UTF-8
  // and short; 1 to 256 values; weight in (0, 1e6]. Paths "value", "vector", "vector.values[2]",
  // "label", "population", "weight". Regression: `targets`, how many the model's first row had, or
  // 0 (the caller keeps it; 1 where the config has a variance method, and as many as target_scales
  // where it has those); `scales`, one per target once the model knows them, else empty: values
  // further than 1e4 deviations away are refused. (Those further than 30 away are learned as if
  // they were 30 away.)
  absl::Status CheckTarget(absl::string_view model, const TargetView& target, float weight,
                           uint32_t targets, std::span<const TargetScaling> scales) const;
  // Values of a regression's target: 1, or those of the vector. 0 for other targets.
  static uint32_t NumTargets(const TargetView& target);
  // The width after `row`, which has passed. Hashed inputs have none.
  RowWidth WidthWith(RowWidth width, const RowView& row) const;
  // The label that a classification target stands for, canonically: its text, or the number's
  // shortest decimal form.
  static std::string CanonicalLabel(const TargetView& target);

  Task task() const { return loss_->task(); }

 private:
  RowRules() = default;
  absl::Status CheckShape(absl::string_view model, RowWidth width, const RowView& row) const;
  // What the sampler asks of an input while its dimension is open.
  absl::Status CheckSampler(absl::string_view model, const RowView& row) const;
  absl::Status CheckKind(absl::string_view model, const TargetView& target) const;
  absl::Status CheckNumbers(absl::string_view model, const TargetView& target, uint32_t targets,
                            std::span<const TargetScaling> scales) const;
  std::shared_ptr<const Loss> loss_;
  std::shared_ptr<const Kernel> kernel_;
  bool hashed_ = false;
  bool variance_ = false;                    // the config has a variance method
  std::vector<TargetScaling> given_scales_;  // of targets; empty: not given
  const SamplerEntry* sampler_ = nullptr;
  size_t max_inputs_ = 0;  // that the sampler takes
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_ROW_RULES_H_
