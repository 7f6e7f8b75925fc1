// What the kernels of log(x + offset) share.
#ifndef KERNELSTREAM_CORE_KERNEL_SKEWED_H_
#define KERNELSTREAM_CORE_KERNEL_SKEWED_H_

#include <algorithm>
#include <span>
#include <vector>

#include "core/base/portable_math.h"
#include "core/kernel/domain.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {

inline constexpr ParameterDoc kSkewedParameters[] = {
    {.name = "offset",
     .doc =
         "added to each value before the logarithm; values must be above -offset; absent: values "
         "must be >= 0, and the median of the positive values of the warm-up rows is taken",
     .min = kSmallestOffset,
     .max = kLargestOffset,
     .default_value = std::nullopt},
    kBandwidth,
    kBandwidthScale,
};

// Immutable.
class SkewedKernel : public Kernel {
 public:
  bool takes_any_input() const override { return false; }
  absl::Status CheckInput(std::span<const float> values) const override {
    return is_given_ ? CheckAbove(name_, -offset_, values)
                     : CheckNonNegative(name_, values, /*takes_offset=*/true);
  }

 protected:
  SkewedKernel(absl::string_view name, const ParameterMap& parameters)
      : Kernel(parameters.at("bandwidth")),
        name_(name),
        is_given_(parameters.contains("offset")),
        offset_(is_given_ ? parameters.at("offset") : 1) {}
  double offset() const { return offset_; }
  double LogRatio(double x, double y) const {
    return PortableLog(x + offset_) - PortableLog(y + offset_);
  }

 private:
  absl::string_view name_;
  bool is_given_;
  double offset_;
};

inline void ChooseOffset(ConstMatrixView rows, ParameterMap& parameters) {
  if (parameters.contains("offset")) return;
  std::vector<float> positive;
  for (size_t i = 0; i < rows.rows; ++i) {
    for (const float value : rows.row(i)) {
      if (value > 0) positive.push_back(value);
    }
  }
  double offset = 1;
  if (!positive.empty()) {
    const auto middle = positive.begin() + static_cast<long>(positive.size() / 2);
    std::nth_element(positive.begin(), middle, positive.end());
    offset = std::clamp(double{*middle}, kSmallestOffset, kLargestOffset);
  }
  parameters["offset"] = offset;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_KERNEL_SKEWED_H_
