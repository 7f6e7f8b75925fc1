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

// Multiply-add slots of one cosine (scale and phase, square, four polynomial steps, last product),
// as operations. With 2 for each term of a projection and 2 for each output, all at the measured
// peak, the least time of a feature in every benchmark here.
inline constexpr double kCosineFlops = 14;

// Bytes per second that one core reads, again and again, from `bytes` of memory, cache or not: with
// vectors, in whichever of 1, 4 or 8 streams is quickest.
double ReadBandwidth(size_t bytes);

// "# cpu=... target=... build=... peak=... Gflop/s read=... GB/s".
std::string MachineLine();

}  // namespace kernelstream::bench

#endif  // KERNELSTREAM_TESTS_BENCH_MACHINE_LIMITS_H_
