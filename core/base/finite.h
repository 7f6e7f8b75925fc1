// Numbers that are none.
#ifndef KERNELSTREAM_CORE_BASE_FINITE_H_
#define KERNELSTREAM_CORE_BASE_FINITE_H_

#include <algorithm>
#include <cmath>

namespace kernelstream {

// values: a range of float or double.
bool AllFinite(const auto& values) {
  return std::ranges::all_of(values, [](auto value) { return std::isfinite(value); });
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_FINITE_H_
