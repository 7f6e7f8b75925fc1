// Gaussian-process regression as Bayesian linear regression on random features.
#ifndef KERNELSTREAM_CORE_MODEL_POSTERIOR_H_
#define KERNELSTREAM_CORE_MODEL_POSTERIOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/digest.h"
#include "core/simd/triangle.h"

namespace kernelstream {

inline constexpr size_t kMostPosteriorFeatures = 2048;
// Noise is taken to be at least this, in standardised target units squared: the matrices stay
// positive definite to rounding for 10^8 rows.
inline constexpr double kSmallestNoiseVariance = 1e-6;

// Immutable. The posterior over functions f(x) = sum_i a_i phi_i(x) of D features, a ~ N(0, I / D)
// before any data, seen through independent noise: with Phi [rows, D] the features learned, y their
// targets and s the noise variance,
//   L L' = s D I + Phi' Phi,   variance(x) = s |L^-1 phi(x)|^2,   mean(x) = phi(x)' (L L')^-1 Phi'
//   y.
// With k(x, x') = phi(x)' phi(x') / D this is the Gaussian process's closed form
//   k(x, x) - k(x, X) (K + s I)^-1 k(X, x)   and   k(x, X) (K + s I)^-1 y,
// exactly; and k is the kernel up to the sampling of D features. Rasmussen & Williams 2006, ch. 2.
// A row of weight w counts as one seen through noise s / w.
class PosteriorFactor {
 public:
  // factor: triangle of L (FactorTriangle), float32. mean: [num_features].
  PosteriorFactor(size_t num_features, uint64_t rows, double noise_variance,
                  std::vector<float> factor, std::vector<float> mean)
      : num_features_(num_features),
        rows_(rows),
        noise_variance_(noise_variance),
        factor_(std::move(factor)),
        mean_(std::move(mean)) {}

  // Variance of f, without the noise, in standardised target units squared, never negative.
  // features: [panel][rows][16], num_features() of them. out: [rows]. Error against float64
  // arithmetic <= 3e-4 * out + 1e-7 at noise variances from 1e-4 on (measured: 4e-6 of out at .01,
  // 1.3e-4 at 1e-4). Costs num_features()^2 operations a row: 15 us at 1024 features, 46 us for a
  // row alone. Uses thread-local scratch.
  void Variance(const float* features, size_t rows, double* out) const;
  // Mean of f, standardised target units. out: [rows]. Error <= 3e-3 standard deviations of f +
  // 1e-4, at noise variances from 1e-4 on.
  void Mean(const float* features, size_t rows, double* out) const;

  size_t num_features() const { return num_features_; }
  uint64_t rows() const { return rows_; }  // learned when the factor was made
  double noise_variance() const { return noise_variance_; }
  const std::vector<float>& factor() const { return factor_; }
  const std::vector<float>& mean() const { return mean_; }

 private:
  size_t num_features_;
  uint64_t rows_;
  double noise_variance_;
  std::vector<float> factor_, mean_;
};

// Everything an ExactPosterior needs to go on. 8 + 4 bytes for each of D (D + 16) / 2 elements: 6.4
// MB at D = 1024, 25 MB at D = 2048.
struct PosteriorState {
  uint64_t rows = 0;
  std::vector<double> products;         // triangle of Phi' W Phi
  std::vector<double> target_products;  // Phi' W y, [D]
  uint64_t factor_rows = 0;
  double factor_noise_variance = 0;
  std::vector<float> factor;  // triangle
  std::vector<float> mean;    // [D]
};

// Thread-compatible; deterministic. Accumulates Phi' Phi in float64 from products in float32 (D^2
// operations a row) and factors it again as rows come in: at 1, 2, 4, ... rows up to D / 4, then
// whenever D / 4 rows and an eighth of all rows are new. The rule counts rows and nothing else, so
// a replay makes the same factors; between two of them the variance is at most 1/8 too large. A
// factor costs D^3 / 3 operations, so at most 4/3 of what accumulating costs.
class ExactPosterior {
 public:
  // num_features: a positive multiple of 16, at most kMostPosteriorFeatures.
  explicit ExactPosterior(size_t num_features);
  // DATA_LOSS for a state that does not fit together.
  static absl::StatusOr<ExactPosterior> Restore(PosteriorState state);

  // features: [panel][rows][16]; rows in 1 ... 1024. targets: [rows], standardised. weights: [rows]
  // > 0, or empty for ones. noise_variance is used if a factor is due.
  void Add(const float* features, size_t rows, std::span<const double> targets,
           std::span<const double> weights, double noise_variance);
  // Makes a factor of all rows now, due or not.
  void Refactor(double noise_variance);

  size_t num_features() const { return target_products_.size(); }
  uint64_t rows() const { return rows_; }
  // Never null: before any row, the prior.
  std::shared_ptr<const PosteriorFactor> factor() const { return factor_; }
  PosteriorState state() const;
  // All of the state.
  void AddTo(Digest128& digest) const;

 private:
  ExactPosterior() = default;
  bool FactorIsDue() const;

  uint64_t rows_ = 0;
  std::vector<double> products_, target_products_;
  std::shared_ptr<const PosteriorFactor> factor_;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_POSTERIOR_H_
