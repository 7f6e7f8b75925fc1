// Inverse CDFs against values computed in high precision (data/quantiles.json).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/quantile.h"

namespace kernelstream {
namespace {

using Quantile = double (*)(double);

// Largest relative error over the rows [u, w] of a table.
double WorstError(const std::string& table, Quantile quantile, double scale = 1) {
  std::ifstream file(KERNELSTREAM_GOLDEN_DATA "/quantiles.json");
  const auto rows = nlohmann::json::parse(file).at("tables").at(table);
  EXPECT_GT(rows.size(), 10u);
  double worst = 0;
  for (const auto& row : rows) {
    const double u = row[0], expected = row[1];
    const double got = scale * quantile(u);
    const double error = expected == 0 ? std::abs(got) : std::abs(got / expected - 1);
    EXPECT_LE(error, 2e-15) << table << " at u = " << u << ": " << got << ", not " << expected;
    if (error > worst) worst = error;
  }
  return worst;
}

TEST(NormalQuantile, EqualsTheTable) {
  EXPECT_LE(WorstError("normal(0,1)", &NormalQuantile), 2e-15);
}

TEST(CauchyQuantile, EqualsTheTable) {
  EXPECT_LE(WorstError("cauchy scale 1 (laplacian sigma=1)", &CauchyQuantile), 2e-15);
  EXPECT_LE(WorstError("cauchy scale 1/2 (intersection)", &CauchyQuantile, 0.5), 2e-15);
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
