// How core asks for parallel work without owning a thread.
#ifndef KERNELSTREAM_CORE_BASE_EXECUTOR_H_
#define KERNELSTREAM_CORE_BASE_EXECUTOR_H_

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace kernelstream {

// Thread-safe. Runs task(0) ... task(count - 1), each exactly once, in any order, possibly at the
// same time, and returns when all have finished. The caller's thread takes part, so nesting cannot
// deadlock. Results must not depend on the number of threads: tasks write to disjoint places and
// whoever reduces them does it afterwards, in index order.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void ParallelFor(size_t count, absl::FunctionRef<void(size_t)> task) = 0;
  // Threads that may work on one call at the same time, the caller's among them: 1 or more. For how
  // finely work is cut, not for what comes out.
  virtual size_t threads() const = 0;
};

// Thread-safe. Runs everything on the caller's thread.
class InlineExecutor final : public Executor {
 public:
  void ParallelFor(size_t count, absl::FunctionRef<void(size_t)> task) override {
    for (size_t i = 0; i < count; ++i) task(i);
  }
  size_t threads() const override { return 1; }
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_EXECUTOR_H_
