// Learning problems beyond one number and labels: novelty, density ratios, several targets, and the
// losses of a regression.
#include <cmath>
#include <cstdio>

#include "core/model/evaluator.h"
#include "tests/model/model_support.h"

namespace kernelstream {
namespace {

ModelConfig TaskConfig(const std::string& loss, ParameterMap parameters = {}) {
  ModelConfig config;
  config.loss = {loss, std::move(parameters)};
  config.max_features = 1024;
  config.warmup_rows = 128;
  EXPECT_TRUE(CompleteConfig(config).ok());
  return config;
}

// Rows on a ring of radius 2, in the first two of `dim` inputs; or anywhere.
SampleBatch Ring(size_t count, size_t dim, uint64_t seed, bool on_ring = true) {
  SampleBatch rows;
  Random random(seed);
  for (size_t i = 0; i < count; ++i) {
    float* x = rows.AddDense(dim);
    for (size_t j = 0; j < dim; ++j) x[j] = static_cast<float>(0.3 * random.Normal());
    const double angle = random.Uniform(0, 6.283185307);
    const double radius = on_ring ? 2 : random.Uniform(0, 4);
    x[0] += static_cast<float>(radius * std::cos(angle));
    x[1] += static_cast<float>(radius * std::sin(angle));
  }
  return rows;
}

// Two clusters of unequal size.
SampleBatch Clusters(size_t count, uint64_t seed) {
  SampleBatch rows;
  Random random(seed);
  for (size_t i = 0; i < count; ++i) {
    const double center = random.Uniform(0, 1) < 0.8 ? 3 : -3;
    float* x = rows.AddDense(4);
    for (size_t j = 0; j < 4; ++j) x[j] = static_cast<float>(center + random.Normal());
  }
  return rows;
}

double FractionBelow(const Trainer& trainer, const SampleBatch& rows) {
  const Ref<Snapshot> snapshot = trainer.MakeSnapshot();
  const std::vector<double> scores = Scores(trainer, rows);
  double below = 0;
  for (const double score : scores) below += snapshot->Link({&score, 1}).value < 0;
  return below / static_cast<double>(rows.size());
}

TEST(Novelty, TheWantedFractionIsBelowTheThreshold) {
  for (const double fraction : {0.05, 0.1, 0.3}) {
    const ModelConfig config = TaskConfig("novelty", {{"fraction", fraction}});
    struct Data {
      SampleBatch train, test;
    };
    const Data sets[] = {{Ring(10000, 2, 1), Ring(8000, 2, 2)},
                         {Ring(10000, 5, 3), Ring(8000, 5, 4)},
                         {Clusters(10000, 5), Clusters(8000, 6)}};
    for (const Data& data : sets) {
      auto trainer = MakeTrainer(config);
      Feed(*trainer, config, data.train, 0, data.train.size());
      EXPECT_NEAR(FractionBelow(*trainer, data.test), fraction, 0.02) << fraction;
    }
  }
}

TEST(Novelty, RowsThatHardlyCountHardlyMoveTheThreshold) {
  const ModelConfig config = TaskConfig("novelty", {{"fraction", 0.1}});
  SampleBatch rows;
  const SampleBatch members = Ring(10000, 2, 1), strangers = Ring(5000, 2, 7, /*on_ring=*/false);
  for (size_t i = 0; i < strangers.size(); ++i) {
    rows.AppendRow(members, 2 * i);
    rows.AppendRow(members, 2 * i + 1);
    rows.AppendRow(strangers, i);
    rows.SetWeight(0.001f);
  }
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  EXPECT_NEAR(FractionBelow(*trainer, Ring(8000, 2, 2)), 0.1, 0.02);
}

// Snapshots report none: the threshold that learning moves is not the one that is served.
TEST(Novelty, EvaluationsCountTheRowsBelowTheThreshold) {
  const ModelConfig config = TaskConfig("novelty", {{"fraction", 0.2}});
  const SampleBatch train = Ring(4000, 2, 1);
  SampleBatch test = Ring(3000, 2, 2);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, train, 0, train.size());
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  EXPECT_FALSE(snapshot->validation().recent.fraction_below_threshold.has_value());
  EXPECT_FALSE(snapshot->validation().total.fraction_below_threshold.has_value());
  const auto evaluated = [&] {
    Evaluator evaluator;
    EXPECT_EQ(evaluator.Add(*snapshot, test, Inline()), std::nullopt);
    return *evaluator.Metrics(*snapshot).fraction_below_threshold;
  };
  EXPECT_NEAR(evaluated(), FractionBelow(*trainer, test), 1e-12);
  EXPECT_NEAR(evaluated(), 0.2, 0.03);
  const SampleBatch strangers = Ring(3000, 2, 3, /*on_ring=*/false);
  for (size_t i = 0; i < strangers.size(); ++i) test.AppendRow(strangers, i);
  EXPECT_NEAR(evaluated(), FractionBelow(*trainer, test), 1e-12);
  EXPECT_GT(evaluated(), 0.35) << "half of the rows are strangers";
}

// Models from before the default was 1024 have 0, and go on as they were.
TEST(Novelty, KeepsTheGrowthThatItWasStoredWith) {
  ModelConfig config = TaskConfig("novelty");
  EXPECT_GT(config.block_features, 0u);
  config.block_features = 0;
  const SampleBatch rows = Ring(1000, 2, 1);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, 512);
  const TrainerState state = trainer->Save();
  EXPECT_LT(state.num_features, 1024u) << "as many features a step as rows";
  auto restored = Trainer::Restore(config, state, {&Inline(), nullptr});
  ASSERT_TRUE(restored.ok()) << restored.status();
  Feed(*trainer, config, rows, 512, rows.size());
  Feed(**restored, config, rows, 512, rows.size());
  EXPECT_EQ(trainer->Save().num_features, (*restored)->Save().num_features);
  EXPECT_EQ(Scores(*trainer, rows), Scores(**restored, rows));
}

// New models may not have it; stored ones learn as if they had none.
TEST(Novelty, LearnsAsWithoutWhereAStoredConfigReplays) {
  const SampleBatch rows = Ring(1000, 2, 1);
  ModelConfig config = TaskConfig("novelty");
  auto plain = MakeTrainer(config);
  Feed(*plain, config, rows, 0, rows.size());
  for (const StreamOrder order : {StreamOrder::kDrifting, StreamOrder::kOrdered}) {
    config.replay.ratio = 3;
    config.replay.order = order;
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, rows.size());
    EXPECT_EQ(Scores(*trainer, rows), Scores(*plain, rows));
    EXPECT_NE(Scores(*trainer, rows), std::vector<double>(rows.size(), 0.0));
    const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
    for (const CandidateReport& c : snapshot->resolved().candidates) EXPECT_FALSE(c.replays);
  }
}

TEST(Novelty, HasAThresholdWhereSomeRowsOverflow) {
  ModelConfig config;
  config.loss = {"novelty", {}};
  config.kernel = {"polynomial", {{"degree", 4}}};
  config.standardize = Standardize::kOff;
  config.max_features = 512;
  config.warmup_rows = 128;
  ASSERT_TRUE(CompleteConfig(config).ok());
  const SampleBatch ring = Ring(2000, 2, 1);
  SampleBatch rows;
  for (size_t i = 0; i < ring.size(); ++i) {
    rows.AppendRow(ring, i);
    if (i > 200 && i % 5 == 0) rows.AddDense(std::vector<float>{1e14f, -1e14f});
  }
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  EXPECT_TRUE(std::isfinite(trainer->MakeSnapshot()->threshold()));
  EXPECT_NEAR(FractionBelow(*trainer, Ring(2000, 2, 2)), 0.1, 0.1);
}

// How often a row off the ring scores below one on it.
double RankingOf(const std::vector<double>& on, const std::vector<double>& off) {
  double right = 0;
  for (const double a : on) {
    for (const double b : off) right += a > b ? 1 : a == b ? 0.5 : 0;
  }
  return right / static_cast<double>(on.size() * off.size());
}

TEST(Novelty, RanksStrangersBelowMembersBetterThanTheDistanceFromTheMean) {
  const ModelConfig config = TaskConfig("novelty");
  const SampleBatch train = Ring(6000, 2, 1), on = Ring(500, 2, 2), off = Ring(500, 2, 3, false);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, train, 0, train.size());
  const auto closeness = [](const SampleBatch& rows) {
    std::vector<double> out;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto x = rows.row(i).values;
      out.push_back(-std::hypot(x[0], x[1]));  // the mean of the ring is its centre
    }
    return out;
  };
  const double learned = RankingOf(Scores(*trainer, on), Scores(*trainer, off));
  EXPECT_GT(learned, 0.8);
  EXPECT_GT(learned, RankingOf(closeness(on), closeness(off)) + 0.1);
}

// Populations p = N(0.5, 1) and q = N(-0.5, 1) in each of two inputs: log p / q is the sum of the
// inputs, and KL(p || q) = |difference of the means|^2 / 2 = 1.
SampleBatch TwoGaussians(size_t count, uint64_t seed, double share_of_p) {
  SampleBatch rows;
  Random random(seed);
  for (size_t i = 0; i < count; ++i) {
    const bool is_p = random.Uniform(0, 1) < share_of_p;
    float* x = rows.AddDense(2);
    for (size_t j = 0; j < 2; ++j) {
      x[j] = static_cast<float>((is_p ? 0.5 : -0.5) + random.Normal());
    }
    rows.SetPopulation(is_p ? Population::kNumerator : Population::kDenominator);
  }
  return rows;
}

double LogRatioOfGaussians(const RowView& row) { return double{row.values[0]} + row.values[1]; }

TEST(DensityRatio, LearnsTheLogRatioOfTwoGaussians) {
  for (const double share : {0.5, 0.2}) {  // how many rows come of each must not matter
    const ModelConfig config = TaskConfig("density_ratio");
    const SampleBatch train = TwoGaussians(40000, 1, share);
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, train, 0, train.size());
    const SampleBatch test = TwoGaussians(20000, 2, 0.5);
    const std::vector<double> scores = Scores(*trainer, test);
    double squares = 0, count = 0;
    for (size_t i = 0; i < test.size(); ++i) {
      const auto x = test.row(i).values;
      if (std::hypot(x[0], x[1]) > 2.2) continue;  // where both have mass
      const double off = scores[i] - LogRatioOfGaussians(test.row(i));
      squares += off * off;
      ++count;
    }
    EXPECT_LT(std::sqrt(squares / count), 0.15) << share;
    // KL(p || q) = E_p score - E_q exp(score) + 1.
    double sums[2] = {}, counts[2] = {};
    for (size_t i = 0; i < test.size(); ++i) {
      const bool is_p = test.target(i).population == Population::kNumerator;
      sums[is_p] += is_p ? scores[i] : std::exp(scores[i]);
      counts[is_p] += 1;
    }
    const double divergence = sums[1] / counts[1] - sums[0] / counts[0] + 1;
    EXPECT_NEAR(divergence, 1.0, 0.1) << share;
    // So say the metrics: of an evaluation, and of rows before they were learned. The latter go
    // back 4096 rows: .05 is the standard deviation of the mean over so few.
    const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
    ASSERT_TRUE(snapshot->validation().recent.divergence.has_value());
    EXPECT_NEAR(*snapshot->validation().recent.divergence, 1.0, 0.15) << share;
    Evaluator evaluator;
    EXPECT_EQ(evaluator.Add(*snapshot, test, Inline()), std::nullopt);
    EXPECT_NEAR(*evaluator.Metrics(*snapshot).divergence, divergence, 1e-9) << share;
  }
}

TEST(RelativeNovelty, ScoresAreHighWhereTheReferenceHasMoreMass) {
  const ModelConfig config = TaskConfig("relative_novelty");
  SampleBatch train;
  Random random(1);
  const SampleBatch ring = Ring(10000, 2, 2), all = Ring(10000, 2, 3, false);
  for (size_t i = 0; i < ring.size(); ++i) {
    train.AppendRow(ring, i);
    train.SetPopulation(Population::kNumerator);
    train.AppendRow(all, i);
    train.SetPopulation(Population::kDenominator);
  }
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, train, 0, train.size());
  SampleBatch on, off;
  on.AddDense(std::array{2.0f, 0.0f});
  off.AddDense(std::array{0.0f, 0.0f});
  EXPECT_GT(Scores(*trainer, on)[0], Scores(*trainer, off)[0]);
}

// The score is p / q, and near 0 where that is below exp(-rho), rho = 1: rows that are rarer under
// p.
TEST(RelativeNovelty, RanksRowsByTheRatioOfTwoGaussians) {
  const ModelConfig config = TaskConfig("relative_novelty");
  const SampleBatch train = TwoGaussians(20000, 1, 0.5), test = TwoGaussians(3000, 2, 0.5);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, train, 0, train.size());
  const std::vector<double> scores = Scores(*trainer, test);
  std::vector<double> rare, common, ratios, learned;
  for (size_t i = 0; i < test.size(); ++i) {
    const auto x = test.row(i).values;
    if (std::hypot(x[0], x[1]) > 2.2) continue;  // where both have mass
    const double log_ratio = LogRatioOfGaussians(test.row(i));
    (log_ratio < -1 ? rare : common).push_back(scores[i]);
    if (log_ratio < -1) continue;
    ratios.push_back(log_ratio);
    learned.push_back(scores[i]);
  }
  double concordant = 0, pairs = 0;
  for (size_t i = 0; i < ratios.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      pairs += 1;
      concordant += (ratios[i] > ratios[j]) == (learned[i] > learned[j]) ? 1 : 0;
    }
  }
  double mean_of_rare = 0;
  for (const double score : rare) mean_of_rare += score / static_cast<double>(rare.size());
  EXPECT_GT(RankingOf(common, rare), 0.99);
  EXPECT_GT(concordant / pairs, 0.97);
  EXPECT_LT(std::abs(mean_of_rare), std::exp(-1));
}

TEST(Regression, LearnsSeveralTargetsAtOnce) {
  const ModelConfig config = TaskConfig("square");
  const auto sample = [](size_t count, uint64_t seed) {
    SampleBatch rows;
    Random random(seed);
    for (size_t i = 0; i < count; ++i) {
      float* x = rows.AddDense(3);
      for (size_t j = 0; j < 3; ++j) x[j] = static_cast<float>(random.Normal());
      const double targets[] = {std::sin(x[0]), 1000 + 50 * x[1] * x[2]};
      rows.SetTargets(targets);
    }
    return rows;
  };
  const SampleBatch train = sample(8000, 1), test = sample(1000, 2);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, train, 0, train.size());
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  ASSERT_EQ(snapshot->num_outputs(), 2u);
  const std::vector<Prediction> predictions = Predictions(*trainer, test);
  double errors[2] = {};
  for (size_t i = 0; i < test.size(); ++i) {
    const Prediction& prediction = predictions[i];
    ASSERT_EQ(prediction.values.size(), 2u);
    for (size_t k = 0; k < 2; ++k) {
      const double off = prediction.values[k] - test.target(i).values[k];
      errors[k] += off * off / static_cast<double>(test.size());
    }
  }
  EXPECT_LT(errors[0], 0.02 * 0.43);  // of the targets' variances
  EXPECT_LT(errors[1], 0.1 * 50 * 50);
  SampleBatch three;  // another number of targets is not learned
  three.AddDense(std::array{0.0f, 0.0f, 0.0f});
  three.SetTargets(std::array{1.0, 2.0, 3.0});
  for (uint64_t i = 0; i < 64; ++i) trainer->Step(three, 0, 1, 9000 + i);  // a block
  EXPECT_EQ(trainer->rows_skipped(), 64u);
}

// Noise of standard deviation `noise`; a share of the targets is 30 times too large.
SampleBatch WithOutliers(size_t count, uint64_t seed, double noise, double share) {
  SampleBatch rows;
  Random random(seed);
  for (size_t i = 0; i < count; ++i) {
    float* x = rows.AddDense(2);
    for (size_t j = 0; j < 2; ++j) x[j] = static_cast<float>(random.Normal());
    double y = std::sin(2 * x[0]) + 0.5 * x[1] + noise * random.Normal();
    if (random.Uniform(0, 1) < share) y *= 30;
    rows.SetTarget(y);
  }
  return rows;
}

double MeanAbsoluteError(const Trainer& trainer, const SampleBatch& test) {
  const std::vector<Prediction> predictions = Predictions(trainer, test);
  double sum = 0;
  for (size_t i = 0; i < test.size(); ++i) {
    sum += std::abs(predictions[i].value - test.target(i).value);
  }
  return sum / static_cast<double>(test.size());
}

// Held-out targets are without outliers, but with the noise.
TEST(Huber, HardlyMindsOutliers) {
  const ModelConfig config = TaskConfig("huber");
  double errors[2] = {};
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const SampleBatch test = WithOutliers(2000, 100 + seed, 0.1, 0);
    for (const bool outliers : {false, true}) {
      const SampleBatch train = WithOutliers(8000, seed, 0.1, outliers ? 0.01 : 0);
      auto trainer = MakeTrainer(config);
      Feed(*trainer, config, train, 0, train.size());
      errors[outliers] += MeanAbsoluteError(*trainer, test) / 3;
    }
  }
  std::printf("mean absolute error %.4f, with outliers %.4f\n", errors[0], errors[1]);
  EXPECT_LT(errors[1], 1.03 * errors[0]);
}

// Prices: positive, of a long tail, far from 0, with interactions of eight inputs and noise of half
// their size; a share of them is 30 times too large, so 100 standard deviations away.
SampleBatch Prices(size_t count, uint64_t seed, double share) {
  SampleBatch rows;
  Random random(seed);
  for (size_t i = 0; i < count; ++i) {
    float* x = rows.AddDense(8);
    for (size_t j = 0; j < 8; ++j) x[j] = static_cast<float>(random.Normal());
    const double log_price = 0.4 * x[0] + 0.3 * std::sin(2 * x[1]) * x[2] +
                             0.2 * std::cos(x[3] - x[4]) + 0.25 * random.Normal();
    double price = 1e5 * std::exp(0.8 * log_price + 0.4);
    if (random.Uniform(0, 1) < share) price *= 30;
    rows.SetTarget(price);
  }
  return rows;
}

// Also on all the features there are, where wild targets among the first rows would make everything
// else look small.
TEST(Huber, HardlyMindsOutliersAmongPrices) {
  ModelConfig config;
  config.loss.name = "huber";
  ASSERT_TRUE(CompleteConfig(config).ok());
  double errors[2] = {};
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const SampleBatch test = Prices(2000, 100 + seed, 0);
    for (const bool outliers : {false, true}) {
      const SampleBatch train = Prices(6000, seed, outliers ? 0.01 : 0);
      auto trainer = MakeTrainer(config);
      Feed(*trainer, config, train, 0, train.size());
      errors[outliers] += MeanAbsoluteError(*trainer, test) / 3;
    }
  }
  std::printf("mean absolute error %.0f, with outliers %.0f\n", errors[0], errors[1]);
  EXPECT_LT(errors[1], 1.03 * errors[0]);
}

TEST(RobustLosses, ScalesAreOfTheQuartiles) {
  const SampleBatch clean = Prices(500, 1, 0), wild = Prices(500, 1, 0.02);
  for (const std::string loss :
       {"huber", "absolute", "epsilon_insensitive", "quantile", "square"}) {
    ModelConfig config = TaskConfig(loss);
    config.warmup_rows = 500;
    double scales[2];
    for (const bool outliers : {false, true}) {
      const SampleBatch& rows = outliers ? wild : clean;
      auto trainer = MakeTrainer(config);
      Feed(*trainer, config, rows, 0, rows.size());
      TrainerState state = trainer->Save();
      scales[outliers] = state.target_scales[0];
      // A stored model keeps its scale, whatever it would be now.
      auto restored = Trainer::Restore(config, state, {&Inline(), nullptr});
      ASSERT_TRUE(restored.ok()) << restored.status();
      Feed(**restored, config, clean, 0, clean.size());
      EXPECT_EQ((*restored)->Save().target_scales, state.target_scales);
    }
    if (loss == "square") {
      EXPECT_GT(scales[1], 1.5 * scales[0]) << "not wild enough for this test";
    } else {
      EXPECT_LT(scales[1], 1.1 * scales[0]) << loss;
    }
  }
}

TEST(RobustLosses, FewTargetsThatDifferStayWithinReach) {
  std::vector<double> targets(1000, 7);  // all alike: no quartiles to go by
  for (size_t i = 0; i < 100; ++i) targets[i] = 7 + static_cast<double>(i);
  const TargetScaling usual = TargetScaling::FromTargets(targets, {}, /*robust=*/false);
  TargetScaling robust = TargetScaling::FromTargets(targets, {}, /*robust=*/true);
  EXPECT_EQ(robust.offset, usual.offset);
  EXPECT_EQ(robust.scale, usual.scale);
  for (size_t i = 100; i < targets.size(); ++i) targets[i] += 1e-3 * static_cast<double>(i % 7);
  robust = TargetScaling::FromTargets(targets, {}, /*robust=*/true);
  EXPECT_NEAR(robust.offset, 7, 0.01);
  EXPECT_GT(15 * robust.scale, 70);
}

TEST(Quantile, CutsTheTargetsWhereItShould) {
  for (const double level : {0.1, 0.5, 0.9}) {
    const ModelConfig config = TaskConfig("quantile", {{"level", level}});
    const SampleBatch train = WithOutliers(8000, 1, 0.3, 0), test = WithOutliers(4000, 2, 0.3, 0);
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, train, 0, train.size());
    const std::vector<Prediction> predictions = Predictions(*trainer, test);
    double below = 0;
    for (size_t i = 0; i < test.size(); ++i) below += test.target(i).value < predictions[i].value;
    EXPECT_NEAR(below / 4000, level, 0.03) << level;
  }
}

TEST(EveryLoss, LearnsItsTaskBetterThanAConstant) {
  for (const LossEntry& entry : LossRegistry()) {
    const std::string name(entry.doc.name);
    ModelConfig config = TaskConfig(name);
    auto loss = MakeLoss(config.loss);
    ASSERT_TRUE(loss.ok());
    const Task task = (*loss)->task();
    if (task == Task::kNovelty || task == Task::kDensityRatio) continue;  // above
    const std::string rows_of = task == Task::kRegression   ? "square"
                                : task == Task::kMulticlass ? "softmax"
                                                            : "logistic";
    const SampleBatch train = MakeRows(rows_of, 4000, 3, 1);
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, train, 0, train.size());
    const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
    std::vector<double> targets, weights(train.size(), 1.0), constant(snapshot->num_outputs());
    for (size_t i = 0; i < train.size(); ++i) {
      targets.push_back(*snapshot->LossTarget(train.target(i)));
    }
    snapshot->loss().BestConstant(targets, weights, constant);
    double constant_loss = 0;
    for (const double target : targets) {
      constant_loss += snapshot->loss().Value(constant, target) / 4000;
    }
    EXPECT_LT(snapshot->validation().recent_loss, 0.5 * constant_loss) << name;
  }
}

}  // namespace
}  // namespace kernelstream
