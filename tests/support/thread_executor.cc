#include "tests/support/thread_executor.h"

#include <atomic>
#include <thread>
#include <vector>

namespace kernelstream {

void ThreadExecutor::ParallelFor(size_t count, absl::FunctionRef<void(size_t)> task) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) task(count - 1 - i);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < threads_; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace kernelstream
