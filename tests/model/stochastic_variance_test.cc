// The paper's stochastic estimates, step by step against plain loops in float64.
#include "core/model/stochastic_variance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/model/linear_solve.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

std::vector<float> Features(size_t num_features, size_t rows, uint64_t seed) {
  std::vector<float> out(num_features * rows);
  Random random(seed);
  for (float& v : out) {
    v = static_cast<float>(std::sqrt(2.0) * std::cos(random.Uniform(0, 6.283)));
  }
  return out;
}

double At(const std::vector<float>& features, size_t rows, size_t r, size_t f) {
  return double{features[(f / kPanelWidth * rows + r) * kPanelWidth + f % kPanelWidth]};
}

// theta of the paper, [i][j], and its recursion as published but for the order: the old sums are
// read first, then decayed.
struct Recursion {
  explicit Recursion(size_t num_features)
      : size(num_features), theta(num_features * num_features) {}
  void Grow(const std::vector<float>& left, const std::vector<float>& right, size_t rows,
            size_t before, size_t block, double step_size, double ridge) {
    const auto b = static_cast<double>(rows), r = static_cast<double>(block);
    std::vector<double> c(rows * before);
    for (size_t x = 0; x < rows; ++x) {
      for (size_t i = 0; i < before; ++i) {
        for (size_t j = 0; j < before; ++j) {
          c[x * before + i] += theta[i * size + j] * At(right, rows, x, j);
        }
      }
    }
    for (double& value : theta) value *= 1 - step_size * ridge;
    for (size_t k = before; k < before + block; ++k) {
      for (size_t x = 0; x < rows; ++x) {
        const double right_k = At(right, rows, x, k);
        for (size_t i = 0; i < before; ++i) {
          theta[i * size + k] -= step_size / (b * r) * c[x * before + i] * right_k;
        }
        for (size_t m = before; m < before + block; ++m) {
          theta[m * size + k] += step_size / (b * r * r) * At(left, rows, x, m) * right_k;
        }
      }
    }
  }
  size_t size;
  std::vector<double> theta;
};

TEST(OperatorVariance, GrowsByThePapersRecursion) {
  constexpr size_t kSize = 32;
  for (const size_t rows : {1, 5}) {
    for (const size_t block : {1, 4}) {
      OperatorVariance variance(kSize);
      Recursion want(kSize);
      for (size_t t = 1; t * block <= 24; ++t) {
        const std::vector<float> left = Features(kSize, rows, 100 + t);
        const std::vector<float> right = Features(kSize, rows, 200 + t);
        const double step_size = 2.0 / static_cast<double>(t);
        variance.GrowBlock(left.data(), right.data(), rows, {}, (t - 1) * block, block, step_size,
                           0.3);
        ASSERT_EQ(variance.FeaturesInUse(), t * block);
        want.Grow(left, right, rows, (t - 1) * block, block, step_size, 0.3);
        for (size_t i = 0; i < kSize; ++i) {
          for (size_t j = 0; j < kSize; ++j) {
            const float got =
                variance.state()
                    .coefficients[(j / kPanelWidth * kSize + i) * kPanelWidth + j % kPanelWidth];
            ASSERT_NEAR(got, want.theta[i * kSize + j], 2e-5)
                << "rows " << rows << " block " << block << " step " << t << ": " << i << ", " << j;
            if (i / block > j / block) {
              ASSERT_EQ(got, 0) << "not in the paper's triangle";
            }
          }
        }
        std::vector<double> quadratic(rows);
        variance.Quadratic(left.data(), right.data(), rows, quadratic.data());
        for (size_t x = 0; x < rows; ++x) {
          double sum = 0;
          for (size_t i = 0; i < kSize; ++i) {
            for (size_t j = 0; j < kSize; ++j) {
              sum += want.theta[i * kSize + j] * At(left, rows, x, i) * At(right, rows, x, j);
            }
          }
          ASSERT_NEAR(quadratic[x], sum, 1e-3);
        }
      }
    }
  }
}

// Features may be 0 on all rows of a batch (rectified ones, exponentials): they have grown all the
// same, and predict nothing.
TEST(OperatorVariance, GrowsPastFeaturesThatAreZero) {
  constexpr size_t kSize = 32, kRows = 5;
  const std::vector<float> left = Features(kSize, kRows, 1), none(kSize * kRows, 0.0f);
  OperatorVariance variance(kSize);
  for (size_t f = 0; f < kSize; ++f) {
    variance.GrowBlock(left.data(), none.data(), kRows, {}, f, 1, 0.5, 0.3);
    ASSERT_EQ(variance.FeaturesInUse(), f + 1);
  }
  const std::vector<float> right = Features(kSize, kRows, 2);
  std::vector<double> quadratic(kRows);
  variance.Quadratic(left.data(), right.data(), kRows, quadratic.data());
  for (const double value : quadratic) EXPECT_NEAR(value, 0, 1e-15);
}

TEST(SharedRegression, TakesTheProximalStep) {
  constexpr size_t kSize = 32, kRows = 5, kOutputs = 3;
  constexpr double kRidge = 0.02, kStep = 0.7;
  SharedRegression regression(kSize, kOutputs);
  std::vector<double> want(kSize * kOutputs);
  Random random(1);
  for (uint64_t step = 0; step < 4; ++step) {
    const std::vector<float> features = Features(kSize, kRows, step);
    std::vector<double> targets(kRows * kOutputs);
    for (double& v : targets) v = random.Normal();
    std::vector<double> errors(kRows * kOutputs), system(kRows * kRows);
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t k = 0; k < kOutputs; ++k) {
        errors[r * kOutputs + k] = -targets[r * kOutputs + k];
        for (size_t f = 0; f < kSize; ++f) {
          errors[r * kOutputs + k] += want[f * kOutputs + k] * At(features, kRows, r, f);
        }
      }
      for (size_t q = 0; q < kRows; ++q) {
        for (size_t f = 0; f < kSize; ++f) {
          system[r * kRows + q] += At(features, kRows, r, f) * At(features, kRows, q, f) / kSize;
        }
      }
      system[r * kRows + r] += kStep + kRidge * kRows;
    }
    SolvePositiveDefinite(kRows, kOutputs, system, errors);
    for (double& v : want) v *= kStep / (kStep + kRidge * kRows);
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t f = 0; f < kSize; ++f) {
        for (size_t k = 0; k < kOutputs; ++k) {
          want[f * kOutputs + k] -= At(features, kRows, r, f) * errors[r * kOutputs + k] / kSize;
        }
      }
    }
    regression.Step(features.data(), kRows, {}, targets, kRidge, kStep);
    for (size_t f = 0; f < kSize; ++f) {
      for (size_t k = 0; k < kOutputs; ++k) {
        ASSERT_NEAR(
            regression.state()
                .coefficients[(f / kPanelWidth * kOutputs + k) * kPanelWidth + f % kPanelWidth],
            want[f * kOutputs + k], 1e-6);
      }
    }
  }
}

TEST(SharedRegression, ARowOfWeightTwoIsTwoRows) {
  constexpr size_t kSize = 32, kRows = 4;
  SharedRegression weighted(kSize, 1), twice(kSize, 1);
  for (uint64_t step = 0; step < 4; ++step) {
    // The last two rows of four are one row.
    std::vector<float> features = Features(kSize, kRows, step);
    for (size_t f = 0; f < kSize; ++f) {
      float* lanes = features.data() + f / kPanelWidth * kRows * kPanelWidth + f % kPanelWidth;
      lanes[3 * kPanelWidth] = lanes[2 * kPanelWidth];
    }
    std::vector<float> fewer;
    for (size_t p = 0; p < kSize / kPanelWidth; ++p) {
      const auto panel = features.begin() + static_cast<std::ptrdiff_t>(p * kRows * kPanelWidth);
      fewer.insert(fewer.end(), panel, panel + 3 * kPanelWidth);
    }
    weighted.Step(fewer.data(), 3, std::vector<double>{1, 1, 2}, std::vector<double>{1, -1, 3},
                  0.02, 0.7);
    twice.Step(features.data(), 4, {}, std::vector<double>{1, -1, 3, 3}, 0.02, 0.7);
    for (size_t f = 0; f < kSize; ++f) {
      ASSERT_NEAR(weighted.state().coefficients[f], twice.state().coefficients[f], 1e-6);
    }
  }
}

TEST(StochasticVariance, StaysBetweenZeroAndThePrior) {
  constexpr size_t kSize = 64, kRows = 20;
  OperatorVariance variance(kSize);
  const std::vector<float> at = Features(kSize, 30, 1), at_right = Features(kSize, 30, 2);
  const auto in_range = [&] {
    std::vector<double> out(30);
    variance.Variance(at.data(), at_right.data(), 30, out.data());
    return std::all_of(out.begin(), out.end(), [](double v) { return v >= 0 && v <= 2; });
  };
  EXPECT_TRUE(in_range());
  for (uint64_t step = 0; step < 20; ++step) {
    variance.Step(Features(kSize, kRows, 10 + step).data(),
                  Features(kSize, kRows, 50 + step).data(), kRows, {}, 1e-3);
    EXPECT_TRUE(in_range()) << step;
  }
  TestPointVariance points(kSize, at, std::vector<double>(30, 1.0));
  for (const double v : points.Variances()) EXPECT_EQ(v, 1);
  points.Step(at.data(), 30, {}, std::vector<double>(900, 3.0), 1e-3);
  for (const double v : points.Variances()) {
    EXPECT_GE(v, 0);
    EXPECT_LE(v, 1);
  }
}

TEST(StochasticVariance, GoesOnFromItsStateBitForBitAndRefusesAnother) {
  OperatorVariance through(32), restored(32);
  const auto step = [](OperatorVariance& variance, uint64_t seed) {
    variance.Step(Features(32, 7, seed).data(), Features(32, 7, seed + 50).data(), 7, {}, 1e-2);
  };
  step(through, 1);
  ASSERT_TRUE(restored.Restore(through.state()).ok());
  step(through, 2);
  step(restored, 2);
  EXPECT_EQ(through.state().coefficients, restored.state().coefficients);
  EXPECT_TRUE(absl::IsDataLoss(OperatorVariance(48).Restore(through.state())));
  SharedRegressionState broken = through.state();
  broken.coefficients[5] = std::nanf("");
  EXPECT_TRUE(absl::IsDataLoss(restored.Restore(broken)));
}

}  // namespace
}  // namespace kernelstream
