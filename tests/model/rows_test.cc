// Rows at the door: what is taken, what is refused and with which words; labels, scales, batches,
// and rows that are kept.
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/field_error.h"
#include "core/model/label_table.h"
#include "core/model/reservoir.h"
#include "core/model/row_rules.h"
#include "core/model/scaling.h"
#include "core/model/text.h"
#include "tests/model/model_support.h"

namespace kernelstream {
namespace {

std::unique_ptr<const RowRules> Rules(const std::string& loss) {
  auto rules = RowRules::Create(SmallConfig(loss));
  EXPECT_TRUE(rules.ok());
  return *std::move(rules);
}

std::string InputField(uint32_t dimension, const SampleBatch& rows) {
  return FieldPathOf(Rules("square")->CheckInput("m", dimension, rows.row(0)));
}

TEST(RowRules, NameTheInputThatIsWrong) {
  const auto dense = [](std::vector<float> values) {
    SampleBatch rows;
    rows.AddDense(values);
    return rows;
  };
  const auto sparse = [](std::vector<uint64_t> indices) {
    SampleBatch rows;
    rows.AddSparse(indices, std::vector<float>(indices.size(), 1.0f));
    return rows;
  };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(InputField(3, dense({1, 2, 3})), "");
  EXPECT_EQ(InputField(0, dense({1, 2, 3, 4})), "");
  EXPECT_EQ(InputField(3, dense({1, 2})), "features.dense.values");
  EXPECT_EQ(InputField(3, dense({1, 2, 3, 4})), "features.dense.values");
  EXPECT_EQ(InputField(0, dense({})), "features.dense.values");
  EXPECT_EQ(InputField(3, dense({1, NAN, 3})), "features.dense.values[1]");
  EXPECT_EQ(InputField(3, dense({1, 2, kInf})), "features.dense.values[2]");
  EXPECT_EQ(InputField(3, dense({-kInf, 2, 3})), "features.dense.values[0]");
  EXPECT_EQ(InputField(3, dense({1, 1e38f, 3})), "features.dense.values[1]");
  EXPECT_EQ(InputField(3, dense({1, 1e30f, 3})), "");
  EXPECT_EQ(InputField(3, sparse({})), "");
  EXPECT_EQ(InputField(3, sparse({0, 2})), "");
  EXPECT_EQ(InputField(3, sparse({0, 3})), "features.sparse.indices[1]");
  EXPECT_EQ(InputField(0, sparse({65535})), "");
  EXPECT_EQ(InputField(0, sparse({65536})), "features.sparse.indices[0]");
  EXPECT_EQ(InputField(9, sparse({4, 4})), "features.sparse.indices[1]");
  EXPECT_EQ(InputField(9, sparse({4, 3})), "features.sparse.indices[1]");
  const absl::Status status = Rules("square")->CheckInput("churn", 3, dense({1, 2}).row(0));
  EXPECT_TRUE(absl::StrContains(status.message(),
                                "\"churn\" takes 3 values per row; this row has 2. Send 3"))
      << status;
}

TEST(RowRules, AskForTheDimensionThatASamplerNeeds) {
  const auto field = [](const std::string& sampler, uint32_t dimension, const SampleBatch& rows) {
    ModelConfig config = SmallConfig("square");
    config.sampler = sampler;
    const auto rules = RowRules::Create(config);
    EXPECT_TRUE(rules.ok());
    const absl::Status status = (*rules)->CheckInput("m", dimension, rows.row(0));
    EXPECT_TRUE(status.ok() || absl::StrContains(status.message(), sampler)) << status;
    return FieldPathOf(status);
  };
  SampleBatch dense, wide, sparse, far;
  const float one[] = {1};
  const uint64_t near_index[] = {2}, far_index[] = {5000};
  dense.AddDense(std::vector<float>{1, 2, 3});
  wide.AddDense(std::vector<float>(4000, 1.0f));
  sparse.AddSparse(near_index, one);
  far.AddSparse(far_index, one);
  for (const std::string sampler : {"orthogonal", "structured"}) {
    EXPECT_EQ(field(sampler, 0, sparse), "features.sparse");
    EXPECT_EQ(field(sampler, 3, sparse), "");
    EXPECT_EQ(field(sampler, 0, dense), "");
    EXPECT_EQ(field(sampler, 0, wide), "");
  }
  EXPECT_EQ(field("quasi_monte_carlo", 0, sparse), "");
  EXPECT_EQ(field("quasi_monte_carlo", 0, far), "features.sparse");
  EXPECT_EQ(field("quasi_monte_carlo", 0, wide), "features.dense");
  EXPECT_EQ(field("iid", 0, far), "");
}

std::string TargetField(const std::string& loss, const TargetView& target, float weight = 1) {
  return FieldPathOf(Rules(loss)->CheckTarget("m", target, weight, 0, {}));
}

TEST(RowRules, NameTheTargetThatIsWrong) {
  const auto number = [](double value) { return TargetView::Number(value); };
  const auto label = [](absl::string_view text) { return TargetView::Label(text); };
  for (const std::string loss : {"logistic", "hinge"}) {
    for (const double value : {-1.0, 0.0, 1.0})
      EXPECT_EQ(TargetField(loss, number(value)), "") << value;
    for (const double value : {2.0, 0.5, -2.0, double{NAN}, double{INFINITY}}) {
      EXPECT_EQ(TargetField(loss, number(value)), "value") << value;
    }
  }
  EXPECT_EQ(TargetField("softmax", number(17)), "");
  EXPECT_EQ(TargetField("softmax", number(NAN)), "value");
  EXPECT_EQ(TargetField("softmax", label("cat")), "");
  EXPECT_EQ(TargetField("softmax", label("")), "label");
  EXPECT_EQ(TargetField("softmax", label("\xc3\x28")), "label");
  EXPECT_EQ(TargetField("softmax", label(std::string(257, 'x'))), "label");
  EXPECT_EQ(TargetField("square", TargetView()), "value");
  EXPECT_EQ(TargetField("logistic", TargetView()), "value");
  EXPECT_EQ(TargetField("logistic", TargetView::Of(Population::kNumerator)), "population");
  const std::vector<double> good = {1, 2}, bad = {1, NAN};
  EXPECT_EQ(TargetField("square", TargetView::Vector(good)), "");
  EXPECT_EQ(TargetField("square", TargetView::Vector(bad)), "vector.values[1]");
  EXPECT_EQ(TargetField("square", TargetView::Vector({})), "vector");
  EXPECT_EQ(TargetField("square", TargetView::Vector(std::vector<double>(257, 1))), "vector");
  EXPECT_EQ(TargetField("novelty", TargetView()), "");
  EXPECT_EQ(TargetField("novelty", number(1)), "value");
  EXPECT_EQ(TargetField("density_ratio", TargetView::Of(Population::kNumerator)), "");
  EXPECT_EQ(TargetField("density_ratio", TargetView()), "population");
  EXPECT_EQ(TargetField("density_ratio", number(1)), "value");
  EXPECT_EQ(TargetField("softmax", TargetView::Vector(good)), "vector");
  EXPECT_EQ(TargetField("square", label("cat")), "label");
  EXPECT_EQ(TargetField("square", number(NAN)), "value");
  EXPECT_EQ(TargetField("square", number(1e38)), "value");
  for (const float weight : {0.0f, -1.0f, NAN, 2e6f}) {
    EXPECT_EQ(TargetField("square", number(1), weight), "weight") << weight;
  }
}

TEST(RowRules, RefuseTargetsFarFromTheKnownScale) {
  const auto rules = Rules("square");
  const std::vector<TargetScaling> scales = {{100, 2}, {0, 1}};
  const auto field = [&](const TargetView& target) {
    return FieldPathOf(rules->CheckTarget("m", target, 1, 0, scales));
  };
  EXPECT_EQ(field(TargetView::Number(100 + 9999.0 * 2)), "");
  EXPECT_EQ(field(TargetView::Number(100 + 10001.0 * 2)), "value");
  EXPECT_EQ(field(TargetView::Vector(std::vector<double>{100, 9999})), "");
  EXPECT_EQ(field(TargetView::Vector(std::vector<double>{100, 10001})), "vector.values[1]");
}

TEST(RowRules, EveryRowHasAsManyTargetsAsTheFirst) {
  const auto rules = Rules("square");
  const std::vector<double> two = {1, 2};
  EXPECT_TRUE(rules->CheckTarget("m", TargetView::Vector(two), 1, 2, {}).ok());
  const absl::Status status = rules->CheckTarget("m", TargetView::Vector(two), 1, 3, {});
  EXPECT_EQ(FieldPathOf(status), "vector");
  EXPECT_TRUE(absl::StrContains(status.message(), "has 2 targets")) << status;
  EXPECT_EQ(FieldPathOf(rules->CheckTarget("m", TargetView::Number(1), 1, 2, {})), "value");
  EXPECT_EQ(RowRules::NumTargets(TargetView::Vector(two)), 2u);
  EXPECT_EQ(RowRules::NumTargets(TargetView::Number(1)), 1u);
}

TEST(RowRules, RefuseSeveralTargetsWhereAVarianceIsWanted) {
  const std::vector<double> one = {1}, two = {1, 2};
  for (const VarianceMethod method : {VarianceMethod::kExact, VarianceMethod::kQuantilePair}) {
    ModelConfig config = SmallConfig("square");
    config.variance.method = method;
    const auto rules = RowRules::Create(config);
    ASSERT_TRUE(rules.ok());
    EXPECT_TRUE((*rules)->CheckTarget("m", TargetView::Vector(one), 1, 0, {}).ok());
    const absl::Status status = (*rules)->CheckTarget("m", TargetView::Vector(two), 1, 0, {});
    EXPECT_EQ(FieldPathOf(status), "vector");
    EXPECT_TRUE(absl::StrContains(status.message(), "has 2 targets; a model with a variance"))
        << status;
    // What older versions took goes on.
    EXPECT_TRUE((*rules)->CheckTarget("m", TargetView::Vector(two), 1, 2, {}).ok());
  }
}

TEST(LabelTable, NumbersOfABinaryModelKeepTheirSign) {
  const ModelConfig config = SmallConfig("logistic");
  for (const double first : {1.0, -1.0, 0.0}) {
    LabelTable table(Task::kBinary, config);
    ASSERT_TRUE(table.Add(TargetView::Number(first)).ok());
    EXPECT_EQ(*table.Add(TargetView::Number(1)), 1u);
    EXPECT_EQ(*table.Add(TargetView::Number(-1)), 0u);
    EXPECT_EQ(*table.Add(TargetView::Number(0)), 0u);
    EXPECT_EQ(table.labels()[1], "1");
  }
}

// One stray text label takes no place away from the numbers.
TEST(LabelTable, TextAfterANumberIsRefused) {
  const ModelConfig config = SmallConfig("logistic");
  for (const double first : {1.0, -1.0, 0.0}) {
    LabelTable table(Task::kBinary, config), restored(Task::kBinary, config);
    ASSERT_TRUE(table.Add(TargetView::Number(first)).ok());
    restored.Restore(table.labels(), table.numbers());
    for (LabelTable* numbers : {&table, &restored}) {
      const auto stray = numbers->Add(TargetView::Label("a"));
      EXPECT_EQ(FieldPathOf(stray.status()), "label");
      EXPECT_TRUE(absl::StrContains(stray.status().message(), "labels are numbers"))
          << stray.status();
      EXPECT_EQ(numbers->Find(TargetView::Label("a")), std::nullopt);
      EXPECT_EQ(*numbers->Add(TargetView::Label("-1")), 0u);
      EXPECT_EQ(*numbers->Add(TargetView::Number(-1)), 0u);
      EXPECT_EQ(*numbers->Add(TargetView::Label("0")), 0u);
      EXPECT_EQ(*numbers->Add(TargetView::Number(1)), 1u);
      EXPECT_EQ(*numbers->Add(TargetView::Label("1")), 1u);
      EXPECT_EQ(numbers->labels()[1], "1");
    }
  }
  LabelTable text(Task::kBinary, config);
  ASSERT_TRUE(text.Add(TargetView::Label("0")).ok());
  EXPECT_EQ(*text.Add(TargetView::Label("yes")), 1u);  // text first: any text is a label
}

TEST(LabelTable, TextLabelsOfABinaryModelAreTwo) {
  LabelTable table(Task::kBinary, SmallConfig("logistic"));
  EXPECT_EQ(*table.Add(TargetView::Label("no")), 0u);
  EXPECT_EQ(*table.Add(TargetView::Label("no")), 0u);
  EXPECT_EQ(*table.Add(TargetView::Label("yes")), 1u);
  const auto third = table.Add(TargetView::Label("maybe"));
  EXPECT_EQ(FieldPathOf(third.status()), "label");
  EXPECT_TRUE(absl::StrContains(third.status().message(), "no, yes")) << third.status();
  EXPECT_EQ(FieldPathOf(table.Add(TargetView::Number(1)).status()), "value");
  EXPECT_EQ(table.Find(TargetView::Label("yes")), 1u);
  EXPECT_EQ(table.Find(TargetView::Label("maybe")), std::nullopt);
}

// One producer sends "1" as text, another one 1 as a number: no row may end up under the other
// label.
TEST(LabelTable, NumbersAndTheirTextAreOneLabel) {
  const ModelConfig config = SmallConfig("logistic");
  const TargetView one = TargetView::Number(1), minus = TargetView::Number(-1),
                   zero = TargetView::Number(0);
  LabelTable text_first(Task::kBinary, config);
  EXPECT_EQ(*text_first.Add(TargetView::Label("1")), 0u);
  EXPECT_EQ(*text_first.Add(one), 0u);
  EXPECT_EQ(text_first.Find(one), 0u);
  EXPECT_EQ(FieldPathOf(text_first.Add(minus).status()), "value");  // index 0 is "1"
  EXPECT_EQ(*text_first.Add(TargetView::Label("-1")), 1u);
  EXPECT_EQ(*text_first.Add(minus), 1u);
  EXPECT_EQ(text_first.Find(minus), 1u);
  EXPECT_EQ(FieldPathOf(text_first.Add(zero).status()), "value");
  EXPECT_EQ(text_first.Find(zero), std::nullopt);

  LabelTable words(Task::kBinary, config);
  ASSERT_TRUE(words.Add(TargetView::Label("no")).ok());
  ASSERT_TRUE(words.Add(TargetView::Label("yes")).ok());
  for (const TargetView& number : {one, minus, zero}) {
    EXPECT_EQ(FieldPathOf(words.Add(number).status()), "value");
    EXPECT_EQ(words.Find(number), std::nullopt);
  }

  LabelTable numbers(Task::kBinary, config);
  EXPECT_EQ(*numbers.Add(zero), 0u);
  EXPECT_EQ(numbers.Find(minus), 0u);
  EXPECT_EQ(*numbers.Add(TargetView::Label("1")), 1u);
  EXPECT_EQ(numbers.Find(one), 1u);
}

TEST(LabelTable, FixedLabelsTakeNothingElse) {
  ModelConfig config = SmallConfig("softmax");
  config.labels = {"cat", "dog", "7"};
  LabelTable table(Task::kMulticlass, config);
  EXPECT_EQ(*table.Add(TargetView::Label("dog")), 1u);
  EXPECT_EQ(*table.Add(TargetView::Number(7)), 2u);
  const auto foreign = table.Add(TargetView::Label("cow"));
  EXPECT_EQ(FieldPathOf(foreign.status()), "label");
  EXPECT_TRUE(absl::StrContains(foreign.status().message(), "cat, dog, 7")) << foreign.status();
}

TEST(LabelTable, ComesBackFromItsLabels) {
  const ModelConfig config = SmallConfig("softmax");
  LabelTable table(Task::kMulticlass, config), copy(Task::kMulticlass, config);
  for (const char* label : {"x", "y", "z"}) ASSERT_TRUE(table.Add(TargetView::Label(label)).ok());
  copy.Restore(table.labels(), table.numbers());
  EXPECT_EQ(copy.Find(TargetView::Label("y")), 1u);
  EXPECT_EQ(*copy.Add(TargetView::Label("w")), 3u);
}

TEST(InputScaling, IsRobustAndLeavesZerosAndOnesAlone) {
  // Columns: 0 / 1 flags; a range with one wild value; mostly constant; constant.
  constexpr size_t kRows = 101;
  std::vector<float> x;
  for (size_t i = 0; i < kRows; ++i) {
    x.insert(x.end(), {static_cast<float>(i % 2), i == 0 ? 1e6f : static_cast<float>(i),
                       i < 20 ? 5.0f : 1.0f, 42.0f});
  }
  const InputScaling scaling = InputScaling::FromRows({x.data(), kRows, 4});
  EXPECT_EQ(scaling.shift()[0], 0);
  EXPECT_EQ(scaling.inverse_scale()[0], 1);
  EXPECT_NEAR(scaling.shift()[1], 51, 1);
  EXPECT_NEAR(1 / scaling.inverse_scale()[1], 50 / 1.349, 1);
  EXPECT_NEAR(scaling.shift()[2], 1.8, 0.1);  // mean and deviation
  EXPECT_NEAR(1 / scaling.inverse_scale()[2], 1.6, 0.05);
  EXPECT_EQ(scaling.shift()[3], 42);
  EXPECT_EQ(scaling.inverse_scale()[3], 1);
  EXPECT_EQ(scaling.num_standardized(), 3u);
  SampleBatch rows;
  rows.AddDense(std::vector<float>{1, 1e6f, 1, 42});
  float out[4];
  scaling.Apply(rows.row(0), 4, out);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], kInputClip);
  EXPECT_EQ(out[3], 0);
}

TEST(InputScaling, SeesWhenColumnsShareOneUnit) {
  Random random(1);
  std::vector<float> pixels, table;
  for (size_t i = 0; i < 200; ++i) {
    for (size_t j = 0; j < 16; ++j) {
      pixels.push_back(random.Uniform() < 0.3 ? static_cast<float>(random.Uniform()) : 0.0f);
      table.push_back(
          static_cast<float>(random.Uniform() * std::pow(10.0, static_cast<double>(j))));
    }
  }
  EXPECT_TRUE(InputScaling::ShareOneUnit({pixels.data(), 200, 16}));
  EXPECT_FALSE(InputScaling::ShareOneUnit({table.data(), 200, 16}));
  pixels[5] = -0.1f;
  EXPECT_FALSE(InputScaling::ShareOneUnit({pixels.data(), 200, 16}));
}

TEST(SampleBatch, KeepsRowsTargetsLabelsAndWeights) {
  SampleBatch rows;
  rows.AddDense(std::vector<float>{1, 2});
  rows.SetLabel("first");
  rows.SetLabel("again");
  rows.AddSparse(std::vector<uint64_t>{3, 9}, std::vector<float>{4, 5});
  rows.SetTarget(2.5);
  rows.SetWeight(3);
  SampleBatch copy;
  copy.AppendRow(rows, 1);
  copy.AppendRow(rows, 0);
  EXPECT_EQ(copy.size(), 2u);
  EXPECT_TRUE(copy.row(0).sparse);
  EXPECT_EQ(copy.row(0).MinDimension(), 10u);
  EXPECT_EQ(copy.row(0).indices[1], 9u);
  EXPECT_EQ(copy.target(0).value, 2.5);
  EXPECT_EQ(copy.weight(0), 3);
  EXPECT_EQ(copy.target(1).label, "again");
  copy.RemoveLast();
  copy.AppendRow(rows, 0);
  EXPECT_EQ(copy.target(1).label, "again");
  EXPECT_EQ(copy.row(1).values[1], 2);
}

TEST(SampleBatch, KeepsEveryKindOfTarget) {
  const std::vector<double> two = {1.5, -2}, none;
  SampleBatch rows;
  for (int i = 0; i < 5; ++i) rows.AddDense(std::vector<float>{static_cast<float>(i)});
  EXPECT_EQ(rows.target(4).kind, TargetKind::kNone);
  EXPECT_EQ(rows.target(4).value, 0);
  rows.SetTargets(two);
  rows.SetLabel("in its place");
  rows.SetPopulation(Population::kDenominator);
  EXPECT_EQ(rows.target(4).population, Population::kDenominator);
  const size_t before = rows.bytes();
  for (int i = 0; i < 3; ++i) rows.SetTargets(two);
  EXPECT_EQ(rows.bytes(), before + 2 * sizeof(double));

  SampleBatch copy;
  copy.AppendRow(rows, 4);
  copy.AppendRow(rows, 0);
  copy.AppendRow(rows, 4);
  copy.SetTarget(3);
  copy.AddDense(std::vector<float>{});
  copy.SetTargets(none);
  copy.AppendRow(rows, 4);
  copy.RemoveLast();
  copy.AppendRow(rows, 4);
  EXPECT_EQ(copy.target(0).kind, TargetKind::kVector);
  EXPECT_EQ(copy.target(0).values[1], -2);
  EXPECT_EQ(copy.target(1).kind, TargetKind::kNone);
  EXPECT_EQ(copy.target(2).kind, TargetKind::kValue);
  EXPECT_EQ(copy.target(2).value, 3);
  EXPECT_EQ(copy.target(3).kind, TargetKind::kVector);
  EXPECT_TRUE(copy.target(3).values.empty());
  EXPECT_EQ(copy.target(4).values[0], 1.5);
}

// All of a row, for comparing.
std::string Dump(const SampleBatch& rows, size_t i) {
  const RowView row = rows.row(i);
  const TargetView target = rows.target(i);
  return absl::StrCat(row.sparse, row.named, "|", absl::StrJoin(row.values, " "), "|",
                      absl::StrJoin(row.indices, " "), "|", static_cast<int>(target.kind), "|",
                      target.value, "|", target.label, "|", absl::StrJoin(target.values, " "), "|",
                      static_cast<int>(target.population), "|", rows.weight(i));
}

// Dense rows of one size with numbers, until `mixed`: then anything.
void AddRandomRow(Random& random, bool mixed, SampleBatch& rows) {
  const auto below = [&random](int n) { return static_cast<int>(random.Uniform() * n); };
  const size_t count = mixed ? static_cast<size_t>(below(5)) : 3;
  std::vector<float> values;
  std::vector<uint64_t> indices;
  for (size_t j = 0; j < count; ++j) {
    values.push_back(static_cast<float>(random.Uniform()));
    indices.push_back(10 * j + static_cast<uint64_t>(below(10)));
  }
  const int form = mixed ? below(3) : 0;
  if (form == 0) rows.AddDense(values);
  if (form == 1) rows.AddSparse(indices, values);
  if (form == 2) rows.AddNamed(indices, values);
  const int kind = mixed ? below(5) : 1;
  if (kind == 1) rows.SetTarget(random.Uniform());
  if (kind == 2) rows.SetLabel(std::string(static_cast<size_t>(below(20)), 'a'));
  if (kind == 3) rows.SetTargets(std::vector<double>(count, random.Uniform()));
  if (kind == 4) rows.SetPopulation(Population::kDenominator);
  if (mixed && below(2) == 0) rows.SetWeight(static_cast<float>(random.Uniform()));
}

// Against a plain list of rows: whatever is added, replaced and dropped, while it grows and shrinks
// to nothing again, and from whichever row on the rows differ in form.
TEST(SampleBatch, IsAListOfRows) {
  constexpr int kChanges = 600;
  for (const int mixed_from : {0, 1, 2, 50, kChanges}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Random random(seed);
      SampleBatch rows;
      std::vector<std::string> expected;
      for (int i = 0; i < kChanges; ++i) {
        SampleBatch one;
        AddRandomRow(random, i >= mixed_from, one);
        const double change = random.Uniform();
        const double adds = i / 50 % 2 == 0 ? 0.4 : 0.1;
        if (rows.empty() || change < adds) {
          rows.AppendRow(one, 0);
          expected.push_back(Dump(one, 0));
        } else if (change < adds + 0.3) {
          const auto at = static_cast<size_t>(random.Uniform() * static_cast<double>(rows.size()));
          rows.ReplaceRow(at, one, 0);
          expected[at] = Dump(one, 0);
        } else if (change < 0.95) {
          rows.RemoveLast();
          expected.pop_back();
        } else if (change < 0.96) {
          rows.Clear();
          expected.clear();
        } else {
          SampleBatch copy = rows;
          rows = std::move(copy);
          ASSERT_TRUE(copy.empty());
          copy.AppendRow(one, 0);
          ASSERT_EQ(Dump(copy, 0), Dump(one, 0));
        }
        ASSERT_EQ(rows.size(), expected.size());
        for (size_t k = 0; k < expected.size(); ++k) ASSERT_EQ(Dump(rows, k), expected[k]) << k;
      }
    }
  }
}

TEST(SampleBatch, TakesNoMoreMemoryThanRowsNeed) {
  const std::vector<float> values(8, 1.0f);
  SampleBatch rows, one;
  for (int i = 0; i < 1000; ++i) {
    rows.AddDense(values);
    rows.SetTarget(i);
  }
  EXPECT_EQ(rows.bytes(), 1000 * (8 * sizeof(float) + 9));
  one.AddDense(values);
  one.SetTarget(-1);
  for (size_t i = 0; i < 5000; ++i) rows.ReplaceRow(i % 1000, one, 0);
  EXPECT_EQ(rows.bytes(), 1000 * (8 * sizeof(float) + 9));

  SampleBatch labels, vectors, other_label, other_vector;
  for (int i = 0; i < 100; ++i) {
    labels.AddDense(values);
    labels.SetLabel("yes");
    vectors.AddDense(values);
    vectors.SetTargets(std::vector<double>{1, 2, 3});
  }
  const size_t label_bytes = labels.bytes(), vector_bytes = vectors.bytes();
  other_label.AddDense(values);
  other_label.SetLabel("nay");
  other_vector.AddDense(values);
  other_vector.SetTargets(std::vector<double>{4, 5, 6});
  for (size_t i = 0; i < 500; ++i) {
    labels.ReplaceRow(i % 100, other_label, 0);
    vectors.ReplaceRow(i % 100, other_vector, 0);
  }
  EXPECT_EQ(labels.bytes(), label_bytes);
  EXPECT_EQ(vectors.bytes(), vector_bytes);

  // Of several sizes: at most twice.
  SampleBatch sparse, longest;
  const std::vector<uint64_t> indices = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int i = 0; i < 100; ++i) {
    longest.AddSparse(indices, values);
    longest.SetLabel(std::string(30, 'x'));
  }
  sparse = longest;
  Random random(3);
  for (int i = 0; i < 5000; ++i) {
    const size_t count = static_cast<size_t>(random.Uniform() * 9);
    SampleBatch row;
    row.AddSparse({indices.data(), count}, {values.data(), count});
    row.SetLabel(std::string(static_cast<size_t>(random.Uniform() * 30), 'x'));
    sparse.ReplaceRow(static_cast<size_t>(i % 100), row, 0);
    EXPECT_LE(sparse.bytes(), 2 * longest.bytes());
  }
}

SampleBatch Numbered(size_t first, size_t end) {
  SampleBatch rows;
  for (size_t i = first; i < end; ++i) {
    rows.AddDense(std::vector<float>{static_cast<float>(i)});
    rows.SetTarget(static_cast<double>(i));
  }
  return rows;
}

void ExpectNumbers(const SampleBatch& rows, size_t first, size_t end) {
  ASSERT_EQ(rows.size(), end - first);
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows.target(i).value, static_cast<double>(first + i));
    ASSERT_EQ(rows.row(i).values[0], static_cast<float>(first + i));
  }
}

TEST(RecentRows, AreTheLastOnesOldestFirst) {
  const SampleBatch all = Numbered(0, 3 * kRecentRows);
  RecentRows recent, restored;
  size_t added = 0;
  for (const size_t end : {size_t{10}, kRecentRows, kRecentRows + 1, 2 * kRecentRows + 100}) {
    for (; added < end; ++added) {
      recent.Add(all, added);
      restored.Add(all, added);
    }
    ExpectNumbers(recent.Last(7), end - 7, end);
    ExpectNumbers(recent.Last(3 * kRecentRows), end - std::min(end, kRecentRows), end);
    ExpectNumbers(restored.Last(kRecentRows), end - std::min(end, kRecentRows), end);
    restored.Restore(recent.Save());
  }
  recent.Clear();
  EXPECT_TRUE(recent.Last(5).empty());
  recent.Add(all, 3);
  ExpectNumbers(recent.Last(5), 3, 4);
}

// Checkpoints of older versions hold up to twice as many rows, in two parts.
TEST(RecentRows, TakeThePartsOfOlderCheckpointsOver) {
  for (const size_t current : {size_t{0}, size_t{5}, kRecentRows}) {
    const size_t end = kRecentRows + current;
    RecentRows recent;
    recent.Restore({.previous = Numbered(0, kRecentRows), .current = Numbered(kRecentRows, end)});
    ExpectNumbers(recent.Last(2 * kRecentRows), current, end);
    recent.Add(Numbered(end, end + 1), 0);
    ExpectNumbers(recent.Last(2 * kRecentRows), current + 1, end + 1);
  }
}

TEST(Reservoir, GoesOnFromWhatItSavedAndKeepsNoMoreRowsThanItHolds) {
  constexpr size_t kHeld = 100, kOffered = 3000;
  const SampleBatch all = Numbered(0, kOffered);
  Reservoir reservoir(5, kHeld), other(5, kHeld);
  std::vector<int> kept(kOffered);
  for (size_t i = 0; i < kOffered; ++i) {
    reservoir.Offer(all, i);
    other.Offer(all, i);
    if (i % 500 == 250) other.Restore(other.Save());
  }
  const ReservoirState state = reservoir.Save(), same = other.Save();
  ASSERT_EQ(state.rows.size(), kHeld);
  EXPECT_EQ(state.rows.bytes(), Numbered(0, kHeld).bytes());
  double sum = 0;
  for (size_t i = 0; i < kHeld; ++i) {
    const double row = state.rows.target(i).value;
    EXPECT_EQ(row, same.rows.target(i).value);
    EXPECT_EQ(++kept[static_cast<size_t>(row)], 1) << "twice in the sample";
    sum += row;
  }
  // Uniform: mean 1500, standard error 87.
  EXPECT_NEAR(sum / kHeld, kOffered / 2.0, 350);
  SampleBatch drawn, drawn_by_other;
  reservoir.Draw(20, drawn);
  other.Draw(20, drawn_by_other);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(Dump(drawn, i), Dump(drawn_by_other, i));
}

TEST(Text, KnowsUtf8AndShortDecimals) {
  EXPECT_TRUE(IsUtf8("plain"));
  EXPECT_TRUE(IsUtf8("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
  for (const char* bad :
       {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x80"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
  EXPECT_EQ(ShortestDecimal(1), "1");
  EXPECT_EQ(ShortestDecimal(-0.0), "0");
  EXPECT_EQ(ShortestDecimal(0.1), "0.1");
  EXPECT_LE(Shortened(std::string(1000, 'x')).size(), 70u);
}

}  // namespace
}  // namespace kernelstream
