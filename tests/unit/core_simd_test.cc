// Every function of core/simd on every target of this CPU, against plain float64 loops and, where
// simd.h fixes the order of operations, bit for bit against std::fma.
#include "core/simd/simd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "core/base/philox.h"
#include "core/base/quantile.h"
#include "tests/unit/simd_support.h"

namespace kernelstream {
namespace {

constexpr size_t kDims[] = {1, 2, 3, 5, 16, 54, 123, 784};
constexpr size_t kOutputs[] = {1, 2, 3, 7, 10, 100};
constexpr uint64_t kKey = 0x0123456789ABCDEFu;

// A run of features with its storage.
struct Panels {
  Panels(size_t num_panels, size_t dim, float inverse_bandwidth, float frequency_size = 1)
      : input_dim(dim),
        frequencies(Numbers(num_panels * dim * kPanelWidth, 1, frequency_size)),
        phases(num_panels * kPanelWidth) {
    SamplePhases(kKey, 0, num_panels, phases.data());
    view = {frequencies.data(), phases.data(), num_panels, inverse_bandwidth};
  }
  float frequency(size_t f, size_t j) const {
    return frequencies[(f / kPanelWidth * input_dim + j) * kPanelWidth + f % kPanelWidth];
  }

  size_t input_dim;
  std::vector<float> frequencies, phases;
  FeaturePanels view;
};

std::vector<float> Features(const Panels& panels, ConstMatrixView x) {
  std::vector<float> out(panels.view.num_panels * x.rows * kPanelWidth);
  PanelFeatures(panels.view, x, out.data());
  return out;
}

// sums[row][output] by the order of operations of simd.h.
std::vector<double> FusedSums(const std::vector<float>& features, size_t num_panels, size_t rows,
                              const std::vector<float>& coefficients, size_t num_outputs) {
  std::vector<double> sums(rows * num_outputs);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < num_outputs; ++k) {
      for (size_t first = 0; first < num_panels; first += kPanelsPerBlock) {
        float lane[kPanelWidth] = {};
        for (size_t p = first; p < std::min(first + kPanelsPerBlock, num_panels); ++p) {
          for (size_t i = 0; i < kPanelWidth; ++i) {
            lane[i] = std::fma(features[(p * rows + r) * kPanelWidth + i],
                               coefficients[(p * num_outputs + k) * kPanelWidth + i], lane[i]);
          }
        }
        for (size_t w = kPanelWidth / 2; w > 0; w /= 2) {
          for (size_t i = 0; i < w; ++i) lane[i] += lane[i + w];
        }
        sums[r * num_outputs + k] += double{lane[0]};
      }
    }
  }
  return sums;
}

TEST(SimdTargets, NamesCanBeChosenAndOthersAreRefused) {
  ASSERT_FALSE(SimdTargets().empty());
  EXPECT_EQ(ActiveSimdTarget(), SimdTargets().front());
  EXPECT_FALSE(UseSimdTarget("no such target"));
  EXPECT_EQ(ActiveSimdTarget(), SimdTargets().front());
  EXPECT_FALSE(SimdTargetHasFma("SSE4"));
  EXPECT_TRUE(SimdTargetHasFma("AVX2"));
}

TEST(SamplePhases, AreTheUniformsOfTheirCounters) {
  ForEachTarget([](const std::string&) {
    for (const uint64_t first : {uint64_t{0}, uint64_t{1} << 20, (uint64_t{1} << 40) + 4080}) {
      std::vector<float> phases(3 * kPanelWidth);
      SamplePhases(kKey, first, 3, phases.data());
      for (size_t i = 0; i < phases.size(); ++i) {
        EXPECT_EQ(phases[i], UniformFloat(Philox4x32(PhaseCounter(first + i), PhiloxKey(kKey))[0]));
      }
    }
  });
}

float CounterUniform(uint64_t key, uint64_t feature, size_t coordinate) {
  return UniformFloat(
      Philox4x32(FrequencyCounter(feature, coordinate / 4), PhiloxKey(key))[coordinate % 4]);
}

constexpr SpectralLaw kLaws[] = {
    SpectralLaw::kNormal,      SpectralLaw::kCauchy, SpectralLaw::kLaplace,   SpectralLaw::kSech,
    SpectralLaw::kExponential, SpectralLaw::kLevy,   SpectralLaw::kRademacher};

// What SampleFrequencies gives for the uniform u: turns for laws of the cosine.
double ExactDraw(SpectralLaw law, double u) {
  constexpr double kTurn = 2 * std::numbers::pi;
  switch (law) {
    case SpectralLaw::kNormal:
      return NormalQuantile(u) / kTurn;
    case SpectralLaw::kCauchy:
      return CauchyQuantile(u) / kTurn;
    case SpectralLaw::kLaplace:
      return LaplaceQuantile(u) / kTurn;
    case SpectralLaw::kSech:
      return SechQuantile(u) / kTurn;
    case SpectralLaw::kExponential:
      return ExponentialQuantile(u);
    case SpectralLaw::kLevy:
      return LevyQuantile(u);
    default:
      return RademacherQuantile(u);
  }
}

double DrawBound(SpectralLaw law) { return law == SpectralLaw::kLevy ? 2e-6 : 1e-6; }

TEST(SampleFrequencies, AreTheQuantilesOfTheirCounters) {
  ForEachTarget([](const std::string&) {
    for (const SpectralLaw law : kLaws) {
      for (const size_t dim : kDims) {
        const uint64_t first = (uint64_t{1} << 33) + 16 * dim;
        const bool is_first = law == SpectralLaw::kNormal || law == SpectralLaw::kCauchy;
        const size_t num_panels = 1 + (is_first ? 3000 : 300) / dim;
        std::vector<float> out(num_panels * dim * kPanelWidth);
        SampleFrequencies(law, kKey, first, num_panels, dim, out.data());
        double worst = 0;
        for (size_t i = 0; i < out.size(); ++i) {
          const uint64_t f = first + i / (dim * kPanelWidth) * kPanelWidth + i % kPanelWidth;
          const double exact = ExactDraw(law, CounterUniform(kKey, f, i / kPanelWidth % dim));
          worst = std::max(worst, std::abs(out[i] / exact - 1));
        }
        EXPECT_LE(worst, DrawBound(law)) << "law " << static_cast<int>(law) << " dim " << dim;
      }
    }
  });
}

TEST(SampleSigns, AreTheBitsOfTheWordsOfTheirCounters) {
  ForEachTarget([](const std::string&) {
    constexpr size_t kDim = 7, kSigns = 5;
    const uint64_t first = 320;
    std::vector<float> out(2 * kSigns * kDim * kPanelWidth);
    for (const bool interleaved : {false, true}) {
      const SignLayout layout = {.signs = kSigns,
                                 .sign_stride = interleaved ? 1 : kDim,
                                 .coordinate_stride = interleaved ? kSigns : 1};
      SampleSigns(kKey, first, 2, kDim, layout, out.data());
      for (size_t f = 0; f < 2 * kPanelWidth; ++f) {
        const float* panel = out.data() + f / kPanelWidth * kSigns * kDim * kPanelWidth;
        for (size_t j = 0; j < kDim; ++j) {
          const uint32_t word =
              Philox4x32(FrequencyCounter(first + f, j / 4), PhiloxKey(kKey))[j % 4];
          for (size_t s = 0; s < kSigns; ++s) {
            const size_t at = s * layout.sign_stride + j * layout.coordinate_stride;
            EXPECT_EQ(panel[at * kPanelWidth + f % kPanelWidth], (word >> (31 - s) & 1) ? 1 : -1);
          }
        }
      }
    }
  });
}

// Counters found by search; their uniforms are the extreme ones and those next to 1/2.
struct ExtremeDraw {
  uint64_t feature;
  size_t coordinate;
  float uniform;
};
constexpr ExtremeDraw kExtremeDraws[] = {
    {270842, 0, 0x1p-24f},         {550676, 1, 0x1.8p-23f},      {175648, 3, 0x1.fffffcp-2f},
    {1312928, 1, 0x1.fffff4p-2f},  {1838485, 3, 0x1.000002p-1f}, {1437667, 1, 0x1.000006p-1f},
    {12283541, 3, 0x1.fffffap-1f}, {245165, 2, 0x1.fffffep-1f},
};

TEST(SampleFrequencies, KeepRelativeAccuracyAtTheEndsAndAroundTheMiddle) {
  ForEachTarget([](const std::string&) {
    for (const ExtremeDraw& draw : kExtremeDraws) {
      ASSERT_EQ(CounterUniform(1, draw.feature, draw.coordinate), draw.uniform);
      const uint64_t first = draw.feature / kPanelWidth * kPanelWidth;
      for (const SpectralLaw law : kLaws) {
        std::vector<float> out(4 * kPanelWidth);
        SampleFrequencies(law, 1, first, 1, 4, out.data());
        const float value = out[draw.coordinate * kPanelWidth + draw.feature % kPanelWidth];
        EXPECT_NEAR(value / ExactDraw(law, draw.uniform), 1, DrawBound(law))
            << "law " << static_cast<int>(law) << " u = " << draw.uniform;
      }
    }
  });
}

TEST(SampleFrequencies, DependOnKeyFeatureAndCoordinateOnly) {
  ForEachTarget([](const std::string&) {
    constexpr size_t kDim = 123, kPanels = 8;
    std::vector<float> all(kPanels * kDim * kPanelWidth);
    SampleFrequencies(SpectralLaw::kNormal, kKey, 64, kPanels, kDim, all.data());
    for (const size_t dim : kDims) {
      if (dim > kDim) continue;
      for (size_t p = 0; p < kPanels; ++p) {
        std::vector<float> part(dim * kPanelWidth);
        SampleFrequencies(SpectralLaw::kNormal, kKey, 64 + p * kPanelWidth, 1, dim, part.data());
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + p * kDim * kPanelWidth));
      }
    }
  });
}

TEST(SampleFrequencies, HaveTheStatisticsOfTheirLaw) {
  constexpr size_t kPanels = 4096, kDim = 5;
  std::vector<float> out(kPanels * kDim * kPanelWidth);
  const double n = static_cast<double>(out.size());
  SampleFrequencies(SpectralLaw::kNormal, kKey, 0, kPanels, kDim, out.data());
  double mean = 0, square = 0, fourth = 0;
  for (const float v : out) {
    const double z = v * 2 * std::numbers::pi;
    mean += z / n;
    square += z * z / n;
    fourth += z * z * z * z / n;
  }
  // Five standard errors each.
  EXPECT_NEAR(mean, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(square, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth, 3, 5 * std::sqrt(96 / n));

  SampleFrequencies(SpectralLaw::kCauchy, kKey, 0, kPanels, kDim, out.data());
  double inside = 0, positive = 0, cosine = 0;
  for (const float v : out) {
    inside += (std::abs(v) * 2 * std::numbers::pi < 1) / n;
    positive += (v > 0) / n;
    cosine += std::cos(2 * std::numbers::pi * v) / n;
  }
  EXPECT_NEAR(inside, 0.5, 2.5 / std::sqrt(n));
  EXPECT_NEAR(positive, 0.5, 2.5 / std::sqrt(n));
  EXPECT_NEAR(cosine, std::exp(-1), 5 / std::sqrt(n));  // characteristic function at 1
}

// Largest error over its bound. Inputs are scaled so that sum |x_j w_j| / bandwidth is around
// `turns`.
double WorstFeatureError(size_t rows, size_t dim, float turns) {
  const float size = 4 * turns / static_cast<float>(dim);
  const Panels panels(3, dim, 0.5f, 2);
  const std::vector<float> data = Numbers(rows * dim, 2, size);
  const std::vector<float> out = Features(panels, {data.data(), rows, dim});
  double worst = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t f = i / (rows * kPanelWidth) * kPanelWidth + i % kPanelWidth;
    const size_t r = i / kPanelWidth % rows;
    double projection = 0, magnitude = 0;
    for (size_t j = 0; j < dim; ++j) {
      const double term = double{data[r * dim + j]} * panels.frequency(f, j);
      projection += term;
      magnitude += std::abs(term);
    }
    const double exact =
        std::numbers::sqrt2 *
        std::cos(2 * std::numbers::pi * (projection * 0.5 + double{panels.phases[f]}));
    worst = std::max(worst, std::abs(out[i] - exact) / (4e-6 + 3e-6 * magnitude * 0.5));
    EXPECT_LE(std::abs(out[i]), static_cast<float>(std::numbers::sqrt2));
  }
  return worst;
}

TEST(PanelFeatures, StayWithinTheErrorBound) {
  ForEachTarget([](const std::string&) {
    for (const size_t dim : kDims) {
      for (const float turns : {0.0f, 0.3f, 3.0f, 70.0f, 1e4f, 1e6f}) {
        const double worst = WorstFeatureError(dim > 100 ? 13 : 200, dim, turns);
        EXPECT_LE(worst, 1) << "dim " << dim << " turns " << turns;
      }
    }
  });
}

TEST(PanelFeatures, NeverLeaveTheRangeOfTheCosine) {
  ForEachTarget([](const std::string&) {
    // One feature of frequency 1 and no phase: the input is t. All floats around the extremes, then
    // coarser.
    std::vector<float> data;
    for (const float extreme : {0.0f, 0.5f, 1.0f}) {
      float t = extreme, s = extreme;
      for (int i = 0; i < 20000; ++i) {
        data.push_back(t = std::nextafter(t, 2.0f));
        data.push_back(s = std::nextafter(s, -2.0f));
      }
    }
    for (int i = -100000; i <= 100000; ++i) data.push_back(static_cast<float>(i) * 1e-5f);
    const std::vector<float> frequencies(kPanelWidth, 1), phases(kPanelWidth, 0);
    std::vector<float> out(data.size() * kPanelWidth);
    PanelFeatures({frequencies.data(), phases.data(), 1}, {data.data(), data.size(), 1},
                  out.data());
    double worst = 0;
    for (size_t r = 0; r < data.size(); ++r) {
      EXPECT_LE(std::abs(out[r * kPanelWidth]), static_cast<float>(std::numbers::sqrt2));
      worst = std::max(
          worst, std::abs(out[r * kPanelWidth] -
                          std::numbers::sqrt2 * std::cos(2 * std::numbers::pi * double{data[r]})));
    }
    EXPECT_LE(worst, 4e-7);
  });
}

TEST(PanelFeatures, OfARowDoNotDependOnTheOtherRows) {
  ForEachTarget([](const std::string&) {
    for (const size_t dim : kDims) {
      const Panels panels(dim > 100 ? 5 : 19, dim, 1.5f);
      const size_t stride = dim + 3;
      for (size_t rows = 1; rows <= 20; ++rows) {
        const std::vector<float> data = Numbers(rows * stride, 5);
        const ConstMatrixView x(data.data(), rows, dim, stride);
        const std::vector<float> all = Features(panels, x);
        for (size_t r = 0; r < rows; ++r) {
          const std::vector<float> one = Features(panels, x.Rows(r, 1));
          for (size_t p = 0; p < panels.view.num_panels; ++p) {
            const auto first = one.begin() + p * kPanelWidth;
            ASSERT_TRUE(
                std::equal(first, first + kPanelWidth, all.begin() + (p * rows + r) * kPanelWidth))
                << "dim " << dim << " rows " << rows << " row " << r << " panel " << p;
          }
        }
      }
    }
  });
}

TEST(PanelSums, EqualFeatureSumsAndDoNotDependOnOtherRows) {
  ForEachTarget([](const std::string&) {
    for (const size_t outputs : kOutputs) {
      for (size_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 17, 20, 50, 97}) {
        const size_t num_panels = 16 + rows % 20;
        const Panels panels(num_panels, 3, 0.7f);
        const std::vector<float> coefficients = Numbers(num_panels * outputs * kPanelWidth, 3);
        const std::vector<float> data = Numbers(rows * 3, 4);
        const ConstMatrixView x(data.data(), rows, 3);
        std::vector<double> sums(rows * outputs, 99), from_features = sums, one(outputs);
        PanelSums(panels.view, x, coefficients.data(), outputs, sums.data());
        FeatureSums(Features(panels, x).data(), num_panels, rows, coefficients.data(), outputs,
                    from_features.data());
        ASSERT_EQ(Bits(sums), Bits(from_features)) << "outputs " << outputs << " rows " << rows;
        for (size_t r = 0; r < rows; ++r) {
          PanelSums(panels.view, x.Rows(r, 1), coefficients.data(), outputs, one.data());
          ASSERT_TRUE(std::equal(one.begin(), one.end(), sums.begin() + r * outputs))
              << "outputs " << outputs << " rows " << rows << " row " << r;
        }
      }
    }
  });
}

TEST(PanelSums, EqualFeatureSumsForEveryInputDim) {
  ForEachTarget([](const std::string&) {
    for (const size_t dim : kDims) {
      for (const size_t rows : {1, 2, 50}) {
        const Panels panels(18, dim, 0.1f);
        const std::vector<float> coefficients = Numbers(18 * 3 * kPanelWidth, 3);
        const std::vector<float> data = Numbers(rows * dim, 4);
        const ConstMatrixView x(data.data(), rows, dim);
        std::vector<double> sums(rows * 3), from_features(rows * 3);
        PanelSums(panels.view, x, coefficients.data(), 3, sums.data());
        FeatureSums(Features(panels, x).data(), 18, rows, coefficients.data(), 3,
                    from_features.data());
        EXPECT_EQ(Bits(sums), Bits(from_features)) << "dim " << dim << " rows " << rows;
      }
    }
  });
}

// Panels in pairs on one frequency panel each, and the same with the frequencies repeated.
struct Waves {
  Waves(size_t first_wave, size_t num_panels, size_t dim)
      : pairs((first_wave + num_panels + 1) / 2, dim, 0.8f), repeated(num_panels, dim, 0.8f) {
    const size_t panel = dim * kPanelWidth;
    for (size_t p = 0; p < num_panels; ++p) {
      std::copy_n(pairs.frequencies.begin() + static_cast<long>((first_wave + p) / 2 * panel),
                  panel, repeated.frequencies.begin() + static_cast<long>(p * panel));
    }
    pairs.view.phases = repeated.phases.data();
    pairs.view.num_panels = num_panels;
    pairs.view.waves = 2;
    pairs.view.first_wave = first_wave;
  }
  Panels pairs, repeated;
};

TEST(PanelFeatures, OfTwoWavesEqualThoseOfRepeatedFrequencies) {
  ForEachTarget([](const std::string&) {
    for (const size_t dim : {1, 3, 54, 784}) {
      for (const size_t num_panels : {1, 2, 5, 16, 19}) {
        for (const size_t first_wave : {0, 1}) {
          const Waves waves(first_wave, num_panels, dim);
          for (const size_t rows : {1, 2, 7, 30}) {
            SCOPED_TRACE(testing::Message()
                         << dim << " " << num_panels << " " << first_wave << " " << rows);
            const std::vector<float> data = Numbers(rows * dim, 5);
            const ConstMatrixView x(data.data(), rows, dim);
            const std::vector<float> expected = Features(waves.repeated, x);
            ASSERT_EQ(Bits(Features(waves.pairs, x)), Bits(expected));
            std::vector<float> projections(expected.size()), made = projections;
            Projections(waves.pairs.view, x, projections.data());
            FeaturesOfProjections(waves.pairs.view, projections.data(), rows, made.data());
            ASSERT_EQ(Bits(made), Bits(expected));
            FeaturesOfProjections(waves.pairs.view, projections.data(), rows, projections.data());
            ASSERT_EQ(Bits(projections), Bits(expected));
            const std::vector<float> coefficients = Numbers(num_panels * 3 * kPanelWidth, 3);
            std::vector<double> sums(rows * 3), expected_sums(rows * 3);
            PanelSums(waves.pairs.view, x, coefficients.data(), 3, sums.data());
            PanelSums(waves.repeated.view, x, coefficients.data(), 3, expected_sums.data());
            ASSERT_EQ(Bits(sums), Bits(expected_sums));
          }
        }
      }
    }
  });
}

TEST(SparseProjections, HaveTheBitsOfDenseRows) {
  ForEachTarget([](const std::string&) {
    for (const size_t dim : {1, 3, 54, 300}) {
      for (const size_t num_panels : {1, 2, 7, 16, 19}) {
        for (const bool in_pairs : {false, true}) {
          const Waves waves(num_panels % 2, num_panels, dim);
          const FeaturePanels& panels = in_pairs ? waves.pairs.view : waves.repeated.view;
          std::vector<float> data = Numbers(5 * dim, 5), values;
          std::vector<size_t> begins = {0};
          std::vector<uint32_t> places;
          for (size_t i = 0; i < data.size(); ++i) {
            if (i < dim || i % 3 != 0) {  // the first row is empty
              data[i] = 0;
            } else {
              places.push_back(static_cast<uint32_t>(i % dim));
              values.push_back(data[i]);
            }
            if (i % dim == dim - 1) begins.push_back(values.size());
          }
          std::vector<float> expected(num_panels * 5 * kPanelWidth, 99), got = expected;
          Projections(panels, {data.data(), 5, dim}, expected.data());
          SparseProjections(panels, dim, {5, begins.data(), places.data(), values.data()},
                            got.data());
          ASSERT_EQ(Bits(got), Bits(expected)) << dim << " " << num_panels << " " << in_pairs;
        }
      }
    }
  });
}

TEST(PanelSums, OfNothingAreZero) {
  ForEachTarget([](const std::string&) {
    const float x[2] = {1, 2};
    std::vector<double> sums = {5, 5};
    PanelSums({}, {x, 1, 2}, nullptr, 2, sums.data());
    EXPECT_EQ(sums, std::vector<double>({0, 0}));
    PanelSums({}, {x, 0, 2}, nullptr, 2, nullptr);
    FeatureSums(nullptr, 0, 1, nullptr, 2, sums.data());
    EXPECT_EQ(sums, std::vector<double>({0, 0}));
  });
}

TEST(FeatureSums, AreCloseToFloat64Sums) {
  ForEachTarget([](const std::string&) {
    constexpr size_t kPanels = 100, kRows = 13, kK = 7;
    const std::vector<float> features = Numbers(kPanels * kRows * kPanelWidth, 8, 1.4f);
    const std::vector<float> coefficients = Numbers(kPanels * kK * kPanelWidth, 9);
    std::vector<double> sums(kRows * kK);
    FeatureSums(features.data(), kPanels, kRows, coefficients.data(), kK, sums.data());
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t k = 0; k < kK; ++k) {
        double exact = 0, magnitude = 0;
        for (size_t p = 0; p < kPanels; ++p) {
          for (size_t i = 0; i < kPanelWidth; ++i) {
            const double term = double{features[(p * kRows + r) * kPanelWidth + i]} *
                                coefficients[(p * kK + k) * kPanelWidth + i];
            exact += term;
            magnitude += std::abs(term);
          }
        }
        EXPECT_NEAR(sums[r * kK + k], exact, 2e-7 * magnitude);
      }
    }
  });
}

TEST(FeatureSums, HaveTheBitsOfTheStatedOrder) {
  ForEachFmaTarget([](const std::string&) {
    for (const size_t rows : {1, 2, 6, 7, 50}) {
      for (const size_t outputs : kOutputs) {
        const size_t num_panels = 35;
        const std::vector<float> features = Numbers(num_panels * rows * kPanelWidth, 8);
        const std::vector<float> coefficients = Numbers(num_panels * outputs * kPanelWidth, 9);
        std::vector<double> sums(rows * outputs);
        FeatureSums(features.data(), num_panels, rows, coefficients.data(), outputs, sums.data());
        EXPECT_EQ(Bits(sums), Bits(FusedSums(features, num_panels, rows, coefficients, outputs)))
            << "rows " << rows << " outputs " << outputs;
      }
    }
  });
}

TEST(FmaTargets, GiveEqualBits) {
  std::vector<uint32_t> first_features, first_frequencies;
  ForEachFmaTarget([&](const std::string&) {
    std::vector<float> frequencies(20 * 54 * kPanelWidth), phases(20 * kPanelWidth);
    SampleFrequencies(SpectralLaw::kNormal, kKey, 0, 10, 54, frequencies.data());
    SampleFrequencies(SpectralLaw::kCauchy, kKey, 0, 10, 54,
                      frequencies.data() + 10 * 54 * kPanelWidth);
    SamplePhases(kKey, 0, 20, phases.data());
    const std::vector<float> data = Numbers(13 * 54, 6, 3);
    std::vector<float> features(20 * 13 * kPanelWidth);
    PanelFeatures({frequencies.data(), phases.data(), 20, 0.9f}, {data.data(), 13, 54},
                  features.data());
    if (first_features.empty()) {
      first_features = Bits(features);
      first_frequencies = Bits(frequencies);
    }
    EXPECT_EQ(Bits(features), first_features);
    EXPECT_EQ(Bits(frequencies), first_frequencies);
  });
}

}  // namespace
}  // namespace kernelstream
