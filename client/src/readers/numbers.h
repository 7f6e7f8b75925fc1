#ifndef KERNELSTREAM_CLIENT_SRC_READERS_NUMBERS_H_
#define KERNELSTREAM_CLIENT_SRC_READERS_NUMBERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/include/kernelstream/client.h"

namespace kernelstream::client {

// "", NA, N/A, NaN, null, none, ? in any case: there is no value.
bool IsMissing(absl::string_view text);

// At least one, and nothing else.
bool IsDigits(absl::string_view text);

// A finite number; InvalidArgument says what is wrong with the text, and what to do, but not where
// it stands.
absl::Status ParseTarget(absl::string_view text, double* value);
// "numerator" or 1; "denominator", 0 or -1.
absl::Status ParsePopulation(absl::string_view text, Population* population);
// A finite number as a 32-bit float; see ParseTarget.
absl::Status ParseFeature(absl::string_view text, float* value);

// The text in quotes, shortened, control characters and bytes that are not UTF-8 made visible.
std::string Quote(absl::string_view text);

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_READERS_NUMBERS_H_
