// How rows count that were sent with weights.
#ifndef KERNELSTREAM_CORE_MODEL_ROW_WEIGHTS_H_
#define KERNELSTREAM_CORE_MODEL_ROW_WEIGHTS_H_

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/model/sample_batch.h"

namespace kernelstream {

inline std::vector<double> WeightsOf(const SampleBatch& rows) {
  std::vector<double> weights(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) weights[i] = rows.weight(i);
  return weights;
}

// weights, or nothing if they are all equal: what is chosen from rows has the same bits then,
// whatever their weight.
inline std::span<const double> UnlessEqual(std::span<const double> weights) {
  const auto differs = [&](double weight) { return weight != weights[0]; };
  return std::ranges::any_of(weights, differs) ? weights : std::span<const double>();
}

// (value, weight), at least one: the first value that, with all smaller ones, has more than this
// share of the weight; the largest if rounding leaves none.
inline double ValueAbove(double share, std::vector<std::pair<double, double>> weighted) {
  std::ranges::sort(weighted);
  double total = 0;
  for (const auto& [value, weight] : weighted) total += weight;
  double sum = 0;
  for (const auto& [value, weight] : weighted) {
    sum += weight;
    if (sum > share * total) return value;
  }
  return weighted.back().first;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_ROW_WEIGHTS_H_
