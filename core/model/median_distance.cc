#include "core/model/median_distance.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/model/row_weights.h"

namespace kernelstream {
namespace {

constexpr size_t kMostRows = 256;
// Wide inputs: fewer rows, so that choosing a bandwidth takes well under a second.
constexpr size_t kMostWork = size_t{1} << 27;

}  // namespace

double MedianDistance(ConstMatrixView rows, const Kernel& kernel, std::span<const double> weights) {
  size_t count = std::min(rows.rows, kMostRows);
  while (count > 32 && count * count / 2 * rows.cols > kMostWork) count /= 2;
  std::vector<std::vector<double>> x(count);
  for (size_t i = 0; i < count; ++i) x[i].assign(rows.row(i).begin(), rows.row(i).end());
  weights = UnlessEqual(weights.first(std::min(weights.size(), count)));
  std::vector<double> distances;
  std::vector<std::pair<double, double>> weighted;
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double distance = kernel.Distance(x[i], x[j]);
      if (!(distance > 0)) continue;
      if (weights.empty()) {
        distances.push_back(distance);
      } else {
        weighted.push_back({distance, weights[i] * weights[j]});
      }
    }
  }
  if (!weighted.empty()) return ValueAbove(0.5, std::move(weighted));
  if (distances.empty()) return 1;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

void ChooseKernel(ConstMatrixView rows, ComponentConfig& config, std::span<const double> weights) {
  for (ComponentTerm& term : config.terms) ChooseKernel(rows, term.component, weights);
  ChooseKernelParameters(rows, config);
  if (config.parameters.contains("bandwidth")) return;
  const auto kernel = MakeUnitKernel(config);
  config.parameters["bandwidth"] =
      std::clamp(MedianDistance(rows, **kernel, weights) * config.parameters.at("bandwidth_scale"),
                 kSmallestBandwidth, kLargestBandwidth);
}

}  // namespace kernelstream
