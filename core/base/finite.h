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

// values: a range of float or double. Whether every one is a number of size `limit` (>= 0) or less.
// Looks at all of them, many at a time.
template <typename Values>
bool AllWithin(const Values& values, std::ranges::range_value_t<Values> limit) {
  using Value = std::ranges::range_value_t<Values>;
  using Bits = std::conditional_t<sizeof(Value) == 4, int32_t, int64_t>;
  // Without their sign, floats are ordered as their bits are, infinities and NaNs behind all
  // numbers.
  constexpr Bits kSize = std::numeric_limits<Bits>::max();
  const auto most = std::bit_cast<Bits>(limit);
  Bits beyond = 0;
  for (const Value value : values) {
    beyond |= static_cast<Bits>((std::bit_cast<Bits>(value) & kSize) > most);
  }
  return beyond == 0;
}

template <typename Values>
bool AllFinite(const Values& values) {
  return AllWithin(values, std::numeric_limits<std::ranges::range_value_t<Values>>::max());
}

// values: [rows][width]. The first row with a number that is not finite.
inline std::optional<size_t> FirstRowNotFinite(std::span<const double> values, size_t width) {
  const auto bad = std::ranges::find_if(values, [](double v) { return !std::isfinite(v); });
  if (bad == values.end()) return std::nullopt;
  return static_cast<size_t>(bad - values.begin()) / width;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_FINITE_H_
