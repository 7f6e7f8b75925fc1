// The update rules against plain float64 arithmetic on small cases.
#include "core/model/update_rule.h"
#include "core/base/philox.h"
#include "core/base/quantile.h"
#include "tests/model/model_support.h"

#include <numbers>

namespace kernelstream {
namespace {

constexpr size_t kDim = 3;

// Feature f of row x, straight from the seed schedule.
double Feature(uint64_t seed, uint64_t f, std::span<const float> x, double bandwidth) {
  double projection = 0;
  for (size_t j = 0; j < x.size(); ++j) {
    const PhiloxBlock block = Philox4x32(FrequencyCounter(f, j / 4), PhiloxKey(seed));
    projection += x[j] * NormalQuantile(double{UniformFloat(block[j % 4])});
  }
  const double phase = UniformFloat(Philox4x32(PhaseCounter(f), PhiloxKey(seed))[0]);
  return std::numbers::sqrt2 * std::cos(projection / bandwidth + 2 * std::numbers::pi * phase);
}

ModelConfig RawConfig(const std::string& rule) {
  ModelConfig config;
  config.loss.name = "square";
  config.kernel = {"gaussian", {{"bandwidth", 1.3}}};
  config.standardize = Standardize::kOff;
  config.update_rule.name = rule;
  config.averaging = Averaging::kUniform;
  config.warmup_rows = 2;
  config.batch_rows = 2;
  config.max_features = 64;
  config.seed = 99;
  config.replay.ratio = 0;
  return config;
}

struct Reference {
  std::vector<double> alpha, average;
  double offset = 0, scale = 1;
};

// y standardised as the trainer does: by the two warm-up rows.
TargetScaling ScalingOf(const SampleBatch& rows) {
  const std::vector<double> first = {rows.target(0).value, rows.target(1).value};
  return TargetScaling::FromTargets(first);
}

void ExpectScoresEqual(const Trainer& trainer, const SampleBatch& rows,
                       const std::vector<double>& alpha, const ModelConfig& config) {
  const std::vector<double> scores = Scores(trainer, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    double expected = 0;
    for (size_t f = 0; f < alpha.size(); ++f) {
      expected += alpha[f] * Feature(*config.seed, f, rows.row(i).values, 1.3);
    }
    EXPECT_NEAR(scores[i], expected, 2e-5) << "row " << i;
  }
}

// Algorithm 1 of the paper, one row and one new feature at a time, theta / t, with decay: the
// equations as printed.
TEST(NewestBlock, IsAlgorithmOneLiterally) {
  constexpr double kTheta = 0.8, kNu = 0.3;
  ModelConfig config = RawConfig("newest_block");
  config.update_rule.parameters = {{"schedule", 1}, {"theta", kTheta}};
  config.l2_penalty = kNu;
  config.batch_rows = 1;
  config.block_features = 1;
  for (const Averaging averaging : {Averaging::kLast, Averaging::kUniform}) {
    config.averaging = averaging;
    ASSERT_TRUE(CompleteConfig(config).ok());
    const SampleBatch rows = MakeRows("square", 12, kDim, 3);
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, rows.size());

    const TargetScaling scaling = ScalingOf(rows);
    std::vector<double> alpha, average;
    for (size_t t = 1; t <= rows.size(); ++t) {
      const auto x = rows.row(t - 1).values;
      const double y = (rows.target(t - 1).value - scaling.offset) / scaling.scale;
      double f = 0;
      for (size_t i = 0; i < alpha.size(); ++i) f += alpha[i] * Feature(99, i, x, 1.3);
      const double step_size = kTheta / static_cast<double>(t);
      for (double& a : alpha) a *= 1 - step_size * kNu;
      alpha.push_back(-step_size * (f - y) * Feature(99, t - 1, x, 1.3));
      average.push_back(0);
      for (size_t i = 0; i < alpha.size(); ++i) {
        average[i] += (alpha[i] - average[i]) / static_cast<double>(t);
      }
    }
    ExpectScoresEqual(*trainer, rows, averaging == Averaging::kLast ? alpha : average, config);
    EXPECT_EQ(trainer->MakeSnapshot()->num_features(), rows.size());
  }
}

// Mini-batch form with r new features per step: alpha = -(step / (b r)) sum l' feature; sample
// weights multiply l'.
TEST(NewestBlock, BlocksAndWeightsFollowTheEquation) {
  constexpr double kStep = 0.4;
  ModelConfig config = RawConfig("newest_block");
  config.update_rule.parameters = {{"schedule", 2}, {"step_size", kStep}};
  config.l2_penalty = 0;
  config.block_features = 3;
  config.averaging = Averaging::kLast;
  ASSERT_TRUE(CompleteConfig(config).ok());
  SampleBatch rows;
  const SampleBatch plain = MakeRows("square", 8, kDim, 3);
  for (size_t i = 0; i < plain.size(); ++i) {
    rows.AppendRow(plain, i);
    rows.SetWeight(0.5f + static_cast<float>(i));
  }
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  const TargetScaling scaling = ScalingOf(rows);
  std::vector<double> alpha;
  for (size_t i = 0; i < rows.size(); i += 2) {
    const size_t old = alpha.size();
    std::vector<double> fresh(3, 0.0);
    for (size_t k = i; k < i + 2; ++k) {
      const auto x = rows.row(k).values;
      double f = 0;
      for (size_t j = 0; j < old; ++j) f += alpha[j] * Feature(99, j, x, 1.3);
      const double derivative = f - (rows.target(k).value - scaling.offset) / scaling.scale;
      for (size_t j = 0; j < 3; ++j) {
        fresh[j] -= kStep / (2 * 3) * rows.weight(k) * derivative * Feature(99, old + j, x, 1.3);
      }
    }
    alpha.insert(alpha.end(), fresh.begin(), fresh.end());
  }
  ExpectScoresEqual(*trainer, rows, alpha, config);
}

TEST(NewestBlock, TakesTheOldestBlockUpAgainWhenFull) {
  ModelConfig config = RawConfig("newest_block");
  config.block_features = 20;  // 20, 20, 20, then the 4 that are left, then from the start
  config.averaging = Averaging::kLast;
  ASSERT_TRUE(CompleteConfig(config).ok());
  const SampleBatch rows = MakeRows("square", 40, kDim, 3);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, 8);
  EXPECT_EQ(trainer->MakeSnapshot()->num_features(), 64u);
  const std::vector<float> before = trainer->Save().candidates[0].last.values;
  Feed(*trainer, config, rows, 8, 10);
  const TrainerState after = trainer->Save();
  EXPECT_EQ(after.num_features, 64u);
  for (size_t f = 0; f < 64; ++f) {
    EXPECT_EQ(after.candidates[0].last.values[f] != before[f], f < 20) << f;
  }
}

TEST(NewestBlock, AStepThatIsTooLargeStartsAgainAndStaysFinite) {
  ModelConfig config = RawConfig("newest_block");
  config.update_rule.parameters = {{"schedule", 2}, {"step_size", 1e6}};
  config.max_features = 4096;
  ASSERT_TRUE(CompleteConfig(config).ok());
  const SampleBatch rows = MakeRows("square", 400, kDim, 3);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  EXPECT_GT(trainer->divergences(), 0u);
  for (const double score : Scores(*trainer, rows)) EXPECT_TRUE(std::isfinite(score));
}

// (h K + (c + nu b) / w) v = l', alpha = decay alpha - features' v / D with K = features features'
// / D.
TEST(Proximal, SolvesItsSystem) {
  for (const double nu : {0.0, 0.05}) {
    for (const bool weighted : {false, true}) {
      constexpr double kC = 0.7;
      ModelConfig config = RawConfig("proximal");
      config.update_rule.parameters = {{"step_constant", kC}};
      config.l2_penalty = nu;
      config.block_features = 20;
      config.averaging = Averaging::kLast;
      ASSERT_TRUE(CompleteConfig(config).ok());
      SampleBatch rows;
      const SampleBatch plain = MakeRows("square", 12, kDim, 3);
      for (size_t i = 0; i < plain.size(); ++i) {
        rows.AppendRow(plain, i);
        if (weighted) rows.SetWeight(0.25f * static_cast<float>(1 + i % 3));
      }
      auto trainer = MakeTrainer(config);
      Feed(*trainer, config, rows, 0, rows.size());

      const TargetScaling scaling = ScalingOf(rows);
      std::vector<double> alpha;
      for (size_t i = 0; i < rows.size(); i += 2) {
        const size_t D = std::min<size_t>(alpha.size() + 20, 64);
        alpha.resize(D, 0.0);
        std::vector<double> phi[2];
        double g[2], a[2][2];
        for (size_t k = 0; k < 2; ++k) {
          double f = 0;
          for (size_t j = 0; j < D; ++j) {
            phi[k].push_back(Feature(99, j, rows.row(i + k).values, 1.3));
            f += alpha[j] * phi[k][j];
          }
          g[k] = f - (rows.target(i + k).value - scaling.offset) / scaling.scale;
        }
        for (size_t k = 0; k < 2; ++k) {
          for (size_t l = 0; l < 2; ++l) {
            a[k][l] = 0;
            for (size_t j = 0; j < D; ++j)
              a[k][l] += phi[k][j] * phi[l][j] / static_cast<double>(D);
          }
          a[k][k] += (kC + 2 * nu) / rows.weight(i + k);
        }
        const double det = a[0][0] * a[1][1] - a[0][1] * a[1][0];
        const double v[] = {(g[0] * a[1][1] - g[1] * a[0][1]) / det,
                            (g[1] * a[0][0] - g[0] * a[1][0]) / det};
        for (size_t j = 0; j < D; ++j) {
          alpha[j] = alpha[j] * (1 - 2 * nu / (kC + 2 * nu)) -
                     (v[0] * phi[0][j] + v[1] * phi[1][j]) / static_cast<double>(D);
        }
      }
      ExpectScoresEqual(*trainer, rows, alpha, config);
    }
  }
}

// The same rows in batches of any size end at nearly the same accuracy.
TEST(Proximal, HardlyMindsHowRowsAreCut) {
  const SampleBatch rows = MakeRows("square", 4000, kDim, 11),
                    test = MakeRows("square", 500, kDim, 12);
  std::vector<double> errors;
  for (const uint32_t batch : {1u, 16u, 64u, 256u}) {
    ModelConfig config = SmallConfig("square");
    config.replay.ratio = 0;
    config.batch_rows = batch;
    config.candidates = {.bandwidth_scales = {1}, .step_constants = {1}};
    config.input_metric = InputMetric::kOff;
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, rows.size());
    const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
    const std::vector<double> scores = Scores(*trainer, test);
    double error = 0;
    for (size_t i = 0; i < test.size(); ++i) {
      const double off = snapshot->Link({&scores[i], 1}).value - test.target(i).value;
      error += off * off / static_cast<double>(test.size());
    }
    errors.push_back(error);
  }
  EXPECT_LT(errors[0], 0.03);
  for (const double error : errors)
    EXPECT_NEAR(std::sqrt(error), std::sqrt(errors[2]), 0.3 * std::sqrt(errors[2]));
}

}  // namespace
}  // namespace kernelstream
