// What a trainer promises about its life: warm-up, growth, labels.
#include "core/model/feature_chunks.h"
#include "tests/model/model_support.h"

namespace kernelstream {
namespace {

TEST(Trainer, LearnsEachTask) {
  for (const std::string rule : {"proximal", "newest_block"}) {
    for (const std::string loss : {"logistic", "hinge", "softmax"}) {
      ModelConfig config = SmallConfig(loss, rule);
      const size_t rows = rule == "proximal" ? 2000 : 6000;
      config.max_features = rule == "proximal" ? 1024 : 4096;
      auto trainer = MakeTrainer(config);
      Feed(*trainer, config, MakeRows(loss, rows, 3, 1), 0, rows);
      EXPECT_LT(ErrorOn(*trainer, MakeRows(loss, 1000, 3, 2)), rule == "proximal" ? 0.06 : 0.12)
          << loss << " " << rule;
    }
  }
}

TEST(Trainer, GrowsByTheBatchUntilFullAndThenKeepsLearning) {
  ModelConfig config = SmallConfig("logistic");
  config.max_features = 500;  // not a multiple of a panel
  auto trainer = MakeTrainer(config);
  const SampleBatch rows = MakeRows("logistic", 800, 3, 1);
  Feed(*trainer, config, rows, 0, 64);
  EXPECT_EQ(trainer->MakeSnapshot()->num_features(), 64u);
  Feed(*trainer, config, rows, 64, 96);
  EXPECT_EQ(trainer->MakeSnapshot()->num_features(), 96u);
  Feed(*trainer, config, rows, 96, 640);
  EXPECT_EQ(trainer->MakeSnapshot()->num_features(), 500u);
  const auto before = trainer->MakeSnapshot()->fingerprint();
  Feed(*trainer, config, rows, 640, 800);
  EXPECT_EQ(trainer->MakeSnapshot()->num_features(), 500u);
  EXPECT_NE(trainer->MakeSnapshot()->fingerprint(), before);
  EXPECT_EQ(trainer->phase(), ModelPhase::kLearning);
}

TEST(Trainer, FreezesWhenFullIfToldTo) {
  ModelConfig config = SmallConfig("logistic");
  config.max_features = 128;
  config.when_full = WhenFull::kFreeze;
  auto trainer = MakeTrainer(config);
  const SampleBatch rows = MakeRows("logistic", 800, 3, 1);
  Feed(*trainer, config, rows, 0, 96);
  EXPECT_EQ(trainer->phase(), ModelPhase::kLearning);
  Feed(*trainer, config, rows, 96, 128);
  EXPECT_EQ(trainer->phase(), ModelPhase::kFrozen);
}

TEST(Trainer, PredictsTheBestConstantWhileWarmingUp) {
  ModelConfig config = SmallConfig("square");
  auto trainer = MakeTrainer(config);
  SampleBatch rows;
  const float x[] = {1, 2};
  for (const double y : {1000.0, 1002.0, 1004.0}) {
    rows.AddDense(x);
    rows.SetTarget(y);
  }
  trainer->Step(rows, 0, 3, 3);
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  EXPECT_EQ(snapshot->phase(), ModelPhase::kWarmingUp);
  EXPECT_EQ(snapshot->step(), 1u);
  EXPECT_EQ(snapshot->sequence(), 3u);
  const std::vector<double> scores = Scores(*trainer, rows);
  EXPECT_NEAR(snapshot->Link({scores.data(), 1}).value, 1002, 1e-9);
}

TEST(Trainer, ShowsWhatItHasLearnedBeforeTheWarmUpEnds) {
  for (const std::string loss : {"square", "logistic", "softmax"}) {
    ModelConfig config;
    config.loss.name = loss;
    ASSERT_TRUE(CompleteConfig(config).ok());
    const SampleBatch rows = MakeRows(loss, 300, 3, 5), unseen = MakeRows(loss, 500, 3, 6);
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, 2);
    double constant = ErrorOn(*trainer, unseen);
    EXPECT_EQ(trainer->MakeSnapshot()->num_features(), 0u);
    Feed(*trainer, config, rows, 2, rows.size());
    const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
    EXPECT_EQ(snapshot->phase(), ModelPhase::kWarmingUp);
    EXPECT_GT(snapshot->num_features(), 0u);
    EXPECT_LT(ErrorOn(*trainer, unseen), 0.3 * constant) << loss;
    EXPECT_EQ(trainer->Save().num_features, 0u);  // only shown
    // What is shown is a function of the state.
    const auto restored = Trainer::Restore(config, trainer->Save(), {&Inline(), nullptr});
    ASSERT_TRUE(restored.ok()) << restored.status();
    EXPECT_EQ(Scores(**restored, unseen), Scores(*trainer, unseen));
  }
}

TEST(Trainer, CountsStepsSequenceAndRows) {
  const ModelConfig config = SmallConfig("logistic");
  auto trainer = MakeTrainer(config);
  const SampleBatch rows = MakeRows("logistic", 100, 3, 1);
  trainer->Step(rows, 0, 32, 40);
  EXPECT_EQ(trainer->step(), 1u);
  EXPECT_EQ(trainer->rows_learned(), 32u);
  trainer->Step(rows, 32, 32, 80);  // ends the warm-up: two more steps over the rows that were kept
  EXPECT_EQ(trainer->step(), 4u);
  EXPECT_EQ(trainer->rows_learned(), 64u);
  EXPECT_EQ(trainer->sequence(), 80u);
  EXPECT_EQ(trainer->MakeSnapshot()->validation().rows, 64u);
}

// One number of one name: not those of the candidate that has won by now.
TEST(Trainer, ValidationIsThatOfServedPredictions) {
  for (const std::string loss : {"square", "logistic", "softmax"}) {
    SCOPED_TRACE(loss);
    const ModelConfig config = SmallConfig(loss);
    auto trainer = MakeTrainer(config);
    const SampleBatch rows = MakeRows(loss, 1000, 3, 1);
    Feed(*trainer, config, rows, 0, rows.size());
    const ValidationMetrics metrics = trainer->MakeSnapshot()->validation();
    EXPECT_EQ(metrics.rows, 1000u);
    EXPECT_EQ(metrics.recent_loss, metrics.recent.loss);
    EXPECT_EQ(metrics.mean_loss, metrics.total.loss);
    if (loss == "square") {
      EXPECT_EQ(metrics.recent_squared_error, metrics.recent.mean_squared_error);
      EXPECT_EQ(metrics.mean_squared_error, metrics.total.mean_squared_error);
      EXPECT_EQ(metrics.mean_error_rate, 0);
    } else {
      EXPECT_EQ(metrics.recent_error_rate, metrics.recent.error_rate);
      EXPECT_EQ(metrics.mean_error_rate, metrics.total.error_rate);
      EXPECT_EQ(metrics.mean_squared_error, 0);
    }
  }
}

TEST(Trainer, DiscoversLabelsAsTheyAppear) {
  ModelConfig config = SmallConfig("softmax");
  config.max_labels = 3;
  auto trainer = MakeTrainer(config);
  SampleBatch rows;
  for (int i = 0; i < 640; ++i) {
    const int label = i < 200 ? 0 : i < 400 ? i % 2 : i % 4;  // the fourth has no room
    rows.AddDense(std::vector<float>{label == 1 ? 1.0f : 0.0f, label == 2 ? 1.0f : 0.0f});
    rows.SetLabel(std::string(1, static_cast<char>('a' + label)));
  }
  Feed(*trainer, config, rows, 0, 200);
  EXPECT_EQ(trainer->MakeSnapshot()->num_outputs(), 1u);
  const std::vector<std::string> all = {"a", "b", "c"};
  Feed(*trainer, config, rows, 200, 640);
  EXPECT_EQ(trainer->MakeSnapshot()->labels(), all);
  EXPECT_EQ(trainer->rows_skipped(), 60u);
  SampleBatch known;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows.target(i).label != "d") known.AppendRow(rows, i);
  }
  EXPECT_LT(ErrorOn(*trainer, known), 0.05);
}

TEST(Trainer, SparseAndDenseFormsOfARowAreTheSame) {
  const ModelConfig config = SmallConfig("logistic");
  ModelConfig fixed = config;
  fixed.dimension = 48;
  SampleBatch dense, sparse;
  Random random(9);
  for (int i = 0; i < 512; ++i) {
    float* x = dense.AddDense(48);
    std::vector<uint64_t> indices;
    std::vector<float> values;
    for (uint32_t j = 0; j < 48; ++j) {
      x[j] = random.Uniform() < 0.2 ? static_cast<float>(random.Normal()) : 0.0f;
      if (x[j] != 0) {
        indices.push_back(j);
        values.push_back(x[j]);
      }
    }
    const double y = x[0] + x[1] > 0 ? 1 : -1;
    dense.SetTarget(y);
    sparse.AddSparse(indices, values);
    sparse.SetTarget(y);
  }
  auto a = MakeTrainer(fixed), b = MakeTrainer(fixed), c = MakeTrainer(config);
  Feed(*a, fixed, dense, 0, 512);
  Feed(*b, fixed, sparse, 0, 512);
  Feed(*c, config, sparse, 0, 512);  // the dimension stays open
  EXPECT_EQ(a->MakeSnapshot()->fingerprint(), b->MakeSnapshot()->fingerprint());
  EXPECT_EQ(Scores(*a, dense), Scores(*c, sparse));
  EXPECT_EQ(c->MakeSnapshot()->resolved().dimension, 0u);
  EXPECT_EQ(a->MakeSnapshot()->resolved().dimension, 48u);
}

TEST(Trainer, TakesIndicesItHasNotSeenBefore) {
  const ModelConfig config = SmallConfig("logistic");
  FeatureCacheBudget budget(1 << 30);
  auto trainer = MakeTrainer(config, Inline(), &budget);
  SampleBatch rows;
  Random random(9);
  for (uint32_t i = 0; i < 400; ++i) {
    rows.AddSparse(std::vector<uint64_t>{i % 2, 5 + i}, std::vector<float>{1, 1});
    rows.SetTarget(i % 2 == 0 ? 1 : -1);
  }
  Feed(*trainer, config, rows, 0, 400);
  EXPECT_GE(trainer->Save().input_dim, 405u);
  SampleBatch far;
  far.AddSparse(std::vector<uint64_t>{0, 60000}, std::vector<float>{1, 1});
  EXPECT_TRUE(std::isfinite(Scores(*trainer, far)[0]));
  EXPECT_LT(ErrorOn(*trainer, rows), 0.05);
  // There was room for all frequencies, and without a cache none is kept.
  const Snapshot::FrequencyBytes kept = trainer->MakeSnapshot()->frequency_bytes();
  EXPECT_GT(kept.all, 0);
  EXPECT_EQ(kept.kept, kept.all);
  auto without = MakeTrainer(config);
  Feed(*without, config, rows, 0, 400);
  const Snapshot::FrequencyBytes drawn = without->MakeSnapshot()->frequency_bytes();
  EXPECT_EQ(drawn.all, kept.all);
  EXPECT_EQ(drawn.kept, 0);
}

TEST(Trainer, OneWildTargetBeforeTheScaleIsKnownDoesNoLastingHarm) {
  const ModelConfig config = SmallConfig("square");
  SampleBatch rows;
  const SampleBatch good = MakeRows("square", 4000, 3, 1);
  for (size_t i = 0; i < good.size(); ++i) {
    rows.AppendRow(good, i);
    if (i == 10 || i == 70) rows.SetTarget(i == 10 ? 1e30 : -1e30);
  }
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  EXPECT_LT(snapshot->resolved().target_scale, 10);
  EXPECT_LT(snapshot->validation().recent_squared_error, 0.5);
}

TEST(Trainer, ResolvesWhatTheConfigLeavesOpen) {
  ModelConfig config = SmallConfig("square");
  config.kernel.parameters["bandwidth_scale"] = 0.5;
  auto trainer = MakeTrainer(config);
  const SampleBatch rows = MakeRows("square", 200, 4, 1);
  Feed(*trainer, config, rows, 0, 200);
  const ResolvedConfig resolved = trainer->MakeSnapshot()->resolved();
  EXPECT_EQ(resolved.dimension, 4u);
  EXPECT_EQ(resolved.standardized_inputs, 4u);
  // Median distance of two standard normal points in 4 dimensions, halved.
  EXPECT_NEAR(resolved.kernel_parameters.at("bandwidth"), 0.5 * 2.6, 0.25);
  EXPECT_NEAR(resolved.target_scale, 0.85, 0.15);
  ModelConfig with_bandwidth;
  with_bandwidth.loss = config.loss;
  with_bandwidth.warmup_rows = config.warmup_rows;
  with_bandwidth.kernel.parameters["bandwidth"] = 1.25;
  ASSERT_TRUE(CompleteConfig(with_bandwidth).ok());
  auto pinned = MakeTrainer(with_bandwidth);
  Feed(*pinned, config, rows, 0, 200);
  EXPECT_EQ(pinned->MakeSnapshot()->resolved().kernel_parameters.at("bandwidth"), 1.25);
}

TEST(Trainer, TheAverageStartsAgainAfterTheTargetChanges) {
  ModelConfig config = SmallConfig("square");
  auto trainer = MakeTrainer(config);
  // Noise, so that averaging pays while the target stands still.
  const SampleBatch plain = MakeRows("square", 8000, 2, 1);
  SampleBatch before, after;
  Random random(2);
  for (size_t i = 0; i < plain.size(); ++i) {
    before.AppendRow(plain, i);
    before.SetTarget(plain.target(i).value + 0.5 * random.Normal());
    after.AppendRow(plain, i);
    after.SetTarget(-before.target(i).value);
  }
  Feed(*trainer, config, before, 0, before.size());
  const uint64_t steps_before = trainer->Save().candidates[0].steps_since_restart;
  EXPECT_GT(steps_before, 75u);
  Feed(*trainer, config, after, 0, after.size());
  EXPECT_LT(trainer->Save().candidates[0].steps_since_restart, 125u);
  EXPECT_LT(trainer->MakeSnapshot()->validation().recent_squared_error, 0.3);  // noise alone is .25
}

// Where a prediction runs is decided by this: few rows can be much work.
TEST(Snapshot, WorkGrowsWithRowsInputsAndFrequenciesToDraw) {
  const auto work = [](size_t dim, size_t rows, int64_t cache_bytes) {
    FeatureCacheBudget budget(cache_bytes);
    auto trainer = MakeTrainer(SmallConfig("square"), Inline(), &budget);
    Feed(*trainer, SmallConfig("square"), MakeRows("square", 320, dim, 1), 0, 320);
    const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
    trainer.reset();
    return snapshot->WorkOf(MakeRows("square", rows, dim, 2));
  };
  constexpr int64_t kAll = int64_t{1} << 30;
  EXPECT_EQ(work(8, 10, kAll), 10 * work(8, 1, kAll));
  EXPECT_GT(work(256, 1, kAll), 6 * work(8, 1, kAll));
  EXPECT_GT(work(256, 1, 0), 8 * work(256, 1, kAll));

  // A sparse row of a model whose dimension is open, far beyond what was learned.
  auto trainer = MakeTrainer(SmallConfig("square"));
  SampleBatch rows;
  const uint64_t near[] = {0, 3}, far[] = {60000};
  for (size_t i = 0; i < 96; ++i) {
    rows.AddSparse(near, std::vector<float>{static_cast<float>(i % 7), 1});
    rows.SetTarget(static_cast<double>(i % 7));
  }
  Feed(*trainer, SmallConfig("square"), rows, 0, rows.size());
  SampleBatch one, wide;
  one.AppendRow(rows, 0);
  wide.AddSparse(far, std::vector<float>{1});
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  EXPECT_GT(snapshot->WorkOf(wide), 1000 * snapshot->WorkOf(one));
}

// Every panel once, in order; blocks only of the last chunks, not of one that may not be cut, and
// none across chunks.
TEST(FeatureChunks, AreCutForThreads) {
  for (const uint64_t features : {1, 16, 250, 1024, 1025, 2100, 4096, 8192, 8200}) {
    for (const size_t threads : {1u, 2u, 3u, 8u, 64u}) {
      const FeatureChunks chunks(features);
      const std::vector<FeatureChunk> pieces =
          chunks.CutFor(threads, [](size_t chunk) { return chunk != 2; });
      size_t panel = 0;
      for (const FeatureChunk& piece : pieces) {
        ASSERT_EQ(piece.first_panel, panel);
        ASSERT_GE(piece.num_panels, 1u);
        const size_t chunk = FeatureChunks::ChunkOf(piece);
        const bool cut = threads > 1 && chunk != 2 && chunk + threads >= chunks.size();
        const size_t most = cut ? kPanelsPerBlock : FeatureChunks::kPanelsPerChunk;
        ASSERT_EQ(piece.first_panel % most, 0u);
        ASSERT_EQ(piece.num_panels, std::min(most, PanelsFor(features) - panel));
        panel += piece.num_panels;
      }
      EXPECT_EQ(panel, PanelsFor(features));
    }
  }
}

}  // namespace
}  // namespace kernelstream
