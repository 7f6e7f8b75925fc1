// Numbers that are none.
#ifndef KERNELSTREAM_CORE_BASE_FINITE_H_
#define KERNELSTREAM_CORE_BASE_FINITE_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>

namespace kernelstream {

// values: a range of float or double. Looks at all of them, many at a time.
template <typename Values>
bool AllFinite(const Values& values) {
  using Value = std::ranges::range_value_t<Values>;
  using Bits = std::conditional_t<sizeof(Value) == 4, uint32_t, uint64_t>;
  // All exponent bits are set in infinities and NaNs, and in nothing else.
  constexpr Bits kExponent = std::bit_cast<Bits>(std::numeric_limits<Value>::infinity());
  Bits any = 0;
  for (const Value value : values) {
    any |= static_cast<Bits>((std::bit_cast<Bits>(value) & kExponent) == kExponent);
  }
  return any == 0;
}

// Whether every value is a number of size `limit` (>= 0) or less. Looks at all of them, many at a
// time.
inline bool AllWithin(std::span<const float> values, float limit) {
  // Without their sign, floats are ordered as their bits are, infinities and NaNs behind all
  // numbers.
  constexpr int32_t kSize = 0x7FFFFFFF;
  const auto most = std::bit_cast<int32_t>(limit);
  int32_t beyond = 0;
  for (const float value : values) {
    beyond |= static_cast<int32_t>((std::bit_cast<int32_t>(value) & kSize) > most);
  }
  return beyond == 0;
}

// values: [rows][width]. The first row with a number that is not finite.
inline std::optional<size_t> FirstRowNotFinite(std::span<const double> values, size_t width) {
  const auto bad = std::ranges::find_if(values, [](double v) { return !std::isfinite(v); });
  if (bad == values.end()) return std::nullopt;
  return static_cast<size_t>(bad - values.begin()) / width;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_FINITE_H_
