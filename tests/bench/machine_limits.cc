#include "tests/bench/machine_limits.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <vector>

#include "core/simd/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kernelstream::bench {
namespace {

double BestSeconds(int runs, const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const double start = ThreadSeconds();
    work();
    best = std::min(best, ThreadSeconds() - start);
  }
  return best;
}

constexpr int kChains = 12;
constexpr int kSteps = 200000;
volatile float sink;

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void Fma256() {
  __m256 sum[kChains];
  for (auto& s : sum) s = _mm256_set1_ps(1);
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (int i = 0; i < kSteps; ++i) {
    for (auto& s : sum) s = _mm256_fmadd_ps(s, a, b);
  }
  for (const auto& s : sum) sink = _mm256_cvtss_f32(s);
}

__attribute__((target("avx512f"))) void Fma512() {
  __m512 sum[kChains];
  for (auto& s : sum) s = _mm512_set1_ps(1);
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (int i = 0; i < kSteps; ++i) {
    for (auto& s : sum) s = _mm512_fmadd_ps(s, a, b);
  }
  for (const auto& s : sum) sink = _mm512_cvtss_f32(s);
}

void MultiplyAdd128() {
  __m128 sum[kChains];
  for (auto& s : sum) s = _mm_set1_ps(1);
  const __m128 a = _mm_set1_ps(0.999f), b = _mm_set1_ps(0.001f);
  for (int i = 0; i < kSteps; ++i) {
    for (auto& s : sum) s = _mm_add_ps(_mm_mul_ps(s, a), b);
  }
  for (const auto& s : sum) sink = _mm_cvtss_f32(s);
}
#endif

// One cache line of each stream after another: streams [streams][words].
template <size_t kStreams>
inline __attribute__((always_inline)) void ReadStreams(const uint64_t* data, size_t words) {
  typedef uint64_t Words __attribute__((vector_size(32), aligned(8)));
  Words sums[kStreams] = {};
  for (size_t i = 0; i < words; i += 8) {
    for (size_t s = 0; s < kStreams; ++s) {
      const uint64_t* line = data + s * words + i;
      sums[s] += *reinterpret_cast<const Words*>(line);
      sums[s] += *reinterpret_cast<const Words*>(line + 4);
    }
  }
  for (const Words& sum : sums) sink = static_cast<float>(sum[0] + sum[1] + sum[2] + sum[3]);
}

inline __attribute__((always_inline)) void ReadLines(const uint64_t* data, size_t streams,
                                                     size_t words) {
  if (streams == 1) ReadStreams<1>(data, words);
  if (streams == 4) ReadStreams<4>(data, words);
  if (streams == 8) ReadStreams<8>(data, words);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void ReadAvx2(const uint64_t* data, size_t streams, size_t words) {
  ReadLines(data, streams, words);
}
#endif

void Read(const uint64_t* data, size_t streams, size_t words) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return ReadAvx2(data, streams, words);
#endif
  ReadLines(data, streams, words);
}

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double PeakFlops(const std::string& target, int runs) {
#if defined(__x86_64__)
  const double operations = 2.0 * kChains * kSteps;
  if (target.starts_with("AVX3")) return 16 * operations / BestSeconds(runs, &Fma512);
  if (target == "AVX2") return 8 * operations / BestSeconds(runs, &Fma256);
  if (target.starts_with("S")) return 4 * operations / BestSeconds(runs, &MultiplyAdd128);
#endif
  return 0;
}

double ReadBandwidth(size_t bytes) {
  const std::vector<uint64_t> data(std::max<size_t>(bytes, 4096) / 8, 1);
  const size_t repeats = 1 + (size_t{1} << 22) / (data.size() * 8);
  double best = 0;
  for (const size_t streams : {1, 4, 8}) {
    // Whole steps of a cache line in each stream.
    const size_t words = data.size() / streams / 8 * 8;
    const double seconds = BestSeconds(10, [&] {
      for (size_t r = 0; r < repeats; ++r) Read(data.data(), streams, words);
    });
    best = std::max(best, static_cast<double>(repeats * streams * words * 8) / seconds);
  }
  return best;
}

std::string MachineLine() {
#ifdef NDEBUG
  const char* build = "release";
#else
  const char* build = "debug";
#endif
  const std::string target = ActiveSimdTarget();
  char line[256];
  std::snprintf(line, sizeof(line),
                "# cpu=\"%s\" target=%s build=%s peak=%.1f Gflop/s read=%.1f GB/s (64 MiB)",
                CpuName().c_str(), target.c_str(), build, PeakFlops(target) * 1e-9,
                ReadBandwidth(size_t{64} << 20) * 1e-9);
  return line;
}

}  // namespace kernelstream::bench
