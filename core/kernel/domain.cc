#include "core/kernel/domain.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"

namespace kernelstream {

absl::Status CheckNonNegative(absl::string_view kernel, std::span<const float> values,
                              bool takes_offset) {
  for (size_t j = 0; j < values.size(); ++j) {
    if (values[j] >= 0) continue;
    std::string advice = "Send counts or shares, ";
    if (takes_offset && -values[j] < kLargestOffset) {
      absl::StrAppend(&advice, "or create the model with an offset above ", -values[j],
                      " of the kernel, ");
    }
    return InvalidField(
        absl::StrCat("values[", j, "]"),
        absl::StrCat("values[", j, "] is ", values[j], "; kernel \"", kernel,
                     "\" takes values >= 0. ", advice,
                     "or create the model with a kernel of any inputs, such as gaussian"));
  }
  return absl::OkStatus();
}

absl::Status CheckAbove(absl::string_view kernel, double bound, std::span<const float> values) {
  for (size_t j = 0; j < values.size(); ++j) {
    if (values[j] > bound) continue;
    return InvalidField(
        absl::StrCat("values[", j, "]"),
        absl::StrCat(
            "values[", j, "] is ", values[j], "; kernel \"", kernel,
            "\" takes values above -offset = ", bound,
            ". Create the model with a larger offset, or with a kernel of any inputs, such "
            "as gaussian"));
  }
  return absl::OkStatus();
}

}  // namespace kernelstream
