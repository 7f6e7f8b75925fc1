// An executor with threads of its own, for tests of code that must not depend on their number.
#ifndef KERNELSTREAM_TESTS_SUPPORT_THREAD_EXECUTOR_H_
#define KERNELSTREAM_TESTS_SUPPORT_THREAD_EXECUTOR_H_

#include "core/base/executor.h"

namespace kernelstream {

// Thread-safe. Starts `threads` threads for every call; they take tasks in no particular order.
class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(int threads) : threads_(threads) {}
  void ParallelFor(size_t count, absl::FunctionRef<void(size_t)> task) override;
  size_t threads() const override { return static_cast<size_t>(threads_); }

 private:
  int threads_;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_SUPPORT_THREAD_EXECUTOR_H_
