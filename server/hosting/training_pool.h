// The threads that models learn on.
#ifndef KERNELSTREAM_SERVER_HOSTING_TRAINING_POOL_H_
#define KERNELSTREAM_SERVER_HOSTING_TRAINING_POOL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/executor.h"
#include "server/hosting/clock.h"

namespace kernelstream::server {

// Something that has work now and then, a slice at a time.
class Runnable {
 public:
  virtual ~Runnable() = default;
  // One slice, a few milliseconds. Never runs twice at the same time. Returns when it wants to run
  // again: InfinitePast at once (after the others that are ready), InfiniteFuture only when
  // scheduled.
  virtual absl::Time RunSlice() = 0;
};

// Thread-safe. A fixed number of threads that run slices, first come first served, and tasks of
// ParallelFor before them. With no thread, slices do not run and ParallelFor is the caller's alone.
class TrainingPool final : public Executor {
 public:
  struct Options {
    int threads = 1;
    int nice = 10;  // of GiveWayToOtherThreads; 0: the threads run like any other
  };
  TrainingPool(const Options& options, Clock* clock);
  ~TrainingPool() override;  // Shutdown()

  void ParallelFor(size_t count, absl::FunctionRef<void(size_t)> task) override;
  size_t threads() const override { return num_threads_; }  // the caller is one of the pool's

  // Runs a slice soon; if one is running, another one after it. Ignored after Shutdown.
  void Schedule(std::shared_ptr<Runnable> runnable);
  // Runs no slice of it any more; waits for one that is running. Must not be called from its own
  // slice.
  void Remove(const Runnable* runnable);
  // Ends the threads after the slices they are at. Idempotent.
  void Shutdown();

 private:
  struct ForJob;
  struct Entry {
    std::shared_ptr<Runnable> runnable;
    bool running = false;
    bool ready = false;  // in ready_
    bool again = false;  // scheduled while running
    bool removed = false;
    absl::Time wake = absl::InfiniteFuture();
  };
  void ThreadMain(int nice);
  bool HelpOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeReady(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time WakeSleepers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unsleep(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  absl::Mutex mutex_;
  absl::CondVar work_;      // something to do, or the end
  absl::CondVar finished_;  // a slice or a job has ended
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<ForJob*> jobs_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<const Runnable*, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::deque<const Runnable*> ready_ ABSL_GUARDED_BY(mutex_);
  std::multimap<absl::Time, const Runnable*> sleepers_ ABSL_GUARDED_BY(mutex_);
  const size_t num_threads_;
  std::vector<std::thread> threads_;
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_HOSTING_TRAINING_POOL_H_
