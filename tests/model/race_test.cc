// Candidates, generations under learned metrics, replay and drift: what a model does with nothing
// but its loss named.
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/model/validation_tracker.h"
#include "tests/model/model_support.h"
#include "tests/support/thread_executor.h"

namespace kernelstream {
namespace {

constexpr size_t kDim = 5;

ModelConfig RaceConfig(const std::string& loss) {
  ModelConfig config;
  config.loss.name = loss;
  config.max_features = 512;
  config.warmup_rows = 64;
  config.batch_rows = 32;
  return config;
}

ModelConfig Complete(ModelConfig config) {
  const absl::Status status = CompleteConfig(config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

// Only one direction of many matters.
SampleBatch OneDirection(size_t count, uint64_t seed) {
  SampleBatch rows;
  Random random(seed);
  for (size_t i = 0; i < count; ++i) {
    float* x = rows.AddDense(10);
    for (size_t j = 0; j < 10; ++j) x[j] = static_cast<float>(random.Normal());
    rows.SetTarget(std::sin(1.5 * (x[0] + x[1])) + 0.05 * random.Normal());
  }
  return rows;
}

// Everything a trainer can carry: metric, replay with shadow, variance.
ModelConfig FullConfig(const std::string& loss) {
  ModelConfig config = RaceConfig(loss);
  config.replay.ratio = 1;
  config.replay.reservoir_rows = 256;
  if (loss == "square") config.variance.method = VarianceMethod::kExact;
  config.variance.features = 128;
  return Complete(config);
}

TEST(Race, IsTheSameAfterSaveAndRestoreAnywhere) {
  constexpr size_t kRows = 4608;  // two generations, all prunings, the shadow
  for (const std::string problem : {"square", "softmax", "targets"}) {
    const std::string loss = problem == "targets" ? "square" : problem;
    ModelConfig config = FullConfig(loss);
    SampleBatch rows = MakeRows(loss, kRows, kDim, 5);
    if (problem == "targets") {
      config.variance.method = VarianceMethod::kNone;
      rows = WithTargets(rows, 2);
    }
    auto undisturbed = MakeTrainer(config);
    Feed(*undisturbed, config, rows, 0, kRows);
    const auto expected = undisturbed->MakeSnapshot()->fingerprint();
    for (const size_t stop : {32u, 96u, 1024u, 2016u, 2048u, 2112u, 4096u, 4160u, 4512u}) {
      auto trainer = MakeTrainer(config);
      Feed(*trainer, config, rows, 0, stop);
      auto restored = Trainer::Restore(config, trainer->Save(), {&Inline(), nullptr});
      ASSERT_TRUE(restored.ok()) << restored.status() << " at " << stop;
      EXPECT_EQ(Scores(**restored, rows), Scores(*trainer, rows));
      Feed(**restored, config, rows, stop, kRows);
      EXPECT_EQ((*restored)->MakeSnapshot()->fingerprint(), expected) << problem << " at " << stop;
      const Ref<Snapshot> one = undisturbed->MakeSnapshot(), other = (*restored)->MakeSnapshot();
      EXPECT_EQ(one->validation().total.loss, other->validation().total.loss);
      EXPECT_EQ(one->validation().recent.loss, other->validation().recent.loss);
      EXPECT_EQ(one->drift_reports(), other->drift_reports());
      ASSERT_EQ(one->has_uncertainty(), problem == "square");
      if (!one->has_uncertainty()) continue;
      std::vector<RowUncertainty> a(rows.size()), b(rows.size());
      one->Assess(rows, Inline(), a.data());
      other->Assess(rows, Inline(), b.data());
      for (size_t i = 0; i < rows.size(); ++i) {
        ASSERT_EQ(a[i].variance, b[i].variance) << i;
        ASSERT_EQ(a[i].below, b[i].below) << i;
      }
    }
  }
}

TEST(Race, IsTheSameHoweverManyRowsComeAtATime) {
  for (const std::string loss : {"square", "softmax"}) {
    ModelConfig config = FullConfig(loss);
    config.warmup_rows = config.batch_rows = 256;
    const SampleBatch rows = MakeRows(loss, 2500, kDim, 5);  // the last block is not full
    std::vector<double> expected;
    for (const size_t at_a_time : {256u, 64u, 16u, 1u}) {
      auto trainer = MakeTrainer(config);
      for (size_t i = 0; i < rows.size(); i += at_a_time) {
        const size_t count = std::min(at_a_time, rows.size() - i);
        trainer->Step(rows, i, count, i + count);
      }
      if (expected.empty()) expected = Scores(*trainer, rows);
      EXPECT_EQ(Scores(*trainer, rows), expected) << loss << ", " << at_a_time << " at a time";
    }
  }
}

TEST(Race, IsTheSameWithAnyThreadsAndCache) {
  const ModelConfig config = FullConfig("square");
  const SampleBatch rows = MakeRows("square", 3000, kDim, 5);
  auto plain = MakeTrainer(config);
  Feed(*plain, config, rows, 0, rows.size());
  ThreadExecutor threads(3);
  FeatureCacheBudget budget(100000);
  auto other = MakeTrainer(config, threads, &budget);
  Feed(*other, config, rows, 0, rows.size());
  EXPECT_EQ(other->MakeSnapshot()->fingerprint(), plain->MakeSnapshot()->fingerprint());
  EXPECT_LE(budget.used(), 100000);
}

TEST(Race, LearnsWhichDirectionsMatter) {
  const SampleBatch rows = OneDirection(6000, 1), test = OneDirection(1000, 2);
  ModelConfig config = RaceConfig("square");
  config.max_features = 2048;
  const ModelConfig learned = Complete(config);
  config.input_metric = InputMetric::kOff;
  const ModelConfig isotropic = Complete(config);
  auto with = MakeTrainer(learned), without = MakeTrainer(isotropic);
  Feed(*with, learned, rows, 0, rows.size());
  Feed(*without, isotropic, rows, 0, rows.size());
  EXPECT_LT(ErrorOn(*with, test), 0.5 * ErrorOn(*without, test));
  bool served = false;
  const Ref<Snapshot> snapshot = with->MakeSnapshot();
  for (const CandidateReport& c : snapshot->resolved().candidates) {
    if (c.served) served = c.form != MetricForm::kIsotropic;
  }
  EXPECT_TRUE(served);
  const std::vector<double> relevance = snapshot->InputRelevance();
  ASSERT_EQ(relevance.size(), rows.row(0).values.size());
  // The target is one of the first two inputs.
  EXPECT_EQ(*std::ranges::max_element(relevance), 1);
  for (size_t j = 0; j < relevance.size(); ++j) {
    EXPECT_EQ(relevance[j] > 0.6, j < 2) << j << ": " << relevance[j];
  }
  EXPECT_TRUE(without->MakeSnapshot()->InputRelevance().empty());
}

TEST(Race, DropsStepConstantsButNoBandwidths) {
  ModelConfig config = RaceConfig("square");
  config.replay.ratio = 0;
  config.input_metric = InputMetric::kOff;
  config = Complete(config);
  const SampleBatch rows = MakeRows("square", 4200, kDim, 5);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, 3200);
  EXPECT_EQ(trainer->Save().candidates.size(), 20u);
  Feed(*trainer, config, rows, 3200, rows.size());
  const TrainerState state = trainer->Save();
  EXPECT_EQ(state.candidates.size(), 6u);
  std::vector<double> bandwidths;
  for (const CandidateState& c : state.candidates) bandwidths.push_back(c.bandwidth);
  std::sort(bandwidths.begin(), bandwidths.end());
  bandwidths.erase(std::unique(bandwidths.begin(), bandwidths.end()), bandwidths.end());
  EXPECT_EQ(bandwidths.size(), 5u);
}

TEST(Race, KeepsToItsMemory) {
  ModelConfig config = RaceConfig("square");
  config.max_features = 8192;
  config.memory_mib = 1;  // sixteen sets of 8192 floats, two for each candidate
  config = Complete(config);
  const SampleBatch rows = MakeRows("square", 600, kDim, 5);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  EXPECT_EQ(trainer->Save().candidates.size(), 16u);
}

// Bandwidths and step constants that are left in the race.
std::pair<std::set<double>, std::set<double>> Racers(const Trainer& trainer) {
  std::pair<std::set<double>, std::set<double>> racers;
  for (const CandidateState& c : trainer.Save().candidates) {
    racers.first.insert(c.bandwidth);
    racers.second.insert(c.step_constant);
  }
  return racers;
}

TEST(Race, GivesStepConstantsUpBeforeBandwidths) {
  ModelConfig config = RaceConfig("square");
  config.max_features = 8192;
  config.memory_mib = 1;
  config.input_metric = InputMetric::kOff;
  config = Complete(config);
  const SampleBatch rows = MakeRows("square", 600, kDim, 5);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, 512);
  EXPECT_EQ(Racers(*trainer).first.size(), config.candidates.bandwidth_scales.size());
  // Labels that come late leave less and less room.
  config = RaceConfig("softmax");
  config.max_features = 8192;
  config.memory_mib = 1;
  config.input_metric = InputMetric::kOff;
  config = Complete(config);
  trainer = MakeTrainer(config);
  SampleBatch labelled;
  for (size_t i = 0; i < rows.size(); ++i) {
    labelled.AppendRow(rows, i);
    labelled.SetLabel(absl::StrCat("label", i < 256 ? i % 3 : i % 12));
  }
  Feed(*trainer, config, labelled, 0, 256);
  EXPECT_EQ(Racers(*trainer).first.size(), config.candidates.bandwidth_scales.size());
  EXPECT_EQ(Racers(*trainer).second, (std::set<double>{1}));
  Feed(*trainer, config, labelled, 256, 512);
  EXPECT_EQ(trainer->Save().candidates.size(), 1u);
}

TEST(Race, KeepsTheLastLearnerToItsMemoryToo) {
  ModelConfig config = RaceConfig("softmax");
  config.max_features = 8192;
  config.memory_mib = 1;
  config = Complete(config);
  const SampleBatch rows = MakeRows("square", 3000, kDim, 5);
  SampleBatch labelled;
  for (size_t i = 0; i < rows.size(); ++i) {
    labelled.AppendRow(rows, i);
    labelled.SetLabel(absl::StrCat("label", i % std::min<size_t>(i / 8 + 1, 200)));
  }
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, labelled, 0, labelled.size());
  const TrainerState state = trainer->Save();
  size_t bytes = 0;
  for (const CandidateState& c : state.candidates) {
    bytes += (c.last.values.size() + c.average.values.size()) * sizeof(float);
  }
  EXPECT_LE(bytes, size_t{1} << 20);
  EXPECT_GT(bytes, size_t{1} << 19);
  EXPECT_EQ(state.num_outputs, 200u);
}

TEST(Race, GrowsWithoutLimitUntilMemoryIsFull) {
  ModelConfig config = RaceConfig("square");
  config.max_features = kUnlimitedFeatures;
  config.block_features = 4096;
  config.candidates = {.bandwidth_scales = {1}, .step_constants = {1}};
  config.input_metric = InputMetric::kOff;
  config.memory_mib = 1;
  config = Complete(config);
  const SampleBatch rows = MakeRows("square", 2000, 2, 5);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, 640);
  EXPECT_GT(trainer->MakeSnapshot()->num_features(), 8192u);
  Feed(*trainer, config, rows, 640, rows.size());
  EXPECT_EQ(trainer->MakeSnapshot()->num_features(), (1u << 20) / 8);
  EXPECT_EQ(trainer->phase(), ModelPhase::kLearning);
}

TEST(Drift, IsReportedSoonAndNotWithoutCause) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    for (const std::string loss : {"square", "logistic", "softmax"}) {
      const ModelConfig config = Complete(RaceConfig(loss));
      const SampleBatch plain = MakeRows(loss, 6000, kDim, seed);
      SampleBatch changed;
      for (size_t i = 0; i < 512; ++i) {
        changed.AppendRow(plain, i);
        // The other label, the other sign: what was learned is wrong now.
        if (loss == "softmax") {
          changed.SetLabel(plain.target(i).label == "low" ? "high" : "low");
        } else {
          changed.SetTarget(-plain.target(i).value);
        }
      }
      auto trainer = MakeTrainer(config);
      Feed(*trainer, config, plain, 0, plain.size());
      EXPECT_EQ(trainer->MakeSnapshot()->drift_reports(), 0u) << loss << " seed " << seed;
      Feed(*trainer, config, changed, 0, changed.size());
      const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
      EXPECT_GE(snapshot->drift_reports(), 1u) << loss << " seed " << seed;
      ASSERT_FALSE(snapshot->warnings().empty());
      EXPECT_EQ(snapshot->warnings()[0].kind, WarningKind::kDrift);
    }
  }
}

// The losses of density ratios have either sign; what tells drift has not.
TEST(Drift, OfTwoPopulationsIsReportedWhenTheyChangePlaces) {
  for (const std::string loss : {"density_ratio", "relative_novelty"}) {
    for (const uint64_t seed : {1u, 2u, 3u, 4u}) {
      for (const bool alternating : {false, true}) {
        ModelConfig config = RaceConfig(loss);
        config.max_features = seed % 2 == 0 ? 256 : 1024;
        config = Complete(config);
        Random random(seed);
        const auto append = [&](SampleBatch& rows, bool swapped) {
          const bool is_p = alternating ? rows.size() % 2 == 0 : random.Uniform(0, 1) < 0.5;
          float* x = rows.AddDense(2);
          for (size_t j = 0; j < 2; ++j) {
            x[j] = static_cast<float>((is_p != swapped ? 1.0 : -1.0) + random.Normal());
          }
          rows.SetPopulation(is_p ? Population::kNumerator : Population::kDenominator);
        };
        SampleBatch plain, changed;
        for (size_t i = 0; i < 8000; ++i) append(plain, false);
        for (size_t i = 0; i < 512; ++i) append(changed, true);
        auto trainer = MakeTrainer(config);
        Feed(*trainer, config, plain, 0, plain.size());
        EXPECT_EQ(trainer->MakeSnapshot()->drift_reports(), 0u)
            << loss << " seed " << seed << " at row " << trainer->Save().drift.last_report_row;
        Feed(*trainer, config, changed, 0, changed.size());
        EXPECT_GE(trainer->MakeSnapshot()->drift_reports(), 1u) << loss << " seed " << seed;
      }
    }
  }
}

// With losses below 0 a share of them is no margin: equal learners must not look different.
TEST(Replay, OfRowsOfTwoPopulationsKeepsTheLearnersApart) {
  ModelConfig config = RaceConfig("density_ratio");
  config.max_features = 256;
  config.input_metric = InputMetric::kOff;
  config.replay.ratio = 1;
  config = Complete(config);
  SampleBatch rows;
  Random random(1);
  for (size_t i = 0; i < 12000; ++i) {  // KL 4, so that the loss is about -3
    const bool is_p = random.Uniform(0, 1) < 0.5;
    float* x = rows.AddDense(2);
    for (size_t j = 0; j < 2; ++j) x[j] = static_cast<float>((is_p ? 2 : 0) + random.Normal());
    rows.SetPopulation(is_p ? Population::kNumerator : Population::kDenominator);
  }
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  const TrainerState state = trainer->Save();
  EXPECT_EQ(state.reservoir.flushes, 0u);
  EXPECT_EQ(state.drift.reports, 0u);
  std::set<double> losses;
  for (const CandidateState& c : state.candidates) {
    losses.insert(RecentLoss(c.last.validation));
  }
  EXPECT_EQ(losses.size(), state.candidates.size());
}

// Rows of three labels, one label after the other.
SampleBatch Sorted(const SampleBatch& rows) {
  SampleBatch sorted;
  for (const std::string label : {"low", "middle", "high"}) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows.target(i).label == label) sorted.AppendRow(rows, i);
    }
  }
  return sorted;
}

TEST(Order, ASortedStreamIsWarnedAboutAndReplayMakesUpForIt) {
  const SampleBatch sorted = Sorted(MakeRows("softmax", 6000, kDim, 1));
  const SampleBatch test = MakeRows("softmax", 1000, kDim, 2);
  ModelConfig config = RaceConfig("softmax");
  config.replay.ratio = 0;
  const ModelConfig plain = Complete(config);
  config.replay = {.ratio = 2, .reservoir_rows = 2048, .order = StreamOrder::kOrdered};
  const ModelConfig replaying = Complete(config);
  auto forgets = MakeTrainer(plain), remembers = MakeTrainer(replaying);
  Feed(*forgets, plain, sorted, 0, sorted.size());
  Feed(*remembers, replaying, sorted, 0, sorted.size());
  const auto warned = [](const Trainer& trainer) {
    const Ref<Snapshot> snapshot = trainer.MakeSnapshot();
    return std::any_of(snapshot->warnings().begin(), snapshot->warnings().end(),
                       [](const ModelWarning& w) { return w.kind == WarningKind::kOrdered; });
  };
  EXPECT_TRUE(warned(*forgets));
  EXPECT_GT(ErrorOn(*forgets, test), 0.3);
  EXPECT_LT(ErrorOn(*remembers, test), 0.10);
  const TrainerState state = remembers->Save();
  EXPECT_EQ(state.drift.reports, 0u);
  // One row in sixteen was kept to compare candidates on, and was not learned.
  constexpr uint64_t kInBlocks = 6000 / 64 * 64;
  EXPECT_EQ(state.held_out.seen, kInBlocks / 16);
  EXPECT_EQ(state.reservoir.seen, kInBlocks - kInBlocks / 16);

  auto shuffled = MakeTrainer(plain);
  Feed(*shuffled, plain, MakeRows("softmax", 4000, kDim, 1), 0, 4000);
  EXPECT_FALSE(warned(*shuffled));
}

TEST(Order, AnOrderedStreamGoesOnFromItsStateBitForBit) {
  ModelConfig config = RaceConfig("softmax");
  config.replay = {.ratio = 3, .reservoir_rows = 2048, .order = StreamOrder::kOrdered};
  config = Complete(config);
  const SampleBatch rows = Sorted(MakeRows("softmax", 2500, kDim, 1));
  auto undisturbed = MakeTrainer(config);
  Feed(*undisturbed, config, rows, 0, rows.size());
  for (const size_t stop : {96u, 1024u, 2112u}) {
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, stop);
    auto restored = Trainer::Restore(config, trainer->Save(), {&Inline(), nullptr});
    ASSERT_TRUE(restored.ok()) << restored.status() << " at " << stop;
    Feed(**restored, config, rows, stop, rows.size());
    EXPECT_EQ((*restored)->MakeSnapshot()->fingerprint(),
              undisturbed->MakeSnapshot()->fingerprint());
  }
}

// Rows of a sample of 64 are learned again in full until four times as many have come, and then
// less and less often. A reservoir that is full uses one random number for each row offered, and
// one for each row drawn.
TEST(Replay, FadesAsTheReservoirCoversLessOfTheStream) {
  constexpr size_t kBlock = 64;
  for (const StreamOrder order : {StreamOrder::kDrifting, StreamOrder::kOrdered}) {
    ModelConfig config = RaceConfig("square");
    config.max_features = 64;
    config.replay = {.ratio = 3, .reservoir_rows = 64, .order = order};
    config.candidates = {.bandwidth_scales = {1}, .step_constants = {1}};
    config.input_metric = InputMetric::kOff;
    config.seed = 7;
    config = Complete(config);
    const SampleBatch rows = MakeRows("square", 13000, kDim, 3);
    auto trainer = MakeTrainer(config);
    ReservoirState before;
    size_t full = 0, fading = 0, none = 0;  // blocks
    for (size_t i = 0; i + kBlock <= rows.size(); i += kBlock) {
      trainer->Step(rows, i, kBlock, i + kBlock);
      ReservoirState after = trainer->Save().reservoir;
      if (before.rows.size() == 64) {
        const uint64_t offered = after.seen - before.seen;
        const uint64_t replayed = after.draws - before.draws - offered;
        const double share = std::min(1.0, 4.0 * 64 / static_cast<double>(after.seen));
        EXPECT_EQ(replayed, static_cast<uint64_t>(share * 3 * static_cast<double>(offered)))
            << "after " << after.seen << " rows";
        ++(replayed == 3 * offered ? full : replayed > 0 ? fading : none);
      }
      before = std::move(after);
    }
    EXPECT_EQ(before.flushes, 0u);
    EXPECT_GE(full, 2u);
    EXPECT_GE(fading, 150u);
    EXPECT_EQ(none, 0u);
  }
}

TEST(Replay, ForgetsOldRowsWhenTheyMislead) {
  ModelConfig config = RaceConfig("square");
  config.replay = {.ratio = 2, .reservoir_rows = 4096, .order = StreamOrder::kDrifting};
  config = Complete(config);
  const SampleBatch rows = MakeRows("square", 6400, kDim, 3);
  SampleBatch changed;
  for (size_t i = 0; i < 3200; ++i) {
    changed.AppendRow(rows, i);
    changed.SetTarget(-rows.target(i).value);
  }
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  EXPECT_EQ(trainer->Save().reservoir.flushes, 0u);
  EXPECT_EQ(trainer->Save().reservoir.rows.size(), 4096u);
  Feed(*trainer, config, changed, 0, changed.size());
  EXPECT_GE(trainer->Save().reservoir.flushes, 1u);
  SampleBatch test;
  const SampleBatch fresh = MakeRows("square", 500, kDim, 4);
  for (size_t i = 0; i < fresh.size(); ++i) {
    test.AppendRow(fresh, i);
    test.SetTarget(-fresh.target(i).value);
  }
  EXPECT_LT(ErrorOn(*trainer, test), 0.05);
}

// Learners that learn new rows only.
size_t Shadows(const Trainer& trainer) {
  const TrainerState state = trainer.Save();
  return static_cast<size_t>(
      std::ranges::count_if(state.candidates, [](const CandidateState& c) { return !c.replays; }));
}

TEST(Replay, ALearnerWithoutItIsAlwaysThereInADefaultRegression) {
  const ModelConfig config = Complete(RaceConfig("square"));
  const SampleBatch rows = OneDirection(12320, 1);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, 4096);
  for (size_t i = 4096; i + config.batch_rows <= rows.size(); i += config.batch_rows) {
    trainer->Step(rows, i, config.batch_rows, i + config.batch_rows);
    ASSERT_EQ(Shadows(*trainer), 1u) << i;
  }
  // The race is over for now, and generation 0, whose shadow was the first one, is out of it.
  const TrainerState state = trainer->Save();
  EXPECT_EQ(state.candidates.size(), 4u + 1u);
  for (const CandidateState& c : state.candidates) EXPECT_NE(c.generation, 0u);
  auto restored = Trainer::Restore(config, state, {&Inline(), nullptr});
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(Shadows(**restored), 1u);
}

TEST(Replay, TheLearnerWithoutItKeepsToTheMemoryToo) {
  ModelConfig config = RaceConfig("square");
  config.max_features = 8192;
  config.memory_mib = 1;
  config.block_features = 8192;
  config.candidates.bandwidth_scales = {0.125, 0.25, 0.5, 1,   2,   4,   8,   16,
                                        0.1,   0.2,  0.4, 0.8, 1.6, 3.2, 6.4, 12.8};
  config.input_metric = InputMetric::kOff;
  config = Complete(config);
  const SampleBatch rows = MakeRows("square", 4200, kDim, 5);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  const TrainerState state = trainer->Save();
  EXPECT_TRUE(state.pruned);
  EXPECT_LE(state.candidates.size(), 16u);
  EXPECT_EQ(Shadows(*trainer), 0u);
}

// What the inputs say turns so slowly that no report comes.
SampleBatch Turning(size_t still, size_t turning, double angle, uint64_t seed) {
  SampleBatch rows;
  Random random(seed);
  for (size_t i = 0; i < still + turning; ++i) {
    float* x = rows.AddDense(10);
    for (size_t j = 0; j < 10; ++j) x[j] = static_cast<float>(random.Normal());
    const double turned =
        i < still ? 0 : angle * static_cast<double>(i - still) / static_cast<double>(turning);
    rows.SetTarget(std::sin(1.5 * (std::cos(turned) * x[0] + std::sin(turned) * x[1])) +
                   0.3 * random.Normal());
  }
  return rows;
}

TEST(Replay, OldRowsAreForgottenWhereDriftIsTooSlowForAReport) {
  const ModelConfig config = Complete(RaceConfig("square"));
  constexpr size_t kStill = 12800, kTurning = 16000;
  const SampleBatch rows = Turning(kStill, kTurning, 1.5708, 1);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, kStill);
  EXPECT_EQ(trainer->Save().reservoir.flushes, 0u);
  Feed(*trainer, config, rows, kStill, rows.size());
  const TrainerState state = trainer->Save();
  EXPECT_EQ(state.drift.reports, 0u);
  EXPECT_GE(state.reservoir.flushes, 1u);
  // .395 with the old rows.
  EXPECT_LT(trainer->MakeSnapshot()->validation().recent_loss, 0.37);
}

TEST(Uncertainty, IntervalsHoldTheTargetsTheyShould) {
  ModelConfig config = RaceConfig("square");
  config.variance.method = VarianceMethod::kExact;
  config.variance.features = 256;
  config = Complete(config);
  const auto noisy = [](size_t count, uint64_t seed) {
    SampleBatch rows = MakeRows("square", count, 2, seed), out;
    Random random(seed + 100);
    for (size_t i = 0; i < rows.size(); ++i) {
      out.AppendRow(rows, i);
      out.SetTarget(7 + 3 * (rows.target(i).value + 0.3 * random.Normal()));
    }
    return out;
  };
  const SampleBatch rows = noisy(6000, 1), test = noisy(2000, 2);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  ASSERT_TRUE(snapshot->has_uncertainty());
  const std::vector<double> scores = Scores(*trainer, test);
  std::vector<RowUncertainty> uncertainty(test.size());
  snapshot->Assess(test, Inline(), uncertainty.data());
  double covered = 0, width = 0;
  for (size_t i = 0; i < test.size(); ++i) {
    Prediction prediction = snapshot->Link({&scores[i], 1});
    snapshot->AddUncertainty(uncertainty[i], prediction);
    ASSERT_TRUE(prediction.variance.has_value() && prediction.interval.has_value());
    EXPECT_GE(*prediction.variance, 0);
    covered += test.target(i).value >= prediction.interval->low &&
               test.target(i).value <= prediction.interval->high;
    width += prediction.interval->high - prediction.interval->low;
  }
  EXPECT_NEAR(covered / 2000, 0.9, 0.03);
  EXPECT_NEAR(width / 2000, 2 * 1.645 * 0.9, 0.4);  // noise of 0.9 target units
  ASSERT_TRUE(snapshot->validation().recent.interval_coverage.has_value());
  EXPECT_NEAR(*snapshot->validation().recent.interval_coverage, 0.9, 0.04);
}

}  // namespace
}  // namespace kernelstream
