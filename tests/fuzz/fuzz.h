// What a fuzz target is made of.
#ifndef KERNELSTREAM_TESTS_FUZZ_FUZZ_H_
#define KERNELSTREAM_TESTS_FUZZ_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Must come back for any bytes. Aborts if a promise is broken.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace kernelstream {

// Well-formed inputs to mutate.
std::vector<std::string> FuzzSeeds();

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_FUZZ_FUZZ_H_
