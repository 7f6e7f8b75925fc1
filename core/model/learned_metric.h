// Which directions of the input matter, learned from the gradients of a model.
#ifndef KERNELSTREAM_CORE_MODEL_LEARNED_METRIC_H_
#define KERNELSTREAM_CORE_MODEL_LEARNED_METRIC_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/base/executor.h"
#include "core/base/inputs_view.h"
#include "core/base/matrix_view.h"
#include "core/feature/random_feature_map.h"
#include "core/model/model_config.h"
#include "core/model/trainer_state.h"

namespace kernelstream {

// Widest inputs that a metric of each form is learned for.
inline constexpr uint32_t kMaxFullMetricDim = 512;
inline constexpr uint32_t kMaxDiagonalMetricDim = 16384;

// The inputs that a metric of the pinned form can be learned of at most; without a pinned form
// there is no bound.
constexpr uint32_t WidestInputsOf(InputMetric pinned) {
  if (pinned == InputMetric::kFull) return kMaxFullMetricDim;
  return pinned == InputMetric::kDiagonal ? kMaxDiagonalMetricDim : UINT32_MAX;
}

// Immutable. x -> T x for a symmetric T, so that a kernel of (T x, T x') is one of (x, x'). Source:
// the average gradient outer product of recursive feature machines (Radhakrishnan, Beaglehole,
// Pandit, Belkin 2024), used on a stream.
class LearnedMetric {
 public:
  // Leaves inputs as they are.
  LearnedMetric() = default;
  // values: [dim] (kDiagonal) or [dim][dim] symmetric (kFull).
  LearnedMetric(MetricForm form, size_t dim, std::span<const float> values);

  bool is_identity() const { return form_ == MetricForm::kIsotropic; }
  // x: [rows, cols] -> out [rows][cols]. Coordinates beyond the metric's are copied. Same bits on
  // every SIMD target with fused multiply-add.
  void Apply(ConstMatrixView x, float* out) const;
  // x itself if this is the identity, else T x in `memory`, which grows to hold it. Sparse rows
  // have no other metric.
  InputsView Mapped(InputsView x, std::vector<float>& memory) const;
  // How far input j moves a mapped row, |T e_j|, as a share of the input that moves it most: [dim],
  // each in [0, 1]. Empty for the identity.
  std::vector<double> Relevance() const;

 private:
  MetricForm form_ = MetricForm::kIsotropic;
  size_t dim_ = 0;
  std::vector<float> values_;  // kDiagonal: [dim]; kFull: [panel of inputs][output][16]
};

// A model's coefficients as its gradient sees them.
struct GradientModel {
  const RandomFeatureMap* features = nullptr;
  const LearnedMetric* metric = nullptr;
  std::span<const float> coefficients;  // [panel][output][16]
  double scale = 1;                     // multiplies the coefficients
  size_t num_outputs = 1;
  uint64_t num_features = 0;
  double inverse_bandwidth = 1;
};

// M = mean over rows (weights: [rows], > 0; empty or all equal: alike), sum over outputs, of
// gradient gradient^T, each [dim] (kDiagonal: the diagonal alone) or [dim][dim]; dim = rows.cols.
// With several outputs, each tile of 64 rows takes one sum of the outputs with random signs (drawn
// from `seed`), whose expected square is the sum over the outputs.
std::vector<double> AverageGradientProduct(const GradientModel& model, ConstMatrixView rows,
                                           MetricForm form, uint64_t seed, Executor& executor,
                                           std::span<const double> weights = {});

// (M / (trace M / dim) + 1e-3)^(1/2), the symmetric root. Empty where M has no finite positive
// trace.
std::vector<float> MetricRoot(std::span<const double> product, size_t dim, MetricForm form);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_LEARNED_METRIC_H_
