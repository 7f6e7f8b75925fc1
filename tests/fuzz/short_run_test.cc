// A fuzz target under mutated seeds: the same inputs on every run.
#include <gtest/gtest.h>

#include "tests/fuzz/fuzz.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

constexpr uint64_t kSeed = 77;
constexpr int kRounds = 3000;

void Mutate(Random& random, std::string& bytes) {
  const uint64_t times = 1 + random.Below(6);
  for (uint64_t i = 0; i < times; ++i) {
    const size_t at = bytes.empty() ? 0 : random.Below(bytes.size());
    switch (random.Below(5)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(random.Below(256));
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
        break;
      case 2:
        bytes.insert(at, 1 + random.Below(4), static_cast<char>(random.Below(256)));
        break;
      case 3:
        if (!bytes.empty()) bytes.erase(at, 1 + random.Below(8));
        break;
      case 4:
        bytes.resize(at);
        break;
    }
  }
}

TEST(FuzzTarget, ComesBackForMutatedInputs) {
  Random random(kSeed);
  for (const std::string& seed : FuzzSeeds()) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(seed.data()), seed.size());
    for (int round = 0; round < kRounds; ++round) {
      std::string bytes = seed;
      Mutate(random, bytes);
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    }
  }
}

}  // namespace
}  // namespace kernelstream
