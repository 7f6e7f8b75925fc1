// Numbers that are none.
#ifndef KERNELSTREAM_CORE_BASE_FINITE_H_
#define KERNELSTREAM_CORE_BASE_FINITE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

namespace kernelstream {

// values: a range of float or double.
bool AllFinite(const auto& values) {
  return std::ranges::all_of(values, [](auto value) { return std::isfinite(value); });
}

// values: [rows][width]. The first row with a number that is not finite.
inline std::optional<size_t> FirstRowNotFinite(std::span<const double> values, size_t width) {
  const auto bad = std::ranges::find_if(values, [](double v) { return !std::isfinite(v); });
  if (bad == values.end()) return std::nullopt;
  return static_cast<size_t>(bad - values.begin()) / width;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_FINITE_H_
