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

std::unique_ptr<const Loss> Make(const std::string& name) {
  ComponentConfig config{name, {}};
  auto loss = MakeLoss(config);
  EXPECT_TRUE(loss.ok()) << loss.status();
  return *std::move(loss);
}

double Bound(double expected) { return 4e-15 * std::abs(expected) + 1e-300; }

void ExpectScalarLossEqualsTheTable(const std::string& name) {
  const auto loss = Make(name);
  const Json cases = Table(name).at("cases");
  EXPECT_GE(cases.size(), 10u);
  for (const Json& row : cases) {
    const double score = row[0], target = row[1], value = row[2], derivative = row[3];
    EXPECT_NEAR(loss->Value({&score, 1}, target), value, Bound(value)) << name << row;
    double got = 0;
    loss->Derivative({&score, 1}, target, {&got, 1});
    EXPECT_NEAR(got, derivative, Bound(derivative)) << name << row;
  }
}

TEST(SquareLoss, EqualsTheTable) { ExpectScalarLossEqualsTheTable("square"); }
TEST(HingeLoss, EqualsTheTable) { ExpectScalarLossEqualsTheTable("hinge"); }
TEST(LogisticLoss, EqualsTheTableAlsoForExtremeScores) {
  ExpectScalarLossEqualsTheTable("logistic");
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
