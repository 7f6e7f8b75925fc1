// What this core can do at best, measured: the figures beside which a benchmark's own are printed.
#ifndef KERNELSTREAM_TESTS_BENCH_MACHINE_LIMITS_H_
#define KERNELSTREAM_TESTS_BENCH_MACHINE_LIMITS_H_

#include <cstddef>
#include <string>

namespace kernelstream::bench {

// CPU time this thread has used: does not count the time others had the core.
double ThreadSeconds();

// Float32 operations per second of one core, a fused multiply-add being two, with the widest
// vectors `target` (a name of SimdTargets()) may use. 0 if this machine's instructions are not
// known here. The best of `runs` runs of half a millisecond.
double PeakFlops(const std::string& target, int runs = 30);

// Bytes per second that one core reads sequentially, again and again, from `bytes` of memory: cache
// or not.
double ReadBandwidth(size_t bytes);

// "# cpu=... target=... build=... peak=... Gflop/s read=... GB/s".
std::string MachineLine();

}  // namespace kernelstream::bench

#endif  // KERNELSTREAM_TESTS_BENCH_MACHINE_LIMITS_H_
