// Sums of products of features on every target of this CPU, against plain float64 loops and, where
// simd.h fixes the order of operations, bit for bit against std::fma.
#include <cmath>

#include "core/simd/hadamard.h"
#include "tests/unit/simd_support.h"

namespace kernelstream {
namespace {

constexpr size_t kOutputs[] = {1, 2, 3, 7, 10, 100};

TEST(FeatureGram, IsSymmetricAndCloseToFloat64) {
  ForEachTarget([](const std::string&) {
    for (const size_t rows : {1, 2, 5, 16, 20, 25, 51, 64, 65, 131}) {
      constexpr size_t kPanels = 37;
      const std::vector<float> features = Numbers(kPanels * rows * kPanelWidth, 8, 1.4f);
      std::vector<float> gram(rows * rows, -1);
      FeatureGram(features.data(), kPanels, rows, gram.data());
      for (size_t i = 0; i < rows; ++i) {
        for (size_t j = 0; j < rows; ++j) {
          double exact = 0, magnitude = 0;
          for (size_t p = 0; p < kPanels; ++p) {
            for (size_t l = 0; l < kPanelWidth; ++l) {
              const double term = double{features[(p * rows + i) * kPanelWidth + l]} *
                                  features[(p * rows + j) * kPanelWidth + l];
              exact += term;
              magnitude += std::abs(term);
            }
          }
          ASSERT_NEAR(gram[i * rows + j], exact, 1e-6 * magnitude);
          ASSERT_EQ(gram[i * rows + j], gram[j * rows + i]);
        }
      }
    }
  });
}

TEST(FeatureGram, KeepsTheBoundAtManyFeatures) {
  ForEachTarget([](const std::string&) {
    constexpr size_t kPanels = 4096;  // 2^16 features, all terms of one sign
    const std::vector<float> features = Numbers(kPanels * kPanelWidth, 8, 1.4f);
    double exact = 0;
    for (const float v : features) exact += double{v} * v;
    float gram = 0;
    FeatureGram(features.data(), kPanels, 1, &gram);
    EXPECT_NEAR(gram, exact, 1e-5 * exact);
  });
}

TEST(FeatureGram, HasTheBitsOfTheStatedOrder) {
  ForEachFmaTarget([](const std::string&) {
    for (const size_t rows : {29, 70}) {
      constexpr size_t kPanels = 37, kPanelsPerSum = 8;
      const std::vector<float> features = Numbers(kPanels * rows * kPanelWidth, 8);
      std::vector<float> gram(rows * rows), expected(rows * rows);
      FeatureGram(features.data(), kPanels, rows, gram.data());
      for (size_t i = 0; i < rows; ++i) {
        for (size_t j = 0; j < rows; ++j) {
          float sum = 0;
          for (size_t p = 0; p < kPanels; ++p) {
            for (size_t l = 0; l < kPanelWidth; ++l) {
              sum = std::fma(features[(p * rows + i) * kPanelWidth + l],
                             features[(p * rows + j) * kPanelWidth + l], sum);
            }
            if ((p + 1) % kPanelsPerSum != 0 && p + 1 != kPanels) continue;
            expected[i * rows + j] += sum;
            sum = 0;
          }
        }
      }
      EXPECT_EQ(Bits(gram), Bits(expected)) << rows << " rows";
    }
  });
}

TEST(SquaredDistances, AreSymmetricAndCloseToFloat64) {
  ForEachTarget([](const std::string& target) {
    for (const size_t rows : {1, 2, 15, 16, 17, 64, 83}) {
      for (const size_t cols : {1, 7, 256, 300}) {
        const size_t stride = cols + 3;
        const std::vector<float> x = Numbers(rows * stride, 9, 3);
        std::vector<float> squares(rows * rows, -1), expected(rows * rows);
        SquaredDistances(ConstMatrixView(x.data(), rows, cols, stride), squares.data());
        for (size_t i = 0; i < rows; ++i) {
          for (size_t j = 0; j < rows; ++j) {
            double exact = 0;
            float& sum = expected[i * rows + j];
            for (size_t k = 0; k < cols; ++k) {
              const float difference = x[i * stride + k] - x[j * stride + k];
              exact += double{difference} * difference;
              sum = std::fma(difference, difference, sum);
            }
            ASSERT_NEAR(squares[i * rows + j], exact,
                        1e-7 * (4 + static_cast<double>(cols)) * exact);
            ASSERT_EQ(squares[i * rows + j], squares[j * rows + i]);
          }
          ASSERT_EQ(squares[i * rows + i], 0);
        }
        if (!SimdTargetHasFma(target)) continue;
        ASSERT_EQ(Bits(squares), Bits(expected));
      }
    }
  });
}

TEST(Gaussians, KeepTheirBound) {
  ForEachTarget([](const std::string&) {
    for (const size_t count : {1, 3, 16, 1000}) {
      std::vector<float> squares = Numbers(count, 10, 50);
      for (float& value : squares) value = std::abs(value);
      squares[0] = 0;
      for (const float rate : {0.01f, 0.5f, 1.5f, 10.0f}) {
        std::vector<float> out(count, -1);
        Gaussians(squares.data(), rate, count, out.data());
        ASSERT_EQ(out[0], 1);
        for (size_t i = 0; i < count; ++i) {
          const double exponent = double{rate} * squares[i], exact = std::exp(-exponent);
          if (exponent > 87) {
            ASSERT_NEAR(out[i], 0, 2e-38);
          } else {
            ASSERT_NEAR(out[i], exact, (3e-7 + 1e-7 * exponent) * exact) << exponent;
          }
        }
        std::vector<float> in_place = squares;
        Gaussians(in_place.data(), rate, count, in_place.data());
        ASSERT_EQ(Bits(in_place), Bits(out));
      }
    }
  });
}

TEST(AddWeightedFeatures, AddsRowsInOrder) {
  ForEachTarget([](const std::string& target) {
    for (const size_t rows : {0, 1, 3, 64}) {
      for (const size_t outputs : kOutputs) {
        constexpr size_t kPanels = 19;
        const std::vector<float> features = Numbers(kPanels * rows * kPanelWidth, 8);
        const std::vector<float> weights = Numbers(rows * outputs, 9);
        std::vector<float> coefficients = Numbers(kPanels * outputs * kPanelWidth, 10);
        std::vector<float> fused = coefficients;
        std::vector<double> exact(coefficients.begin(), coefficients.end());
        AddWeightedFeatures(features.data(), kPanels, rows, weights.data(), outputs,
                            coefficients.data());
        for (size_t i = 0; i < fused.size(); ++i) {
          const size_t p = i / (outputs * kPanelWidth), k = i / kPanelWidth % outputs;
          for (size_t r = 0; r < rows; ++r) {
            const float feature = features[(p * rows + r) * kPanelWidth + i % kPanelWidth];
            fused[i] = std::fma(weights[r * outputs + k], feature, fused[i]);
            exact[i] += double{weights[r * outputs + k]} * feature;
          }
          ASSERT_NEAR(coefficients[i], exact[i], 1e-5);
        }
        if (SimdTargetHasFma(target)) {
          EXPECT_EQ(Bits(coefficients), Bits(fused)) << "rows " << rows << " outputs " << outputs;
        }
      }
    }
  });
}

TEST(MoveTowards, MovesEveryValueByTheRate) {
  ForEachTarget([](const std::string& target) {
    for (const size_t count : {0, 1, 7, 8, 33}) {
      const std::vector<float> from = Numbers(count, 1), start = Numbers(count, 2);
      std::vector<float> to = start;
      MoveTowards(from.data(), 0.3f, count, to.data());
      for (size_t i = 0; i < count; ++i) {
        const float expected = std::fma(0.3f, from[i] - start[i], start[i]);
        if (SimdTargetHasFma(target)) {
          EXPECT_EQ(to[i], expected);
        } else {
          EXPECT_NEAR(to[i], expected, 1e-6);
        }
      }
    }
  });
}

// In the order of hadamard.h.
void Butterflies(std::vector<float>& v) {
  for (size_t step = 1; step < v.size(); step *= 2) {
    for (size_t i = 0; i < v.size(); ++i) {
      if ((i & step) != 0) continue;
      const float a = v[i], b = v[i + step];
      v[i] = a + b, v[i + step] = a - b;
    }
  }
}

// Few rows or many, on every target, with fused multiply-add or not.
TEST(HadamardProjections, HaveTheBitsOfTheStatedOrder) {
  ForEachTarget([](const std::string&) {
    for (const size_t size : {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 16384}) {
      const size_t rows = size < 2048 ? 6 : 5, cols = size - size / 3;
      const std::vector<float> x = Numbers(rows * cols, 1), gains = Numbers(size, 2),
                               scales = Numbers(size, 3);
      std::vector<float> signs = Numbers(size, 4);
      std::vector<int32_t> places(size);
      for (size_t i = 0; i < size; ++i) {
        signs[i] = signs[i] < 0 ? -1.0f : 1.0f;
        places[i] = static_cast<int32_t>((5 * i + 3) % size);
      }
      const HadamardGroup group = {size, signs.data(), places.data(), gains.data(), scales.data()};
      std::vector<float> scratch(kHadamardScratch * size), out(rows * size);
      std::vector<float*> to;
      for (size_t p = 0; p < size; p += kPanelWidth) to.push_back(out.data() + p * rows);
      HadamardProjections(group, {x.data(), rows, cols}, 0, to.size(), scratch.data(), to.data());
      for (size_t r = 0; r < rows; ++r) {
        std::vector<float> v(size), moved(size);
        for (size_t j = 0; j < cols; ++j) v[j] = x[r * cols + j] * signs[j];
        Butterflies(v);
        for (size_t i = 0; i < size; ++i) moved[i] = v[static_cast<size_t>(places[i])] * gains[i];
        Butterflies(moved);
        for (size_t i = 0; i < size; ++i) {
          const float got = to[i / kPanelWidth][r * kPanelWidth + i % kPanelWidth];
          ASSERT_EQ(got, moved[i] * scales[i]) << size << " row " << r << " frequency " << i;
        }
      }
    }
  });
}

}  // namespace
}  // namespace kernelstream
