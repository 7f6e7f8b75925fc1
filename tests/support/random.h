// Random numbers for tests: counter-based, so a test prints its seed and can be run again.
#ifndef KERNELSTREAM_TESTS_SUPPORT_RANDOM_H_
#define KERNELSTREAM_TESTS_SUPPORT_RANDOM_H_

#include <cstdint>

namespace kernelstream {

// Thread-compatible.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  double Uniform();  // (0, 1)
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  double Normal();  // N(0, 1)
  uint64_t Below(uint64_t n) { return static_cast<uint64_t>(Uniform() * static_cast<double>(n)); }

 private:
  uint64_t seed_, drawn_ = 0;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_SUPPORT_RANDOM_H_
