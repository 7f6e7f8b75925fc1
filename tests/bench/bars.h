// What a benchmark has to reach, beside what it reached.
#ifndef KERNELSTREAM_TESTS_BENCH_BARS_H_
#define KERNELSTREAM_TESTS_BENCH_BARS_H_

#include <functional>
#include <string>
#include <vector>

namespace kernelstream::bench {

double Median(std::vector<double> values);
// Half the distance between the largest and the smallest, in percent of the median.
double Spread(const std::vector<double>& values);

// Seconds of CPU that `work` takes this thread, called at least 9 times and for 0.2 s.
std::vector<double> TimesOf(const std::function<void()>& work);

// One line that run.py makes a row of its table of. number: of the bar. value: as `unit` says.
struct Bar {
  int number = 0;
  std::string what;
  double value = 0;
  double spread = 0;  // percent; 0: not known
  std::string unit;
  bool at_least = false;  // else at most
  double bar = 0;
};
void Print(const Bar& bar);

}  // namespace kernelstream::bench

#endif  // KERNELSTREAM_TESTS_BENCH_BARS_H_
