// Sums and moves of several models' coefficients over the same features: those of few outputs
// together, so that features are read once.
#ifndef KERNELSTREAM_CORE_MODEL_JOINT_SUMS_H_
#define KERNELSTREAM_CORE_MODEL_JOINT_SUMS_H_

#include <cstddef>
#include <span>
#include <vector>

namespace kernelstream {

// Thread-safe, both. features: [num_panels][rows][16]; coefficients of each model:
// [num_panels][outputs][16].

// sums[m], [rows][outputs] = FeatureSums with coefficients[m], bit for bit.
void SumTogether(const float* features, size_t num_panels, size_t rows,
                 std::span<const float* const> coefficients, size_t outputs,
                 std::span<std::vector<double>* const> sums);

// AddWeightedFeatures with weights[m], [rows][outputs], to coefficients[m], bit for bit.
void MoveTogether(const float* features, size_t num_panels, size_t rows,
                  std::span<const float* const> weights, size_t outputs,
                  std::span<float* const> coefficients);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_JOINT_SUMS_H_
