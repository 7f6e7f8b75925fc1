// Triangles of features on every target of this CPU, against plain loops.
#include "core/simd/triangle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace kernelstream {
namespace {

constexpr uint64_t kSeed = 7;

void ForEachTarget(const std::function<void()>& check) {
  for (const std::string& target : SimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(UseSimdTarget(target));
    check();
  }
  ASSERT_TRUE(UseSimdTarget(""));
}

std::vector<float> Features(size_t num_panels, size_t rows) {
  std::vector<float> out(num_panels * rows * kPanelWidth);
  Random random(kSeed);
  for (float& v : out) v = static_cast<float>(random.Uniform(-1.4, 1.4));
  return out;
}

float At(const std::vector<float>& features, size_t rows, size_t r, size_t f) {
  return features[(f / kPanelWidth * rows + r) * kPanelWidth + f % kPanelWidth];
}

// Of element (i, j), j's panel not after i's.
size_t Index(size_t i, size_t j) {
  return TriangleSize(i / kPanelWidth) + j * kPanelWidth + i % kPanelWidth;
}

// 16 P + features' products: well conditioned.
std::vector<double> Matrix(size_t num_panels) {
  const size_t rows = 40;
  std::vector<double> triangle(TriangleSize(num_panels));
  const std::vector<float> features = Features(num_panels, rows);
  AddFeatureProducts(features.data(), num_panels, rows, triangle.data());
  const size_t n = num_panels * kPanelWidth;
  for (size_t i = 0; i < n; ++i) triangle[Index(i, i)] += static_cast<double>(n);
  return triangle;
}

TEST(AddFeatureProducts, SumsRowsInOrderByFusedMultiplyAdd) {
  for (const size_t panels : {1, 2, 5}) {
    for (const size_t rows : {1, 7, 64}) {
      const std::vector<float> features = Features(panels, rows);
      ForEachTarget([&] {
        const bool fused = SimdTargetHasFma(ActiveSimdTarget());
        std::vector<double> triangle(TriangleSize(panels), 0.5);
        AddFeatureProducts(features.data(), panels, rows, triangle.data());
        for (size_t i = 0; i < panels * kPanelWidth; ++i) {
          for (size_t j = 0; j < (i / kPanelWidth + 1) * kPanelWidth; ++j) {
            float sum = 0;
            double size = 0;
            for (size_t r = 0; r < rows; ++r) {
              const float a = At(features, rows, r, i), b = At(features, rows, r, j);
              sum = std::fma(a, b, sum);
              size += std::abs(double{a} * double{b});
            }
            const double value = triangle[Index(i, j)];
            if (fused) {
              ASSERT_EQ(value, 0.5 + double{sum}) << i << ", " << j;
            } else {
              ASSERT_NEAR(value, 0.5 + double{sum}, 6.5e-5 * size) << i << ", " << j;
            }
          }
        }
      });
    }
  }
}

TEST(FactorTriangle, GivesTheCholeskyFactorWithInvertedSquares) {
  for (const size_t panels : {1, 2, 3, 9}) {
    const std::vector<double> matrix = Matrix(panels);
    const size_t n = panels * kPanelWidth;
    ForEachTarget([&] {
      std::vector<double> factor = matrix;
      ASSERT_TRUE(FactorTriangle(panels, factor.data()));
      // L from the inverses of its squares: solve each square's columns again, by substitution.
      std::vector<double> lower(n * n);
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < i / kPanelWidth * kPanelWidth; ++j) {
          lower[i * n + j] = factor[Index(i, j)];
        }
      }
      for (size_t first = 0; first < n; first += kPanelWidth) {
        for (size_t j = 0; j < kPanelWidth; ++j) {
          lower[(first + j) * n + first + j] = 1 / factor[Index(first + j, first + j)];
          for (size_t i = j + 1; i < kPanelWidth; ++i) {
            double sum = 0;
            for (size_t k = j; k < i; ++k) {
              sum += factor[Index(first + i, first + k)] * lower[(first + k) * n + first + j];
            }
            lower[(first + i) * n + first + j] = -sum / factor[Index(first + i, first + i)];
          }
          for (size_t i = 0; i < j; ++i) {
            ASSERT_EQ(factor[Index(first + i, first + j)], 0.0);
          }
        }
      }
      double trace = 0;
      for (size_t i = 0; i < n; ++i) trace += matrix[Index(i, i)];
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j <= i; ++j) {
          double sum = 0;
          for (size_t k = 0; k <= j; ++k) sum += lower[i * n + k] * lower[j * n + k];
          ASSERT_NEAR(sum, matrix[Index(i, j)], 1e-14 * trace) << i << ", " << j;
        }
      }
    });
  }
}

TEST(FactorTriangle, RefusesAMatrixThatIsNotPositiveDefinite) {
  for (const size_t bad : {0, 17, 47}) {
    std::vector<double> matrix = Matrix(3);
    matrix[Index(bad, bad)] = -1;
    ForEachTarget([&] {
      std::vector<double> factor = matrix;
      EXPECT_FALSE(FactorTriangle(3, factor.data()));
    });
  }
}

TEST(SolveTriangle, GivesTheNormOfTheInverseAndEachRowAlone) {
  for (const size_t panels : {1, 2, 9}) {
    const std::vector<double> matrix = Matrix(panels);
    const size_t n = panels * kPanelWidth;
    for (const size_t rows : {1, 5, 48, 61}) {
      const std::vector<float> features = Features(panels, rows);
      ForEachTarget([&] {
        std::vector<double> wide = matrix;
        ASSERT_TRUE(FactorTriangle(panels, wide.data()));
        const std::vector<float> factor(wide.begin(), wide.end());
        std::vector<float> solved = features;
        SolveTriangle(factor.data(), panels, rows, solved.data());
        for (size_t r = 0; r < rows; ++r) {
          std::vector<double> z(n);
          for (size_t i = 0; i < n; ++i) {
            const size_t first = i / kPanelWidth * kPanelWidth;
            double sum = 0;
            for (size_t k = first; k <= i; ++k) {
              double rest = At(features, rows, r, k);
              for (size_t j = 0; j < first; ++j) rest -= wide[Index(k, j)] * z[j];
              sum += wide[Index(i, k)] * rest;
            }
            z[i] = sum;
          }
          for (size_t i = 0; i < n; ++i) ASSERT_NEAR(At(solved, rows, r, i), z[i], 2e-6);
          std::vector<float> alone(n);
          for (size_t i = 0; i < n; ++i) alone[i] = At(features, rows, r, i);
          SolveTriangle(factor.data(), panels, 1, alone.data());
          for (size_t i = 0; i < n; ++i) ASSERT_EQ(alone[i], At(solved, rows, r, i));
        }
      });
    }
  }
}

}  // namespace
}  // namespace kernelstream
