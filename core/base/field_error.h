// Errors that name the field they are about.
#ifndef KERNELSTREAM_CORE_BASE_FIELD_ERROR_H_
#define KERNELSTREAM_CORE_BASE_FIELD_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kernelstream {

// INVALID_ARGUMENT about one field. `path` is relative to the object checked, dotted, with [i] for
// elements
// ("features.dense.values[7]", "kernel.parameters[bandwidth]"); the service prefixes where the
// object stands.
absl::Status InvalidField(absl::string_view path, absl::string_view message);

// At most 64 bytes of what somebody sent, for messages and paths, with unprintable bytes escaped.
std::string Shortened(absl::string_view text);

// The path given to InvalidField, or "" if the status carries none.
std::string FieldPathOf(const absl::Status& status);

// The same error about prefix + path (prefix "samples[3]." for example).
absl::Status PrefixField(absl::string_view prefix, const absl::Status& status);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_FIELD_ERROR_H_
