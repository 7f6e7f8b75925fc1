// Time, so that tests can make it pass.
#ifndef KERNELSTREAM_SERVER_HOSTING_CLOCK_H_
#define KERNELSTREAM_SERVER_HOSTING_CLOCK_H_

#include <atomic>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace kernelstream::server {

// Thread-safe. A clock that never goes back; its zero means nothing.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() = 0;
  // Like condition.Wait(&mutex), but returns at `deadline` at the latest. May return early without
  // reason.
  virtual void Wait(absl::CondVar& condition, absl::Mutex& mutex, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;

  // The machine's monotonic clock. Lives for ever.
  static Clock* System();
};

// Thread-safe. Moves only when told to; whoever waits for the new time is woken. What is waited
// on must outlive Advance: a wait may be over before Advance comes to wake it.
class ManualClock final : public Clock {
 public:
  absl::Time Now() override;
  void Wait(absl::CondVar& condition, absl::Mutex& mutex, absl::Time deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Advance(absl::Duration by);

 private:
  struct Waiter {
    absl::CondVar* condition;
    absl::Mutex* mutex;
  };
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch() + absl::Hours(1);
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_HOSTING_CLOCK_H_
