// The paper's two stochastic estimates of a Gaussian process's predictive variance. Source: Dai et
// al. 2014, "Gaussian Process Regression"; the operator's recursion in the order that keeps it
// unbiased (decay of the old coefficients after they were read).
#ifndef KERNELSTREAM_CORE_MODEL_STOCHASTIC_VARIANCE_H_
#define KERNELSTREAM_CORE_MODEL_STOCHASTIC_VARIANCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/simd/simd.h"

namespace kernelstream {

inline constexpr size_t kMostTestPoints = 256;

// Of rows; weights: [rows], or empty: ones.
double TotalWeight(size_t rows, std::span<const double> weights);

// Square-loss regressions that share features: 4 bytes x features x outputs.
struct SharedRegressionState {
  std::vector<float> coefficients;  // [panel][output][16]
};

// Thread-compatible; deterministic. One proximal step for all regressions at once: with K the
// batch's kernel matrix of the features, E the errors [rows, outputs] and b its rows,
//   (K + (step constant + ridge b) I) V = E,
//   coefficients = (1 - ridge b / (step constant + ridge b)) coefficients - features' V / D.
// Where rows have weights w, b is their sum, and I is diag(1 / w).
class SharedRegression {
 public:
  // num_features: a positive multiple of 16.
  SharedRegression(size_t num_features, size_t num_outputs);
  // DATA_LOSS if the state is not one of these sizes.
  absl::Status Restore(SharedRegressionState state);

  // out: [rows][num_outputs].
  void Predict(const float* features, size_t rows, double* out) const;
  // One step towards targets [rows][num_outputs]. weights: [rows], > 0; empty: ones.
  void Step(const float* features, size_t rows, std::span<const double> weights,
            std::span<const double> targets, double ridge, double step_constant);
  // The same step with errors of the caller's: derivatives of another loss, [rows][num_outputs].
  void StepAlong(const float* features, size_t rows, std::span<const double> weights,
                 std::vector<double> errors, double ridge, double step_constant);
  // coefficients = decay coefficients + features' dual, dual [rows][num_outputs].
  void Move(double decay, const float* features, size_t rows, std::span<const float> dual);
  // Makes feature f have a coefficient that is not 0, too small to matter, if it has none.
  void MarkUsed(size_t f);

  size_t num_features() const { return num_features_; }
  size_t num_outputs() const { return num_outputs_; }
  const SharedRegressionState& state() const { return state_; }

 private:
  size_t num_features_, num_outputs_;
  SharedRegressionState state_;
};

// Thread-compatible; deterministic. The operator A = C (C + (noise / n) I)^-1, C the mean of k(x_i,
// .) (x) k(x_i, .), as
//   A = sum_ij theta_ij phi_i (x) phi'_j,   variance(x) = k(x, x) - sum_ij theta_ij phi_i(x)
//   phi'_j(x),
// where phi (left) and phi' (right) are TWO families of random features from independent seeds:
// with one family the expectation would be wrong. Row i of theta is a regression on the right
// features of the target phi_i(x) / D. Features of both sides: [panel][rows][16], num_features() of
// them. Memory: 4 D^2 bytes. A row costs about 4 D^2 operations, to learn and to ask.
class OperatorVariance {
 public:
  explicit OperatorVariance(size_t num_features) : regression_(num_features, num_features) {}
  absl::Status Restore(SharedRegressionState state) {
    return regression_.Restore(std::move(state));
  }

  // The paper's recursion to the letter, for a block of `block` new features after `before` old
  // ones (on both sides; features beyond before + block are not looked at). With b rows, c_i(x) the
  // sum over old j of theta_ij phi'_j(x), and read before anything changes:
  //   theta_ij *= 1 - step_size * ridge                                           i, j old
  //   theta_ik = -step_size / (b block) sum_x c_i(x) phi'_k(x)                    i old, k new
  //   theta_mk = step_size / (b block^2) sum_x phi_m(x) phi'_k(x)                 m, k new
  // weights: what each row counts in the sums, [rows]; empty: ones.
  void GrowBlock(const float* left, const float* right, size_t rows,
                 std::span<const double> weights, size_t before, size_t block, double step_size,
                 double ridge);
  // Right features up to the last one that has a coefficient: what GrowBlock has grown.
  size_t FeaturesInUse() const;
  // A proximal step on all features, for when there are no new ones. weights: as
  // SharedRegression::Step. ridge: noise / n.
  void Step(const float* left, const float* right, size_t rows, std::span<const double> weights,
            double ridge);

  // out: [rows], in [0, prior]. prior: |phi(x)|^2 / D rather than k(x, x), so that most of the
  // left family's sampling error cancels.
  void Variance(const float* left, const float* right, size_t rows, double* out) const;
  // sum_ij theta_ij phi_i(x) phi'_j(x). out: [rows].
  void Quadratic(const float* left, const float* right, size_t rows, double* out) const;

  size_t num_features() const { return regression_.num_features(); }
  // theta_ij is coefficients[(j / 16 * D + i) * 16 + j % 16].
  const SharedRegressionState& state() const { return regression_.state(); }

 private:
  SharedRegression regression_;
};

// Thread-compatible; deterministic. For test points x*_i that are known beforehand: functions f_i
// that regress k(x*_i, .) on the features, and variance(x*_i) = k(x*_i, x*_i) - f_i(x*_i). All
// share their features. Memory: 4 bytes x features x points, and the features of the points.
class TestPointVariance {
 public:
  // point_features: of the points, [panel][points][16]. prior: k(x*_i, x*_i), [points].
  TestPointVariance(size_t num_features, std::vector<float> point_features,
                    std::vector<double> prior);
  absl::Status Restore(SharedRegressionState state) {
    return regression_.Restore(std::move(state));
  }

  // weights: as SharedRegression::Step. kernel_values: k(x*_i, x_r), [rows][points]. ridge: noise /
  // n.
  void Step(const float* features, size_t rows, std::span<const double> weights,
            std::span<const double> kernel_values, double ridge);
  // Of each point, in [0, prior].
  std::vector<double> Variances() const;

  size_t num_points() const { return prior_.size(); }
  const SharedRegressionState& state() const { return regression_.state(); }

 private:
  SharedRegression regression_;
  std::vector<float> point_features_;
  std::vector<double> prior_;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_STOCHASTIC_VARIANCE_H_
