// Noise, variance and intervals as rows stream by, with predictions of a model that learns them.
#include "core/model/variance_estimator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/feature/random_feature_map.h"
#include "core/kernel/kernel.h"
#include "core/model/linear_solve.h"
#include "core/model/model_features.h"
#include "core/model/update_rule.h"
#include "tests/model/model_support.h"
#include "tests/support/random.h"
#include "tests/support/thread_executor.h"

namespace kernelstream {
namespace {

constexpr size_t kDim = 2, kBatch = 50, kFeatures = 128;
constexpr uint64_t kSeed = 21;

ModelConfig Config(VarianceMethod method) {
  ModelConfig config;
  config.loss.name = "square";
  config.variance.method = method;
  config.variance.features = kFeatures;
  if (method == VarianceMethod::kTestPoints) config.variance.test_points = {{0.5f, 0}, {-1, 1}};
  EXPECT_TRUE(CompleteConfig(config).ok());
  return config;
}

std::vector<float> Features(const std::vector<float>& x, uint64_t seed) {
  const size_t rows = x.size() / kDim;
  const RandomFeatureMap map(FeatureSpec{}, seed, kDim, kFeatures, nullptr);
  std::vector<float> out(kFeatures * rows);
  map.Features(ConstMatrixView(x.data(), rows, kDim), 1.0f, 0, kFeatures / kPanelWidth, out.data());
  return out;
}

enum class Noise { kNormal, kHeavy, kGrowing };

// Rows with their noise: sd 0.3 everywhere, of a t distribution with 2 degrees of freedom, or from
// 0.05 to 0.55 with x0.
struct Stream {
  explicit Stream(Noise kind, uint64_t seed) : noise(kind), random(seed) {}
  void Draw(size_t rows) {
    x.clear();
    y.clear();
    batch.Clear();
    for (size_t i = 0; i < rows; ++i) {
      x.push_back(static_cast<float>(random.Uniform(-2, 2)));
      x.push_back(static_cast<float>(random.Uniform(-2, 2)));
      batch.AddDense(std::span<const float>(x).last(2));
      const double x0 = x[2 * i];
      double e = random.Normal();
      if (noise == Noise::kHeavy) {
        const double a = random.Normal(), b = random.Normal();
        e *= 0.3 / std::sqrt((a * a + b * b) / 2);
      } else {
        e *= noise == Noise::kNormal ? 0.3 : 0.05 + 0.125 * (x0 + 2);
      }
      y.push_back(std::sin(2 * x0) + 0.3 * x[2 * i + 1] + e);
    }
  }
  Noise noise;
  Random random;
  std::vector<float> x;
  std::vector<double> y;
  SampleBatch batch;
};

// The mean of the posterior beside the estimator under test.
struct Model {
  explicit Model(const ModelConfig& config) : mean(kFeatures), estimator(config, 1) {
    std::vector<float> points;
    for (const auto& point : config.variance.test_points) {
      points.insert(points.end(), point.begin(), point.end());
    }
    estimator.Start(Features(points, kSeed));
  }
  std::vector<double> Predict(const std::vector<float>& features, size_t rows) const {
    std::vector<double> out(rows);
    mean.factor()->Mean(features.data(), rows, out.data());
    return out;
  }
  void Learn(Stream& stream, size_t rows) {
    for (size_t i = 0; i < rows; i += kBatch) {
      stream.Draw(kBatch);
      const std::vector<float> first = Features(stream.x, kSeed);
      const std::vector<float> second = Features(stream.x, SecondFamilySeed(kSeed));
      std::vector<double> residuals = Predict(first, kBatch);
      for (size_t r = 0; r < kBatch; ++r) residuals[r] = stream.y[r] - residuals[r];
      estimator.Learn({first.data(), second.data()}, kBatch, stream.y, {}, residuals);
      mean.Add(first.data(), kBatch, stream.y, {}, 0.09);
    }
  }
  std::vector<RowUncertainty> Assess(const Stream& stream) {
    const std::vector<float> first = Features(stream.x, kSeed);
    const std::vector<float> second = Features(stream.x, SecondFamilySeed(kSeed));
    std::vector<RowUncertainty> out(stream.y.size());
    estimator.Publish()->Assess(stream.batch, 0, out.size(), {first.data(), second.data()},
                                out.data());
    return out;
  }
  // Share of 4000 new rows of each half of x0 that are in their intervals, and mean widths.
  void Test(Stream& stream, double (&coverage)[2], double (&width)[2]) {
    stream.Draw(4000);
    const std::vector<RowUncertainty> uncertain = Assess(stream);
    const std::vector<double> values = Predict(Features(stream.x, kSeed), 4000);
    double rows[2] = {}, inside[2] = {}, widths[2] = {};
    for (size_t i = 0; i < 4000; ++i) {
      const size_t half = stream.x[2 * i] > 0 ? 1 : 0;
      ++rows[half];
      inside[half] += stream.y[i] >= values[i] - uncertain[i].below &&
                      stream.y[i] <= values[i] + uncertain[i].above;
      widths[half] += uncertain[i].below + uncertain[i].above;
    }
    for (size_t half = 0; half < 2; ++half) {
      coverage[half] = inside[half] / rows[half];
      width[half] = widths[half] / rows[half];
    }
  }
  ExactPosterior mean;
  VarianceEstimator estimator;
};

constexpr VarianceMethod kMethods[] = {VarianceMethod::kExact, VarianceMethod::kOperator,
                                       VarianceMethod::kTestPoints, VarianceMethod::kQuantilePair};

TEST(VarianceEstimator, IntervalsCoverWhatTheyPromiseWhateverTheNoise) {
  for (const VarianceMethod method : kMethods) {
    for (const Noise noise : {Noise::kNormal, Noise::kHeavy, Noise::kGrowing}) {
      SCOPED_TRACE(testing::Message() << "method " << static_cast<int>(method) << " noise "
                                      << static_cast<int>(noise));
      Model model(Config(method));
      Stream stream(noise, 3);
      model.Learn(stream, 5000);
      double coverage[2], width[2];
      model.Test(stream, coverage, width);
      EXPECT_GE(coverage[0] + coverage[1], 2 * 0.87);
      EXPECT_LE(coverage[0] + coverage[1], 2 * 0.93);
      if (noise != Noise::kNormal) continue;
      // A normal distribution's 90 % are 3.29 deviations wide.
      EXPECT_NEAR(width[0], 3.29 * 0.3, 0.15);
      EXPECT_NEAR(model.estimator.calibration().noise_variance(), 0.09, 0.015);
    }
  }
}

TEST(VarianceEstimator, AQuantilePairIsWideWhereTheNoiseIs) {
  Model model(Config(VarianceMethod::kQuantilePair));
  Stream stream(Noise::kGrowing, 4);
  model.Learn(stream, 10000);
  double coverage[2], width[2];
  model.Test(stream, coverage, width);
  EXPECT_NEAR(coverage[0], 0.9, 0.06);
  EXPECT_NEAR(coverage[1], 0.9, 0.06);
  EXPECT_GT(width[1], 1.6 * width[0]);
}

TEST(VarianceEstimator, KnowsTheVarianceThatItsMethodKnows) {
  for (const VarianceMethod method : kMethods) {
    SCOPED_TRACE(static_cast<int>(method));
    Model model(Config(method));
    Stream stream(Noise::kNormal, 5);
    stream.Draw(20);
    model.Learn(stream, 1000);
    stream.Draw(1);
    stream.x = {0.5f, 0};
    stream.batch.Clear();
    stream.batch.AddDense(stream.x);
    stream.batch.AddSparse(std::vector<uint64_t>{0}, std::vector<float>{0.5f});
    stream.batch.AddDense(std::vector<float>{0.5f, 0.25f});
    stream.x.insert(stream.x.end(), {0.5f, 0, 0.5f, 0.25f});
    stream.y.assign(3, 0);
    const std::vector<RowUncertainty> at = model.Assess(stream);
    const bool all = method == VarianceMethod::kExact || method == VarianceMethod::kOperator;
    const bool points = method == VarianceMethod::kTestPoints;
    EXPECT_EQ(at[0].variance.has_value(), all || points);
    EXPECT_EQ(at[1].variance.has_value(), all || points);
    EXPECT_EQ(at[2].variance.has_value(), all);
    for (const RowUncertainty& row : at) EXPECT_GT(row.above + row.below, 0.5);
    if (all || points) {
      EXPECT_EQ(at[0].variance, at[1].variance);
      EXPECT_GE(*at[0].variance, 0);
      EXPECT_LT(*at[0].variance, 0.2);
    }
  }
}

TEST(VarianceEstimator, ForgetsRowsButNotErrorsWhenTheKernelChanges) {
  Model model(Config(VarianceMethod::kExact));
  Stream stream(Noise::kNormal, 6);
  model.Learn(stream, 2000);
  const double before = model.estimator.calibration().factor();
  EXPECT_LT(*model.Assess(stream)[0].variance, 0.1);
  model.estimator.Start();
  EXPECT_GT(*model.Assess(stream)[0].variance, 0.5);
  EXPECT_EQ(model.estimator.calibration().factor(), before);
}

TEST(VarianceEstimator, GoesOnFromItsStateBitForBit) {
  for (const VarianceMethod method : kMethods) {
    SCOPED_TRACE(static_cast<int>(method));
    Model through(Config(method)), restored(Config(method));
    Stream a(Noise::kNormal, 7), b(Noise::kNormal, 7);
    through.Learn(a, 1500);
    restored.Learn(b, 1500);
    restored.estimator.Start(Features({0.5f, 0, -1, 1}, kSeed));
    // Publishing changes nothing that is learned.
    for (int i = 0; i < 3; ++i) through.estimator.Publish();
    ASSERT_TRUE(restored.estimator.Restore(through.estimator.state()).ok());
    through.Learn(a, 500);
    restored.Learn(b, 500);
    const VarianceState want = through.estimator.state(), got = restored.estimator.state();
    EXPECT_EQ(want.rows, got.rows);
    EXPECT_EQ(want.posterior.products, got.posterior.products);
    EXPECT_EQ(want.posterior.factor, got.posterior.factor);
    EXPECT_EQ(want.regression.coefficients, got.regression.coefficients);
    EXPECT_EQ(want.calibration.ratios, got.calibration.ratios);
    EXPECT_EQ(want.calibration.squared_errors, got.calibration.squared_errors);
  }
}

TEST(VarianceEstimator, RefusesTheStateOfAnotherMethod) {
  Model exact(Config(VarianceMethod::kExact)), pair(Config(VarianceMethod::kQuantilePair));
  EXPECT_TRUE(absl::IsDataLoss(exact.estimator.Restore(pair.estimator.state())));
  EXPECT_TRUE(absl::IsDataLoss(pair.estimator.Restore(exact.estimator.state())));
}

TEST(IntervalCalibration, TakesAGivenNoiseVarianceAsItIs) {
  ModelConfig config = Config(VarianceMethod::kExact);
  config.variance.noise_variance = 4;
  VarianceEstimator estimator(config, 2);  // 2 target units are one standardised unit
  EXPECT_EQ(estimator.calibration().noise_variance(), 1);
}

TEST(IntervalCalibration, AWildTargetDoesNotWidenIntervalsForLong) {
  IntervalCalibration calibration(0.9, std::nullopt);
  Random random(8);
  const auto observe = [&](size_t rows, double wild_share) {
    for (size_t i = 0; i < rows; ++i) {
      const double size = random.Uniform() < wild_share ? 30 : 1;
      const double residual[] = {0.1 * size * random.Normal()}, variance[] = {0};
      calibration.Observe(residual, variance, {});
    }
    return 2 * calibration.factor() * std::sqrt(calibration.noise_variance());
  };
  EXPECT_NEAR(observe(4000, 0), 0.329, 0.03);
  EXPECT_NEAR(observe(4000, 0.01), 0.335, 0.05);
  const double nan[] = {std::nan("")}, variance[] = {0};
  const uint64_t rows = calibration.state().rows;
  calibration.Observe(nan, variance, {});
  EXPECT_EQ(calibration.state().rows, rows);
}

TEST(IntervalCalibration, RowsCountByTheirWeight) {
  constexpr double kVariance[] = {0};
  const auto width = [](const IntervalCalibration& calibration) {
    return 2 * calibration.factor() * std::sqrt(calibration.noise_variance());
  };
  // Rows that hardly count, with ten times the noise.
  IntervalCalibration plain(0.9, std::nullopt), disturbed(0.9, std::nullopt);
  // A row of weight 2, and the same row twice.
  IntervalCalibration weighted(0.9, std::nullopt), twice(0.9, std::nullopt);
  Random random(9);
  for (size_t i = 0; i < 900; ++i) {
    const double residual[] = {random.Normal()}, wild[] = {10 * random.Normal()};
    plain.Observe(residual, kVariance, {});
    disturbed.Observe(residual, kVariance, std::vector<double>{1});
    disturbed.Observe(wild, kVariance, std::vector<double>{0.001});
    const size_t times = i % 2 == 0 ? 2 : 1;
    weighted.Observe(residual, kVariance, std::vector<double>{static_cast<double>(times)});
    for (size_t k = 0; k < times; ++k) twice.Observe(residual, kVariance, {});
  }
  EXPECT_NEAR(disturbed.noise_variance(), plain.noise_variance(), 0.1);
  EXPECT_NEAR(width(disturbed), width(plain), 0.1);
  EXPECT_NEAR(weighted.noise_variance(), twice.noise_variance(), 0.02);
  EXPECT_NEAR(width(weighted), width(twice), 0.05);

  IntervalCalibration restored(0.9, std::nullopt);
  ASSERT_TRUE(restored.Restore(disturbed.state()).ok());
  EXPECT_EQ(restored.factor(), disturbed.factor());
  CalibrationState broken = disturbed.state();
  broken.weights.pop_back();
  EXPECT_TRUE(absl::IsDataLoss(restored.Restore(broken)));
}

ModelConfig OperatorConfig(const std::string& rule) {
  ModelConfig config;
  config.loss.name = "square";
  config.kernel = {"gaussian", {{"bandwidth", 1}}};
  config.update_rule.name = rule;
  config.replay.ratio = 0;
  config.standardize = Standardize::kOff;
  config.input_metric = InputMetric::kOff;
  config.max_features = 512;
  config.block_features = 8;
  config.batch_rows = 16;
  config.warmup_rows = 64;
  config.seed = kSeed;
  config.variance.method = VarianceMethod::kOperator;
  config.variance.features = 32;
  config.variance.noise_variance = 0.1;
  return config;
}

// theta_ij of the documents' formulas in plain loops: grows by `block` features a batch, then takes
// proximal steps; proximal models take these alone.
class PlainOperator {
 public:
  PlainOperator(size_t size, size_t in_use) : size_(size), used_(in_use), theta_(size * size) {}
  // left, right: [row][feature].
  void Learn(const std::vector<std::vector<double>>& left,
             const std::vector<std::vector<double>>& right, size_t block, double step_size,
             double ridge) {
    const size_t rows = left.size(), in_use = std::min(used_ + block, size_);
    const auto b = static_cast<double>(rows), r = static_cast<double>(block);
    std::vector<double> c(rows * size_);
    for (size_t x = 0; x < rows; ++x) {
      for (size_t i = 0; i < size_; ++i) {
        for (size_t j = 0; j < size_; ++j) c[x * size_ + i] += theta(i, j) * right[x][j];
      }
    }
    if (used_ == size_) return TakeProximalStep(left, right, std::move(c), ridge);
    for (double& value : theta_) value *= 1 - step_size * ridge;
    for (size_t k = used_; k < in_use; ++k) {
      for (size_t x = 0; x < rows; ++x) {
        for (size_t i = 0; i < used_; ++i) {
          theta(i, k) -= step_size / (b * r) * c[x * size_ + i] * right[x][k];
        }
        for (size_t m = used_; m < in_use; ++m) {
          theta(m, k) += step_size / (b * r * r) * left[x][m] * right[x][k];
        }
      }
    }
    used_ = in_use;
  }
  double& theta(size_t i, size_t j) { return theta_[i * size_ + j]; }

 private:
  void TakeProximalStep(const std::vector<std::vector<double>>& left,
                        const std::vector<std::vector<double>>& right, std::vector<double> errors,
                        double ridge) {
    constexpr double kStepConstant = 2;
    const size_t rows = left.size();
    const auto size = static_cast<double>(size_);
    const double decay = ridge * static_cast<double>(rows);
    std::vector<double> system(rows * rows);
    for (size_t x = 0; x < rows; ++x) {
      for (size_t z = 0; z < rows; ++z) {
        for (size_t j = 0; j < size_; ++j) system[x * rows + z] += right[x][j] * right[z][j] / size;
      }
      system[x * rows + x] += kStepConstant + decay;
      for (size_t i = 0; i < size_; ++i) errors[x * size_ + i] -= left[x][i] / size;
    }
    SolvePositiveDefinite(rows, size_, system, errors);
    for (double& value : theta_) value *= 1 - decay / (kStepConstant + decay);
    for (size_t x = 0; x < rows; ++x) {
      for (size_t i = 0; i < size_; ++i) {
        for (size_t j = 0; j < size_; ++j) {
          theta(i, j) -= errors[x * size_ + i] * right[x][j] / size;
        }
      }
    }
  }
  size_t size_, used_;
  std::vector<double> theta_;
};

// The operator of a whole model after every batch, beside plain loops in float64.
TEST(VarianceEstimator, TheOperatorGrowsWithANewestBlockAndTakesProximalStepsOtherwise) {
  const SampleBatch rows = MakeRows("square", 128, kDim, kSeed);
  for (const UpdateRuleEntry& rule : UpdateRuleRegistry()) {
    SCOPED_TRACE(rule.doc.name);
    ModelConfig config = OperatorConfig(std::string(rule.doc.name));
    const bool grows = rule.doc.name != "proximal";
    double step_size = 0.3;
    if (rule.doc.name == "newest_block") {
      config.update_rule.parameters = {{"schedule", 2}, {"step_size", step_size}};
    } else {
      // Its own is 1, which is more than is safe.
      step_size = 1 / (1 + 1.0 / 8 + 1.0 / 16);
    }
    ASSERT_TRUE(CompleteConfig(config).ok());
    ASSERT_TRUE(CheckNewConfig(config).ok());
    const size_t size = config.variance.features, b = grows ? config.batch_rows : 64;
    const auto kernel = MakeKernel(config.kernel);
    ASSERT_TRUE(kernel.ok());
    const FeatureSpec spec = ModelFeatures(**kernel, config);
    const auto take = [&](size_t first, uint64_t seed) {
      std::vector<float> x, features(size * b);
      for (size_t i = first; i < first + b; ++i) {
        x.insert(x.end(), rows.row(i).values.begin(), rows.row(i).values.end());
      }
      MakeFeatureMap(spec, seed, kDim, size, nullptr)
          ->Features(ConstMatrixView(x.data(), b, kDim), 1.0f, 0, size / kPanelWidth,
                     features.data());
      std::vector<std::vector<double>> out(b, std::vector<double>(size));
      for (size_t i = 0; i < b; ++i) {
        for (size_t j = 0; j < size; ++j) {
          out[i][j] = features[(j / kPanelWidth * b + i) * kPanelWidth + j % kPanelWidth];
        }
      }
      return out;
    };
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, 64);
    const double scale = trainer->MakeSnapshot()->resolved().target_scale;
    const double noise = *config.variance.noise_variance / (scale * scale);
    PlainOperator want(size, grows ? 0 : size);
    for (size_t learned = b; learned <= rows.size(); learned += b) {
      const auto left = take(learned - b, kSeed);
      const auto right = take(learned - b, SecondFamilySeed(kSeed));
      double diagonal = 0;
      for (const auto& row : right) {
        for (const double v : row) diagonal += v * v / static_cast<double>(size * b);
      }
      const double safe = 1 / (diagonal * (1 + 1.0 / 8 + 1.0 / 16));
      want.Learn(left, right, 8, rule.doc.name == "newest_block" ? step_size : safe,
                 noise / static_cast<double>(learned));
      if (learned < 64) continue;
      if (learned > 64) Feed(*trainer, config, rows, learned - b, learned);
      // What is saved is all there is.
      auto restored = Trainer::Restore(config, trainer->Save(), {&Inline(), nullptr});
      ASSERT_TRUE(restored.ok()) << restored.status();
      trainer = *std::move(restored);
      const std::vector<float> got = trainer->Save().variance.regression.coefficients;
      ASSERT_EQ(got.size(), size * size);
      for (size_t i = 0; i < size; ++i) {
        for (size_t j = 0; j < size; ++j) {
          ASSERT_NEAR(got[(j / kPanelWidth * size + i) * kPanelWidth + j % kPanelWidth],
                      want.theta(i, j), 1e-5)
              << "after " << learned << " rows: " << i << ", " << j;
        }
      }
    }
  }
}

TEST(VarianceEstimator, AGrowingOperatorIsTheSameAfterARestoreAnywhereAndOnAnyThreads) {
  const SampleBatch rows = MakeRows("square", 320, kDim, kSeed);
  ModelConfig config = OperatorConfig("newest_block");
  config.block_features = 6;  // no divisor of anything, and panels are cut
  config.variance.features = 64;
  ASSERT_TRUE(CompleteConfig(config).ok());
  const auto undisturbed = MakeTrainer(config);
  Feed(*undisturbed, config, rows, 0, rows.size());
  const TrainerState want = undisturbed->Save();
  for (const size_t stop : {64, 80, 112, 144, 160, 208, 304}) {
    ThreadExecutor executor(1 + static_cast<int>(stop / 16 % 4));
    const auto trainer = MakeTrainer(config, executor);
    Feed(*trainer, config, rows, 0, stop);
    auto restored = Trainer::Restore(config, trainer->Save(), {&executor, nullptr});
    ASSERT_TRUE(restored.ok()) << restored.status() << " at " << stop;
    Feed(**restored, config, rows, stop, rows.size());
    const TrainerState got = (*restored)->Save();
    EXPECT_EQ(got.variance.regression.coefficients, want.variance.regression.coefficients) << stop;
    EXPECT_EQ(got.fingerprint, want.fingerprint) << stop;
  }
}

// A step size that the learner cannot bear does not reach the operator, nor does one row's weight.
TEST(VarianceEstimator, AGrowingOperatorStaysBounded) {
  ModelConfig config = OperatorConfig("newest_block");
  config.update_rule.parameters = {{"schedule", 2}, {"step_size", 1e6}};
  config.block_features = 1;
  config.variance.noise_variance = 100;
  config.variance.features = 128;
  ASSERT_TRUE(CompleteConfig(config).ok());
  SampleBatch rows;
  const SampleBatch plain = MakeRows("square", 1024, kDim, kSeed);
  for (size_t i = 0; i < plain.size(); ++i) {
    rows.AppendRow(plain, i);
    rows.SetWeight(i % 50 == 0 ? 1e6 : 1);
  }
  const auto trainer = MakeTrainer(config);
  Feed(*trainer, config, rows, 0, rows.size());
  float largest = 0;
  for (const float v : trainer->Save().variance.regression.coefficients) {
    largest = std::max(largest, std::abs(v));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(largest, 10);
}

TEST(VarianceConfig, IsCheckedAndCompleted) {
  const auto field = [](auto change) {
    ModelConfig config;
    config.loss.name = "square";
    config.variance.method = VarianceMethod::kExact;
    change(config);
    const absl::Status status = CompleteConfig(config);
    return status.ok() ? std::string("none") : std::string(status.message());
  };
  EXPECT_EQ(field([](ModelConfig&) {}), "none");
  const auto names = [&](const char* text, auto change) {
    const std::string message = field(change);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  names("no regression", [](ModelConfig& c) { c.loss.name = "logistic"; });
  names("multiple of 16", [](ModelConfig& c) { c.variance.features = 100; });
  names("2048", [](ModelConfig& c) { c.variance.features = 4096; });
  names("variance.coverage is 1", [](ModelConfig& c) { c.variance.coverage = 1; });
  names("variance.noise_variance", [](ModelConfig& c) { c.variance.noise_variance = 0; });
  names("belong to method TEST_POINTS", [](ModelConfig& c) { c.variance.test_points = {{1}}; });
  names("0 test points", [](ModelConfig& c) { c.variance.method = VarianceMethod::kTestPoints; });
  names("has 1 values; expected 2", [](ModelConfig& c) {
    c.variance.method = VarianceMethod::kTestPoints;
    c.variance.test_points = {{1, 2}, {1}};
  });
  names("values[1] is -3; kernel \"chi2\" takes values >= 0", [](ModelConfig& c) {
    c.kernel.name = "chi2";
    c.variance.method = VarianceMethod::kTestPoints;
    c.variance.test_points = {{1, 2}, {1, -3}};
  });
  ModelConfig config = Config(VarianceMethod::kTestPoints);
  EXPECT_EQ(config.dimension, 2u);
  const ModelConfig again = config;
  EXPECT_TRUE(CompleteConfig(config).ok());
  EXPECT_EQ(config, again);
  ModelConfig plain;
  plain.loss.name = "logistic";
  ASSERT_TRUE(CompleteConfig(plain).ok());
  EXPECT_EQ(plain.variance.features, 1024u);
  EXPECT_EQ(plain.variance.coverage, 0.9);
}

}  // namespace
}  // namespace kernelstream
