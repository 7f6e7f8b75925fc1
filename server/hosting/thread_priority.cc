#include "server/hosting/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kernelstream::server {
namespace {

// struct sched_attr of linux/sched/types.h, which cannot be included beside sched.h in Debian 12
// (both define sched_param), as it was at first: kernels take it by its size.
struct Attributes {
  uint32_t size = sizeof(Attributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;  // of SCHED_OTHER: the slice
  uint64_t deadline = 0;
  uint64_t period = 0;
};

// Of the calling thread.
bool GetAttributes(Attributes& attributes) {
  return syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0;
}

}  // namespace

void GiveWayToOtherThreads(int nice) {
  // On Linux this is about one thread.
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + nice);
  Attributes attributes;
  // Other policies are somebody's choice.
  if (!GetAttributes(attributes) || attributes.policy != SCHED_OTHER) return;
  attributes.runtime = kLongTimeSliceNanos;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

uint64_t ThreadTimeSliceNanos() {
  Attributes attributes;
  return GetAttributes(attributes) ? attributes.runtime : 0;
}

}  // namespace kernelstream::server
