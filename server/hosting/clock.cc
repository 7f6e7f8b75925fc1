#include "server/hosting/clock.h"

#include <algorithm>
#include <chrono>

namespace kernelstream::server {
namespace {

class SystemClock final : public Clock {
 public:
  absl::Time Now() override {
    return absl::UnixEpoch() +
           absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
  void Wait(absl::CondVar& condition, absl::Mutex& mutex, absl::Time deadline) override {
    condition.WaitWithTimeout(&mutex, deadline - Now());
  }
};

}  // namespace

Clock* Clock::System() {
  static auto* clock = new SystemClock;
  return clock;
}

absl::Time ManualClock::Now() {
  absl::MutexLock lock(&mutex_);
  return now_;
}

void ManualClock::Wait(absl::CondVar& condition, absl::Mutex& mutex, absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex_);
    if (now_ >= deadline) return;
    waiters_.push_back({&condition, &mutex});
  }
  condition.Wait(&mutex);
  absl::MutexLock lock(&mutex_);
  // Others may wait with the same pair: take one of them out.
  const auto it = std::find_if(waiters_.begin(), waiters_.end(), [&](const Waiter& waiter) {
    return waiter.condition == &condition && waiter.mutex == &mutex;
  });
  if (it != waiters_.end()) waiters_.erase(it);
}

void ManualClock::Advance(absl::Duration by) {
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    now_ += by;
    waiters = waiters_;
  }
  for (const Waiter& waiter : waiters) {
    // With its lock, so that a waiter which saw the old time is asleep by now and hears this.
    absl::MutexLock lock(waiter.mutex);
    waiter.condition->SignalAll();
  }
}

}  // namespace kernelstream::server
