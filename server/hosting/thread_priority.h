// Scheduling of threads that have to give way to others.
#ifndef KERNELSTREAM_SERVER_HOSTING_THREAD_PRIORITY_H_
#define KERNELSTREAM_SERVER_HOSTING_THREAD_PRIORITY_H_

#include <cstdint>

namespace kernelstream::server {

// What a thread that gives way asks Linux to be left running for (20 ms).
inline constexpr uint64_t kLongSliceNanos = 20'000'000;

// Adds `nice` to the calling thread's nice value, and asks for long slices. Since Linux 6.12 a
// slice is the thread's own choice, and a thread that wakes up takes the core at once from one
// whose slice is longer; otherwise it waits until the running one has had its least (1.4 ms on two
// cores), whatever their nice values are. Older kernels ignore the slice. Nothing is reported where
// a sandbox forbids it: the thread then competes with the others. Source: kernel/sched/fair.c,
// PREEMPT_SHORT.
void GiveWayToOtherThreads(int nice);

// Of the calling thread, as the kernel sees it: 0 where it does not say (before Linux 6.12).
uint64_t ThreadSliceNanos();

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_HOSTING_THREAD_PRIORITY_H_
