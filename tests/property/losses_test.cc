// What every registered loss promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/field_error.h"
#include "core/loss/loss.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

constexpr uint64_t kSeed = 20141;

struct Case {
  std::string name;
  std::unique_ptr<const Loss> loss;
  size_t outputs;
  std::vector<double> targets;
};

std::vector<Case> AllLosses() {
  std::vector<Case> cases;
  for (const LossEntry& entry : LossRegistry()) {
    Case c;
    c.name = std::string(entry.doc.name);
    ComponentConfig config{c.name, {}};
    auto loss = MakeLoss(config);
    EXPECT_TRUE(loss.ok()) << loss.status();
    c.loss = *std::move(loss);
    switch (c.loss->task()) {
      case Task::kRegression:
        c.outputs = 1, c.targets = {-3.5, -0.25, 0, 1, 2.75};
        break;
      case Task::kBinary:
        c.outputs = 1, c.targets = {-1, 1};
        break;
      case Task::kMulticlass:
        c.outputs = 4, c.targets = {0, 1, 2, 3};
        break;
      case Task::kNovelty:
        c.outputs = 1, c.targets = {-1.5, 0, 0.75};
        break;
      case Task::kDensityRatio:
        c.outputs = 1, c.targets = {-1, 1};
        break;
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<double> RandomScores(Random& random, size_t count) {
  std::vector<double> scores(count);
  for (double& score : scores) score = random.Uniform(-4, 4);
  return scores;
}

TEST(EveryLoss, DerivativeIsTheSlopeOfTheValue) {
  Random random(kSeed);
  for (const Case& c : AllLosses()) {
    for (int trial = 0; trial < 200; ++trial) {
      std::vector<double> scores = RandomScores(random, c.outputs);
      for (const double target : c.targets) {
        std::vector<double> derivative(c.outputs);
        c.loss->Derivative(scores, target, derivative);
        for (size_t k = 0; k < c.outputs; ++k) {
          constexpr double kStep = 1e-6;
          std::vector<double> up = scores, down = scores;
          up[k] += kStep, down[k] -= kStep;
          const double slope =
              (c.loss->Value(up, target) - c.loss->Value(down, target)) / (2 * kStep);
          EXPECT_NEAR(derivative[k], slope, 1e-7)
              << c.name << " target " << target << " seed " << kSeed;
        }
      }
    }
  }
}

TEST(EveryLoss, IsConvexAndItsMisfitIsNotNegative) {
  Random random(kSeed);
  for (const Case& c : AllLosses()) {
    for (int trial = 0; trial < 500; ++trial) {
      const std::vector<double> a = RandomScores(random, c.outputs),
                                b = RandomScores(random, c.outputs);
      const double share = random.Uniform();
      std::vector<double> between(c.outputs);
      for (size_t k = 0; k < c.outputs; ++k) between[k] = share * a[k] + (1 - share) * b[k];
      for (const double target : c.targets) {
        const double chord =
            share * c.loss->Value(a, target) + (1 - share) * c.loss->Value(b, target);
        EXPECT_LE(c.loss->Value(between, target), chord + 1e-12) << c.name << " seed " << kSeed;
        if (HasLabels(c.loss->task()) || c.loss->task() == Task::kRegression) {
          EXPECT_GE(c.loss->Value(between, target), 0) << c.name;
          EXPECT_EQ(c.loss->Misfit(between, target), c.loss->Value(between, target)) << c.name;
        }
        if (c.loss->task() != Task::kNovelty) {
          EXPECT_GE(c.loss->Misfit(between, target), 0) << c.name;
        }
      }
    }
  }
}

// Not so: those with kinks, and the exponential.
bool HasOneCurvature(const std::string& name) {
  return name == "square" || name == "huber" || name == "logistic" || name == "squared_hinge" ||
         name == "softmax";
}

TEST(EveryLoss, CurvatureAtARowBoundsTheSecondDerivativeThere) {
  Random random(kSeed);
  for (const Case& c : AllLosses()) {
    for (int trial = 0; trial < 500; ++trial) {
      const std::vector<double> scores = RandomScores(random, c.outputs);
      for (const double target : c.targets) {
        constexpr double kStep = 1e-6;
        std::vector<double> up = scores, down = scores, high(c.outputs), low(c.outputs);
        up[0] += kStep, down[0] -= kStep;
        c.loss->Derivative(up, target, high);
        c.loss->Derivative(down, target, low);
        const double curvature = c.loss->CurvatureAt(scores, target);
        EXPECT_GT(curvature, 0) << c.name;
        EXPECT_LE((high[0] - low[0]) / (2 * kStep), curvature * (1 + 1e-5) + 1e-7)
            << c.name << " score " << scores[0] << " target " << target << " seed " << kSeed;
      }
    }
  }
}

// The proximal step's bound: going against the derivative by 1 / curvature of it does not raise the
// loss by more than the kinks of non-smooth losses allow; for smooth ones the derivative changes by
// at most curvature times the distance.
TEST(EveryLoss, CurvatureBoundsTheChangeOfTheDerivative) {
  Random random(kSeed);
  for (const Case& c : AllLosses()) {
    if (!HasOneCurvature(c.name)) continue;
    for (int trial = 0; trial < 500; ++trial) {
      const std::vector<double> a = RandomScores(random, c.outputs),
                                b = RandomScores(random, c.outputs);
      for (const double target : c.targets) {
        std::vector<double> da(c.outputs), db(c.outputs);
        c.loss->Derivative(a, target, da);
        c.loss->Derivative(b, target, db);
        double change = 0, distance = 0;
        for (size_t k = 0; k < c.outputs; ++k) {
          change += (da[k] - db[k]) * (da[k] - db[k]);
          distance += (a[k] - b[k]) * (a[k] - b[k]);
        }
        EXPECT_LE(std::sqrt(change),
                  c.loss->curvature() * std::sqrt(distance) * (1 + 1e-12) + 1e-14)
            << c.name << " seed " << kSeed;
      }
    }
  }
}

TEST(EveryLoss, StaysFiniteForExtremeScores) {
  for (const Case& c : AllLosses()) {
    for (const double size : {0.0, 1e-300, 1.0, 800.0, 1e6, 1e150}) {
      for (const double sign : {-1.0, 1.0}) {
        std::vector<double> scores(c.outputs, 0.0), derivative(c.outputs);
        scores[0] = sign * size;
        for (const double target : c.targets) {
          EXPECT_TRUE(std::isfinite(c.loss->Value(scores, target))) << c.name << " " << scores[0];
          c.loss->Derivative(scores, target, derivative);
          for (const double d : derivative)
            EXPECT_TRUE(std::isfinite(d)) << c.name << " " << scores[0];
        }
      }
    }
  }
}

TEST(EveryLoss, RefusesForeignTargetsAndTakesItsOwn) {
  for (const Case& c : AllLosses()) {
    for (const double target : c.targets) EXPECT_TRUE(c.loss->CheckTarget(target).ok()) << c.name;
    std::vector<double> foreign = {std::nan(""), INFINITY, -INFINITY, 1e38};
    if (c.loss->task() == Task::kMulticlass) foreign.insert(foreign.end(), {-1, 0.5, 0x1p32});
    if (c.loss->task() == Task::kBinary || c.loss->task() == Task::kDensityRatio)
      foreign.insert(foreign.end(), {0.5, 2, -2});
    for (const double target : foreign) {
      const absl::Status status = c.loss->CheckTarget(target);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.name << " " << target;
      EXPECT_EQ(FieldPathOf(status), "value") << c.name;
      EXPECT_TRUE(absl::StrContains(status.message(), c.name)) << status;
    }
  }
}

TEST(EveryLoss, ProbabilitiesAddUpAndFollowTheScores) {
  Random random(kSeed);
  for (const Case& c : AllLosses()) {
    if (!c.loss->has_probabilities()) continue;
    const size_t labels = c.loss->task() == Task::kBinary ? 2 : c.outputs;
    for (int trial = 0; trial < 200; ++trial) {
      const std::vector<double> scores = RandomScores(random, c.outputs);
      std::vector<double> p(labels);
      c.loss->Probabilities(scores, p);
      double sum = 0;
      for (const double value : p) {
        EXPECT_GE(value, 0);
        sum += value;
      }
      EXPECT_NEAR(sum, 1, 1e-12) << c.name;
      if (c.loss->task() == Task::kBinary) {
        EXPECT_EQ(p[1] > p[0], scores[0] > 0);
      } else {
        EXPECT_EQ(std::max_element(p.begin(), p.end()) - p.begin(),
                  std::max_element(scores.begin(), scores.end()) - scores.begin());
      }
    }
  }
}

TEST(EveryLoss, BestConstantIsNotBeatenByItsNeighbours) {
  Random random(kSeed);
  for (const Case& c : AllLosses()) {
    if (c.loss->task() == Task::kMulticlass) continue;  // smoothed shares, not the exact minimum
    std::vector<double> targets, weights;
    for (int i = 0; i < 40; ++i) {
      targets.push_back(c.targets[random.Below(c.targets.size())]);
      weights.push_back(random.Uniform(0.5, 2));
    }
    const auto total = [&](double score) {
      double sum = 0;
      for (size_t i = 0; i < targets.size(); ++i)
        sum += weights[i] * c.loss->Value({&score, 1}, targets[i]);
      return sum;
    };
    double best = 0;
    c.loss->BestConstant(targets, weights, {&best, 1});
    for (const double step : {-0.1, -0.01, 0.01, 0.1}) {
      EXPECT_LE(total(best), total(best + step) + 1e-9) << c.name << " seed " << kSeed;
    }
  }
}

std::unique_ptr<const Loss> Make(const std::string& name, const ParameterMap& parameters) {
  ComponentConfig config{name, parameters};
  auto loss = MakeLoss(config);
  EXPECT_TRUE(loss.ok()) << loss.status();
  return *std::move(loss);
}

// The step is the minimiser of this parabola, so it must not promise more than there is.
TEST(AbsoluteLosses, LieBelowTheParabolaOfTheirCurvature) {
  Random random(kSeed);
  for (const char* name : {"absolute", "epsilon_insensitive"}) {
    const auto loss = Make(name, {});
    for (int trial = 0; trial < 2000; ++trial) {
      const double at = random.Uniform(-9, 9), to = random.Uniform(-9, 9);
      if (loss->CurvatureAt({&at, 1}, 0) > 9.99) continue;  // it is capped there
      double slope = 0;
      loss->Derivative({&at, 1}, 0, {&slope, 1});
      const double curvature = loss->CurvatureAt({&at, 1}, 0);
      const double parabola =
          loss->Value({&at, 1}, 0) + slope * (to - at) + curvature / 2 * (to - at) * (to - at);
      EXPECT_LE(loss->Value({&to, 1}, 0), parabola + 1e-12) << name << " " << at << " " << to;
    }
  }
}

TEST(NoveltyThreshold, SettlesWhereTheFractionOfRowsIsBelow) {
  Random random(kSeed);
  const auto score_of = [&](int shape) {
    const double u = random.Uniform();
    return shape == 0 ? 5 + 0.01 * u : shape == 1 ? -40 + 20 * random.Normal() : -std::log(1 - u);
  };
  for (const double fraction : {0.05, 0.1, 0.5, 0.8}) {
    const auto loss = Make("novelty", {{"fraction", fraction}});
    for (const int shape : {0, 1, 2}) {
      for (const size_t batch : {1, 16, 64, 256}) {
        NoveltyThreshold threshold;
        const std::vector<double> weights(batch, 1.0);
        std::vector<double> scores(batch);
        double below = 0, rows = 0;
        for (size_t row = 0; row < 24000; row += batch) {
          for (double& score : scores) score = score_of(shape);
          if (row >= 8000) {  // before they are learned from
            for (const double score : scores) below += score < threshold.value ? 1 : 0;
            rows += static_cast<double>(batch);
          }
          threshold = loss->NextThreshold(threshold, scores, weights);
        }
        EXPECT_NEAR(below / rows, fraction, 0.02)
            << "shape " << shape << " batch " << batch << " seed " << kSeed;
      }
    }
  }
}

TEST(NoveltyThreshold, ARowOfWeightTwoIsTwoRows) {
  const auto loss = Make("novelty", {});
  const NoveltyThreshold before = {.value = 0.5, .spread = 0.25, .near = 0.3, .rows = 100};
  const std::vector<double> scores = {0.25, 1}, twice = {0.25, 0.25, 1};
  const std::vector<double> weights = {2, 1}, ones = {1, 1, 1};
  const NoveltyThreshold weighted = loss->NextThreshold(before, scores, weights);
  const NoveltyThreshold repeated = loss->NextThreshold(before, twice, ones);
  EXPECT_DOUBLE_EQ(weighted.value, repeated.value);
  EXPECT_DOUBLE_EQ(weighted.spread, repeated.spread);
  EXPECT_DOUBLE_EQ(weighted.near, repeated.near);
  EXPECT_EQ(weighted.rows, 103);
  EXPECT_LT(weighted.value, before.value);
}

}  // namespace
}  // namespace kernelstream
