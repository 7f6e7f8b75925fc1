#include "core/model/joint_sums.h"

#include <algorithm>

#include "core/base/aligned_floats.h"
#include "core/simd/simd.h"

namespace kernelstream {
namespace {

// Models with fewer outputs than this go together: the copies are small.
constexpr size_t kFewOutputs = 8;

// Coefficients of several models over the same panels, [panel][model][output][16]; scratch of this
// thread.
template <typename Pointer>
AlignedFloats& Packed(std::span<const Pointer> coefficients, size_t num_panels, size_t width) {
  thread_local AlignedFloats packed;
  const size_t models = coefficients.size(), floats = num_panels * models * width;
  if (packed.size() < floats) packed.resize(floats);
  for (size_t p = 0; p < num_panels; ++p) {
    for (size_t m = 0; m < models; ++m) {
      std::copy_n(coefficients[m] + p * width, width, packed.data() + (p * models + m) * width);
    }
  }
  return packed;
}

}  // namespace

void SumTogether(const float* features, size_t num_panels, size_t rows,
                 std::span<const float* const> coefficients, size_t outputs,
                 std::span<std::vector<double>* const> sums) {
  const size_t models = coefficients.size(), width = outputs * kPanelWidth;
  for (std::vector<double>* of_model : sums) of_model->resize(rows * outputs);
  if (models == 1 || outputs >= kFewOutputs) {
    for (size_t m = 0; m < models; ++m) {
      FeatureSums(features, num_panels, rows, coefficients[m], outputs, sums[m]->data());
    }
    return;
  }
  AlignedFloats& packed = Packed(coefficients, num_panels, width);
  std::vector<double> together(rows * models * outputs);
  FeatureSums(features, num_panels, rows, packed.data(), models * outputs, together.data());
  for (size_t i = 0; i < rows; ++i) {
    for (size_t m = 0; m < models; ++m) {
      std::copy_n(together.data() + (i * models + m) * outputs, outputs,
                  sums[m]->data() + i * outputs);
    }
  }
}

void MoveTogether(const float* features, size_t num_panels, size_t rows,
                  std::span<const float* const> weights, size_t outputs,
                  std::span<float* const> coefficients) {
  const size_t models = coefficients.size(), width = outputs * kPanelWidth;
  if (models == 1 || outputs >= kFewOutputs) {
    for (size_t m = 0; m < models; ++m) {
      AddWeightedFeatures(features, num_panels, rows, weights[m], outputs, coefficients[m]);
    }
    return;
  }
  std::vector<float> together(rows * models * outputs);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t m = 0; m < models; ++m) {
      std::copy_n(weights[m] + i * outputs, outputs, together.data() + (i * models + m) * outputs);
    }
  }
  AlignedFloats& packed = Packed(coefficients, num_panels, width);
  AddWeightedFeatures(features, num_panels, rows, together.data(), models * outputs, packed.data());
  for (size_t p = 0; p < num_panels; ++p) {
    for (size_t m = 0; m < models; ++m) {
      std::copy_n(packed.data() + (p * models + m) * width, width, coefficients[m] + p * width);
    }
  }
}

}  // namespace kernelstream
