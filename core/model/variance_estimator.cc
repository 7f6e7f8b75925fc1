#include "core/model/variance_estimator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "core/model/task_metrics.h"

namespace kernelstream {
namespace {

// Damping of the quantile regressions' proximal step: large, as pinball derivatives do not shrink
// near the solution.
constexpr double kQuantileStepConstant = 8;
// Rows that the posterior's mean and the learner are compared on before the mean may be served.
constexpr uint64_t kRowsToServeMean = 128;

size_t FeaturesFor(const ModelConfig& config) {
  const uint32_t most = std::max(config.max_features / 16 * 16, 16u);
  return std::min(config.variance.features, most);
}

std::optional<double> StandardisedNoise(const VarianceConfig& config, double target_scale) {
  if (!config.noise_variance.has_value()) return std::nullopt;
  return *config.noise_variance / (target_scale * target_scale);
}

// phi(x*_i)' phi(x_r) / D, [rows][points].
std::vector<double> FeatureKernel(const std::vector<float>& points, size_t num_points,
                                  const float* features, size_t rows, size_t num_features) {
  std::vector<double> out(rows * num_points);
  // The points' features in the layout of coefficients are what they are: [panel][point][16].
  FeatureSums(features, num_features / kPanelWidth, rows, points.data(), num_points, out.data());
  for (double& value : out) value /= static_cast<double>(num_features);
  return out;
}

// Mean square of a feature, which is k(x, x) on average. features: [panel][rows][16].
double MeanSquare(const float* features, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += double{features[i]} * double{features[i]};
  return sum / static_cast<double>(count);
}

// From estimated quantiles of the residual, in any order, and how far beyond them to reach.
RowUncertainty Around(double one, double other, double reach) {
  const double low = std::min(one, other) - reach, high = std::max(one, other) + reach;
  RowUncertainty out;
  out.below = -std::min(low, (low + high) / 2);
  out.above = std::max(high, (low + high) / 2);
  return out;
}

}  // namespace

std::optional<size_t> PredictiveVariance::PointOf(const RowView& row) const {
  for (size_t p = 0; p < points_->size(); ++p) {
    const std::vector<float>& point = (*points_)[p];
    if (row.MinDimension() > point.size()) continue;
    bool equal = true;
    size_t next = 0;  // of the sparse row's values
    for (size_t j = 0; j < point.size() && equal; ++j) {
      float value = 0;
      if (!row.sparse) {
        if (j < row.values.size()) value = row.values[j];
      } else if (next < row.indices.size() && row.indices[next] == j) {
        value = row.values[next++];
      }
      equal = value == point[j];
    }
    if (equal) return p;
  }
  return std::nullopt;
}

void PredictiveVariance::Assess(const SampleBatch& rows, size_t first, size_t count,
                                const VarianceFeatures& features, RowUncertainty* out) const {
  const double deviation = std::sqrt(noise_variance_);
  if (quantiles_ != nullptr) {
    std::vector<double> pair(count * 2);
    quantiles_->Predict(features.first, count, pair.data());
    for (size_t i = 0; i < count; ++i) {
      out[i] = Around(pair[2 * i], pair[2 * i + 1], factor_ * deviation);
    }
    return;
  }
  std::vector<double> variances(count, 0.0);
  if (posterior_ != nullptr) posterior_->Variance(features.first, count, variances.data());
  if (operator_ != nullptr) {
    operator_->Variance(features.first, features.second, count, variances.data());
  }
  for (size_t i = 0; i < count; ++i) {
    out[i].variance = variances[i];
    if (points_ != nullptr) {
      const std::optional<size_t> point = PointOf(rows.row(first + i));
      if (point.has_value()) {
        out[i].variance = variances[i] = point_variances_[*point];
      } else {
        out[i].variance.reset();
      }
    }
    out[i].below = out[i].above = factor_ * std::sqrt(noise_variance_ + variances[i]);
  }
}

VarianceEstimator::VarianceEstimator(const ModelConfig& config, double target_scale,
                                     std::unique_ptr<const UpdateRule> rule)
    : variance_(config.variance),
      num_features_(FeaturesFor(config)),
      rule_(std::move(rule)),
      block_features_(config.block_features),
      points_(std::make_shared<const std::vector<std::vector<float>>>(config.variance.test_points)),
      calibration_(config.variance.coverage, StandardisedNoise(config.variance, target_scale)) {}

void VarianceEstimator::Start(std::span<const float> point_features) {
  rows_ = published_rows_ = 0;
  row_weight_ = 0;
  mean_errors_ = {};
  published_operator_.reset();
  switch (variance_.method) {
    case VarianceMethod::kNone:
      break;
    case VarianceMethod::kExact:
      posterior_.emplace(num_features_);
      break;
    case VarianceMethod::kOperator:
      operator_.emplace(num_features_);
      break;
    case VarianceMethod::kTestPoints: {
      point_features_.assign(point_features.begin(), point_features.end());
      const size_t points = points_->size();
      const std::vector<double> kernel =
          FeatureKernel(point_features_, points, point_features_.data(), points, num_features_);
      std::vector<double> prior(points);
      for (size_t i = 0; i < points; ++i) prior[i] = kernel[i * points + i];
      test_points_.emplace(num_features_, point_features_, std::move(prior));
      break;
    }
    case VarianceMethod::kQuantilePair:
      quantiles_.emplace(num_features_, 2);
      break;
  }
}

absl::Status VarianceEstimator::Restore(VarianceState state) {
  if (absl::Status s = calibration_.Restore(std::move(state.calibration)); !s.ok()) return s;
  if (!(state.row_weight >= 0 && std::isfinite(state.row_weight))) {
    return absl::DataLossError("variance state: the weight of its rows is out of range");
  }
  rows_ = state.rows;
  row_weight_ = state.row_weight;
  const MeanErrorsState& errors = state.mean_errors;
  if (!(errors.posterior >= 0 && std::isfinite(errors.posterior) && errors.learner >= 0 &&
        std::isfinite(errors.learner))) {
    return absl::DataLossError("variance state: a sum of errors is out of range");
  }
  mean_errors_ = errors;
  if (posterior_.has_value()) {
    auto posterior = ExactPosterior::Restore(std::move(state.posterior));
    if (!posterior.ok()) return posterior.status();
    if (posterior->num_features() != num_features_) {
      return absl::DataLossError("variance state: it has another number of features");
    }
    posterior_ = *std::move(posterior);
  }
  if (operator_.has_value()) return operator_->Restore(std::move(state.regression));
  if (test_points_.has_value()) return test_points_->Restore(std::move(state.regression));
  if (quantiles_.has_value()) return quantiles_->Restore(std::move(state.regression));
  return absl::OkStatus();
}

VarianceState VarianceEstimator::state() const {
  VarianceState state;
  state.rows = rows_;
  state.row_weight = row_weight_;
  state.calibration = calibration_.state();
  state.mean_errors = mean_errors_;
  if (posterior_.has_value()) state.posterior = posterior_->state();
  if (operator_.has_value()) state.regression = operator_->state();
  if (test_points_.has_value()) state.regression = test_points_->state();
  if (quantiles_.has_value()) state.regression = quantiles_->state();
  return state;
}

void VarianceEstimator::AddTo(Digest128& digest) const {
  digest.AddU64(rows_);
  digest.AddU64(mean_errors_.rows);
  digest.AddDouble(mean_errors_.posterior);
  digest.AddDouble(mean_errors_.learner);
  const CalibrationState& calibration = calibration_.state();
  digest.AddU64(calibration.rows);
  digest.AddDouble(calibration.squared_errors);
  digest.AddDouble(calibration.variances);
  digest.AddDouble(calibration.weight);
  digest.Add(calibration.ratios.data(), calibration.ratios.size() * sizeof(float));
  // Models without weights keep the fingerprints that they had before these were noted.
  if (row_weight_ != static_cast<double>(rows_)) digest.AddDouble(row_weight_);
  digest.Add(calibration.weights.data(), calibration.weights.size() * sizeof(float));
  if (posterior_.has_value()) posterior_->AddTo(digest);
  const auto add = [&](const SharedRegressionState& state) {
    digest.Add(state.coefficients.data(), state.coefficients.size() * sizeof(float));
  };
  if (operator_.has_value()) add(operator_->state());
  if (test_points_.has_value()) add(test_points_->state());
  if (quantiles_.has_value()) add(quantiles_->state());
}

bool VarianceEstimator::serves_mean() const {
  return mean_errors_.rows >= kRowsToServeMean && mean_errors_.posterior < mean_errors_.learner;
}

void VarianceEstimator::ChooseMean(const VarianceFeatures& features,
                                   std::span<const double> targets, std::span<const double> weights,
                                   std::span<double> scores) {
  if (!posterior_.has_value()) return;
  const size_t rows = scores.size();
  std::vector<double> means(rows);
  posterior_->factor()->Mean(features.first, rows, means.data());
  const bool serves = serves_mean();
  DiscountMeanErrors(RecentDecay(mean_errors_.rows, rows));
  for (size_t i = 0; i < rows; ++i) {
    const double weight = weights.empty() ? 1 : weights[i];
    const double posterior = means[i] - targets[i], learner = scores[i] - targets[i];
    mean_errors_.posterior += weight * posterior * posterior;
    mean_errors_.learner += weight * learner * learner;
  }
  mean_errors_.rows += rows;
  if (serves) std::copy(means.begin(), means.end(), scores.begin());
}

void VarianceEstimator::DiscountMeanErrors(double factor) {
  mean_errors_.posterior *= factor;
  mean_errors_.learner *= factor;
}

void VarianceEstimator::Calibrate(const VarianceFeatures& features, size_t rows,
                                  std::span<const double> weights,
                                  std::span<const double> residuals,
                                  std::vector<RowUncertainty>* assessed) {
  std::vector<double> variances(rows, 0.0);
  if (posterior_.has_value()) {
    posterior_->factor()->Variance(features.first, rows, variances.data());
  }
  if (operator_.has_value()) {
    operator_->Variance(features.first, features.second, rows, variances.data());
  }
  if (assessed != nullptr) {
    const double noise = calibration_.noise_variance(), factor = calibration_.factor();
    for (const double variance : variances) {
      RowUncertainty& row = assessed->emplace_back();
      row.below = row.above = factor * std::sqrt(noise + variance);
    }
  }
  calibration_.Observe(residuals, variances, weights);
}

void VarianceEstimator::LearnQuantiles(const float* features, size_t rows,
                                       std::span<const double> weights,
                                       std::span<const double> residuals,
                                       std::vector<RowUncertainty>* assessed) {
  std::vector<double> pair(rows * 2), lows(rows), highs(rows);
  quantiles_->Predict(features, rows, pair.data());
  for (size_t i = 0; i < rows; ++i) {
    lows[i] = std::min(pair[2 * i], pair[2 * i + 1]);
    highs[i] = std::max(pair[2 * i], pair[2 * i + 1]);
  }
  const double reach = calibration_.factor() * std::sqrt(calibration_.noise_variance());
  for (size_t i = 0; assessed != nullptr && i < rows; ++i) {
    assessed->push_back(Around(lows[i], highs[i], reach));
  }
  calibration_.ObservePair(residuals, lows, highs, weights);
  const double levels[] = {(1 - variance_.coverage) / 2, (1 + variance_.coverage) / 2};
  const double deviation = std::sqrt(calibration_.noise_variance());
  for (size_t i = 0; i < rows; ++i) {
    for (size_t k = 0; k < 2; ++k) {
      const double above = pair[2 * i + k] >= residuals[i] ? 1 : 0;
      pair[2 * i + k] = std::isfinite(residuals[i]) ? deviation * (above - levels[k]) : 0;
    }
  }
  quantiles_->StepAlong(features, rows, weights, std::move(pair), 0, kQuantileStepConstant);
}

void VarianceEstimator::Learn(const VarianceFeatures& features, size_t rows,
                              std::span<const double> targets, std::span<const double> weights,
                              std::span<const double> residuals,
                              std::vector<RowUncertainty>* assessed) {
  if (!residuals.empty()) {
    if (quantiles_.has_value()) {
      LearnQuantiles(features.first, rows, weights, residuals, assessed);
    } else {
      Calibrate(features, rows, weights, residuals, assessed);
    }
  }
  rows_ += rows;
  row_weight_ += TotalWeight(rows, weights);
  const double noise = calibration_.noise_variance();
  if (posterior_.has_value()) posterior_->Add(features.first, rows, targets, weights, noise);
  StepStochastic(features, rows, weights);
}

void VarianceEstimator::LearnAgain(const VarianceFeatures& features, size_t rows,
                                   std::span<const double> weights) {
  published_operator_.reset();
  StepStochastic(features, rows, weights);
}

void VarianceEstimator::StepStochastic(const VarianceFeatures& features, size_t rows,
                                       std::span<const double> weights) {
  const double ridge = calibration_.noise_variance() / std::max(row_weight_, 1.0);
  if (operator_.has_value()) StepOperator(features, rows, weights, ridge);
  if (test_points_.has_value()) {
    const std::vector<double> kernel =
        FeatureKernel(point_features_, points_->size(), features.first, rows, num_features_);
    test_points_->Step(features.first, rows, weights, kernel, ridge);
  }
}

void VarianceEstimator::StepOperator(const VarianceFeatures& features, size_t rows,
                                     std::span<const double> weights, double ridge) {
  const bool grows = rule_ != nullptr && !rule_->updates_all_features();
  // Taken from the coefficients, so that there is nothing else to save.
  const size_t used = grows ? operator_->FeaturesInUse() : num_features_;
  if (used == num_features_) {
    return operator_->Step(features.first, features.second, rows, weights, ridge);
  }
  const size_t wanted = block_features_ != 0 ? block_features_ : rows;
  const size_t block = std::min(wanted, num_features_ - used);
  const auto b = static_cast<double>(rows), r = static_cast<double>(block);
  const double diagonal = MeanSquare(features.second, num_features_ * rows);
  const double most = 1 / std::max(diagonal * (1 + 1 / r + 1 / b), ridge);
  const double step_size = std::min(rule_->StepSize(used / wanted + 1, rows, block), most);
  // Rows count beside all others so far; a batch never counts more than if they were alike.
  std::vector<double> shares(weights.begin(), weights.end());
  const double usual = row_weight_ / static_cast<double>(std::max<uint64_t>(rows_, 1));
  const double total = std::max(TotalWeight(rows, weights), b * usual);
  for (double& share : shares) share *= b / total;
  operator_->GrowBlock(features.first, features.second, rows, shares, used, block, step_size,
                       ridge);
}

std::shared_ptr<const PredictiveVariance> VarianceEstimator::Publish() {
  auto out = std::make_shared<PredictiveVariance>();
  out->num_features_ = num_features_;
  out->noise_variance_ = calibration_.noise_variance();
  out->factor_ = calibration_.factor();
  if (posterior_.has_value()) out->posterior_ = posterior_->factor();
  if (operator_.has_value()) {
    if (published_operator_ == nullptr || rows_ != published_rows_) {
      published_operator_ = std::make_shared<const OperatorVariance>(*operator_);
      published_rows_ = rows_;
    }
    out->operator_ = published_operator_;
  }
  if (test_points_.has_value()) {
    out->points_ = points_;
    out->point_variances_ = test_points_->Variances();
  }
  if (quantiles_.has_value())
    out->quantiles_ = std::make_shared<const SharedRegression>(*quantiles_);
  return out;
}

}  // namespace kernelstream
