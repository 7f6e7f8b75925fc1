// Which inputs kernels of counts and histograms are defined for.
#ifndef KERNELSTREAM_CORE_KERNEL_DOMAIN_H_
#define KERNELSTREAM_CORE_KERNEL_DOMAIN_H_

#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kernelstream {

// What catalogues say of them.
inline constexpr absl::string_view kNonNegative = "values >= 0";
inline constexpr absl::string_view kAboveOffset = "values above -offset";

inline constexpr double kSmallestOffset = 1e-6, kLargestOffset = 1e6;

// INVALID_ARGUMENT about the first "values[j]" below 0. takes_offset: with a parameter "offset"
// large enough the kernel would be defined there.
absl::Status CheckNonNegative(absl::string_view kernel, std::span<const float> values,
                              bool takes_offset = false);
// INVALID_ARGUMENT about the first "values[j]" that is not above `bound`.
absl::Status CheckAbove(absl::string_view kernel, double bound, std::span<const float> values);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_KERNEL_DOMAIN_H_
