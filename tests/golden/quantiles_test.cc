// Inverse CDFs against values computed in high precision (data/quantiles.json, js_quantile.json).
#include <gtest/gtest.h>

#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/digest.h"
#include "core/base/quantile.h"

namespace kernelstream {
namespace {

// Largest relative error over the rows [u, w] of a table; none may exceed the bound.
template <class Quantile>
double WorstError(const std::string& table, Quantile quantile, double scale = 1,
                  double bound = 4e-15) {
  std::ifstream file(KERNELSTREAM_GOLDEN_DATA "/quantiles.json");
  const auto rows = nlohmann::json::parse(file).at("tables").at(table);
  EXPECT_GT(rows.size(), 10u);
  double worst = 0;
  for (const auto& row : rows) {
    const double u = row[0], expected = row[1];
    const double got = scale * quantile(u);
    const double error = expected == 0 ? std::abs(got) : std::abs(got / expected - 1);
    EXPECT_LE(error, bound) << table << " at u = " << u << ": " << got << ", not " << expected;
    if (error > worst) worst = error;
  }
  return worst;
}

TEST(NormalQuantile, EqualsTheTable) {
  EXPECT_LE(WorstError("normal(0,1)", &NormalQuantile), 4e-15);
}

TEST(CauchyQuantile, EqualsTheTable) {
  EXPECT_LE(WorstError("cauchy scale 1 (laplacian sigma=1)", &CauchyQuantile), 4e-15);
  EXPECT_LE(WorstError("cauchy scale 1/2 (intersection)", &CauchyQuantile, 0.5), 4e-15);
}

TEST(LaplaceQuantile, EqualsTheTable) {
  EXPECT_LE(WorstError("laplace scale 1 (cauchy sigma=1)", &LaplaceQuantile), 4e-15);
}

TEST(SechQuantile, EqualsTheTable) {
  EXPECT_LE(WorstError("sech(pi w) (chi2)", &SechQuantile), 4e-15);
}

TEST(JensenShannonQuantile, EqualsTheTable) {
  EXPECT_LE(WorstError("jensen-shannon", &JensenShannonQuantile, 1, 2e-13), 2e-13);
}

TEST(JensenShannonQuantile, EqualsItsOwnGoldenValues) {
  std::ifstream file(KERNELSTREAM_GOLDEN_DATA "/js_quantile.json");
  const auto rows = nlohmann::json::parse(file).at("golden_u_w");
  ASSERT_GT(rows.size(), 10u);
  for (const auto& row : rows) {
    const double u = row[0], expected = row[1];
    EXPECT_NEAR(JensenShannonQuantile(u), expected, 2e-13 * std::abs(expected)) << u;
  }
}

// The pieces of the file, summed here term by term from the cosines that define the polynomials:
// a wrong digit of one coefficient, or a wrong end of a piece, shows.
TEST(JensenShannonQuantile, HasTheCoefficientsOfTheGoldenFile) {
  std::ifstream file(KERNELSTREAM_GOLDEN_DATA "/js_quantile.json");
  const auto segments = nlohmann::json::parse(file).at("segments");
  ASSERT_EQ(segments.size(), 4u);
  double start = 0;
  for (const auto& segment : segments) {
    const double low = segment.at("t_lo"), high = segment.at("t_hi");
    EXPECT_EQ(low, start);
    start = high;
    const auto coefficients = segment.at("cheb").get<std::vector<double>>();
    ASSERT_EQ(coefficients.size(), 22u);
    for (int i = 1; i < 200; ++i) {
      const double u = std::exp(-(low + (high - low) * i / 200)) / 2;
      const double t = -std::log(2 * u);
      const double angle = std::acos((2 * t - low - high) / (high - low));
      double expected = 0;
      for (size_t k = coefficients.size(); k-- > 0;) {
        expected += coefficients[k] * std::cos(static_cast<double>(k) * angle);
      }
      EXPECT_NEAR(JensenShannonQuantile(u), -expected, 1e-15 + 2e-15 * expected) << t;
    }
  }
  EXPECT_EQ(start, 40);
}

TEST(ExponentialQuantile, EqualsTheTable) {
  EXPECT_LE(WorstError("exponential lambda=1", &ExponentialQuantile), 4e-15);
}

TEST(LevyQuantile, EqualsTheTable) {
  EXPECT_LE(WorstError("levy beta=1 (exp-semigroup)", &LevyQuantile), 4e-15);
}

TEST(GammaQuantile, EqualsTheTable) {
  for (const double shape : {0.5, 1.5, 16.0}) {
    const auto quantile = [&](double u) { return GammaQuantile(shape, u); };
    const std::string table = shape == 16    ? "gamma(16,1)"
                              : shape == 0.5 ? "gamma(0.5,1)"
                                             : "gamma(1.5,1)";
    EXPECT_LE(WorstError(table, quantile, 1, 1e-12), 1e-12) << table;
    if (shape == 1.5) {
      EXPECT_NEAR(ChiQuantile(3, 0.3), std::sqrt(2 * quantile(0.3)), 1e-15);
    }
  }
}

// Equal to the quantile of Boost, which uses other formulas and the C library.
TEST(GammaQuantile, HoldsForEveryShape) {
  for (const double shape :
       {0.01, 0.05, 0.3, 0.5, 0.9, 1.0, 1.7, 2.5, 7.0, 9.0, 33.3, 100.0, 1000.0}) {
    for (const double u : {0x1p-53, 1e-12, 1e-6, 1e-3, 0.02, 0.3, 0.4999, 0.5, 0.6, 0.8, 0.99,
                           0.999999, 1 - 1e-12, 1 - 0x1p-53}) {
      const double got = GammaQuantile(shape, u);
      const double expected = boost::math::gamma_p_inv(shape, u);
      if (expected < 1e-300) {
        EXPECT_LT(got, 1e-290) << shape << " " << u;
        continue;
      }
      EXPECT_NEAR(got / expected, 1, 2e-12 * std::max(1.0, 1 / shape)) << shape << " " << u;
    }
  }
}

TEST(Quantiles, HaveTheSameBitsEverywhere) {
  Digest128 digest;
  for (double u = 0x1p-30; u < 1; u += 0x1.9p-9) {
    for (const auto quantile : {&NormalQuantile, &CauchyQuantile, &LaplaceQuantile, &SechQuantile,
                                &JensenShannonQuantile, &ExponentialQuantile, &LevyQuantile}) {
      digest.AddDouble(quantile(u));
    }
    digest.AddDouble(GammaQuantile(0.3, u));
    digest.AddDouble(GammaQuantile(2.5, u));
  }
  EXPECT_EQ(DigestHex(digest.Finish()), "f4f8078707c11e97e48b8cd9665ccacf");
}

TEST(Quantiles, AreOddAroundOneHalf) {
  for (const double u : {0x1p-52, 1e-9, 0.1, 0.3, 0.49999999}) {
    EXPECT_NEAR(NormalQuantile(u) / NormalQuantile(1 - u), -1, 1e-6) << u;
    EXPECT_NEAR(CauchyQuantile(u) / CauchyQuantile(1 - u), -1, 1e-6) << u;
  }
  EXPECT_NEAR(NormalQuantile(0.5 + 0x1p-53) / (0x1p-53 * std::sqrt(2 * std::acos(-1.0))), 1, 1e-14);
}

}  // namespace
}  // namespace kernelstream
