// Sums over coordinates that several kernels share, in float64, in coordinate order.
#ifndef KERNELSTREAM_CORE_KERNEL_ARITHMETIC_H_
#define KERNELSTREAM_CORE_KERNEL_ARITHMETIC_H_

#include <cmath>
#include <cstddef>
#include <span>

namespace kernelstream {

using Point = std::span<const double>;

inline double InnerProduct(Point x, Point y) {
  double sum = 0;
  for (size_t j = 0; j < x.size(); ++j) sum += x[j] * y[j];
  return sum;
}

inline double Length(Point x) { return std::sqrt(InnerProduct(x, x)); }

inline double SquaredDistance(Point x, Point y) {
  double sum = 0;
  for (size_t j = 0; j < x.size(); ++j) sum += (x[j] - y[j]) * (x[j] - y[j]);
  return sum;
}

inline double AbsoluteDistance(Point x, Point y) {
  double sum = 0;
  for (size_t j = 0; j < x.size(); ++j) sum += std::abs(x[j] - y[j]);
  return sum;
}

// Mean of the lengths of x and y (root of the mean square): the unit of kernels of <x, y>.
inline double CommonLength(Point x, Point y) {
  return std::sqrt((InnerProduct(x, x) + InnerProduct(y, y)) / 2);
}

// Mean of the sums of x and y: the unit of kernels of histograms.
inline double CommonSum(Point x, Point y) {
  double sum = 0;
  for (size_t j = 0; j < x.size(); ++j) sum += x[j] + y[j];
  return sum / 2;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_KERNEL_ARITHMETIC_H_
