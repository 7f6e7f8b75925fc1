// Predictive variance against closed forms with the SAME random features: what is left is rounding.
#include "core/model/posterior.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/feature/random_feature_map.h"
#include "core/model/linear_solve.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

constexpr size_t kDim = 3;

std::vector<float> Inputs(size_t rows, uint64_t seed, double size = 2) {
  std::vector<float> x(rows * kDim);
  Random random(seed);
  for (float& v : x) v = static_cast<float>(random.Uniform(-size, size));
  return x;
}

double Target(const float* x) { return std::sin(2 * x[0]) + 0.5 * x[1]; }

// Features of rows [first, first + count) of x.
std::vector<float> Features(const std::vector<float>& x, size_t num_features, size_t first,
                            size_t count) {
  const RandomFeatureMap map(FeatureSpec{}, 11, kDim, num_features, nullptr);
  std::vector<float> out(num_features * count);
  for (size_t p = 0; p < num_features / kPanelWidth; p += kPanelsPerBlock) {
    const size_t panels = std::min(kPanelsPerBlock, num_features / kPanelWidth - p);
    map.Features(ConstMatrixView(x.data() + first * kDim, count, kDim), 1.0f, p, panels,
                 out.data() + p * count * kPanelWidth);
  }
  return out;
}

std::vector<double> Targets(const std::vector<float>& x, size_t first, size_t count) {
  std::vector<double> y;
  for (size_t i = first; i < first + count; ++i) y.push_back(Target(x.data() + i * kDim));
  return y;
}

// All rows of x, in batches.
void Learn(const std::vector<float>& x, size_t batch, double noise, ExactPosterior& posterior,
           const std::vector<double>& weights = {}) {
  const size_t rows = x.size() / kDim;
  for (size_t i = 0; i < rows; i += batch) {
    const size_t count = std::min(batch, rows - i);
    const std::span<const double> all = weights;
    posterior.Add(Features(x, posterior.num_features(), i, count).data(), count,
                  Targets(x, i, count), all.empty() ? all : all.subspan(i, count), noise);
  }
}

std::vector<double> Variances(const ExactPosterior& posterior, const std::vector<float>& x) {
  const size_t rows = x.size() / kDim;
  std::vector<double> out(rows);
  posterior.factor()->Variance(Features(x, posterior.num_features(), 0, rows).data(), rows,
                               out.data());
  return out;
}

double FeatureKernel(const std::vector<float>& a, size_t rows_a, size_t i,
                     const std::vector<float>& b, size_t rows_b, size_t j) {
  const size_t features = a.size() / rows_a;
  double sum = 0;
  for (size_t f = 0; f < features; ++f) {
    const size_t panel = f / kPanelWidth, lane = f % kPanelWidth;
    sum += double{a[(panel * rows_a + i) * kPanelWidth + lane]} *
           double{b[(panel * rows_b + j) * kPanelWidth + lane]};
  }
  return sum / static_cast<double>(features);
}

struct ClosedForm {
  std::vector<double> mean, variance;
};

// Gaussian-process regression with the kernel phi' phi / D in float64.
ClosedForm GaussianProcess(const std::vector<float>& x, const std::vector<float>& at,
                           size_t num_features, double noise, const std::vector<double>& weights) {
  const size_t n = x.size() / kDim, m = at.size() / kDim;
  const std::vector<float> train = Features(x, num_features, 0, n);
  const std::vector<float> test = Features(at, num_features, 0, m);
  std::vector<double> k(n * n), right(n * (m + 1)), cross(n * m);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) k[i * n + j] = FeatureKernel(train, n, i, train, n, j);
    k[i * n + i] += noise / (weights.empty() ? 1 : weights[i]);
    right[i * (m + 1) + m] = Target(x.data() + i * kDim);
    for (size_t j = 0; j < m; ++j) {
      right[i * (m + 1) + j] = cross[i * m + j] = FeatureKernel(train, n, i, test, m, j);
    }
  }
  SolvePositiveDefinite(n, m + 1, k, right);
  ClosedForm out;
  for (size_t j = 0; j < m; ++j) {
    double explained = 0, mean = 0;
    for (size_t i = 0; i < n; ++i) {
      explained += cross[i * m + j] * right[i * (m + 1) + j];
      mean += cross[i * m + j] * right[i * (m + 1) + m];
    }
    out.mean.push_back(mean);
    out.variance.push_back(FeatureKernel(test, m, j, test, m, j) - explained);
  }
  return out;
}

void ExpectClosedForm(size_t num_features, size_t rows, double noise,
                      const std::vector<double>& weights = {}) {
  SCOPED_TRACE(testing::Message() << num_features << " features, " << rows << " rows, noise "
                                  << noise);
  const std::vector<float> x = Inputs(rows, 1), at = Inputs(40, 2, 4);
  ExactPosterior posterior(num_features);
  Learn(x, 32, noise, posterior, weights);
  posterior.Refactor(noise);
  const ClosedForm want = GaussianProcess(x, at, num_features, noise, weights);
  const std::vector<double> variance = Variances(posterior, at);
  std::vector<double> mean(40);
  posterior.factor()->Mean(Features(at, num_features, 0, 40).data(), 40, mean.data());
  double worst = 0;
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_NEAR(variance[i], want.variance[i], 3e-4 * want.variance[i] + 1e-7) << i;
    EXPECT_NEAR(mean[i], want.mean[i], 3e-3 * std::sqrt(want.variance[i]) + 1e-4) << i;
    worst = std::max(worst, std::abs(variance[i] / want.variance[i] - 1));
  }
  testing::Test::RecordProperty("worst_relative_error", std::to_string(worst));
}

TEST(ExactPosterior, IsTheClosedFormOfTheFeaturesOwnKernel) {
  ExpectClosedForm(16, 100, 0.1);
  ExpectClosedForm(256, 100, 0.01);
  ExpectClosedForm(256, 700, 0.01);
  ExpectClosedForm(512, 300, 1);
  ExpectClosedForm(512, 600, 1e-4);
}

TEST(ExactPosterior, WeighsARowLikeOneSeenThroughLessNoise) {
  std::vector<double> weights(150);
  Random random(3);
  for (double& w : weights) w = random.Uniform(0.2, 5);
  ExpectClosedForm(128, 150, 0.05, weights);
}

TEST(ExactPosterior, IsThePriorBeforeAnyRowAndFarFromAllRows) {
  ExactPosterior posterior(1024);
  const std::vector<float> near = Inputs(20, 4), far = [] {
    std::vector<float> x = Inputs(20, 5);
    for (float& v : x) v += 40;
    return x;
  }();
  const std::vector<float> features = Features(far, 1024, 0, 20);
  for (const double v : Variances(posterior, near)) EXPECT_NEAR(v, 1, 0.12);
  Learn(Inputs(400, 6), 64, 0.01, posterior);
  posterior.Refactor(0.01);
  const std::vector<double> variance = Variances(posterior, far);
  for (size_t i = 0; i < 20; ++i) {
    // 1024 features cannot tell 400 rows from something that far away without some overlap.
    EXPECT_GT(variance[i], 0.4) << i;
    EXPECT_LE(variance[i], FeatureKernel(features, 20, i, features, 20, i) * (1 + 1e-5)) << i;
  }
  for (const double v : Variances(posterior, near)) EXPECT_LT(v, 0.05);
}

TEST(ExactPosterior, VarianceFallsWithEveryRowAndIsNeverNegative) {
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    ExactPosterior posterior(128);
    const std::vector<float> x = Inputs(600, seed), at = Inputs(50, seed + 100);
    std::vector<double> before = Variances(posterior, at);
    for (size_t i = 0; i < 600; i += 50) {
      Learn({x.begin() + static_cast<ptrdiff_t>(i * kDim),
             x.begin() + static_cast<ptrdiff_t>((i + 50) * kDim)},
            50, 1e-3, posterior);
      posterior.Refactor(1e-3);
      const std::vector<double> after = Variances(posterior, at);
      for (size_t k = 0; k < after.size(); ++k) {
        EXPECT_GE(after[k], 0);
        EXPECT_LE(after[k], before[k] * (1 + 1e-4) + 1e-7) << "row " << k << " after " << i;
      }
      before = after;
    }
  }
}

TEST(ExactPosterior, FactorsAreAtMostAnEighthOldAndFewEnough) {
  ExactPosterior posterior(64);
  const std::vector<float> x = Inputs(3000, 8);
  uint64_t factors = 0, last = 0;
  for (size_t i = 0; i < 3000; i += 5) {
    Learn({x.begin() + static_cast<ptrdiff_t>(i * kDim),
           x.begin() + static_cast<ptrdiff_t>((i + 5) * kDim)},
          5, 0.1, posterior);
    const uint64_t at = posterior.factor()->rows();
    factors += at != last;
    last = at;
    EXPECT_GE(at + std::max<uint64_t>(16, at / 8) + 5, posterior.rows());
  }
  EXPECT_LT(factors, 50u);
}

TEST(ExactPosterior, ManyEqualRowsAndNoNoiseStayFinite) {
  ExactPosterior posterior(128);
  const std::vector<float> x(1000 * kDim, 1.0f);
  for (int i = 0; i < 100; ++i) Learn(x, 1000, 0, posterior);
  for (const double v : Variances(posterior, Inputs(10, 9))) {
    EXPECT_TRUE(std::isfinite(v));
    EXPECT_GE(v, 0);
  }
  EXPECT_LT(Variances(posterior, x)[0], 1e-3);
}

TEST(ExactPosterior, GoesOnFromItsStateBitForBit) {
  const std::vector<float> x = Inputs(500, 10), at = Inputs(30, 11);
  const std::vector<float> first(x.begin(), x.begin() + 300 * kDim);
  const std::vector<float> rest(x.begin() + 300 * kDim, x.end());
  ExactPosterior through(128);
  Learn(first, 30, 0.02, through);
  auto restored = ExactPosterior::Restore(through.state());
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(Variances(through, at), Variances(*restored, at));
  Learn(rest, 30, 0.03, through);
  Learn(rest, 30, 0.03, *restored);
  EXPECT_EQ(Variances(through, at), Variances(*restored, at));
  EXPECT_EQ(through.state().products, restored->state().products);
  EXPECT_EQ(through.factor()->mean(), restored->factor()->mean());
}

TEST(ExactPosterior, RefusesAStateThatDoesNotFitTogether) {
  ExactPosterior posterior(32);
  Learn(Inputs(40, 12), 20, 0.1, posterior);
  const auto refuses = [&](auto change) {
    PosteriorState state = posterior.state();
    change(state);
    return absl::IsDataLoss(ExactPosterior::Restore(state).status());
  };
  EXPECT_TRUE(refuses([](PosteriorState& s) { s.products.pop_back(); }));
  EXPECT_TRUE(refuses([](PosteriorState& s) { s.factor.clear(); }));
  EXPECT_TRUE(refuses([](PosteriorState& s) { s.mean.push_back(0); }));
  EXPECT_TRUE(refuses([](PosteriorState& s) { s.target_products.clear(); }));
  EXPECT_TRUE(refuses([](PosteriorState& s) { s.factor_rows = s.rows + 1; }));
  EXPECT_TRUE(refuses([](PosteriorState& s) { s.factor_noise_variance = 0; }));
  EXPECT_TRUE(refuses([](PosteriorState& s) { s.products[3] = std::nan(""); }));
  EXPECT_FALSE(refuses([](PosteriorState&) {}));
}

}  // namespace
}  // namespace kernelstream
