#include "core/model/posterior.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/aligned_floats.h"
#include "core/base/finite.h"

namespace kernelstream {
namespace {

constexpr size_t kSquare = kPanelWidth * kPanelWidth;

// Index of the diagonal element of feature f.
size_t DiagonalIndex(size_t f) {
  return TriangleSize(f / kPanelWidth) + f * kPanelWidth + f % kPanelWidth;
}

// x := (L L')^-1 x. factor: as FactorTriangle leaves it.
void SolveBothWays(const std::vector<double>& factor, std::vector<double>& x) {
  const size_t panels = x.size() / kPanelWidth;
  double rest[kPanelWidth];
  for (size_t p = 0; p < panels; ++p) {
    const double* panel = factor.data() + TriangleSize(p);
    double* to = x.data() + p * kPanelWidth;
    std::copy_n(to, kPanelWidth, rest);
    for (size_t k = 0; k < p * kPanelWidth; ++k) {
      for (size_t i = 0; i < kPanelWidth; ++i) rest[i] -= panel[k * kPanelWidth + i] * x[k];
    }
    std::fill_n(to, kPanelWidth, 0.0);
    for (size_t k = 0; k < kPanelWidth; ++k) {
      const double* column = panel + p * kSquare + k * kPanelWidth;
      for (size_t i = k; i < kPanelWidth; ++i) to[i] += column[i] * rest[k];
    }
  }
  for (size_t p = panels; p-- > 0;) {
    const double* panel = factor.data() + TriangleSize(p);
    double* to = x.data() + p * kPanelWidth;
    std::copy_n(to, kPanelWidth, rest);
    for (size_t k = 0; k < kPanelWidth; ++k) {
      const double* column = panel + p * kSquare + k * kPanelWidth;
      double sum = 0;
      for (size_t i = k; i < kPanelWidth; ++i) sum += column[i] * rest[i];
      to[k] = sum;
    }
    for (size_t k = 0; k < p * kPanelWidth; ++k) {
      double sum = 0;
      for (size_t i = 0; i < kPanelWidth; ++i) sum += panel[k * kPanelWidth + i] * to[i];
      x[k] -= sum;
    }
  }
}

}  // namespace

void PosteriorFactor::Variance(const float* features, size_t rows, double* out) const {
  thread_local AlignedFloats solved;
  solved.assign(features, features + num_features_ * rows);
  const size_t panels = num_features_ / kPanelWidth;
  SolveTriangle(factor_.data(), panels, rows, solved.data());
  for (size_t r = 0; r < rows; ++r) {
    double lanes[kPanelWidth] = {};
    for (size_t p = 0; p < panels; ++p) {
      const float* z = solved.data() + (p * rows + r) * kPanelWidth;
      for (size_t i = 0; i < kPanelWidth; ++i) lanes[i] += double{z[i]} * double{z[i]};
    }
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    out[r] = noise_variance_ * sum;
  }
}

void PosteriorFactor::Mean(const float* features, size_t rows, double* out) const {
  FeatureSums(features, num_features_ / kPanelWidth, rows, mean_.data(), 1, out);
}

ExactPosterior::ExactPosterior(size_t num_features)
    : products_(TriangleSize(num_features / kPanelWidth)), target_products_(num_features) {
  constexpr double kNoise = 1;
  const double prior = kNoise * static_cast<double>(num_features);
  std::vector<float> factor(products_.size());
  for (size_t f = 0; f < num_features; ++f) {
    factor[DiagonalIndex(f)] = static_cast<float>(1 / std::sqrt(prior));
  }
  factor_ = std::make_shared<const PosteriorFactor>(num_features, 0, kNoise, std::move(factor),
                                                    std::vector<float>(num_features));
}

absl::StatusOr<ExactPosterior> ExactPosterior::Restore(PosteriorState state) {
  const size_t features = state.target_products.size();
  const size_t elements = TriangleSize(features / kPanelWidth);
  if (features == 0 || features % kPanelWidth != 0 || features > kMostPosteriorFeatures ||
      state.products.size() != elements || state.factor.size() != elements ||
      state.mean.size() != features) {
    return absl::DataLossError(
        absl::StrCat("variance state: ", features, " features with ", state.products.size(),
                     " products, ", state.factor.size(), " factor elements and ", state.mean.size(),
                     " coefficients do not fit together"));
  }
  if (state.factor_rows > state.rows || !(state.factor_noise_variance > 0) ||
      !std::isfinite(state.factor_noise_variance) || !AllFinite(state.products) ||
      !AllFinite(state.target_products) || !AllFinite(state.factor) || !AllFinite(state.mean)) {
    return absl::DataLossError("variance state: a value is out of range");
  }
  ExactPosterior posterior;
  posterior.rows_ = state.rows;
  posterior.products_ = std::move(state.products);
  posterior.target_products_ = std::move(state.target_products);
  posterior.factor_ = std::make_shared<const PosteriorFactor>(
      features, state.factor_rows, state.factor_noise_variance, std::move(state.factor),
      std::move(state.mean));
  return posterior;
}

PosteriorState ExactPosterior::state() const {
  PosteriorState state;
  state.rows = rows_;
  state.products = products_;
  state.target_products = target_products_;
  state.factor_rows = factor_->rows();
  state.factor_noise_variance = factor_->noise_variance();
  state.factor = factor_->factor();
  state.mean = factor_->mean();
  return state;
}

void ExactPosterior::AddTo(Digest128& digest) const {
  digest.AddU64(rows_);
  digest.Add(products_.data(), products_.size() * sizeof(double));
  digest.Add(target_products_.data(), target_products_.size() * sizeof(double));
  digest.AddU64(factor_->rows());
  digest.AddDouble(factor_->noise_variance());
  digest.Add(factor_->factor().data(), factor_->factor().size() * sizeof(float));
  digest.Add(factor_->mean().data(), factor_->mean().size() * sizeof(float));
}

void ExactPosterior::Add(const float* features, size_t rows, std::span<const double> targets,
                         std::span<const double> weights, double noise_variance) {
  const size_t panels = num_features() / kPanelWidth;
  std::vector<float> scaled;
  const bool weighted =
      std::any_of(weights.begin(), weights.end(), [](double w) { return w != 1; });
  if (weighted) {
    scaled.resize(num_features() * rows);
    for (size_t r = 0; r < rows; ++r) {
      const auto root = static_cast<float>(std::sqrt(weights[r]));
      for (size_t p = 0; p < panels; ++p) {
        const size_t at = (p * rows + r) * kPanelWidth;
        for (size_t i = 0; i < kPanelWidth; ++i) scaled[at + i] = root * features[at + i];
      }
    }
  }
  AddFeatureProducts(weighted ? scaled.data() : features, panels, rows, products_.data());
  for (size_t r = 0; r < rows; ++r) {
    const double value = weighted ? weights[r] * targets[r] : targets[r];
    for (size_t p = 0; p < panels; ++p) {
      const float* row = features + (p * rows + r) * kPanelWidth;
      double* to = target_products_.data() + p * kPanelWidth;
      for (size_t i = 0; i < kPanelWidth; ++i) to[i] += value * double{row[i]};
    }
  }
  rows_ += rows;
  if (FactorIsDue()) Refactor(noise_variance);
}

bool ExactPosterior::FactorIsDue() const {
  const uint64_t before = factor_->rows(), quarter = num_features() / 4;
  return rows_ - before >= std::max({uint64_t{1}, std::min(before, quarter), before / 8});
}

void ExactPosterior::Refactor(double noise_variance) {
  const size_t panels = num_features() / kPanelWidth;
  noise_variance = std::max(noise_variance, kSmallestNoiseVariance);
  std::vector<double> factor;
  while (true) {
    factor = products_;
    const double prior = noise_variance * static_cast<double>(num_features());
    for (size_t f = 0; f < num_features(); ++f) factor[DiagonalIndex(f)] += prior;
    if (FactorTriangle(panels, factor.data())) break;
    noise_variance *= 10;  // rounding has left nothing of so small a diagonal
  }
  std::vector<double> mean = target_products_;
  SolveBothWays(factor, mean);
  factor_ = std::make_shared<const PosteriorFactor>(
      num_features(), rows_, noise_variance, std::vector<float>(factor.begin(), factor.end()),
      std::vector<float>(mean.begin(), mean.end()));
}

}  // namespace kernelstream
