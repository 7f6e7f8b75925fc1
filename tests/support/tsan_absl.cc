// Tells ThreadSanitizer about the locks of Abseil. Debian's libraries are built without
// instrumentation, so ThreadSanitizer cannot see that absl::Mutex orders anything and reports every
// guarded field. The functions here take the place of the library's in each test of the tsan
// preset, in libgrpc's calls too: they call the library's own and state the order it makes.
// Conditions run while the library holds the lock, where no statement can be made; what they read
// is therefore not checked.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);

// Memory that these libraries hand between their own threads, ordered by atomics nobody
// instrumented.
const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:librocksdb.so\n"
         "called_from_lib:libabsl_graphcycles_internal.so\n";
}
}

namespace {

// The library's function of this name, which ours hides.
template <typename Function>
Function* Hidden(const char* symbol) {
  void* address = dlsym(RTLD_NEXT, symbol);
  if (address == nullptr) {
    std::fprintf(stderr, "tsan_absl.cc: %s is not in any library; Abseil's ABI has changed\n",
                 symbol);
    std::abort();
  }
  return reinterpret_cast<Function*>(address);
}

class IgnoreReads {
 public:
  IgnoreReads() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~IgnoreReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

}  // namespace

#define KERNELSTREAM_HIDDEN(symbol, ...) \
  static auto* const hidden = Hidden<__VA_ARGS__>("_ZN4absl7debian3" symbol)

// One function that takes a lock, gives one up, or does both.
#define KERNELSTREAM_LOCKS(method, symbol)     \
  void Mutex::method() {                       \
    KERNELSTREAM_HIDDEN(symbol, void(Mutex*)); \
    hidden(this);                              \
    __tsan_acquire(this);                      \
  }
#define KERNELSTREAM_TRIES(method, symbol)     \
  bool Mutex::method() {                       \
    KERNELSTREAM_HIDDEN(symbol, bool(Mutex*)); \
    const bool locked = hidden(this);          \
    if (locked) __tsan_acquire(this);          \
    return locked;                             \
  }
#define KERNELSTREAM_UNLOCKS(method, symbol)   \
  void Mutex::method() {                       \
    KERNELSTREAM_HIDDEN(symbol, void(Mutex*)); \
    __tsan_release(this);                      \
    IgnoreReads ignore;                        \
    hidden(this);                              \
  }
#define KERNELSTREAM_LOCKS_WHEN(method, symbol)                  \
  void Mutex::method(const Condition& condition) {               \
    KERNELSTREAM_HIDDEN(symbol, void(Mutex*, const Condition&)); \
    IgnoreReads ignore;                                          \
    hidden(this, condition);                                     \
    __tsan_acquire(this);                                        \
  }
#define KERNELSTREAM_LOCKS_WHEN_UNTIL(method, symbol, Limit)            \
  bool Mutex::method(const Condition& condition, Limit limit) {         \
    KERNELSTREAM_HIDDEN(symbol, bool(Mutex*, const Condition&, Limit)); \
    IgnoreReads ignore;                                                 \
    const bool met = hidden(this, condition, limit);                    \
    __tsan_acquire(this);                                               \
    return met;                                                         \
  }

namespace absl {
ABSL_NAMESPACE_BEGIN

KERNELSTREAM_LOCKS(Lock, "5Mutex4LockEv")
KERNELSTREAM_LOCKS(ReaderLock, "5Mutex10ReaderLockEv")
KERNELSTREAM_TRIES(TryLock, "5Mutex7TryLockEv")
KERNELSTREAM_TRIES(ReaderTryLock, "5Mutex13ReaderTryLockEv")
KERNELSTREAM_UNLOCKS(Unlock, "5Mutex6UnlockEv")
KERNELSTREAM_UNLOCKS(ReaderUnlock, "5Mutex12ReaderUnlockEv")
KERNELSTREAM_LOCKS_WHEN(LockWhen, "5Mutex8LockWhenERKNS0_9ConditionE")
KERNELSTREAM_LOCKS_WHEN(ReaderLockWhen, "5Mutex14ReaderLockWhenERKNS0_9ConditionE")
KERNELSTREAM_LOCKS_WHEN_UNTIL(LockWhenWithTimeout,
                              "5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE",
                              Duration)
KERNELSTREAM_LOCKS_WHEN_UNTIL(LockWhenWithDeadline,
                              "5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE", Time)

// A wait gives the lock up in between.
void Mutex::Await(const Condition& condition) {
  KERNELSTREAM_HIDDEN("5Mutex5AwaitERKNS0_9ConditionE", void(Mutex*, const Condition&));
  __tsan_release(this);
  IgnoreReads ignore;
  hidden(this, condition);
  __tsan_acquire(this);
}
bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  KERNELSTREAM_HIDDEN("5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE",
                      bool(Mutex*, const Condition&, Duration));
  __tsan_release(this);
  IgnoreReads ignore;
  const bool met = hidden(this, condition, timeout);
  __tsan_acquire(this);
  return met;
}
bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  KERNELSTREAM_HIDDEN("5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE",
                      bool(Mutex*, const Condition&, Time));
  __tsan_release(this);
  IgnoreReads ignore;
  const bool met = hidden(this, condition, deadline);
  __tsan_acquire(this);
  return met;
}

void CondVar::Wait(Mutex* mutex) {
  KERNELSTREAM_HIDDEN("7CondVar4WaitEPNS0_5MutexE", void(CondVar*, Mutex*));
  __tsan_release(mutex);
  IgnoreReads ignore;
  hidden(this, mutex);
  __tsan_acquire(mutex);
}
bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  KERNELSTREAM_HIDDEN("7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE",
                      bool(CondVar*, Mutex*, Duration));
  __tsan_release(mutex);
  IgnoreReads ignore;
  const bool timed_out = hidden(this, mutex, timeout);
  __tsan_acquire(mutex);
  return timed_out;
}
bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  KERNELSTREAM_HIDDEN("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE",
                      bool(CondVar*, Mutex*, Time));
  __tsan_release(mutex);
  IgnoreReads ignore;
  const bool timed_out = hidden(this, mutex, deadline);
  __tsan_acquire(mutex);
  return timed_out;
}

// HasBeenNotified is inline: it acquires the flag behind the mutex.
void Notification::Notify() {
  KERNELSTREAM_HIDDEN("12Notification6NotifyEv", void(Notification*));
  __tsan_release(this);
  __tsan_release(reinterpret_cast<char*>(this) + sizeof(Mutex));
  hidden(this);
}
void Notification::WaitForNotification() const {
  static auto* const hidden =
      Hidden<void(const Notification*)>("_ZNK4absl7debian312Notification19WaitForNotificationEv");
  hidden(this);
  __tsan_acquire(const_cast<Notification*>(this));
}
bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const hidden = Hidden<bool(const Notification*, Duration)>(
      "_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
  const bool notified = hidden(this, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}
bool BlockingCounter::DecrementCount() {
  KERNELSTREAM_HIDDEN("15BlockingCounter14DecrementCountEv", bool(BlockingCounter*));
  __tsan_release(this);
  return hidden(this);
}
void BlockingCounter::Wait() {
  KERNELSTREAM_HIDDEN("15BlockingCounter4WaitEv", void(BlockingCounter*));
  hidden(this);
  __tsan_acquire(this);
}

// Whoever drops the last reference frees what the others have read.
void Status::UnrefNonInlined(uintptr_t rep) {
  KERNELSTREAM_HIDDEN("6Status15UnrefNonInlinedEm", void(uintptr_t));
  __tsan_release(reinterpret_cast<void*>(rep));
  __tsan_acquire(reinterpret_cast<void*>(rep));
  hidden(rep);
}

ABSL_NAMESPACE_END
}  // namespace absl
