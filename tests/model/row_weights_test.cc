// What is chosen from rows, and drift: equal weights change no bit, a row of weight 2 is about that
// row twice, and rows that hardly count are hardly seen.
#include "core/model/row_weights.h"

#include <array>
#include <cmath>

#include "core/feature/random_feature_map.h"
#include "core/model/drift_monitor.h"
#include "core/model/learned_metric.h"
#include "core/model/median_distance.h"
#include "core/model/scaling.h"
#include "tests/model/model_support.h"

namespace kernelstream {
namespace {

constexpr size_t kDim = 3;
constexpr std::array<double, 3> kEqual = {1e-3, 3, 1e6};

// Rows with weights, and all that is chosen from them.
struct Weighted {
  void Add(std::span<const float> x, double target, double weight) {
    inputs.insert(inputs.end(), x.begin(), x.end());
    targets.push_back(target);
    weights.push_back(weight);
  }
  // Normal ones of spread 1, or wild ones.
  void AddRandom(Random& random, bool wild, double weight) {
    std::array<float, kDim> x;
    for (float& v : x) v = static_cast<float>(wild ? 40 + 30 * random.Normal() : random.Normal());
    Add(x, wild ? 500 + 90 * random.Normal() : 2 * random.Normal(), weight);
  }
  ConstMatrixView x() const { return {inputs.data(), targets.size(), kDim}; }

  // Shifts, scales, target offsets and scales, the median distance.
  std::vector<double> Chosen(bool with_weights) const {
    const std::span<const double> w =
        with_weights ? std::span<const double>(weights) : std::span<const double>();
    const InputScaling scaling = InputScaling::FromRows(x(), w);
    std::vector<double> out(scaling.shift().begin(), scaling.shift().end());
    for (const float inverse : scaling.inverse_scale()) out.push_back(1 / double{inverse});
    for (const bool robust : {false, true}) {
      const TargetScaling target = TargetScaling::FromTargets(targets, w, robust);
      out.insert(out.end(), {target.offset, target.scale});
    }
    const auto kernel = MakeUnitKernel(*CompleteKernel({"gaussian", {}}));
    out.push_back(MedianDistance(x(), **kernel, w));
    return out;
  }
  // Of a model with random coefficients, relative to its trace.
  std::vector<double> GradientProduct(bool with_weights) const {
    constexpr size_t kFeatures = 32;
    const RandomFeatureMap map(FeatureSpec{}, 4, kDim, kFeatures, nullptr);
    const LearnedMetric identity;
    std::vector<float> coefficients(kFeatures);
    Random random(6);
    for (float& c : coefficients) c = static_cast<float>(random.Normal());
    const GradientModel model = {.features = &map,
                                 .metric = &identity,
                                 .coefficients = coefficients,
                                 .num_features = kFeatures,
                                 .inverse_bandwidth = 0.3};
    return AverageGradientProduct(
        model, x(), MetricForm::kFull, 1, Inline(),
        with_weights ? std::span<const double>(weights) : std::span<const double>());
  }

  std::vector<float> inputs;
  std::vector<double> targets, weights;
};

void ExpectNear(const std::vector<double>& got, const std::vector<double>& want, double error) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], error) << i;
}

TEST(RowWeights, EqualOnesOfAnyValueChangeNoBit) {
  for (const size_t rows : {1u, 2u, 17u, 200u}) {
    for (const double weight : kEqual) {
      Random random(3);
      Weighted weighted;
      for (size_t i = 0; i < rows; ++i) weighted.AddRandom(random, i % 20 == 19, weight);
      EXPECT_EQ(weighted.Chosen(true), weighted.Chosen(false));
      EXPECT_EQ(weighted.GradientProduct(true), weighted.GradientProduct(false));
    }
  }
}

TEST(RowWeights, ARowOfWeightTwoIsAboutThatRowTwice) {
  Random random(3);
  Weighted weighted, twice;
  for (size_t i = 0; i < 160; ++i) {
    // Every second row, and those are in another place.
    const double weight = i % 2 == 0 ? 2 : 1;
    std::array<float, kDim> x;
    for (float& v : x) v = static_cast<float>(2 * weight + random.Normal());
    const double target = 3 * weight + random.Normal();
    weighted.Add(x, target, weight);
    for (double k = 0; k < weight; ++k) twice.Add(x, target, 1);
  }
  ExpectNear(weighted.Chosen(true), twice.Chosen(false), 0.05);
  EXPECT_GT(std::abs(weighted.Chosen(false)[0] - twice.Chosen(false)[0]), 0.2);
  ExpectNear(weighted.GradientProduct(true), twice.GradientProduct(false), 1e-6);
}

TEST(RowWeights, RowsThatHardlyCountAreHardlySeen) {
  Random random(3);
  Weighted all, plain;
  for (size_t i = 0; i < 250; ++i) {
    const bool wild = i % 3 == 0;
    all.AddRandom(random, wild, wild ? 1e-3 : 1);
    if (wild) continue;
    const size_t row = all.targets.size() - 1;
    plain.Add(std::span(all.inputs).subspan(row * kDim, kDim), all.targets[row], 1);
  }
  // A wild target is pulled in to ten interquartile ranges, whose square still counts a little.
  ExpectNear(all.Chosen(true), plain.Chosen(false), 0.1);
  EXPECT_GT(all.Chosen(false)[0], 0.3);
  ExpectNear(all.GradientProduct(true), plain.GradientProduct(false), 5e-3);
}

// The largest weight that is let in beside the smallest sums.
TEST(RowWeights, MayBeFarApart) {
  Random random(3);
  Weighted weighted;
  for (size_t i = 0; i < 100; ++i) weighted.AddRandom(random, i != 50, i == 50 ? 1e6 : 1e-6);
  for (const double value : weighted.Chosen(true)) EXPECT_TRUE(std::isfinite(value));
  // What the one row says.
  EXPECT_NEAR(weighted.Chosen(true)[0], weighted.inputs[50 * kDim], 0.01);
  for (const double value : weighted.GradientProduct(true)) EXPECT_TRUE(std::isfinite(value));
}

TEST(RowWeights, AWholeModelIsFittedToRowsThatCount) {
  ModelConfig config = SmallConfig("square");
  const SampleBatch plain = MakeRows("square", 64, kDim, 5);
  SampleBatch mixed;
  for (size_t i = 0; i < 64; ++i) {
    mixed.AppendRow(plain, i);
    if (i % 2 == 0) continue;
    const std::array<float, kDim> far = {900, -700, 800.0f + static_cast<float>(i)};
    mixed.AddDense(far);
    mixed.SetTarget(-3000);
    mixed.SetWeight(1e-3f);
  }
  config.warmup_rows = 96;
  const auto trainer = MakeTrainer(config), want = MakeTrainer(SmallConfig("square"));
  Feed(*trainer, config, mixed, 0, mixed.size());
  Feed(*want, config, plain, 0, plain.size());
  const TrainerState got = trainer->Save(), clean = want->Save();
  ASSERT_TRUE(got.warm && clean.warm);
  EXPECT_NEAR(got.target_scales[0], clean.target_scales[0], 0.1 * clean.target_scales[0]);
  EXPECT_NEAR(got.target_offsets[0], clean.target_offsets[0], 0.1);
  for (size_t j = 0; j < kDim; ++j) {
    EXPECT_NEAR(got.input_inverse_scale[j], clean.input_inverse_scale[j], 0.1);
  }
  const double bandwidth = clean.kernel_parameters.at("bandwidth");
  EXPECT_NEAR(got.kernel_parameters.at("bandwidth"), bandwidth, 0.1 * bandwidth);
}

// Batches of 64 losses, of which some rows have a weight of their own.
class DriftOf {
 public:
  explicit DriftOf(uint64_t seed) : random_(seed) {}
  // share of rows with this weight, and the losses of those and of the others.
  void Feed(size_t batches, double share, double weight, double their_loss, double loss) {
    for (size_t b = 0; b < batches; ++b) {
      std::vector<double> losses, weights;
      for (size_t i = 0; i < 64; ++i) {
        const bool theirs = random_.Uniform() < share;
        const double size = random_.Normal();
        losses.push_back((theirs ? their_loss : loss) * size * size);
        weights.push_back(theirs ? weight : 1);
      }
      NoteLosses(losses, weights, rows_, state_);
      rows_ += 64;
    }
  }
  uint64_t reports() const { return state_.reports; }

 private:
  Random random_;
  DriftState state_;
  uint64_t rows_ = 0;
};

TEST(DriftWeights, AreExactlyOneWhereAllWeightsWereEqual) {
  for (const double weight : {1e-3, 0.1, 3.0, 1e6}) {
    double usual = 0;
    for (const size_t rows : {1u, 7u, 64u, 1000u}) {
      const std::vector<double> weights(rows, static_cast<float>(weight));
      EXPECT_EQ(DriftWeights(weights, usual), std::vector<double>(rows, 1.0));
      EXPECT_EQ(DriftWeights(weights, 0), std::vector<double>(rows, 1.0));
      usual = NextUsualWeight(weights, 0, usual);
    }
  }
}

TEST(DriftWeights, TheUsualWeightFollowsRowsButNoSingleOne) {
  const std::vector<double> ones(256, 1.0), wild = {1e6};
  constexpr uint64_t kMany = 100000;
  EXPECT_EQ(NextUsualWeight({}, 0, 0), 0);
  // From the first rows' median, whatever one of them is.
  std::vector<double> first(64, 2.0);
  first[0] = 1e6;
  EXPECT_NEAR(NextUsualWeight(first, 0, 0), 2, 0.3);
  double usual = NextUsualWeight(wild, kMany, 1);
  EXPECT_LE(usual, 1.01);
  // Falling and rising by a thousand.
  for (const double weight : {1e-3, 1.0}) {
    usual = NextUsualWeight(std::vector<double>(1300, weight), kMany, usual);
    EXPECT_NEAR(usual, weight, 0.2 * weight);
  }
  // One after the other from the first row on, which is the wild one.
  usual = NextUsualWeight(wild, 0, 0);
  for (uint64_t row = 1; row < 1200; ++row) {
    usual = NextUsualWeight(std::vector<double>{1}, row, usual);
  }
  EXPECT_LE(usual, 1.5);
}

TEST(DriftWeights, CountRowsByTheirWeightButNoRowAsMany) {
  std::vector<double> weights(64, 1.0);
  weights[5] = 2;
  weights[6] = 1e-3;
  const double usual = 65.0 / 64;
  std::vector<double> counts = DriftWeights(weights, usual);
  EXPECT_NEAR(counts[5] / counts[0], 2, 1e-9);
  EXPECT_NEAR(counts[0], 1, 0.05);
  EXPECT_LE(counts[6], 1e-3);
  // A batch of rows that hardly count.
  EXPECT_LE(DriftWeights(std::vector<double>(64, 1e-3), 1)[0], 1e-3);
  // One row is one row.
  weights[5] = 1e6;
  counts = DriftWeights(weights, usual);
  EXPECT_LE(counts[5], 1.001);
  weights[5] = 9;
  EXPECT_LE(DriftWeights(weights, usual)[5], 5);
}

TEST(Drift, IsOfRowsThatCount) {
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    // Rows that hardly count go wild: nothing; the others: a report.
    DriftOf light(seed), heavy(seed), alike(seed);
    for (DriftOf* drift : {&light, &heavy, &alike}) {
      drift->Feed(60, 0.4, drift == &alike ? 1 : 1e-3, 1, 1);
      EXPECT_EQ(drift->reports(), 0u);
    }
    light.Feed(20, 0.4, 1e-3, 100, 1);
    heavy.Feed(8, 0.4, 1e-3, 1, 100);
    alike.Feed(8, 0.4, 1, 100, 1);
    EXPECT_EQ(light.reports(), 0u);
    EXPECT_GE(heavy.reports(), 1u);
    EXPECT_GE(alike.reports(), 1u);
  }
}

// One wild weight, or weights that fell for good some time ago, do not hide a change.
TEST(Drift, IsNoticedWhateverTheWeightsWereBefore) {
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    DriftOf wild(seed), wild_first(seed), fallen(seed);
    wild_first.Feed(1, 0.1, 1e6, 1, 1);
    wild_first.Feed(60, 0, 1, 1, 1);
    wild_first.Feed(8, 0, 1, 1, 100);
    EXPECT_GE(wild_first.reports(), 1u);
    wild.Feed(60, 0, 1, 1, 1);
    wild.Feed(1, 1, 1e6, 1, 1);
    wild.Feed(1, 0, 1, 1, 1);
    wild.Feed(8, 0, 1, 1, 100);
    EXPECT_GE(wild.reports(), 1u);
    fallen.Feed(60, 0, 1, 1, 1);
    fallen.Feed(20, 1, 1e-3, 1, 1);
    EXPECT_EQ(fallen.reports(), 0u);
    fallen.Feed(8, 1, 1e-3, 100, 1);
    EXPECT_GE(fallen.reports(), 1u);
  }
}

// Versions before 2026-11-30 did not keep the usual weight.
TEST(Drift, UsualWeightOfAnOlderCheckpointIsTheMeanOfItsRows) {
  for (const std::string loss : {"square", "logistic", "novelty"}) {
    SCOPED_TRACE(loss);
    const ModelConfig config = SmallConfig(loss);
    const SampleBatch plain = MakeRows(loss, 640, kDim, 5);
    SampleBatch rows;
    for (size_t i = 0; i < plain.size(); ++i) {
      rows.AppendRow(plain, i);
      rows.SetWeight(i % 2 == 0 ? 2 : 4);
    }
    const auto undisturbed = MakeTrainer(config);
    Feed(*undisturbed, config, rows, 0, 320);
    TrainerState old = undisturbed->Save();
    const double usual = old.drift.usual_weight;
    EXPECT_EQ(usual > 0, loss != "novelty");
    old.drift.usual_weight = 0;
    auto restored = Trainer::Restore(config, std::move(old), {&Inline(), nullptr});
    ASSERT_TRUE(restored.ok()) << restored.status();
    EXPECT_EQ((*restored)->Save().drift.usual_weight, loss == "novelty" ? 0 : 3);
    Feed(**restored, config, rows, 320, 640);
    Feed(*undisturbed, config, rows, 320, 640);
    const TrainerState got = (*restored)->Save(), want = undisturbed->Save();
    EXPECT_EQ(got.fingerprint, want.fingerprint);
    EXPECT_EQ(got.drift.reports, 0u);
    EXPECT_NEAR(got.drift.usual_weight, want.drift.usual_weight, 0.1);
  }
}

TEST(Drift, IsNotReportedWithoutCauseWhereFewRowsHaveMostOfTheWeight) {
  for (const uint64_t seed : {1, 2, 3}) {
    for (const double share : {0.02, 0.1, 0.5}) {
      for (const double weight : {5.0, 100.0, 1e6}) {
        DriftOf drift(seed);
        drift.Feed(1500, share, weight, 1, 1);
        EXPECT_EQ(drift.reports(), 0u) << share << " of weight " << weight << " seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace kernelstream
