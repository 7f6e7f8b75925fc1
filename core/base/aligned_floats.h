// Floats that begin at a cache line: no vector read of a panel crosses two lines.
#ifndef KERNELSTREAM_CORE_BASE_ALIGNED_FLOATS_H_
#define KERNELSTREAM_CORE_BASE_ALIGNED_FLOATS_H_

#include <cstddef>
#include <new>
#include <vector>

namespace kernelstream {

inline constexpr std::align_val_t kLineAlignment{64};  // bytes

template <typename T>
struct LineAllocator {
  using value_type = T;

  LineAllocator() = default;
  template <typename U>
  LineAllocator(const LineAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kLineAlignment));
  }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kLineAlignment); }
  template <typename U>
  bool operator==(const LineAllocator<U>&) const {
    return true;
  }
};

using AlignedFloats = std::vector<float, LineAllocator<float>>;

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_ALIGNED_FLOATS_H_
