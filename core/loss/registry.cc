#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "core/loss/loss.h"
#include "core/loss/target_checks.h"

namespace kernelstream {

#define KERNELSTREAM_LOSS(name) LossEntry name();
#include "core/loss/loss_list.inc"
#undef KERNELSTREAM_LOSS

std::span<const LossEntry> LossRegistry() {
  static const std::vector<LossEntry>& entries = *new std::vector<LossEntry>{
#define KERNELSTREAM_LOSS(name) name(),
#include "core/loss/loss_list.inc"
#undef KERNELSTREAM_LOSS
  };
  return entries;
}

absl::StatusOr<std::unique_ptr<const Loss>> MakeLoss(ComponentConfig& config) {
  std::vector<absl::string_view> known;
  for (const LossEntry& entry : LossRegistry()) {
    if (entry.doc.name != config.name) {
      known.push_back(entry.doc.name);
      continue;
    }
    auto parameters = CompleteParameters("loss", entry.doc, config);
    if (!parameters.ok()) return parameters.status();
    config.parameters = *std::move(parameters);
    return entry.make(config.parameters);
  }
  return UnknownComponent("loss", config.name, known);
}

absl::Status CheckBinaryTarget(absl::string_view loss, double target) {
  if (target == 1 || target == -1) return absl::OkStatus();
  return InvalidField("value",
                      absl::StrCat("target is ", target, "; loss \"", loss,
                                   "\" takes 1 (positive) and -1 or 0 (negative), or text labels"));
}

absl::Status CheckClassTarget(absl::string_view loss, double target) {
  constexpr uint32_t kLargest = std::numeric_limits<uint32_t>::max();
  if (target >= 0 && target <= kLargest && target == std::floor(target)) return absl::OkStatus();
  return InvalidField("value", absl::StrCat("class index is ", target, "; loss \"", loss,
                                            "\" takes whole numbers from 0 to ", kLargest));
}

absl::Status CheckNumberTarget(absl::string_view loss, double target) {
  if (std::abs(target) <= 1e30) return absl::OkStatus();  // false for NaN
  return InvalidField("value", absl::StrCat("target is ", target, "; loss \"", loss,
                                            "\" takes finite numbers up to 1e30 in size"));
}

}  // namespace kernelstream
