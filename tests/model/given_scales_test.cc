// Scales that the config gives instead of the warm-up rows.
#include <array>
#include <cmath>
#include <limits>

#include "core/model/evaluator.h"
#include "core/model/row_rules.h"
#include "tests/model/model_support.h"

namespace kernelstream {
namespace {

// Inputs and targets far from standard units.
SampleBatch RowsInOtherUnits(size_t count, uint64_t seed) {
  const SampleBatch plain = MakeRows("square", count, 3, seed);
  SampleBatch rows;
  for (size_t i = 0; i < count; ++i) {
    const RowView row = plain.row(i);
    const float x[] = {1000 + 7 * row.values[0], 1e-3f * row.values[1], row.values[2]};
    rows.AddDense(x);
    rows.SetTarget(-500 + 40 * plain.target(i).value);
  }
  return rows;
}

ModelConfig GivenConfig() {
  ModelConfig config = SmallConfig("square");
  config.input_scales = {{1000, 0, 0}, {7, 1e-3, 1}};
  config.target_scales = {{-500}, {40}};
  return config;
}

TEST(GivenScales, WhatWasChosenGivesTheSameModelAgain) {
  const ModelConfig config = SmallConfig("square");
  const SampleBatch rows = RowsInOtherUnits(600, 1);
  auto chosen = MakeTrainer(config);
  Feed(*chosen, config, rows, 0, rows.size());
  const Ref<Snapshot> snapshot = chosen->MakeSnapshot();
  ModelConfig pinned = config;
  pinned.input_scales = snapshot->scaling().AsGiven();
  ASSERT_EQ(pinned.input_scales.scales.size(), 3u);
  EXPECT_NEAR(pinned.input_scales.offsets[0], 1000, 2);
  EXPECT_NEAR(pinned.input_scales.scales[0], 7, 2);
  for (const TargetScaling& target : snapshot->resolved().targets) {
    pinned.target_scales.offsets.push_back(target.offset);
    pinned.target_scales.scales.push_back(target.scale);
  }
  ASSERT_TRUE(CompleteConfig(pinned).ok());
  auto given = MakeTrainer(pinned);
  Feed(*given, pinned, rows, 0, rows.size());
  const SampleBatch test = RowsInOtherUnits(100, 2);
  EXPECT_EQ(Scores(*given, test), Scores(*chosen, test));
  EXPECT_TRUE(given->MakeSnapshot()->scaling().AsGiven() == pinned.input_scales);
  EXPECT_NE(given->MakeSnapshot()->fingerprint(), snapshot->fingerprint());  // another config
}

TEST(GivenScales, AreUsedWhateverTheFirstRowsLookLike) {
  ModelConfig config = GivenConfig();
  ASSERT_TRUE(CompleteConfig(config).ok());
  EXPECT_EQ(config.dimension, 3u);
  EXPECT_EQ(config.standardize, Standardize::kOn);
  // First rows that say nothing of the later ones: all alike.
  SampleBatch rows;
  const float x[] = {1000, 0, 0};
  for (uint32_t i = 0; i < config.warmup_rows; ++i) {
    rows.AddDense(x);
    rows.SetTarget(-500);
  }
  const SampleBatch later = RowsInOtherUnits(3000, 1);
  for (size_t i = 0; i < later.size(); ++i) rows.AppendRow(later, i);
  auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
  EXPECT_EQ(snapshot->scaling().AsGiven().offsets, config.input_scales.offsets);
  for (size_t j = 0; j < 3; ++j) {
    const double scale = config.input_scales.scales[j];
    EXPECT_NEAR(snapshot->scaling().AsGiven().scales[j], scale, 1e-7 * scale);  // float32
  }
  EXPECT_EQ(snapshot->resolved().target_offset, -500);
  EXPECT_EQ(snapshot->resolved().target_scale, 40);
  // The whole state, config included, comes back.
  const auto restored = Trainer::Restore(config, trainer->Save(), {&Inline(), nullptr});
  ASSERT_TRUE(restored.ok()) << restored.status();
  const SampleBatch test = RowsInOtherUnits(500, 2);
  EXPECT_EQ(Scores(**restored, test), Scores(*trainer, test));
}

TEST(GivenScales, CountBeforeTheFirstRowAndBeforeTheWarmUpEnds) {
  ModelConfig config = SmallConfig("square");
  config.target_scales = {{1000, 2000}, {1, 2}};
  ASSERT_TRUE(CompleteConfig(config).ok());
  auto trainer = MakeTrainer(config);
  SampleBatch rows;
  for (const double off : {-1.0, 0.0, 1.0}) {
    rows.AddDense(std::array{1.0f, 2.0f});
    rows.SetTargets(std::array{1000 + off, 2000 + 10 * off});
  }
  const auto expect_values = [&](const std::vector<double>& values) {
    const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
    ASSERT_EQ(snapshot->num_outputs(), 2u);
    ASSERT_EQ(snapshot->resolved().targets.size(), 2u);
    EXPECT_EQ(snapshot->resolved().targets[1].scale, 2);
    const std::vector<double> scores = Scores(*trainer, rows);
    EXPECT_EQ(scores.size(), 2 * rows.size());
    for (size_t k = 0; k < 2; ++k) {
      const TargetScaling& target = snapshot->resolved().targets[k];
      EXPECT_NEAR(target.offset + target.scale * scores[k], values[k], 1e-9);
    }
    Evaluator evaluator;
    EXPECT_EQ(evaluator.Add(*snapshot, rows, Inline()), std::nullopt);
    EXPECT_TRUE(std::isfinite(*evaluator.Metrics(*snapshot).mean_squared_error));
  };
  expect_values({1000, 2000});
  for (int i = 0; i < 3; ++i) rows.SetTargets(std::array{1001.0, 2004.0});
  trainer->Step(rows, 2, 1, 1);
  expect_values({1001, 2004});
}

TEST(GivenScales, FitSparseRows) {
  ModelConfig config = GivenConfig();
  ASSERT_TRUE(CompleteConfig(config).ok());
  const SampleBatch dense = RowsInOtherUnits(400, 1);
  SampleBatch sparse;
  for (size_t i = 0; i < dense.size(); ++i) {
    sparse.AddSparse(std::vector<uint64_t>{0, 1, 2}, dense.row(i).values);
    sparse.SetTarget(dense.target(i).value);
  }
  auto one = MakeTrainer(config), other = MakeTrainer(config);
  Feed(*one, config, dense, 0, dense.size());
  Feed(*other, config, sparse, 0, sparse.size());
  EXPECT_EQ(Scores(*one, dense), Scores(*other, sparse));
}

TEST(GivenScales, ThatAreFarFromTheTargetsAreWarnedOf) {
  const SampleBatch rows = RowsInOtherUnits(800, 1);
  const auto warnings = [&](GivenScales scales) {
    ModelConfig config = SmallConfig("square");
    config.target_scales = std::move(scales);
    EXPECT_TRUE(CompleteConfig(config).ok());
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, rows.size());
    return trainer->MakeSnapshot()->warnings();
  };
  EXPECT_TRUE(warnings({}).empty());
  EXPECT_TRUE(warnings({{-500}, {40}}).empty());
  // Targets are -500 +- 40: all too far, and on either side.
  for (const GivenScales& scales : {GivenScales{{0}, {1}}, GivenScales{{-500}, {0.1}}}) {
    const auto found = warnings(scales);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, WarningKind::kFarTargets);
    EXPECT_NE(found[0].text.find("target_scales"), std::string::npos) << found[0].text;
  }
}

TEST(GivenScales, ThatMakeNoSenseAreRefusedByName) {
  const auto field = [](auto change) {
    ModelConfig config;
    config.loss.name = "square";
    change(config);
    return FieldPathOf(CompleteConfig(config));
  };
  EXPECT_EQ(field([](ModelConfig& c) { c.input_scales.scales = {1, 2}; }), "");
  EXPECT_EQ(field([](ModelConfig& c) { c.input_scales.offsets = {1, 2}; }), "");
  EXPECT_EQ(field([](ModelConfig& c) { c.input_scales = {{0, 0}, {1}}; }), "input.scales");
  EXPECT_EQ(field([](ModelConfig& c) {
              c.input_scales.offsets = {1, 2};
              c.dimension = 3;
            }),
            "input.offsets");
  EXPECT_EQ(field([](ModelConfig& c) { c.input_scales = {{0, 0}, {1, 0}}; }), "input.scales[1]");
  EXPECT_EQ(field([](ModelConfig& c) { c.input_scales.scales = {-1}; }), "input.scales[0]");
  EXPECT_EQ(field([](ModelConfig& c) {
              c.input_scales.offsets = {std::numeric_limits<double>::quiet_NaN()};
            }),
            "input.offsets[0]");
  EXPECT_EQ(field([](ModelConfig& c) {
              c.input_scales.scales = {1, 2};
              c.dimension = 3;
            }),
            "input.scales");
  EXPECT_EQ(field([](ModelConfig& c) {
              c.input_scales.scales = {1, 2};
              c.standardize = Standardize::kOff;
            }),
            "input.standardize");
  EXPECT_EQ(field([](ModelConfig& c) {
              c.input_scales.scales = {1, 2};
              c.hashed = true;
            }),
            "input.scales");
  EXPECT_EQ(field([](ModelConfig& c) {
              c.input_scales.scales = {1, 2};
              c.kernel.name = "chi2";
            }),
            "input.scales");
  EXPECT_EQ(field([](ModelConfig& c) { c.input_scales.scales.assign(70000, 1); }), "input.scales");
  EXPECT_EQ(field([](ModelConfig& c) { c.target_scales.scales = {1, 0}; }), "target_scales[1]");
  EXPECT_EQ(field([](ModelConfig& c) { c.target_scales.scales.assign(257, 1); }), "target_scales");
  EXPECT_EQ(field([](ModelConfig& c) {
              c.target_scales.scales = {1};
              c.loss.name = "logistic";
            }),
            "target_scales");
  EXPECT_EQ(field([](ModelConfig& c) {
              c.target_scales.scales = {1, 2};
              c.variance.method = VarianceMethod::kExact;
            }),
            "target_scales");
}

TEST(GivenScales, SayHowManyTargetsARowHasAndHowFarTheyMayBe) {
  ModelConfig config;
  config.loss.name = "square";
  config.target_scales = {{0, 0}, {1, 10}};
  ASSERT_TRUE(CompleteConfig(config).ok());
  const auto rules = RowRules::Create(config).value();
  const auto field = [&](const std::vector<double>& targets) {
    return FieldPathOf(rules->CheckTarget("m", TargetView::Vector(targets), 1, 0, {}));
  };
  EXPECT_EQ(field({1, 2}), "");
  EXPECT_EQ(field({1}), "vector");
  EXPECT_EQ(field({1, 2, 3}), "vector");
  EXPECT_EQ(field({1, 9e4}), "");
  EXPECT_EQ(field({2e4, 1}), "vector.values[0]");
  EXPECT_EQ(field({1, 2e5}), "vector.values[1]");
}

}  // namespace
}  // namespace kernelstream
