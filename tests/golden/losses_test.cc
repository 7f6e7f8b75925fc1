// Losses and derivatives against values computed in high precision (data/losses.json).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/loss/loss.h"

namespace kernelstream {
namespace {

using Json = nlohmann::json;

Json Table(const std::string& name) {
  std::ifstream file(KERNELSTREAM_GOLDEN_DATA "/losses.json");
  return Json::parse(file).at(name);
}

std::unique_ptr<const Loss> Make(const std::string& name, const ParameterMap& parameters = {}) {
  ComponentConfig config{name, parameters};
  auto loss = MakeLoss(config);
  EXPECT_TRUE(loss.ok()) << loss.status();
  return *std::move(loss);
}

double Bound(double expected) { return 4e-15 * std::abs(expected) + 1e-300; }

// `rounding`: of values that are differences of numbers near 1.
void ExpectEqual(const Loss& loss, double score, double target, double value, double derivative,
                 const std::string& where, double rounding = 0) {
  EXPECT_NEAR(loss.Value({&score, 1}, target), value, Bound(value) + rounding) << where;
  double got = 0;
  loss.Derivative({&score, 1}, target, {&got, 1});
  EXPECT_NEAR(got, derivative, Bound(derivative)) << where;
}

void ExpectEqualsCases(const Loss& loss, const std::string& name, const Json& cases,
                       double rounding = 0) {
  EXPECT_GE(cases.size(), 10u);
  for (const Json& row : cases) {
    ExpectEqual(loss, row[0], row[1], row[2], row[3], name + " " + row.dump(), rounding);
  }
}

void ExpectScalarLossEqualsTheTable(const std::string& name) {
  ExpectEqualsCases(*Make(name), name, Table(name).at("cases"));
}

// Rows [score, value, derivative] of one term of a density ratio.
void ExpectEqualsTerm(const Loss& loss, double target, const Json& cases) {
  EXPECT_GE(cases.size(), 5u);
  for (const Json& row : cases) ExpectEqual(loss, row[0], target, row[1], row[2], row.dump());
}

TEST(SquareLoss, EqualsTheTable) { ExpectScalarLossEqualsTheTable("square"); }
TEST(HingeLoss, EqualsTheTable) { ExpectScalarLossEqualsTheTable("hinge"); }
TEST(LogisticLoss, EqualsTheTableAlsoForExtremeScores) {
  ExpectScalarLossEqualsTheTable("logistic");
}

TEST(SquaredHingeLoss, EqualsTheTable) { ExpectScalarLossEqualsTheTable("squared_hinge"); }

TEST(HuberLoss, EqualsTheTableForEveryDelta) {
  for (const Json& table : Table("huber")) {
    ExpectEqualsCases(*Make("huber", {{"delta", table.at("delta")}}), "huber", table.at("cases"));
  }
}

TEST(EpsilonInsensitiveLoss, EqualsTheTableForEveryEpsilon) {
  for (const Json& table : Table("eps_insensitive")) {
    ExpectEqualsCases(*Make("epsilon_insensitive", {{"epsilon", table.at("eps")}}),
                      "epsilon_insensitive", table.at("cases"), 1e-15);
  }
}

TEST(AbsoluteLoss, EqualsTheTableAndEpsilonZero) {
  const Json cases = Table("absolute_deviation").at("cases");
  ExpectEqualsCases(*Make("absolute"), "absolute", cases);
  ExpectEqualsCases(*Make("epsilon_insensitive", {{"epsilon", 0}}), "epsilon 0", cases);
}

TEST(QuantileLoss, EqualsTheTableForEveryLevel) {
  for (const Json& table : Table("quantile")) {
    ExpectEqualsCases(*Make("quantile", {{"level", table.at("tau")}}), "quantile",
                      table.at("cases"));
  }
}

// The table's values are without the threshold's own term, - fraction threshold.
TEST(NoveltyLoss, EqualsTheTable) {
  const auto loss = Make("novelty", {{"fraction", 0.25}});
  const Json cases = Table("novelty_detection").at("cases");
  EXPECT_GE(cases.size(), 5u);
  for (const Json& row : cases) {
    const double threshold = row[1], value = row[2];
    ExpectEqual(*loss, row[0], threshold, value - 0.25 * threshold, row[3], row.dump(), 1e-16);
  }
}

TEST(NoveltyLoss, MovesItsThresholdAsTheTableDoes) {
  const Json cases = Table("novelty_detection").at("tau_update").at("cases");
  EXPECT_GE(cases.size(), 3u);
  for (const Json& row : cases) {
    const double score = row[0], step_size = row[2], fraction = row[3], expected = row[4];
    const auto loss = Make("novelty", {{"fraction", fraction}});
    const double weight = 1;
    NoveltyThreshold threshold;
    threshold.value = row[1];
    // A history after which the step size is the table's.
    threshold.rows = 4095;
    threshold.spread = step_size * 512;
    const double got = loss->NextThreshold(threshold, {&score, 1}, {&weight, 1}).value;
    EXPECT_NEAR(got, expected, 1e-15) << row;
  }
}

TEST(DensityRatioLoss, EqualsTheTable) {
  const auto loss = Make("density_ratio");
  ExpectEqualsTerm(*loss, -1, Table("kl_density_ratio").at("q_term"));
  ExpectEqualsTerm(*loss, 1, Table("kl_density_ratio").at("p_term"));
}

TEST(RelativeNoveltyLoss, EqualsTheTableOfTheLinearForm) {
  for (const Json& table : Table("relative_novelty")) {
    ExpectEqualsTerm(*Make("relative_novelty", {{"rho", table.at("rho")}}), 1,
                     table.at("linear_p_term"));
  }
  // Ratios far above exp(-rho): the direct ratio.
  const auto loss = Make("relative_novelty", {{"rho", 5}});
  for (const Json& row : Table("density_ratio_direct").at("q_term")) {
    ExpectEqual(*loss, row[0], -1, row[1], row[2], row.dump());
  }
  for (const Json& row : Table("density_ratio_direct").at("p_term")) {
    const double value = row[1];
    ExpectEqual(*loss, row[0], 1, value - 6, row[2], row.dump(), 1e-15);  // - 1 - rho
  }
}

TEST(SoftmaxLoss, EqualsTheTable) {
  const auto loss = Make("softmax");
  const Json cases = Table("multiclass_logistic").at("cases");
  EXPECT_GE(cases.size(), 4u);
  for (const Json& row : cases) {
    const std::vector<double> scores = row[0], derivative = row[3];
    const double target = row[1], value = row[2];
    EXPECT_NEAR(loss->Value(scores, target), value, Bound(value)) << row;
    std::vector<double> got(scores.size());
    loss->Derivative(scores, target, got);
    for (size_t k = 0; k < got.size(); ++k) {
      EXPECT_NEAR(got[k], derivative[k], Bound(derivative[k])) << row << " class " << k;
    }
  }
}

}  // namespace
}  // namespace kernelstream
