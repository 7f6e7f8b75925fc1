// Threads for work that must not be done on gRPC's threads.
#ifndef KERNELSTREAM_SERVER_SERVICE_WORKER_POOL_H_
#define KERNELSTREAM_SERVER_SERVICE_WORKER_POOL_H_

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "core/base/executor.h"

namespace kernelstream::server {

// Thread-safe. A fixed number of threads and a bounded queue of tasks, first come first served;
// idle threads help with ParallelFor.
class WorkerPool final : public Executor {
 public:
  WorkerPool(int threads, size_t max_queued);
  ~WorkerPool() override;  // Shutdown()

  // False: the queue is full or the pool is shut down; `task` will not run.
  bool Submit(absl::AnyInvocable<void()> task);
  // For a task that gives its thread back and wants another turn after those who wait: there is
  // always room. False: the pool is shut down.
  bool Requeue(absl::AnyInvocable<void()> task);
  void ParallelFor(size_t count, absl::FunctionRef<void(size_t)> task) override;
  size_t threads() const override { return num_threads_ + 1; }
  // Runs what is queued, then ends the threads. Idempotent.
  void Shutdown();

 private:
  // False if there are `most` tasks already, or the pool is shut down.
  bool Add(absl::AnyInvocable<void()> task, size_t most);
  struct Loop {
    absl::FunctionRef<void(size_t)> task;
    size_t next, count;
    size_t running = 0;
  };
  void ThreadMain();
  // Runs one task of the loop.
  void RunOne(Loop* loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_queued_, num_threads_;
  absl::Mutex mutex_;
  absl::CondVar work_, finished_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  std::deque<Loop*> loops_ ABSL_GUARDED_BY(mutex_);  // with tasks that nobody has begun
  std::vector<std::thread> threads_;
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_WORKER_POOL_H_
