// Gradients of a model against differences of its score in float64, and what is made of them.
#include "core/model/learned_metric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "core/kernel/kernel.h"
#include "core/model/feature_chunks.h"
#include "tests/model/model_support.h"
#include "tests/support/compositions.h"

namespace kernelstream {
namespace {

constexpr double kInverseBandwidth = 0.8, kScale = 1.25;

std::vector<float> Normals(size_t count, double deviation, uint64_t seed) {
  Random random(seed);
  std::vector<float> out(count);
  for (float& value : out) value = static_cast<float>(deviation * random.Normal());
  return out;
}

// A symmetric T, [dim][dim], diagonal or full.
std::vector<double> SomeMetric(MetricForm form, size_t dim, uint64_t seed) {
  const std::vector<float> noise = Normals(dim * dim, 0.3, seed);
  std::vector<double> t(dim * dim);
  for (size_t i = 0; i < dim; ++i) {
    t[i * dim + i] = 0.5 + 0.1 * static_cast<double>(i % 7);
    for (size_t j = 0; form == MetricForm::kFull && j < i; ++j) {
      t[i * dim + j] = t[j * dim + i] = double{noise[i * dim + j]};
    }
  }
  return t;
}

LearnedMetric MetricOf(MetricForm form, size_t dim, const std::vector<double>& t) {
  if (form == MetricForm::kIsotropic) return {};
  std::vector<float> values;
  for (size_t i = 0; i < dim; ++i) {
    for (size_t j = 0; j < dim; ++j) {
      if (form == MetricForm::kFull || i == j) values.push_back(static_cast<float>(t[i * dim + j]));
    }
  }
  return LearnedMetric(form, dim, values);
}

// A model with random coefficients, and its score by plain loops in float64 on the same
// frequencies.
struct Model {
  Model(const FeatureSpec& spec, size_t input_dim, uint64_t count, size_t outputs, MetricForm form)
      : dim(input_dim),
        map(spec, 5, input_dim, count, nullptr),
        t(SomeMetric(form, input_dim, 6)),
        metric(MetricOf(form, input_dim, t)) {
    if (form == MetricForm::kIsotropic) {
      for (size_t i = 0; i < dim * dim; ++i) t[i] = i % (dim + 1) == 0 ? 1 : 0;
    }
    coefficients = Normals(PanelsFor(count) * outputs * kPanelWidth,
                           1 / std::sqrt(static_cast<double>(count)), 7);
    for (uint64_t f = count; f % kPanelWidth != 0; ++f) {
      for (size_t k = 0; k < outputs; ++k) {
        coefficients[(f / kPanelWidth * outputs + k) * kPanelWidth + f % kPanelWidth] = 0;
      }
    }
    gradient = {.features = &map,
                .metric = &metric,
                .coefficients = coefficients,
                .scale = kScale,
                .num_outputs = outputs,
                .num_features = count,
                .inverse_bandwidth = kInverseBandwidth};
    map.VisitPanels(0, PanelsFor(count), [&](const FeaturePanels& panels, uint64_t) {
      for (size_t p = 0; p < panels.num_panels; ++p) {
        const float* from =
            panels.frequencies + (panels.first_wave + p) / panels.waves * dim * kPanelWidth;
        frequencies.insert(frequencies.end(), from, from + dim * kPanelWidth);
        const float* lanes = panels.phases + p * kPanelWidth;
        phases.insert(phases.end(), lanes, lanes + kPanelWidth);
      }
    });
  }

  double Score(const std::vector<double>& x, size_t output) const {
    std::vector<double> z(dim);
    for (size_t i = 0; i < dim; ++i) {
      for (size_t j = 0; j < dim; ++j) z[i] += t[i * dim + j] * x[j];
    }
    double score = 0;
    for (size_t f = 0; f < phases.size(); ++f) {
      const size_t panel = f / kPanelWidth, lane = f % kPanelWidth;
      double turns = 0;
      for (size_t j = 0; j < dim; ++j) {
        turns += z[j] * double{frequencies[(panel * dim + j) * kPanelWidth + lane]};
      }
      score += kScale *
               double{coefficients[(panel * gradient.num_outputs + output) * kPanelWidth + lane]} *
               std::numbers::sqrt2 *
               std::cos(2 * std::numbers::pi * (turns * kInverseBandwidth + double{phases[f]}));
    }
    return score;
  }

  // [rows][dim], by differences.
  std::vector<double> Gradients(const std::vector<float>& rows, size_t output) const {
    constexpr double kStep = 1e-5;
    std::vector<double> out;
    for (size_t i = 0; i < rows.size(); i += dim) {
      std::vector<double> x(rows.begin() + static_cast<long>(i),
                            rows.begin() + static_cast<long>(i + dim));
      for (size_t j = 0; j < dim; ++j) {
        const double at = x[j];
        x[j] = at + kStep;
        const double above = Score(x, output);
        x[j] = at - kStep;
        out.push_back((above - Score(x, output)) / (2 * kStep));
        x[j] = at;
      }
    }
    return out;
  }

  size_t dim;
  RandomFeatureMap map;
  std::vector<double> t;
  LearnedMetric metric;
  std::vector<float> coefficients;
  GradientModel gradient;
  std::vector<float> frequencies, phases;  // [panel][dim][16], [panel][16]
};

// Mean over rows of gradient gradient^T, [dim][dim].
std::vector<double> MeanProduct(const std::vector<double>& gradients, size_t dim) {
  std::vector<double> product(dim * dim);
  const auto rows = static_cast<double>(gradients.size() / dim);
  for (size_t i = 0; i < gradients.size(); i += dim) {
    for (size_t j = 0; j < dim; ++j) {
      for (size_t k = 0; k < dim; ++k) {
        product[j * dim + k] += gradients[i + j] * gradients[i + k] / rows;
      }
    }
  }
  return product;
}

std::vector<double> DiagonalOf(const std::vector<double>& product, size_t dim) {
  std::vector<double> diagonal;
  for (size_t j = 0; j < dim; ++j) diagonal.push_back(product[j * dim + j]);
  return diagonal;
}

double TraceOf(const std::vector<double>& product, size_t dim) {
  double trace = 0;
  for (const double value : DiagonalOf(product, dim)) trace += value;
  return trace;
}

// Largest difference, as a share of the trace of `want`.
double Difference(const std::vector<double>& got, const std::vector<double>& want, double trace) {
  EXPECT_EQ(got.size(), want.size());
  double most = 0;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    most = std::max(most, std::abs(got[i] - want[i]) / trace);
  }
  return most;
}

TEST(AverageGradientProduct, IsThatOfDifferencesOfTheScore) {
  FeatureSpec pairs;
  pairs.pairs = true;
  const auto sum = CompleteKernel(Compositions("sum")[2]);
  ASSERT_TRUE(sum.ok());
  const FeatureSpec sum_of_two = (*MakeUnitKernel(*sum))->features();
  struct Case {
    std::string name;
    FeatureSpec spec;
    size_t dim;
    uint64_t features;
    MetricForm metric;
  };
  const Case cases[] = {{"no metric", {}, 5, 40, MetricForm::kIsotropic},
                        {"diagonal", {}, 3, 64, MetricForm::kDiagonal},
                        {"full", {}, 18, 48, MetricForm::kFull},
                        {"pairs beyond a block", pairs, 3, 304, MetricForm::kFull},
                        {"half of a pair", pairs, 4, 80, MetricForm::kDiagonal},
                        {"sum", sum_of_two, 4, 96, MetricForm::kFull}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    const Model model(one.spec, one.dim, one.features, 1, one.metric);
    constexpr size_t kRows = 70;  // two tiles
    const std::vector<float> rows = Normals(kRows * one.dim, 0.7, 8);
    // The score is the features' own.
    std::vector<float> mapped(rows.size());
    const ConstMatrixView x(rows.data(), kRows, one.dim);
    model.metric.Apply(x, mapped.data());
    std::vector<float> features(PanelsFor(one.features) * kRows * kPanelWidth);
    model.map.Features(ConstMatrixView(mapped.data(), kRows, one.dim),
                       static_cast<float>(kInverseBandwidth), 0, PanelsFor(one.features),
                       features.data());
    double first = 0;
    for (size_t f = 0; f < one.features; ++f) {
      first += kScale * double{model.coefficients[f]} *
               double{features[f / kPanelWidth * kRows * kPanelWidth + f % kPanelWidth]};
    }
    EXPECT_NEAR(model.Score({rows.begin(), rows.begin() + static_cast<long>(one.dim)}, 0), first,
                1e-4);

    const std::vector<double> want = MeanProduct(model.Gradients(rows, 0), one.dim);
    const double trace = TraceOf(want, one.dim);
    EXPECT_LT(Difference(AverageGradientProduct(model.gradient, x, MetricForm::kFull, 1, Inline()),
                         want, trace),
              2e-5);
    EXPECT_LT(
        Difference(AverageGradientProduct(model.gradient, x, MetricForm::kDiagonal, 1, Inline()),
                   DiagonalOf(want, one.dim), trace),
        2e-5);
  }
}

// One tile of rows: the product of f_0 + f_1 or of f_0 - f_1, whose mean is the sum of both.
TEST(AverageGradientProduct, OfTwoOutputsTakesRandomSigns) {
  constexpr size_t kDim = 4, kRows = 60;
  const Model model({}, kDim, 64, 2, MetricForm::kFull);
  const std::vector<float> rows = Normals(kRows * kDim, 0.7, 8);
  const std::vector<double> one = model.Gradients(rows, 0), other = model.Gradients(rows, 1);
  std::vector<double> sum = one, difference = one;
  for (size_t i = 0; i < one.size(); ++i) {
    sum[i] += other[i];
    difference[i] -= other[i];
  }
  const std::vector<double> equal = MeanProduct(sum, kDim);
  const std::vector<double> opposite = MeanProduct(difference, kDim);
  const double trace = TraceOf(equal, kDim);
  ASSERT_GT(Difference(equal, opposite, trace), 0.01);
  size_t equals = 0;
  constexpr uint64_t kSeeds = 64;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<double> got =
        AverageGradientProduct(model.gradient, ConstMatrixView(rows.data(), kRows, kDim),
                               MetricForm::kFull, seed, Inline());
    const bool is_equal = Difference(got, equal, trace) < 1e-4;
    EXPECT_TRUE(is_equal || Difference(got, opposite, trace) < 1e-4) << seed;
    equals += is_equal ? 1 : 0;
  }
  EXPECT_GT(equals, kSeeds / 4);
  EXPECT_LT(equals, 3 * kSeeds / 4);
}

TEST(MetricRoot, SquaredIsTheProductOverItsMeanDiagonalPlusTheFloor) {
  for (const size_t dim : {1, 3, 20}) {
    std::vector<double> gradients;
    for (const float value : Normals(50 * dim, 3, dim)) gradients.push_back(double{value});
    for (size_t i = 0; i < gradients.size(); i += dim) gradients[i] *= 10;
    const std::vector<double> product = MeanProduct(gradients, dim);
    const double mean = TraceOf(product, dim) / static_cast<double>(dim);
    const std::vector<float> root = MetricRoot(product, dim, MetricForm::kFull);
    ASSERT_EQ(root.size(), dim * dim);
    const std::vector<float> diagonal =
        MetricRoot(DiagonalOf(product, dim), dim, MetricForm::kDiagonal);
    ASSERT_EQ(diagonal.size(), dim);
    for (size_t i = 0; i < dim; ++i) {
      for (size_t j = 0; j < dim; ++j) {
        EXPECT_EQ(root[i * dim + j], root[j * dim + i]);
        double square = 0;
        for (size_t k = 0; k < dim; ++k) square += double{root[i * dim + k]} * root[k * dim + j];
        const double want = product[i * dim + j] / mean + (i == j ? 1e-3 : 0);
        EXPECT_NEAR(square, want, 1e-5) << dim << ": " << i << ", " << j;
      }
      EXPECT_NEAR(double{diagonal[i]} * diagonal[i], product[i * dim + i] / mean + 1e-3, 1e-5);
    }
  }
}

// Of four inputs one says everything, or the mean of two: M / (trace M / 4) has the one eigenvalue
// 4.
TEST(MetricRoot, OfOneInformativeDirectionKeepsTheOthersAtTheFloor) {
  constexpr size_t kDim = 4;
  const double high = std::sqrt(4.001), low = std::sqrt(1e-3);
  const std::vector<double> diagonal = {0, 0, 7, 0};
  std::vector<double> one(kDim * kDim), two = one;
  one[2 * kDim + 2] = 7;
  for (const size_t i : {1, 3}) {
    for (const size_t j : {1, 3}) two[i * kDim + j] = 0.2;
  }
  const std::vector<float> of_diagonal = MetricRoot(diagonal, kDim, MetricForm::kDiagonal);
  const std::vector<float> of_one = MetricRoot(one, kDim, MetricForm::kFull);
  const std::vector<float> of_two = MetricRoot(two, kDim, MetricForm::kFull);
  ASSERT_EQ(of_diagonal.size(), kDim);
  ASSERT_EQ(of_one.size(), kDim * kDim);
  ASSERT_EQ(of_two.size(), kDim * kDim);
  for (size_t i = 0; i < kDim; ++i) {
    EXPECT_NEAR(of_diagonal[i], i == 2 ? high : low, 1e-6);
    for (size_t j = 0; j < kDim; ++j) {
      EXPECT_NEAR(of_one[i * kDim + j], i != j ? 0 : i == 2 ? high : low, 1e-6);
      const bool both_in = i % 2 == 1 && j % 2 == 1;
      EXPECT_NEAR(of_two[i * kDim + j], (both_in ? (high - low) / 2 : 0) + (i == j ? low : 0),
                  1e-6);
    }
  }
}

TEST(LearnedMetric, RelevanceIsHowFarAnInputMovesAMappedRow) {
  EXPECT_TRUE(LearnedMetric().Relevance().empty());
  const std::vector<float> diagonal = {0.5f, -2.0f, 0.0f};
  EXPECT_EQ(LearnedMetric(MetricForm::kDiagonal, 3, diagonal).Relevance(),
            (std::vector<double>{0.25, 1, 0}));
  constexpr size_t kDim = 19;  // a panel of inputs and a part of one
  std::vector<float> full(kDim * kDim);
  for (size_t i = 0; i < kDim; ++i) {
    for (size_t j = 0; j < kDim; ++j) full[i * kDim + j] = static_cast<float>(1 + i * j % 7) / 8;
  }
  const LearnedMetric metric(MetricForm::kFull, kDim, full);
  std::vector<double> moved(kDim);
  for (size_t j = 0; j < kDim; ++j) {
    std::vector<float> unit(kDim), mapped(kDim);
    unit[j] = 1;
    metric.Apply({unit.data(), 1, kDim}, mapped.data());
    for (const float value : mapped) moved[j] += double{value} * value;
    moved[j] = std::sqrt(moved[j]);
  }
  const double most = *std::max_element(moved.begin(), moved.end());
  const std::vector<double> relevance = metric.Relevance();
  ASSERT_EQ(relevance.size(), kDim);
  for (size_t j = 0; j < kDim; ++j) EXPECT_NEAR(relevance[j], moved[j] / most, 1e-6);
}

TEST(MetricRoot, IsEmptyWithoutAPositiveFiniteTrace) {
  for (const double value : {0.0, -1.0, std::nan(""), double{INFINITY}}) {
    EXPECT_TRUE(MetricRoot(std::vector<double>{value, 0}, 2, MetricForm::kDiagonal).empty());
    EXPECT_TRUE(MetricRoot(std::vector<double>{value, 0, 0, 0}, 2, MetricForm::kFull).empty());
  }
}

}  // namespace
}  // namespace kernelstream
