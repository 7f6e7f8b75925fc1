#include "server/service/worker_pool.h"

#include <limits>
#include <utility>

namespace kernelstream::server {

WorkerPool::WorkerPool(int threads, size_t max_queued)
    : max_queued_(max_queued), num_threads_(static_cast<size_t>(threads)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { ThreadMain(); });
}

WorkerPool::~WorkerPool() { Shutdown(); }

bool WorkerPool::Add(absl::AnyInvocable<void()> task, size_t most) {
  absl::MutexLock lock(&mutex_);
  if (ended_ || tasks_.size() >= most) return false;
  tasks_.push_back(std::move(task));
  work_.Signal();
  return true;
}

bool WorkerPool::Submit(absl::AnyInvocable<void()> task) {
  return Add(std::move(task), max_queued_);
}

bool WorkerPool::Requeue(absl::AnyInvocable<void()> task) {
  return Add(std::move(task), std::numeric_limits<size_t>::max());
}

void WorkerPool::RunOne(Loop* loop) {
  const size_t i = loop->next++;
  ++loop->running;
  if (loop->next == loop->count) std::erase(loops_, loop);
  mutex_.Unlock();
  loop->task(i);
  mutex_.Lock();
  --loop->running;
  finished_.SignalAll();
}

void WorkerPool::ParallelFor(size_t count, absl::FunctionRef<void(size_t)> task) {
  if (count <= 1) {
    if (count == 1) task(0);
    return;
  }
  Loop loop{task, 0, count};
  absl::MutexLock lock(&mutex_);
  loops_.push_back(&loop);
  work_.SignalAll();
  while (loop.next < loop.count) RunOne(&loop);
  while (loop.running > 0) finished_.Wait(&mutex_);
}

void WorkerPool::ThreadMain() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    if (!loops_.empty()) {
      RunOne(loops_.front());
    } else if (!tasks_.empty()) {
      absl::AnyInvocable<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      mutex_.Unlock();
      task();
      task = nullptr;  // what it holds may need the mutex
      mutex_.Lock();
    } else if (ended_) {
      return;
    } else {
      work_.Wait(&mutex_);
    }
  }
}

void WorkerPool::Shutdown() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    work_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace kernelstream::server
