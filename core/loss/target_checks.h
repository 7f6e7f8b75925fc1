// Target checks that several losses share.
#ifndef KERNELSTREAM_CORE_LOSS_TARGET_CHECKS_H_
#define KERNELSTREAM_CORE_LOSS_TARGET_CHECKS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kernelstream {

// -1 or +1.
absl::Status CheckBinaryTarget(absl::string_view loss, double target);
// A whole number from 0 to 2^32 - 1.
absl::Status CheckClassTarget(absl::string_view loss, double target);
// Finite, |target| <= 1e30.
absl::Status CheckNumberTarget(absl::string_view loss, double target);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_LOSS_TARGET_CHECKS_H_
