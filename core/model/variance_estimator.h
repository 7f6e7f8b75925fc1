// The uncertainty of a regression's predictions, by the method that the config names.
#ifndef KERNELSTREAM_CORE_MODEL_VARIANCE_ESTIMATOR_H_
#define KERNELSTREAM_CORE_MODEL_VARIANCE_ESTIMATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/digest.h"
#include "core/model/interval_calibration.h"
#include "core/model/model_config.h"
#include "core/model/posterior.h"
#include "core/model/sample_batch.h"
#include "core/model/stochastic_variance.h"
#include "core/model/update_rule.h"

namespace kernelstream {

// Of one prediction, in standardised target units.
struct RowUncertainty {
  std::optional<double> variance;  // of the function, without the noise; absent: not known
  double below = 0, above = 0;     // the target is in [value - below, value + above]
};

// Features of some rows under the served kernel: the first num_features of the model's stream, and
// for the operator as many from a stream of seed SecondFamilySeed(seed). [panel][rows][16].
struct VarianceFeatures {
  const float* first = nullptr;
  const float* second = nullptr;
};

inline uint64_t SecondFamilySeed(uint64_t seed) { return seed ^ 0x5851F42D4C957F2Du; }

// Immutable. What a snapshot keeps.
class PredictiveVariance {
 public:
  size_t num_features() const { return num_features_; }
  bool needs_second_features() const { return operator_ != nullptr; }
  double noise_variance() const { return noise_variance_; }  // standardised target units squared
  double interval_factor() const { return factor_; }
  // Rows [first, first + count) of `rows`, as they were sent; features of those rows. out: [count].
  // Uses thread-local scratch. Row i's result does not depend on the other rows.
  void Assess(const SampleBatch& rows, size_t first, size_t count, const VarianceFeatures& features,
              RowUncertainty* out) const;

 private:
  friend class VarianceEstimator;
  // Index of the test point with these inputs.
  std::optional<size_t> PointOf(const RowView& row) const;

  size_t num_features_ = 0;
  double noise_variance_ = 1, factor_ = 1;
  // One of them, by method.
  std::shared_ptr<const PosteriorFactor> posterior_;
  std::shared_ptr<const OperatorVariance> operator_;
  std::shared_ptr<const std::vector<std::vector<float>>> points_;
  std::vector<double> point_variances_;
  std::shared_ptr<const SharedRegression> quantiles_;  // low, high of the residual
};

// Decayed squared errors, predict-then-learn, of two predictors on the same rows.
struct MeanErrorsState {
  uint64_t rows = 0;
  double posterior = 0, learner = 0;  // sums, each row times its weight
};

// Everything a VarianceEstimator needs to go on: the parts its method has. See PosteriorState and
// SharedRegressionState for the bytes.
struct VarianceState {
  uint64_t rows = 0;
  double row_weight = 0;  // of these rows together
  PosteriorState posterior;
  SharedRegressionState regression;
  CalibrationState calibration;
  MeanErrorsState mean_errors;  // kExact
};

// Thread-compatible; deterministic: a replay of the same calls gives the same state, whatever was
// published in between.
//   kExact        ExactPosterior
//   kOperator     OperatorVariance. Beside a rule of the newest block it grows by the paper's
//                 recursion, at each step by as many features as the model (block_features, or
//                 one for each row), with the rule's step size, but no more than
//                 1 / (k(x, x) (1 + 1/rows + 1/features)), from where it could diverge. Once it
//                 has all its features, and beside other rules from the first row on, it takes
//                 proximal steps on all of them
//   kTestPoints   TestPointVariance, with phi(x*)' phi(x) / D as k(x*, x); other rows have no
//                 variance and an interval of the noise alone
//   kQuantilePair two regressions of the residual's quantiles (1 -+ coverage) / 2, pinball loss; no
//                 variance
// and IntervalCalibration for all of them.
// kExact also has a mean. It is a Gaussian process's on the first features, at one bandwidth; a
// learner has all of them, and targets that change. Whichever was closer to recent rows before they
// were learned is served.
class VarianceEstimator {
 public:
  // config: complete, method not kNone. target_scale: target units per standardised unit. rule: the
  // model's; null: one that updates all features.
  VarianceEstimator(const ModelConfig& config, double target_scale,
                    std::unique_ptr<const UpdateRule> rule = nullptr);

  // Features of each kind that Learn and Assess take: a multiple of 16, at most what the model may
  // have.
  size_t num_features() const { return num_features_; }
  bool needs_second_features() const { return variance_.method == VarianceMethod::kOperator; }
  // kTestPoints: their raw inputs, whose features Start wants.
  const std::vector<std::vector<float>>& test_points() const { return *points_; }

  // Before the first row, and again when the served kernel has changed: forgets the rows, whose
  // features are no more, but not how large errors were. point_features: [panel][points][16], for
  // kTestPoints.
  void Start(std::span<const float> point_features = {});
  // After Start. DATA_LOSS for a state of another config.
  absl::Status Restore(VarianceState state);

  // kExact; nothing for the others. Of rows that are about to be learned: scores, the learner's,
  // become the posterior's mean where that is served, and errors of both are noted. [rows] each,
  // standardised.
  void ChooseMean(const VarianceFeatures& features, std::span<const double> targets,
                  std::span<const double> weights, std::span<double> scores);
  // The posterior's mean is served.
  bool serves_mean() const;
  // Its coefficients, of the first features: [panel][16]. serves_mean() only.
  const std::vector<float>& mean() const { return posterior_->factor()->mean(); }
  // After a drift: errors from before it count little.
  void DiscountMeanErrors(double factor);

  // A mini-batch of 1 ... 1024 rows. targets, weights (empty: ones), residuals: [rows],
  // standardised; residual = target - prediction from before the rows were learned; empty for rows
  // that are learned again, which say nothing about errors. assessed: null, or gets what each row
  // with a residual was expected to be, from before it was learned; variance is not filled in.
  void Learn(const VarianceFeatures& features, size_t rows, std::span<const double> targets,
             std::span<const double> weights, std::span<const double> residuals,
             std::vector<RowUncertainty>* assessed = nullptr);

  // kOperator and kTestPoints, which learn too little from each row when they see it once: a
  // mini-batch that was learned before. weights: as Learn.
  bool learns_again() const { return operator_.has_value() || test_points_.has_value(); }
  void LearnAgain(const VarianceFeatures& features, size_t rows, std::span<const double> weights);

  // A function of the state. Copies what is small, and an operator (4 features^2 bytes) that has
  // learned since.
  std::shared_ptr<const PredictiveVariance> Publish();

  VarianceState state() const;
  // All of the state.
  void AddTo(Digest128& digest) const;
  uint64_t rows() const { return rows_; }  // learned since Start
  const IntervalCalibration& calibration() const { return calibration_; }

 private:
  void Calibrate(const VarianceFeatures& features, size_t rows, std::span<const double> weights,
                 std::span<const double> residuals, std::vector<RowUncertainty>* assessed);
  void StepStochastic(const VarianceFeatures& features, size_t rows,
                      std::span<const double> weights);
  void StepOperator(const VarianceFeatures& features, size_t rows, std::span<const double> weights,
                    double ridge);
  void LearnQuantiles(const float* features, size_t rows, std::span<const double> weights,
                      std::span<const double> residuals, std::vector<RowUncertainty>* assessed);

  VarianceConfig variance_;
  size_t num_features_;
  std::unique_ptr<const UpdateRule> rule_;
  size_t block_features_;  // 0: one for each row
  std::shared_ptr<const std::vector<std::vector<float>>> points_;
  std::vector<float> point_features_;
  IntervalCalibration calibration_;
  uint64_t rows_ = 0;
  double row_weight_ = 0;
  MeanErrorsState mean_errors_;
  std::optional<ExactPosterior> posterior_;
  std::optional<OperatorVariance> operator_;
  std::optional<TestPointVariance> test_points_;
  std::optional<SharedRegression> quantiles_;
  std::shared_ptr<const OperatorVariance> published_operator_;
  uint64_t published_rows_ = 0;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_VARIANCE_ESTIMATOR_H_
