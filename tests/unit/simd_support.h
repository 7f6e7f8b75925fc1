// What tests of core/simd share.
#ifndef KERNELSTREAM_TESTS_UNIT_SIMD_SUPPORT_H_
#define KERNELSTREAM_TESTS_UNIT_SIMD_SUPPORT_H_

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/philox.h"
#include "core/simd/simd.h"

namespace kernelstream {

inline void ForEachTarget(const std::function<void(const std::string&)>& check) {
  for (const std::string& target : SimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(UseSimdTarget(target));
    ASSERT_EQ(ActiveSimdTarget(), target);
    check(target);
  }
  ASSERT_TRUE(UseSimdTarget(""));
}

inline void ForEachFmaTarget(const std::function<void(const std::string&)>& check) {
  ForEachTarget([&](const std::string& target) {
    if (SimdTargetHasFma(target)) check(target);
  });
}

// Uniform on (-size, size), a pure function of (seed, i).
inline std::vector<float> Numbers(size_t count, uint32_t seed, float size = 1) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) {
    out[i] = size * (2 * UniformFloat(Philox4x32({static_cast<uint32_t>(i)}, {seed, 7})[0]) - 1);
  }
  return out;
}

inline std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float v : values) bits.push_back(std::bit_cast<uint32_t>(v));
  return bits;
}
inline std::vector<uint64_t> Bits(const std::vector<double>& values) {
  std::vector<uint64_t> bits;
  for (const double v : values) bits.push_back(std::bit_cast<uint64_t>(v));
  return bits;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_UNIT_SIMD_SUPPORT_H_
