// The update rules against plain float64 arithmetic on small cases.
#include "core/model/update_rule.h"
#include "core/base/philox.h"
#include "core/base/quantile.h"
#include "tests/model/model_support.h"

#include <Eigen/Eigenvalues>
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

constexpr uint64_t kSeed = 99;
constexpr double kBandwidth = 1.3;

// Feature f of a row under RawConfig.
double Phi(uint64_t f, std::span<const float> x) { return Feature(kSeed, f, x, kBandwidth); }

double ScoreOf(const std::vector<double>& alpha, std::span<const float> x) {
  double score = 0;
  for (size_t f = 0; f < alpha.size(); ++f) score += alpha[f] * Phi(f, x);
  return score;
}

ModelConfig RawConfig(const std::string& rule, const std::string& loss = "square") {
  ModelConfig config;
  config.loss.name = loss;
  config.kernel = {"gaussian", {{"bandwidth", kBandwidth}}};
  config.standardize = Standardize::kOff;
  config.update_rule.name = rule;
  config.averaging = Averaging::kUniform;
  config.warmup_rows = 2;
  config.batch_rows = 2;
  config.max_features = 64;
  config.seed = kSeed;
  config.feature_form = CosineForm::kSingle;
  config.replay.ratio = 0;
  return config;
}

// Steps of one size, b rows and r features each, no averages.
ModelConfig ConstantStepConfig(const std::string& loss, double step, double penalty, uint32_t b,
                               uint32_t r) {
  ModelConfig config = RawConfig("newest_block", loss);
  config.update_rule.parameters = {{"schedule", 2}, {"step_size", step}};
  config.l2_penalty = penalty;
  config.batch_rows = config.warmup_rows = b;
  config.block_features = r;
  config.averaging = Averaging::kLast;
  return config;
}

// y standardised as the trainer does: by the warm-up rows.
TargetScaling ScalingOf(const SampleBatch& rows, size_t warmup_rows = 2) {
  std::vector<double> first, weights;
  for (size_t i = 0; i < warmup_rows; ++i) {
    first.push_back(rows.target(i).value);
    weights.push_back(rows.weight(i));
  }
  return TargetScaling::FromTargets(first, weights, /*robust=*/false);
}

// Features, and so scores, are float32.
void ExpectScoresEqual(const Trainer& trainer, const SampleBatch& rows,
                       const std::vector<double>& alpha) {
  const std::vector<double> scores = Scores(trainer, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_NEAR(scores[i], ScoreOf(alpha, rows.row(i).values), 2e-5) << "row " << i;
  }
}

// Algorithm 1 of the paper, one row and one new feature at a time, theta / t, with decay: the
// equations as printed. The theorems have theta nu in (1, 2) or a positive integer: the decay of
// the first steps is negative then.
TEST(NewestBlock, IsAlgorithmOneLiterally) {
  struct Case {
    double theta, nu;
  };
  for (const Case& one : {Case{0.8, 0.3}, Case{1.5, 1}, Case{0.75, 4}}) {
    SCOPED_TRACE(one.theta * one.nu);
    ModelConfig config = RawConfig("newest_block");
    config.update_rule.parameters = {{"schedule", 1}, {"theta", one.theta}};
    config.l2_penalty = one.nu;
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
        const double f = ScoreOf(alpha, x);
        const double step_size = one.theta / static_cast<double>(t);
        for (double& a : alpha) a *= 1 - step_size * one.nu;
        alpha.push_back(-step_size * (f - y) * Phi(t - 1, x));
        average.push_back(0);
        for (size_t i = 0; i < alpha.size(); ++i) {
          average[i] += (alpha[i] - average[i]) / static_cast<double>(t);
        }
      }
      ExpectScoresEqual(*trainer, rows, averaging == Averaging::kLast ? alpha : average);
      EXPECT_EQ(trainer->MakeSnapshot()->num_features(), rows.size());
    }
  }
}

// The plain average of all steps, drift or not.
TEST(NewestBlock, APlainAverageIsOneOfAllStepsAlsoAfterADriftReport) {
  constexpr uint32_t kSteps = 512, kRowsOfStep = 4;
  constexpr double kStep = 0.5;
  ModelConfig config = ConstantStepConfig("square", kStep, /*penalty=*/0, kRowsOfStep, 1);
  config.averaging = Averaging::kUniform;
  config.max_features = kSteps;
  ASSERT_TRUE(CompleteConfig(config).ok());
  const SampleBatch plain = MakeRows("square", kSteps * kRowsOfStep, kDim, 3);
  SampleBatch rows;
  for (size_t i = 0; i < plain.size(); ++i) {
    rows.AppendRow(plain, i);
    if (i >= plain.size() * 3 / 4) rows.SetTarget(10 - plain.target(i).value);
  }
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  EXPECT_GE(trainer->Save().drift.reports, 1u);

  // Feature k came at step k and never changed: it is in the average as often as there were steps
  // from then on.
  const TrainerState state = trainer->Save();
  const CandidateState& candidate = state.candidates[0];
  EXPECT_EQ(candidate.steps_since_restart, kSteps);
  for (size_t k = 0; k < kSteps; ++k) {
    const double last = candidate.last.scale * candidate.last.values[k];
    EXPECT_NEAR(candidate.average.values[k], last * (kSteps - static_cast<double>(k)) / kSteps,
                1e-5)
        << k;
  }
}

// Mini-batch form with r new features per step: alpha = -(step / (b r)) sum l' feature; sample
// weights multiply l'.
TEST(NewestBlock, BlocksAndWeightsFollowTheEquation) {
  constexpr double kStep = 0.4;
  ModelConfig config = ConstantStepConfig("square", kStep, /*penalty=*/0, 2, 3);
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
      const double derivative =
          ScoreOf(alpha, x) - (rows.target(k).value - scaling.offset) / scaling.scale;
      for (size_t j = 0; j < 3; ++j) {
        fresh[j] -= kStep / (2 * 3) * rows.weight(k) * derivative * Phi(old + j, x);
      }
    }
    alpha.insert(alpha.end(), fresh.begin(), fresh.end());
  }
  ExpectScoresEqual(*trainer, rows, alpha);
}

// The practical schedule, 1 / (h sqrt((lambda + 1/r + 1/b)^2 + t / (c^2 b r))), in round numbers:
// h = 1/4 (logistic), lambda = 2, b = r = 2 and c = 1/2 make it 4 / sqrt(9 + t).
ParameterMap RoundSchedule() {
  return {{"schedule", 0}, {"noise_constant", 0.5}, {"top_eigenvalue", 2}};
}

TEST(NewestBlock, ThePracticalScheduleInRoundNumbers) {
  constexpr double kNu = 0.25;
  ComponentConfig logistic{"logistic", {}};
  const auto loss = *MakeLoss(logistic);
  const UpdateRuleEntry& entry = *FindUpdateRule("newest_block");
  ParameterMap parameters = RoundSchedule();
  ComponentConfig gaussian{"gaussian", {{"bandwidth", 1}}};
  entry.measure({}, **MakeKernel(gaussian), parameters);
  EXPECT_EQ(parameters, RoundSchedule());  // what is given is not measured
  const auto rule = entry.make(parameters, kNu, *loss);
  const double derivative[] = {-0.5, 0.25}, weights[] = {1, 2};
  struct Case {
    uint64_t t;
    double step_size;
  };
  for (const Case& one : {Case{7, 1}, Case{16, 0.8}, Case{1591, 0.1}}) {
    StepInput input;
    input.update = one.t;
    input.rows = input.range_size = 2;
    input.derivative = derivative;
    input.weights = weights;
    const StepOutput step = rule->Step(input);
    EXPECT_DOUBLE_EQ(step.decay, 1 - one.step_size * kNu);
    ASSERT_EQ(step.dual.size(), 2u);
    EXPECT_FLOAT_EQ(step.dual[0], static_cast<float>(one.step_size * 0.125));
    EXPECT_FLOAT_EQ(step.dual[1], static_cast<float>(-one.step_size * 0.125));
  }
}

TEST(NewestBlock, ThePracticalScheduleOfAWholeModelCountsStepsFromOne) {
  constexpr double kNu = 0.05;
  constexpr size_t b = 2, r = 2;
  ModelConfig config = RawConfig("newest_block", "logistic");
  config.update_rule.parameters = RoundSchedule();
  config.l2_penalty = kNu;
  config.block_features = r;
  config.averaging = Averaging::kLast;
  ASSERT_TRUE(CompleteConfig(config).ok());
  const SampleBatch rows = MakeRows("logistic", 24, kDim, 3);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  std::vector<double> alpha;
  for (size_t i = 0; i < rows.size(); i += b) {
    const double step_size = 4 / std::sqrt(9 + static_cast<double>(i / b + 1));
    std::vector<double> fresh(r, 0.0);
    for (size_t k = i; k < i + b; ++k) {
      const auto x = rows.row(k).values;
      const double y = rows.target(k).value;
      const double derivative = -y / (1 + std::exp(y * ScoreOf(alpha, x)));
      for (size_t m = 0; m < r; ++m) {
        fresh[m] -= step_size / (b * r) * derivative * Phi(alpha.size() + m, x);
      }
    }
    for (double& a : alpha) a *= 1 - step_size * kNu;
    alpha.insert(alpha.end(), fresh.begin(), fresh.end());
  }
  ExpectScoresEqual(*trainer, rows, alpha);
}

// Largest eigenvalue of the kernel matrix of the first `count` rows, over their number.
double DenseTopEigenvalue(const SampleBatch& rows, size_t count, const Kernel& kernel) {
  const auto n = static_cast<Eigen::Index>(count);
  Eigen::MatrixXd k(n, n);
  for (size_t i = 0; i < count; ++i) {
    const std::vector<double> x(rows.row(i).values.begin(), rows.row(i).values.end());
    for (size_t j = 0; j < count; ++j) {
      const std::vector<double> y(rows.row(j).values.begin(), rows.row(j).values.end());
      k(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = kernel.Evaluate(x, y);
    }
  }
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(k, Eigen::EigenvaluesOnly)
             .eigenvalues()
             .maxCoeff() /
         static_cast<double>(count);
}

// By power iteration on at most 256 of the warm-up rows.
TEST(NewestBlock, MeasuresTheTopEigenvalueOfTheWarmUpRows) {
  struct Case {
    uint32_t warmup_rows;
    size_t measured_rows;
    double bandwidth;
  };
  for (const Case& one : {Case{2, 2, 1.3}, Case{60, 60, 1.3}, Case{60, 60, 8}, Case{300, 256, 2}}) {
    SCOPED_TRACE(one.warmup_rows);
    ModelConfig config = RawConfig("newest_block", "logistic");
    config.kernel = {"gaussian", {{"bandwidth", one.bandwidth}}};
    config.warmup_rows = one.warmup_rows;
    ASSERT_TRUE(CompleteConfig(config).ok());
    const SampleBatch rows = MakeRows("logistic", one.warmup_rows, kDim, 4);
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, rows.size());
    const double dense = DenseTopEigenvalue(rows, one.measured_rows, **MakeKernel(config.kernel));
    EXPECT_NEAR(trainer->Save().rule_parameters.at("top_eigenvalue"), dense, 1e-6 * dense);
  }
}

// Gaussian elimination with row exchange.
std::vector<double> Solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t c = 0; c < n; ++c) {
    size_t pivot = c;
    for (size_t i = c; i < n; ++i) {
      if (std::abs(a[i][c]) > std::abs(a[pivot][c])) pivot = i;
    }
    std::swap(a[c], a[pivot]);
    std::swap(b[c], b[pivot]);
    for (size_t i = c + 1; i < n; ++i) {
      const double factor = a[i][c] / a[c][c];
      for (size_t j = c; j < n; ++j) a[i][j] -= factor * a[c][j];
      b[i] -= factor * b[c];
    }
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t j = i + 1; j < n; ++j) b[i] -= a[i][j] * b[j];
    b[i] /= a[i][i];
  }
  return b;
}

// new = -step (Phi' Phi / (b r) + ridge I)^-1 Phi' (weights l') / (b r), solved in the r features;
// the rule solves the same in the b rows. Five steps, blocks smaller and larger than the batch.
TEST(BlockNewton, SolvesItsSystem) {
  constexpr double kStep = 0.6, kRidge = 0.05, kNu = 0.1;
  constexpr size_t b = 4;
  for (const uint32_t r : {3u, 7u}) {
    ModelConfig config = RawConfig("block_newton");
    config.update_rule.parameters = {{"step_size", kStep}, {"ridge", kRidge}};
    config.l2_penalty = kNu;
    config.batch_rows = config.warmup_rows = b;
    config.block_features = r;
    config.averaging = Averaging::kLast;
    ASSERT_TRUE(CompleteConfig(config).ok());
    SampleBatch rows;
    const SampleBatch plain = MakeRows("square", 5 * b, kDim, 3);
    for (size_t i = 0; i < plain.size(); ++i) {
      rows.AppendRow(plain, i);
      rows.SetWeight(0.5f + static_cast<float>(i % 3));
    }
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, rows.size());

    const TargetScaling scaling = ScalingOf(rows, b);
    std::vector<double> alpha;
    for (size_t i = 0; i < rows.size(); i += b) {
      const size_t old = alpha.size();
      std::vector<std::vector<double>> system(r, std::vector<double>(r));
      std::vector<double> right(r);
      for (size_t k = i; k < i + b; ++k) {
        const auto x = rows.row(k).values;
        const double derivative =
            ScoreOf(alpha, x) - (rows.target(k).value - scaling.offset) / scaling.scale;
        for (size_t m = 0; m < r; ++m) {
          right[m] -= kStep * rows.weight(k) * derivative * Phi(old + m, x) / (b * r);
          for (size_t n = 0; n < r; ++n) {
            system[m][n] += Phi(old + m, x) * Phi(old + n, x) / (b * r);
          }
        }
      }
      for (size_t m = 0; m < r; ++m) system[m][m] += kRidge;
      for (double& a : alpha) a *= 1 - kStep * kNu;
      for (const double a : Solve(system, right)) alpha.push_back(a);
    }
    ExpectScoresEqual(*trainer, rows, alpha);
  }
}

// alpha = -(step / (2 r)) (mean over q of e^f feature - mean over p of feature), the halves because
// a mini-batch is the mean over both populations. Where one of them has more rows, those weigh less
// by the shares of all rows so far.
TEST(NewestBlock, LearnsADensityRatioByTheEquation) {
  constexpr double kStep = 0.5, kNu = 0.01;
  constexpr size_t r = 2;
  for (const size_t of_p : {2, 1}) {  // rows of p in a mini-batch of four
    ModelConfig config = ConstantStepConfig("density_ratio", kStep, kNu, 4, r);
    ASSERT_TRUE(CompleteConfig(config).ok());
    const SampleBatch plain = MakeRows("square", 24, kDim, 3);
    SampleBatch rows;
    for (size_t i = 0; i < plain.size(); ++i) {
      rows.AppendRow(plain, i);
      rows.SetPopulation(i % 4 < of_p ? Population::kNumerator : Population::kDenominator);
    }
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, rows.size());

    std::vector<double> alpha;
    for (size_t i = 0; i < rows.size(); i += 4) {
      std::vector<double> fresh(r, 0.0);
      for (size_t k = i; k < i + 4; ++k) {
        const auto x = rows.row(k).values;
        const bool p = k % 4 < of_p;
        const double derivative = p ? -1 : std::exp(ScoreOf(alpha, x));
        const double share = 1 / static_cast<double>(p ? of_p : 4 - of_p);  // of its mean
        for (size_t m = 0; m < r; ++m) {
          fresh[m] -= kStep / (2 * r) * share * derivative * Phi(alpha.size() + m, x);
        }
      }
      for (double& a : alpha) a *= 1 - kStep * kNu;
      alpha.insert(alpha.end(), fresh.begin(), fresh.end());
    }
    ExpectScoresEqual(*trainer, rows, alpha);
  }
}

// alpha = (step / (b r)) sum of 1[f < threshold] feature, and threshold += step' (fraction - share
// below), with step' as stated in novelty.cc. Every fourth row is not learned.
TEST(NewestBlock, LearnsNoveltyAndItsThresholdByTheEquations) {
  constexpr double kStep = 0.5, kNu = 0.05, kFraction = 0.3;
  constexpr size_t r = 2;
  ModelConfig config = ConstantStepConfig("novelty", kStep, kNu, 4, r);
  config.loss.parameters = {{"fraction", kFraction}};
  ASSERT_TRUE(CompleteConfig(config).ok());
  const SampleBatch plain = MakeRows("square", 80, kDim, 3);
  SampleBatch rows;
  for (size_t i = 0; i < plain.size(); ++i) rows.AddDense(plain.row(i).values);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());

  std::vector<double> alpha;
  double threshold = 0, spread = 0, near = 1, n = 0;
  for (size_t i = 0; i < rows.size(); i += 4) {
    constexpr double b = 3;
    const double unit = std::max(spread, 1e-3);
    std::vector<double> fresh(r, 0.0);
    double below = 0, distances = 0, close = 0;
    for (size_t k = i; k < i + 3; ++k) {
      const auto x = rows.row(k).values;
      const double f = ScoreOf(alpha, x);
      distances += std::abs(f - threshold);
      close += std::abs(f - threshold) < unit / 2 ? 1 : 0;
      if (f >= threshold) continue;
      below += 1;
      for (size_t m = 0; m < r; ++m) fresh[m] += kStep / (b * r) * Phi(alpha.size() + m, x);
    }
    for (double& a : alpha) a *= 1 - kStep * kNu;
    alpha.insert(alpha.end(), fresh.begin(), fresh.end());
    n += b;
    const double share = b / n;
    const double step = share / std::max(near, kFraction * (1 - kFraction));
    threshold += unit * std::clamp(step * (kFraction - below / b), -1.0, 1.0);
    spread += share * (distances / b - spread);
    near += share * (close / b - near);
  }
  ExpectScoresEqual(*trainer, rows, alpha);
  const NoveltyThreshold got = trainer->Save().candidates[0].last.threshold;
  EXPECT_EQ(got.rows, n);
  EXPECT_NEAR(got.value, threshold, 2e-5);
  EXPECT_NEAR(got.spread, spread, 2e-5);
  EXPECT_NEAR(got.near, near, 1e-12);
  EXPECT_GT(got.value, 0);
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
// Blocks of 64 rows, although two come at a time; the last 7 are shown as a block of their own.
double GaussianOf(std::span<const float> x, std::span<const float> y) {
  double square = 0;
  for (size_t j = 0; j < x.size(); ++j) square += (double{x[j]} - y[j]) * (double{x[j]} - y[j]);
  return std::exp(-square / (2 * kBandwidth * kBandwidth));
}

// The system is of the features, or from 4 features per row and step constant on of the kernel's
// own values.
void ExpectSolves(double step_constant) {
  constexpr size_t kBlock = 64, kGrowth = 40;
  const double enough = 4 * kBlock / step_constant;
  for (const double nu : {0.0, 0.05}) {
    for (const bool weighted : {false, true}) {
      ModelConfig config = RawConfig("proximal");
      config.update_rule.parameters = {{"step_constant", step_constant}};
      config.l2_penalty = nu;
      config.block_features = kGrowth;
      config.averaging = Averaging::kLast;
      ASSERT_TRUE(CompleteConfig(config).ok());
      SampleBatch rows;
      const SampleBatch plain = MakeRows("square", 2 * kBlock + 7, kDim, 3);
      for (size_t i = 0; i < plain.size(); ++i) {
        rows.AppendRow(plain, i);
        if (weighted) rows.SetWeight(0.25f * static_cast<float>(1 + i % 3));
      }
      auto trainer = MakeTrainer(config);
      Feed(*trainer, config, rows, 0, rows.size());

      const TargetScaling scaling = ScalingOf(rows);
      std::vector<double> alpha;
      for (size_t i = 0; i < rows.size(); i += kBlock) {
        const size_t b = std::min(kBlock, rows.size() - i);
        const auto D = std::min<size_t>(alpha.size() + kGrowth, 64);
        alpha.resize(D, 0.0);
        std::vector<std::vector<double>> phi(b), system(b, std::vector<double>(b));
        std::vector<double> g;
        for (size_t k = 0; k < b; ++k) {
          const auto x = rows.row(i + k).values;
          for (size_t j = 0; j < D; ++j) phi[k].push_back(Phi(j, x));
          g.push_back(ScoreOf(alpha, x) -
                      (rows.target(i + k).value - scaling.offset) / scaling.scale);
        }
        const auto rows_here = static_cast<double>(b);
        const double ridge = step_constant + rows_here * nu;
        for (size_t k = 0; k < b; ++k) {
          for (size_t l = 0; l < b; ++l) {
            for (size_t j = 0; j < D; ++j) {
              system[k][l] += phi[k][j] * phi[l][j] / static_cast<double>(D);
            }
            if (static_cast<double>(D) < enough) continue;
            system[k][l] = GaussianOf(rows.row(i + k).values, rows.row(i + l).values);
          }
          system[k][k] += ridge / rows.weight(i + k);
        }
        const std::vector<double> v = Solve(system, g);
        for (size_t j = 0; j < D; ++j) {
          alpha[j] *= 1 - rows_here * nu / ridge;
          for (size_t k = 0; k < b; ++k) alpha[j] -= v[k] * phi[k][j] / static_cast<double>(D);
        }
      }
      ExpectScoresEqual(*trainer, rows, alpha);
    }
  }
}

TEST(Proximal, SolvesItsSystemOnFeatures) { ExpectSolves(0.7); }
TEST(Proximal, SolvesItsSystemOnTheKernelOnceFeaturesAreMany) { ExpectSolves(4); }

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
    errors.push_back(ErrorOn(*trainer, test));
  }
  EXPECT_LT(errors[0], 0.03);
  for (const double error : errors)
    EXPECT_NEAR(std::sqrt(error), std::sqrt(errors[2]), 0.35 * std::sqrt(errors[2]));
}

}  // namespace
}  // namespace kernelstream
