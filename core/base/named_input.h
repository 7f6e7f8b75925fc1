// Inputs that have names: which index a name stands for.
#ifndef KERNELSTREAM_CORE_BASE_NAMED_INPUT_H_
#define KERNELSTREAM_CORE_BASE_NAMED_INPUT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace kernelstream {

// Fixed for ever: models are learned under these indices, and other programs compute them
// (NamedVector in proto/kernelstream/v1/sample.proto). XXH64 is the 64-bit xxHash (Collet).

// XXH64(name, seed 0).
uint64_t NumberIndex(absl::string_view name);
// XXH64(name's size as 8 bytes, least significant first; name; category; seed 1).
uint64_t CategoryIndex(absl::string_view name, absl::string_view category);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_NAMED_INPUT_H_
