#include "server/hosting/training_pool.h"

#include <algorithm>
#include <utility>

#include "server/hosting/thread_priority.h"

namespace kernelstream::server {

// A call of ParallelFor, on the stack of its caller. Guarded by mutex_.
struct TrainingPool::ForJob {
  size_t count;
  absl::FunctionRef<void(size_t)> task;
  size_t next = 0;  // first task nobody has taken
  size_t finished = 0;
};

TrainingPool::TrainingPool(const Options& options, Clock* clock)
    : clock_(clock), num_threads_(static_cast<size_t>(std::max(1, options.threads))) {
  for (int i = 0; i < options.threads; ++i) {
    threads_.emplace_back([this, nice = options.nice] { ThreadMain(nice); });
  }
}

TrainingPool::~TrainingPool() { Shutdown(); }

void TrainingPool::ParallelFor(size_t count, absl::FunctionRef<void(size_t)> task) {
  if (count <= 1 || threads_.empty()) {
    for (size_t i = 0; i < count; ++i) task(i);
    return;
  }
  ForJob job{count, task};
  absl::MutexLock lock(&mutex_);
  jobs_.push_back(&job);
  work_.SignalAll();
  while (job.next < job.count) {
    const size_t i = job.next++;
    if (job.next == job.count) std::erase(jobs_, &job);
    mutex_.Unlock();
    task(i);
    mutex_.Lock();
    ++job.finished;
  }
  while (job.finished < job.count) finished_.Wait(&mutex_);
}

bool TrainingPool::HelpOne() {
  if (jobs_.empty()) return false;
  ForJob* job = jobs_.front();
  const size_t i = job->next++;
  if (job->next == job->count) jobs_.pop_front();
  mutex_.Unlock();
  job->task(i);
  mutex_.Lock();
  // The caller may have been waiting for this one; the job is gone once it has been told.
  if (++job->finished == job->count) finished_.SignalAll();
  return true;
}

void TrainingPool::MakeReady(Entry& entry) {
  if (entry.ready || entry.removed) return;
  entry.ready = true;
  ready_.push_back(entry.runnable.get());
  work_.Signal();
}

absl::Time TrainingPool::WakeSleepers() {
  if (sleepers_.empty()) return absl::InfiniteFuture();
  const absl::Time now = clock_->Now();
  while (!sleepers_.empty() && sleepers_.begin()->first <= now) {
    Entry& entry = entries_.at(sleepers_.begin()->second);
    sleepers_.erase(sleepers_.begin());
    entry.wake = absl::InfiniteFuture();
    MakeReady(entry);
  }
  return sleepers_.empty() ? absl::InfiniteFuture() : sleepers_.begin()->first;
}

void TrainingPool::Unsleep(Entry& entry) {
  if (entry.wake == absl::InfiniteFuture()) return;
  auto [it, end] = sleepers_.equal_range(entry.wake);
  while (it != end && it->second != entry.runnable.get()) ++it;
  if (it != end) sleepers_.erase(it);
  entry.wake = absl::InfiniteFuture();
}

void TrainingPool::RunOne() {
  const Runnable* key = ready_.front();
  ready_.pop_front();
  Entry& entry =
      entries_.at(key);  // stays where it is: only Remove erases, and it waits while this runs
  entry.ready = false;
  entry.running = true;
  Unsleep(entry);
  const std::shared_ptr<Runnable> runnable = entry.runnable;
  mutex_.Unlock();
  const absl::Time wake = runnable->RunSlice();
  mutex_.Lock();
  entry.running = false;
  finished_.SignalAll();
  if (entry.removed) return;
  if (std::exchange(entry.again, false) || wake == absl::InfinitePast()) {
    MakeReady(entry);
  } else if (wake != absl::InfiniteFuture()) {
    entry.wake = wake;
    sleepers_.emplace(wake, key);
    work_.SignalAll();  // a thread that sleeps for longer has to set its alarm anew
  }
}

void TrainingPool::ThreadMain(int nice) {
  if (nice != 0) GiveWayToOtherThreads(nice);
  absl::MutexLock lock(&mutex_);
  while (!ended_) {
    if (HelpOne()) continue;
    const absl::Time wake = WakeSleepers();
    if (!ready_.empty()) {
      RunOne();
    } else if (wake == absl::InfiniteFuture()) {
      work_.Wait(&mutex_);
    } else {
      clock_->Wait(work_, mutex_, wake);
    }
  }
}

void TrainingPool::Schedule(std::shared_ptr<Runnable> runnable) {
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  Entry& entry = entries_[runnable.get()];
  if (entry.removed) return;
  if (!entry.runnable) entry.runnable = std::move(runnable);
  if (entry.running) {
    entry.again = true;
  } else {
    MakeReady(entry);
  }
}

void TrainingPool::Remove(const Runnable* runnable) {
  std::shared_ptr<Runnable> last;  // ends after the lock is given back
  absl::MutexLock lock(&mutex_);
  const auto it = entries_.find(runnable);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  entry.removed = true;
  Unsleep(entry);
  if (entry.ready) std::erase(ready_, runnable);
  entry.ready = false;
  while (entry.running) finished_.Wait(&mutex_);
  last = std::move(entry.runnable);
  entries_.erase(runnable);
}

void TrainingPool::Shutdown() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    work_.SignalAll();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  std::unordered_map<const Runnable*, Entry> entries;
  absl::MutexLock lock(&mutex_);
  entries.swap(entries_);
  ready_.clear();
  sleepers_.clear();
}

}  // namespace kernelstream::server
