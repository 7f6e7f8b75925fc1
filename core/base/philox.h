// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random
// numbers: as easy as 1, 2, 3").
#ifndef KERNELSTREAM_CORE_BASE_PHILOX_H_
#define KERNELSTREAM_CORE_BASE_PHILOX_H_

#include <array>
#include <cstdint>

namespace kernelstream {

using PhiloxBlock = std::array<uint32_t, 4>;

// Ten rounds. A pure function; equal to Random123's philox4x32 (tests/golden).
constexpr PhiloxBlock Philox4x32(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

constexpr std::array<uint32_t, 2> PhiloxKey(uint64_t key) {
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

// What a counter is used for: its top byte. New uses take new values, old ones never change (models
// are stored as seeds).
enum class RandomStream : uint32_t {
  kFrequency = 0,
  kPhase = 1,
  kGradientSign = 2,
  kReservoir = 3,
  kGenerationSeed = 4,
  kRadius = 5,
  kAdditiveFrequency = 6,
  kTermSeed = 7,
  kTermChoice = 8,
  kSketch = 9,
  kFrequencyNorm = 16,
  kScramble = 17,
  kHadamardSign = 18,
  kHadamardPlace = 19,
};

// Counter of four coordinates of one feature. feature < 2^56; coordinate_group = coordinate / 4 <
// 2^62.
//   word 0, 1: coordinate_group (low, high); word 2: feature (low); word 3: feature (high 24 bits)
//   | stream << 24.
constexpr PhiloxBlock StreamCounter(RandomStream stream, uint64_t feature,
                                    uint64_t coordinate_group) {
  return {static_cast<uint32_t>(coordinate_group), static_cast<uint32_t>(coordinate_group >> 32),
          static_cast<uint32_t>(feature),
          static_cast<uint32_t>(feature >> 32) | (static_cast<uint32_t>(stream) << 24)};
}
constexpr PhiloxBlock FrequencyCounter(uint64_t feature, uint64_t coordinate_group) {
  return StreamCounter(RandomStream::kFrequency, feature, coordinate_group);
}
constexpr PhiloxBlock PhaseCounter(uint64_t feature) {
  return StreamCounter(RandomStream::kPhase, feature, 0);
}

// Uniform on (0, 1), never 0 or 1, from the top 23 bits: exact in float32.
constexpr float UniformFloat(uint32_t word) {
  return (static_cast<float>(word >> 9) + 0.5f) * 0x1p-23f;
}
// Uniform on (0, 1) from the top 52 of 64 bits.
constexpr double UniformDouble(uint32_t high, uint32_t low) {
  const uint64_t bits = ((uint64_t{high} << 32) | low) >> 12;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_PHILOX_H_
