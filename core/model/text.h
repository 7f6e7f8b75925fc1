// Small text helpers for labels.
#ifndef KERNELSTREAM_CORE_MODEL_TEXT_H_
#define KERNELSTREAM_CORE_MODEL_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace kernelstream {

// Well-formed UTF-8 (no surrogates, no overlong forms).
bool IsUtf8(absl::string_view text);
// Shortest decimal text that reads back as the same float64; "-0" becomes "0".
std::string ShortestDecimal(double value);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_TEXT_H_
