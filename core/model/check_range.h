// The check of a number that a person has set.
#ifndef KERNELSTREAM_CORE_MODEL_CHECK_RANGE_H_
#define KERNELSTREAM_CORE_MODEL_CHECK_RANGE_H_

#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/field_error.h"
#include "core/model/text.h"

namespace kernelstream {

// INVALID_ARGUMENT about `field` unless low <= value <= high; NaN is not.
template <typename T>
absl::Status CheckRange(absl::string_view field, T value, T low, T high) {
  if (value >= low && value <= high) return absl::OkStatus();
  const auto text = [](T number) {
    if constexpr (std::is_floating_point_v<T>) {
      return ShortestDecimal(number);
    } else {
      return std::to_string(number);
    }
  };
  return InvalidField(field, absl::StrCat(field, " is ", text(value), "; expected ", text(low),
                                          " to ", text(high)));
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_CHECK_RANGE_H_
