// Memory that a thread keeps between calls.
#ifndef KERNELSTREAM_CORE_FEATURE_SCRATCH_H_
#define KERNELSTREAM_CORE_FEATURE_SCRATCH_H_

#include <cstddef>
#include <span>

namespace kernelstream {

// The first `size` values of a buffer that grows to hold them and never shrinks. They are whatever
// was there.
template <typename Vector>
std::span<typename Vector::value_type> Grow(Vector& buffer, size_t size) {
  if (buffer.size() < size) buffer.resize(size);
  return {buffer.data(), size};
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_SCRATCH_H_
