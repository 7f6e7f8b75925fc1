// Memory for the features of large steps.
#ifndef KERNELSTREAM_CORE_MODEL_LARGE_FEATURES_H_
#define KERNELSTREAM_CORE_MODEL_LARGE_FEATURES_H_

#include <memory>
#include <utility>
#include <vector>

#include "core/base/aligned_floats.h"

namespace kernelstream {

// Who holds one may take buffers. Thread-safe, without locks: buffers that a step has given back
// wait in the process for the next step of any model, since fresh memory, which the kernel clears
// page by page, takes longer than the features that are written to it. Those that wait are at most
// as many as there were large steps at a time, and go with the last holder.
class LargeFeatures {
 public:
  LargeFeatures();
  ~LargeFeatures();
  LargeFeatures(const LargeFeatures&) = delete;
  LargeFeatures& operator=(const LargeFeatures&) = delete;

  // What one step takes; given back when this is destroyed, before the holder is.
  class Buffers {
   public:
    // With none.
    Buffers() = default;
    explicit Buffers(const LargeFeatures& holder);
    Buffers(Buffers&&) = default;
    // Gives back what this held.
    Buffers& operator=(Buffers&& other) {
      Buffers taken(std::move(other));
      floats_.swap(taken.floats_);
      return *this;
    }
    ~Buffers();
    std::vector<AlignedFloats>& floats() { return *floats_; }

   private:
    std::unique_ptr<std::vector<AlignedFloats>> floats_;
  };
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_LARGE_FEATURES_H_
