// Same config and same mini-batches: same bits, whatever the machine does, if it has fused
// multiply-add; without it, scores within 2e-3.
#include "core/model/fingerprint.h"
#include "core/simd/simd.h"
#include "tests/model/model_support.h"
#include "tests/support/compositions.h"
#include "tests/support/thread_executor.h"

namespace kernelstream {
namespace {

constexpr size_t kRows = 500, kDim = 6;

struct Problem {
  std::string loss, rule;
};

class Replay : public testing::TestWithParam<Problem> {
 protected:
  ModelConfig Config() const {
    ModelConfig config = SmallConfig(GetParam().loss, GetParam().rule);
    config.max_features = 2100;  // three chunks
    config.block_features = 200;
    return config;
  }
  SampleBatch Rows() const { return MakeRows(GetParam().loss, kRows, kDim, 5); }
  std::array<uint8_t, 16> Undisturbed() const {
    auto trainer = MakeTrainer(Config());
    Feed(*trainer, Config(), Rows(), 0, kRows);
    return trainer->MakeSnapshot()->fingerprint();
  }
};

TEST_P(Replay, IsTheSameWithAnyNumberOfThreads) {
  for (const int threads : {2, 3, 5}) {
    ThreadExecutor executor(threads);
    auto trainer = MakeTrainer(Config(), executor);
    Feed(*trainer, Config(), Rows(), 0, kRows);
    EXPECT_EQ(trainer->MakeSnapshot()->fingerprint(), Undisturbed()) << threads;
  }
}

// Steps of the kernel's own values, and such whose Gram matrix is of one chunk, two, all: a chunk
// that is in one stays whole, others are divided between threads.
TEST(StepConstants, GiveTheSameWithAnyNumberOfThreads) {
  for (const double step_constant : {2.0, 0.12, 0.06, 0.01}) {
    ModelConfig config;
    config.loss.name = "square";
    config.update_rule.name = "proximal";
    config.update_rule.parameters = {{"step_constant", step_constant}};
    config.max_features = 2100;
    config.block_features = 2100;
    config.warmup_rows = 64;
    config.batch_rows = 32;
    config.seed = 7;
    ASSERT_TRUE(CompleteConfig(config).ok());
    const SampleBatch rows = MakeRows("square", kRows, kDim, 5);
    auto alone = MakeTrainer(config);
    Feed(*alone, config, rows, 0, kRows);
    for (const int threads : {2, 3, 5}) {
      ThreadExecutor executor(threads);
      auto trainer = MakeTrainer(config, executor);
      Feed(*trainer, config, rows, 0, kRows);
      EXPECT_EQ(trainer->MakeSnapshot()->fingerprint(), alone->MakeSnapshot()->fingerprint())
          << step_constant << ", " << threads;
    }
  }
}

TEST_P(Replay, IsTheSameWithAnyFeatureCache) {
  for (const int64_t bytes : {int64_t{0}, int64_t{20000}, int64_t{1} << 30}) {
    FeatureCacheBudget budget(bytes);
    auto trainer = MakeTrainer(Config(), Inline(), &budget);
    Feed(*trainer, Config(), Rows(), 0, kRows);
    EXPECT_EQ(trainer->MakeSnapshot()->fingerprint(), Undisturbed()) << bytes;
    EXPECT_LE(budget.used(), bytes);
    EXPECT_EQ(budget.used() > 0, bytes > 0);
  }
}

TEST_P(Replay, IsTheSameAfterSaveAndRestoreAnywhere) {
  const ModelConfig config = Config();
  const SampleBatch rows = Rows();
  const auto expected = Undisturbed();
  for (const size_t stop : {32, 64, 96, 320, 480}) {
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, stop);
    const TrainerState state = trainer->Save();
    auto restored = Trainer::Restore(config, state, {&Inline(), nullptr});
    ASSERT_TRUE(restored.ok()) << restored.status();
    EXPECT_EQ((*restored)->MakeSnapshot()->fingerprint(), trainer->MakeSnapshot()->fingerprint());
    EXPECT_EQ(Scores(**restored, rows), Scores(*trainer, rows));
    EXPECT_EQ((*restored)->MakeSnapshot()->validation().mean_loss,
              trainer->MakeSnapshot()->validation().mean_loss);
    Feed(**restored, config, rows, stop, kRows);
    EXPECT_EQ((*restored)->MakeSnapshot()->fingerprint(), expected) << "stopped at " << stop;
    Feed(*trainer, config, rows, stop, kRows);
    EXPECT_EQ(trainer->MakeSnapshot()->fingerprint(), expected)
        << "saving changed the trainer at " << stop;
  }
}

// A product and a sum that are rounded one by one differ in the last bit from those that are not,
// and what is learned from them adds up: how far scores are apart after kRows.
constexpr double kWithoutFma = 2e-3;

TEST_P(Replay, IsTheSameOnEveryTargetWithFmaAndCloseOnTheOthers) {
  const ModelConfig config = Config();
  const SampleBatch rows = Rows();
  std::vector<double> reference;
  std::array<uint8_t, 16> fingerprint{};
  for (const std::string& target : SimdTargets()) {
    ASSERT_TRUE(UseSimdTarget(target));
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, kRows);
    const std::vector<double> scores = Scores(*trainer, rows);
    if (reference.empty()) {
      reference = scores;
      fingerprint = trainer->MakeSnapshot()->fingerprint();
    } else if (SimdTargetHasFma(target) == SimdTargetHasFma(SimdTargets()[0])) {
      EXPECT_EQ(trainer->MakeSnapshot()->fingerprint(), fingerprint) << target;
      EXPECT_EQ(scores, reference) << target;
    } else {
      for (size_t i = 0; i < scores.size(); ++i) {
        ASSERT_NEAR(scores[i], reference[i], kWithoutFma) << target << " row " << i;
      }
    }
  }
  ASSERT_TRUE(UseSimdTarget(""));
}

TEST_P(Replay, DamagedStateIsDataLoss) {
  const ModelConfig config = Config();
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, Rows(), 0, 320);
  const TrainerState good = trainer->Save();
  TrainerState flipped = good;
  flipped.candidates[0].last.values[100] += 1e-6f;
  TrainerState cut = good;
  cut.candidates[0].last.values.resize(16);
  TrainerState moved = good;
  moved.step += 1;
  // What is served, and when the average starts again, depends on these.
  TrainerState praised = good;
  praised.candidates[0].last.validation.recent_loss.sum /= 2;
  TrainerState scaled = good;
  scaled.input_inverse_scale.resize(1);
  TrainerState wide = good;
  wide.input_shift.resize(100);
  wide.input_inverse_scale.resize(100);
  TrainerState flat = good;
  flat.input_dim = 0;
  TrainerState bare = good;
  bare.rule_parameters.clear();
  for (const TrainerState& bad : {flipped, cut, moved, praised, scaled, wide, flat, bare}) {
    EXPECT_EQ(Trainer::Restore(config, bad, {&Inline(), nullptr}).status().code(),
              absl::StatusCode::kDataLoss);
  }
  ModelConfig other = config;
  other.seed = 8;
  EXPECT_EQ(Trainer::Restore(other, good, {&Inline(), nullptr}).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_P(Replay, AnotherSeedOrAnotherCutIsAnotherModel) {
  ModelConfig other = Config();
  other.seed = 8;
  auto trainer = MakeTrainer(other);
  Feed(*trainer, other, Rows(), 0, kRows);
  EXPECT_NE(trainer->MakeSnapshot()->fingerprint(), Undisturbed());
  auto cut = MakeTrainer(Config());
  const SampleBatch rows = Rows();
  cut->Step(rows, 0, 10, 10);
  Feed(*cut, Config(), rows, 10, kRows);
  EXPECT_NE(cut->MakeSnapshot()->fingerprint(), Undisturbed());
}

INSTANTIATE_TEST_SUITE_P(Problems, Replay,
                         testing::Values(Problem{"square", "proximal"},
                                         Problem{"logistic", "proximal"},
                                         Problem{"softmax", "proximal"},
                                         Problem{"hinge", "newest_block"},
                                         Problem{"softmax", "newest_block"}),
                         [](const auto& p) { return p.param.loss + "_" + p.param.rule; });

// With a variance: what older versions stored, whose door let such rows in.
TEST(SeveralTargets, AreTheSameAfterSaveAndRestoreAnywhere) {
  const SampleBatch rows = WithTargets(MakeRows("square", kRows, kDim, 5), 3);
  for (const VarianceMethod method : {VarianceMethod::kNone, VarianceMethod::kExact,
                                      VarianceMethod::kOperator, VarianceMethod::kQuantilePair}) {
    ModelConfig config = SmallConfig("square");
    config.variance.method = method;
    auto undisturbed = MakeTrainer(config);
    Feed(*undisturbed, config, rows, 0, kRows);
    const Ref<Snapshot> expected = undisturbed->MakeSnapshot();
    EXPECT_EQ(expected->num_outputs(), 3u);
    EXPECT_FALSE(expected->has_uncertainty());
    for (const size_t stop : {32, 64, 320, 480}) {
      auto trainer = MakeTrainer(config);
      Feed(*trainer, config, rows, 0, stop);
      auto restored = Trainer::Restore(config, trainer->Save(), {&Inline(), nullptr});
      ASSERT_TRUE(restored.ok()) << restored.status() << " at " << stop;
      Feed(**restored, config, rows, stop, kRows);
      EXPECT_EQ((*restored)->MakeSnapshot()->fingerprint(), expected->fingerprint()) << stop;
      EXPECT_EQ(Scores(**restored, rows), Scores(*undisturbed, rows)) << stop;
    }
  }
}

TEST(Variance, IsPartOfTheFingerprint) {
  const SampleBatch rows = MakeRows("square", 200, kDim, 5);
  for (const VarianceMethod method : {VarianceMethod::kExact, VarianceMethod::kOperator,
                                      VarianceMethod::kTestPoints, VarianceMethod::kQuantilePair}) {
    ModelConfig config = SmallConfig("square");
    config.variance.method = method;
    config.variance.features = 64;
    if (method == VarianceMethod::kTestPoints) config.variance.test_points = {{0, 0, 0, 0, 0, 0}};
    ASSERT_TRUE(CompleteConfig(config).ok());
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, rows.size());
    const TrainerState good = trainer->Save();
    const auto code = [&](const ModelConfig& with, const TrainerState& state) {
      return Trainer::Restore(with, state, {&Inline(), nullptr}).status().code();
    };
    EXPECT_EQ(code(config, good), absl::StatusCode::kOk);
    TrainerState bad = good;
    bad.variance.calibration.ratios[0] += 1e-6f;
    EXPECT_EQ(code(config, bad), absl::StatusCode::kDataLoss);
    bad = good;
    if (method == VarianceMethod::kExact) {
      bad.variance.posterior.products[3] += 1e-9;
    } else {
      bad.variance.regression.coefficients[3] += 1e-6f;
    }
    EXPECT_EQ(code(config, bad), absl::StatusCode::kDataLoss);
    ModelConfig other = config;
    other.variance.coverage = 0.8;
    EXPECT_EQ(code(other, good), absl::StatusCode::kDataLoss);
    // Versions that left the variance out of it.
    TrainerState old = good;
    old.fingerprint = FingerprintWithoutVariance(config, good);
    EXPECT_NE(old.fingerprint, good.fingerprint);
    EXPECT_EQ(code(config, old), absl::StatusCode::kOk);
  }
}

// Compositions: maps of several terms that share a cache, and parameters of terms in the state.
TEST(Composition, IsTheSameWithAnyFeatureCacheAndAfterARestore) {
  for (const ComponentConfig& kernel :
       {Named("sum"), Named("product"),
        ComponentConfig{"product", {}, {{1, Leaf("gaussian")}, {1, Leaf("polynomial")}}}}) {
    ModelConfig config = SmallConfig("square");
    config.kernel = kernel;
    config.feature_form = CosineForm::kAuto;  // SmallConfig's are those of a gaussian
    config.input_metric = InputMetric::kAuto;
    ASSERT_TRUE(CompleteConfig(config).ok());
    const SampleBatch rows = MakeRows("square", 300, kDim, 5);
    std::vector<std::array<uint8_t, 16>> fingerprints;
    for (const int64_t bytes : {int64_t{0}, int64_t{1} << 30}) {
      FeatureCacheBudget budget(bytes);
      auto trainer = MakeTrainer(config, Inline(), &budget);
      Feed(*trainer, config, rows, 0, 160);
      auto restored = Trainer::Restore(config, trainer->Save(), {&Inline(), nullptr});
      ASSERT_TRUE(restored.ok()) << restored.status();
      EXPECT_EQ(Scores(**restored, rows), Scores(*trainer, rows));
      Feed(**restored, config, rows, 160, rows.size());
      Feed(*trainer, config, rows, 160, rows.size());
      EXPECT_EQ((*restored)->MakeSnapshot()->fingerprint(), trainer->MakeSnapshot()->fingerprint());
      fingerprints.push_back(trainer->MakeSnapshot()->fingerprint());
      EXPECT_EQ(budget.used() > 0, bytes > 0);
      const ParameterMap resolved = trainer->MakeSnapshot()->resolved().kernel_parameters;
      EXPECT_GT(resolved.at("terms[1].bandwidth"), 0);
    }
    EXPECT_EQ(fingerprints[0], fingerprints[1]) << kernel.name;
  }
}

TEST(Snapshot, ScoresARowTheSameAloneAndAmongOthers) {
  const ModelConfig config = SmallConfig("softmax");
  const SampleBatch rows = MakeRows("softmax", 700, kDim, 5);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  const std::vector<double> together = Scores(*trainer, rows);
  ThreadExecutor threads(3);
  std::vector<double> parallel(together.size());
  snapshot->Score(rows, threads, parallel.data());
  EXPECT_EQ(parallel, together);
  for (size_t i = 0; i < rows.size(); i += 97) {
    SampleBatch one;
    one.AppendRow(rows, i);
    std::vector<double> alone(3);
    snapshot->Score(one, Inline(), alone.data());
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + static_cast<long>(3 * i)))
        << i;
  }
}

TEST(Snapshot, DoesNotChangeWhileTheTrainerGoesOn) {
  const ModelConfig config = SmallConfig("logistic");
  const SampleBatch rows = MakeRows("logistic", 600, kDim, 5);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, 320);
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  std::vector<double> before(rows.size()), after(rows.size());
  snapshot->Score(rows, Inline(), before.data());
  Feed(*trainer, config, rows, 320, rows.size());
  snapshot->Score(rows, Inline(), after.data());
  EXPECT_EQ(before, after);
  EXPECT_NE(Scores(*trainer, rows), before);
}

}  // namespace
}  // namespace kernelstream
