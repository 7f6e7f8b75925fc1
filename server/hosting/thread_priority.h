// Scheduling of threads that have to give way to others.
#ifndef KERNELSTREAM_SERVER_HOSTING_THREAD_PRIORITY_H_
#define KERNELSTREAM_SERVER_HOSTING_THREAD_PRIORITY_H_

#include <cstdint>

namespace kernelstream::server {

// The time slice that a thread that gives way asks Linux for.
inline constexpr uint64_t kLongTimeSliceNanos = 20'000'000;

// Adds `nice` to the calling thread's nice value, and asks for long time slices. Since Linux 6.12 a
// time slice is the thread's own choice: a thread that wakes up, has had less than its share and
// has a shorter one may take the core before the running thread's slice ends, which it otherwise
// may not, whatever their nice values are. Older kernels ignore it, policies other than SCHED_OTHER
// are left as they are. Nothing is reported where a sandbox forbids it: the thread then competes
// with the others. Source: kernel/sched/fair.c, PREEMPT_SHORT.
void GiveWayToOtherThreads(int nice);

// Of the calling thread, as the kernel sees it: 0 where it does not say (before Linux 6.12).
uint64_t ThreadTimeSliceNanos();

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_HOSTING_THREAD_PRIORITY_H_
