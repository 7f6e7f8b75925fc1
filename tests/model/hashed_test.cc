// Models with hashed inputs: rows of every form, any index, and memory that knows of neither.
#include <limits>

#include "core/base/field_error.h"
#include "core/base/named_input.h"
#include "core/model/row_rules.h"
#include "core/model/sparse_inputs.h"
#include "tests/model/model_support.h"

namespace kernelstream {
namespace {

constexpr size_t kDim = 40;

ModelConfig Hashed(const std::string& loss, const std::string& kernel = "gaussian") {
  ModelConfig config;
  config.loss.name = loss;
  config.kernel.name = kernel;
  config.hashed = true;
  config.max_features = 512;
  config.warmup_rows = 64;
  config.seed = 7;
  EXPECT_TRUE(CompleteConfig(config).ok());
  return config;
}

// The same rows with and without their zeros.
struct Forms {
  SampleBatch dense, sparse;
};
Forms SomeRows(size_t count) {
  Forms forms;
  Random random(9);
  for (size_t i = 0; i < count; ++i) {
    float* x = forms.dense.AddDense(kDim);
    std::vector<uint64_t> indices;
    std::vector<float> values;
    for (size_t j = 0; j < kDim; ++j) {
      x[j] = random.Uniform() < 0.2 ? static_cast<float>(std::abs(random.Normal())) : 0.0f;
      if (x[j] == 0) continue;
      indices.push_back(j);
      values.push_back(x[j]);
    }
    const double y = x[0] + x[1] > x[2] + x[3] ? 1 : -1;
    forms.dense.SetTarget(y);
    forms.sparse.AddSparse(indices, values);
    forms.sparse.SetTarget(y);
  }
  return forms;
}

TEST(HashedModel, IsTheDenseModelOfTheSameRows) {
  const Forms rows = SomeRows(256);
  for (const std::string kernel : {"gaussian", "chi2", "polynomial"}) {
    const ModelConfig hashed = Hashed("logistic", kernel);
    ModelConfig fixed = hashed;
    fixed.hashed = false;
    fixed.dimension = kDim;
    auto a = MakeTrainer(fixed), b = MakeTrainer(hashed), c = MakeTrainer(hashed);
    Feed(*a, fixed, rows.dense, 0, 256);
    Feed(*b, hashed, rows.sparse, 0, 256);
    Feed(*c, hashed, rows.dense, 0, 256);
    const std::vector<double> scores = Scores(*a, rows.dense);
    EXPECT_EQ(scores, Scores(*b, rows.sparse)) << kernel;
    EXPECT_EQ(scores, Scores(*c, rows.dense)) << kernel;
    EXPECT_EQ(scores, Scores(*c, rows.sparse)) << kernel;
  }
}

// Words of documents: a few say what the target is, the others are drawn from all of 2^64.
SampleBatch Documents(size_t count, uint64_t seed) {
  SampleBatch rows;
  Random random(seed);
  for (size_t i = 0; i < count; ++i) {
    const bool positive = random.Uniform() < 0.5;
    std::vector<uint64_t> indices = {std::numeric_limits<uint64_t>::max() - (positive ? 0 : 1)};
    for (int word = 0; word < 5; ++word) {
      indices.push_back(static_cast<uint64_t>(random.Uniform() * 0x1p63) * 2);
    }
    std::sort(indices.begin(), indices.end());
    indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
    rows.AddSparse(indices, std::vector<float>(indices.size(), 1.0f));
    rows.SetTarget(positive ? 1 : -1);
  }
  return rows;
}

TEST(HashedModel, LearnsFromAnyIndexAndKeepsNothingPerIndex) {
  ModelConfig config = Hashed("logistic");
  config.replay.reservoir_rows = 64;
  FeatureCacheBudget budget(int64_t{1} << 30);
  auto trainer = MakeTrainer(config, Inline(), &budget);
  const SampleBatch rows = Documents(1024, 1);
  Feed(*trainer, config, rows, 0, 768);
  EXPECT_LT(ErrorOn(*trainer, Documents(500, 2)), 0.02);
  const TrainerState before = trainer->Save();
  Feed(*trainer, config, rows, 768, 1024);
  const TrainerState after = trainer->Save();
  EXPECT_EQ(budget.used(), 0);
  EXPECT_EQ(after.input_dim, 1u);
  EXPECT_TRUE(after.input_shift.empty());
  EXPECT_EQ(after.reservoir.rows.size(), before.reservoir.rows.size());
  EXPECT_LT(after.reservoir.rows.bytes(), 64 * 200u);
  EXPECT_EQ(after.recent.current.size() + after.recent.previous.size(), 0u);
}

TEST(HashedModel, GoesOnFromItsSavedState) {
  const ModelConfig config = Hashed("square");
  const SampleBatch rows = Documents(448, 3);
  for (const size_t cut : {40, 256}) {  // in the warm-up, and after it
    auto trainer = MakeTrainer(config);
    Feed(*trainer, config, rows, 0, cut);
    auto restored = Trainer::Restore(config, trainer->Save(), {&Inline(), nullptr});
    ASSERT_TRUE(restored.ok()) << restored.status();
    Feed(*trainer, config, rows, cut, rows.size());
    Feed(**restored, config, rows, cut, rows.size());
    EXPECT_EQ(Scores(*trainer, rows), Scores(**restored, rows));
  }
}

TEST(HashedModel, HasVarianceAndIntervals) {
  for (const VarianceMethod method : {VarianceMethod::kExact, VarianceMethod::kQuantilePair}) {
    ModelConfig config = Hashed("square");
    config.variance.method = method;
    config.variance.features = 128;
    auto trainer = MakeTrainer(config);
    const SampleBatch rows = Documents(512, 4);
    Feed(*trainer, config, rows, 0, 512);
    std::vector<RowUncertainty> uncertainty(rows.size());
    trainer->MakeSnapshot()->Assess(rows, Inline(), uncertainty.data());
    for (const RowUncertainty& row : uncertainty) ASSERT_GT(row.below + row.above, 0);
  }
}

TEST(HashedModel, TakesWideRowsAndEmptyOnes) {
  const ModelConfig config = Hashed("logistic");
  auto trainer = MakeTrainer(config);
  SampleBatch rows = Documents(192, 5);
  std::vector<uint64_t> indices(65536);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = i << 40;
  rows.AddSparse(indices, std::vector<float>(indices.size(), 0.01f));
  rows.SetTarget(1);
  rows.AddSparse({}, {});
  rows.SetTarget(-1);
  rows.AddDense(std::vector<float>{0, 0, 1});
  rows.SetTarget(-1);
  Feed(*trainer, config, rows, 0, rows.size());
  for (const double score : Scores(*trainer, rows)) ASSERT_TRUE(std::isfinite(score));
}

TEST(SparseRows, ComeInRunsWithTheirCoordinates) {
  SampleBatch batch;
  batch.AddSparse(std::vector<uint64_t>{3, uint64_t{1} << 60}, std::vector<float>{1, 2e15f});
  batch.AddDense(std::vector<float>{0, 5, -0.0f, 7});
  const SparseRows rows = MakeSparseRows(2, [&](size_t i) { return batch.row(i); });
  ASSERT_EQ(rows.runs.size(), 1u);
  EXPECT_EQ(rows.runs[0].ids, (std::vector<uint64_t>{1, 3, uint64_t{1} << 60}));
  EXPECT_EQ(rows.begins, (std::vector<size_t>{0, 2, 4}));
  EXPECT_EQ(rows.places, (std::vector<uint32_t>{1, 2, 0, 1}));
  EXPECT_EQ(rows.values, (std::vector<float>{1, 1e15f, 5, 7}));
  const CompactRows compact = MakeCompactRows(batch, 100);
  EXPECT_EQ(compact.values, (std::vector<float>{0, 1, 1e15f, 5, 7, 0}));
  EXPECT_EQ(MakeCompactRows(batch, 5).values, (std::vector<float>{1, 1e15f}));
}

TEST(SparseRows, AreTakenFromRowsThatAreMostlyZero) {
  constexpr size_t kCols = 100;
  std::vector<float> x(3 * kCols);
  x[7] = 2;
  x[2 * kCols] = -1;
  x[2 * kCols + 7] = 3;
  x[2 * kCols + 99] = 4;
  SparseRows rows;
  ASSERT_TRUE(TakeNonZeros({x.data(), 3, kCols}, rows));
  ASSERT_EQ(rows.runs.size(), 1u);
  EXPECT_EQ(rows.runs[0].num_rows, 3u);
  EXPECT_EQ(rows.runs[0].ids, (std::vector<uint64_t>{0, 7, 99}));
  EXPECT_EQ(rows.begins, (std::vector<size_t>{0, 1, 1, 4}));
  EXPECT_EQ(rows.places, (std::vector<uint32_t>{1, 0, 1, 2}));
  EXPECT_EQ(rows.values, (std::vector<float>{2, -1, 3, 4}));
  EXPECT_FALSE(TakeNonZeros({x.data(), 30, 10}, rows)) << "narrow rows gain nothing";
  std::fill_n(x.begin(), kCols, 1.0f);
  EXPECT_FALSE(TakeNonZeros({x.data(), 3, kCols}, rows));
}

// Frequencies that are not kept are drawn for each run.
TEST(SparseRows, OfWideInputsComeInOneRun) {
  constexpr size_t kCols = 40000, kRows = 20;
  std::vector<float> x(kRows * kCols);
  for (size_t i = 0; i < x.size(); i += 9) x[i] = 1;
  SparseRows rows;
  ASSERT_TRUE(TakeNonZeros({x.data(), kRows, kCols}, rows));
  ASSERT_EQ(rows.runs.size(), 1u);
  EXPECT_EQ(rows.runs[0].num_rows, kRows);
  std::vector<float> again(x.size());
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t i = 0; i < rows.row_values(r).size(); ++i) {
      again[r * kCols + rows.runs[0].ids[rows.row_places(r)[i]]] = rows.row_values(r)[i];
    }
  }
  EXPECT_EQ(again, x);
  // Few rows gain from fewer zeros.
  for (size_t i = 0; i < x.size(); i += 6) x[i] = 1;
  EXPECT_FALSE(TakeNonZeros({x.data(), kRows, kCols}, rows));
  for (size_t i = 0; i < 2 * kCols; ++i) x[i] = i % 6 == 0 ? 1 : 0;
  EXPECT_TRUE(TakeNonZeros({x.data(), 2, kCols}, rows));
}

TEST(FixedModel, ScoresRowsWithoutTheirZerosAlike) {
  for (const std::string kernel : {"gaussian", "chi2", "polynomial"}) {
    for (const uint32_t dimension : {100u, 0u}) {
      ModelConfig config = Hashed("logistic", kernel);
      config.hashed = false;
      config.dimension = dimension;
      FeatureCacheBudget budget(int64_t{1} << 22);  // a part of the features
      auto trainer = MakeTrainer(config, Inline(), &budget);
      SampleBatch rows, mixed;
      Random random(5);
      for (size_t i = 0; i < 240; ++i) {
        const uint64_t word = static_cast<uint64_t>(random.Uniform() * 48) * 2;
        const bool positive = random.Uniform() < 0.5;
        rows.AddSparse(std::vector<uint64_t>{word, word + (positive ? 1 : 2), 99},
                       std::vector<float>{1, 1, 0.5f});
        rows.SetTarget(positive ? 1 : -1);
      }
      Feed(*trainer, config, rows, 0, rows.size());
      for (size_t i = 0; i < 120; ++i) mixed.AppendRow(rows, i);
      for (size_t i = 0; i < 120; ++i) mixed.AddDense(std::vector<float>(100, 0.3f));
      std::vector<double> alone = Scores(*trainer, rows), beside = Scores(*trainer, mixed);
      alone.resize(120);
      beside.resize(120);
      EXPECT_EQ(alone, beside) << kernel;
    }
  }
}

TEST(HashedModel, RefusesWhatNeedsADimension) {
  const auto field = [](auto change) {
    ModelConfig config;
    config.loss.name = "square";
    config.hashed = true;
    change(config);
    return FieldPathOf(CompleteConfig(config));
  };
  EXPECT_EQ(field([](ModelConfig&) {}), "");
  EXPECT_EQ(field([](ModelConfig& c) { c.dimension = 4; }), "input.dimension");
  EXPECT_EQ(field([](ModelConfig& c) { c.standardize = Standardize::kOn; }), "input.standardize");
  EXPECT_EQ(field([](ModelConfig& c) { c.input_metric = InputMetric::kFull; }), "input_metric");
  EXPECT_EQ(field([](ModelConfig& c) {
              c.variance.method = VarianceMethod::kTestPoints;
              c.variance.test_points = {{1, 2}};
            }),
            "variance.method");
}

TEST(HashedModel, ChecksRowsAtTheDoor) {
  const auto rules = RowRules::Create(Hashed("square", "chi2"));
  const auto fixed = RowRules::Create(SmallConfig("square"));
  ASSERT_TRUE(rules.ok() && fixed.ok());
  SampleBatch rows;
  rows.AddNamed(std::vector<uint64_t>{7, ~uint64_t{0}}, std::vector<float>{1, 2});
  rows.AddNamed(std::vector<uint64_t>{7, 9}, std::vector<float>{1, -2});
  rows.AddSparse(std::vector<uint64_t>{9, 7}, std::vector<float>{1, 2});
  rows.AddSparse(std::vector<uint64_t>{70000}, std::vector<float>{1});
  rows.AddDense(std::vector<float>{1, 2, 3});
  rows.AddDense(std::vector<float>{1, 2});
  const auto path = [&](const auto& of, size_t i) {
    return FieldPathOf((*of)->CheckInput("m", 0, rows.row(i)));
  };
  EXPECT_EQ(path(rules, 0), "");
  EXPECT_EQ(path(rules, 1), kSmallestNumberPath);
  EXPECT_EQ(path(rules, 2), "features.sparse.indices[1]");
  EXPECT_EQ(path(rules, 3), "");
  EXPECT_EQ((*rules)->WidthWith(0, rows.row(4)).dimension, 0u);
  EXPECT_EQ(path(rules, 5), "");
  EXPECT_EQ(path(fixed, 0), "features.named");
  EXPECT_EQ((*fixed)->WidthWith(0, rows.row(4)).dimension, 3u);
  const absl::Status wide = (*fixed)->CheckInput("m", 0, rows.row(3));
  EXPECT_NE(wide.message().find("input.hashed"), absl::string_view::npos) << wide;
}

// Published answers of XXH64, and what they are for.
TEST(NamedInput, IsXxh64) {
  EXPECT_EQ(NumberIndex(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(NumberIndex("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(NumberIndex("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(CategoryIndex("colour", "red"), 0x70DA2AFC4B4FF335u);
  EXPECT_EQ(CategoryIndex("country", "\xC3\x96sterreich"), 0xA1567C2AD36A9146u);
  EXPECT_EQ(CategoryIndex("a", ""), 0x6591EED2CA3D6500u);
  EXPECT_NE(CategoryIndex("ab", "c"), CategoryIndex("a", "bc"));
  EXPECT_NE(CategoryIndex("abc", ""), NumberIndex("abc"));
}

}  // namespace
}  // namespace kernelstream
