#include "core/model/median_distance.h"

#include <algorithm>
#include <vector>

namespace kernelstream {
namespace {

constexpr size_t kMostRows = 256;
// Wide inputs: fewer rows, so that choosing a bandwidth takes well under a second.
constexpr size_t kMostWork = size_t{1} << 27;

}  // namespace

double MedianDistance(ConstMatrixView rows, const Kernel& kernel) {
  size_t count = std::min(rows.rows, kMostRows);
  while (count > 32 && count * count / 2 * rows.cols > kMostWork) count /= 2;
  std::vector<std::vector<double>> x(count);
  for (size_t i = 0; i < count; ++i) x[i].assign(rows.row(i).begin(), rows.row(i).end());
  std::vector<double> distances;
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double distance = kernel.Distance(x[i], x[j]);
      if (distance > 0) distances.push_back(distance);
    }
  }
  if (distances.empty()) return 1;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

void ChooseKernel(ConstMatrixView rows, ComponentConfig& config) {
  for (ComponentTerm& term : config.terms) ChooseKernel(rows, term.component);
  ChooseKernelParameters(rows, config);
  if (config.parameters.contains("bandwidth")) return;
  const auto kernel = MakeUnitKernel(config);
  config.parameters["bandwidth"] =
      std::clamp(MedianDistance(rows, **kernel) * config.parameters.at("bandwidth_scale"),
                 kSmallestBandwidth, kLargestBandwidth);
}

}  // namespace kernelstream
