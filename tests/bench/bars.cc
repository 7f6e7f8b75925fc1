#include "tests/bench/bars.h"

#include <algorithm>
#include <cstdio>

#include "tests/bench/machine_limits.h"

namespace kernelstream::bench {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double Spread(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return 50 * (*high - *low) / Median(values);
}

std::vector<double> TimesOf(const std::function<void()>& work) {
  constexpr double kSeconds = 0.2;
  constexpr size_t kLeastCalls = 9;
  std::vector<double> times;
  work();
  for (double sum = 0; sum < kSeconds || times.size() < kLeastCalls;) {
    const double start = ThreadSeconds();
    work();
    times.push_back(ThreadSeconds() - start);
    sum += times.back();
  }
  return times;
}

void Print(const Bar& bar) {
  const bool reached = bar.at_least ? bar.value >= bar.bar : bar.value <= bar.bar;
  std::printf("bar | %d | %s | %.3g %s | ", bar.number, bar.what.c_str(), bar.value,
              bar.unit.c_str());
  if (bar.spread > 0) std::printf("%.0f %%", bar.spread);
  std::printf(" | %s %.3g | %s\n", bar.at_least ? ">=" : "<=", bar.bar,
              reached ? "reached" : "missed");
  std::fflush(stdout);
}

}  // namespace kernelstream::bench
