// Decoding of what callers send, good and bad, without a server.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "core/base/named_input.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernelstream/v1/online_update_service.pb.h"
#include "server/service/wire_bytes.h"
#include "server/service/wire_model.h"
#include "server/service/wire_rows.h"
#include "server/service/worker_pool.h"
#include "tests/support/compositions.h"

namespace kernelstream::server {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMaxRows = 1000;

grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

v1::SampleMatrix Matrix(uint32_t rows, uint32_t dimension) {
  v1::SampleMatrix matrix;
  matrix.set_rows(rows);
  matrix.set_dimension(dimension);
  std::vector<float> values(rows * dimension);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  matrix.set_values(values.data(), values.size() * sizeof(float));
  for (uint32_t i = 0; i < rows; ++i) matrix.add_targets(i);
  return matrix;
}

v1::Sample GoodSample() {
  v1::Sample sample;
  sample.mutable_features()->mutable_dense()->add_values(1);
  sample.set_value(1);
  return sample;
}

TEST(WireRows, MatrixRowsAreItsBytes) {
  const v1::SampleMatrix matrix = Matrix(3, 2);
  const auto rows = DecodeSamples({}, &matrix, {}, kMaxRows);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->rows.size(), 3u);
  EXPECT_EQ(rows->rows.row(2).values[1], 5.0f);
  EXPECT_EQ(rows->rows.target(2).value, 2.0);
  EXPECT_EQ(rows->Path("samples", 2, "features.dense.values[1]"), "matrix.values[5]");
  EXPECT_EQ(rows->Path("samples", 2, "value"), "matrix.targets[2]");
}

TEST(WireRows, SizesThatDoNotFitAreRefusedBeforeAnythingIsAllocated) {
  struct Case {
    const char* field;
    v1::SampleMatrix matrix;
  };
  std::vector<Case> cases;
  cases.push_back({"matrix.rows", Matrix(0, 2)});
  cases.push_back({"matrix.dimension", Matrix(2, 0)});
  cases.push_back({"matrix.values", Matrix(2, 2)});
  cases.back().matrix.mutable_values()->pop_back();
  cases.push_back({"matrix.values", Matrix(2, 2)});
  cases.back().matrix.set_rows(UINT32_MAX);
  cases.back().matrix.set_dimension(UINT32_MAX);
  cases.push_back({"matrix.values", Matrix(2, 2)});
  cases.back().matrix.set_rows(1u << 31);
  cases.back().matrix.set_dimension(1u << 31);
  cases.push_back({"matrix.targets", Matrix(2, 2)});
  cases.back().matrix.add_targets(1);
  cases.push_back({"matrix.targets", Matrix(2, 2)});
  cases.back().matrix.add_labels("a");
  cases.push_back({"matrix.labels", Matrix(2, 2)});
  cases.back().matrix.clear_targets();
  cases.back().matrix.add_labels("a");
  cases.push_back({"matrix.targets", Matrix(2, 2)});
  cases.back().matrix.set_target_dimension(2);
  cases.push_back({"matrix.targets", Matrix(2, 2)});
  cases.back().matrix.set_target_dimension(UINT32_MAX);
  cases.push_back({"matrix.target_dimension", Matrix(2, 2)});
  cases.back().matrix.clear_targets();
  cases.back().matrix.set_target_dimension(2);
  cases.push_back({"matrix.populations", Matrix(2, 2)});
  cases.back().matrix.clear_targets();
  cases.back().matrix.add_populations(v1::POPULATION_NUMERATOR);
  cases.push_back({"matrix.rows", Matrix(kMaxRows + 1, 1)});
  for (const Case& one : cases) {
    const auto rows = DecodeSamples({}, &one.matrix, {}, kMaxRows);
    ASSERT_FALSE(rows.ok()) << one.matrix.ShortDebugString().substr(0, 200);
    EXPECT_EQ(FieldPathOf(rows.status()), one.field) << rows.status();
  }
}

TEST(WireRows, EveryKindOfTargetComesThrough) {
  SampleList samples;
  *samples.Add() = GoodSample();
  *samples.Add() = GoodSample();
  samples.rbegin()->clear_target();
  *samples.Add() = GoodSample();
  samples.rbegin()->mutable_vector()->add_values(3);
  samples.rbegin()->mutable_vector()->add_values(4);
  *samples.Add() = GoodSample();
  samples.rbegin()->set_population(v1::POPULATION_DENOMINATOR);
  *samples.Add() = GoodSample();
  samples.rbegin()->set_population(v1::POPULATION_UNSPECIFIED);
  const auto rows = DecodeSamples(samples, nullptr, {}, kMaxRows);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->rows.size(), 4u);
  EXPECT_EQ(rows->rows.target(0).kind, TargetKind::kValue);
  EXPECT_EQ(rows->rows.target(1).kind, TargetKind::kNone);
  ASSERT_EQ(rows->rows.target(2).values.size(), 2u);
  EXPECT_EQ(rows->rows.target(2).values[1], 4);
  EXPECT_EQ(rows->rows.target(3).population, Population::kDenominator);
  ASSERT_EQ(rows->rejected.size(), 1u);
  EXPECT_EQ(FieldPathOf(rows->rejected[0].status), "population");
  EXPECT_EQ(rows->Path("samples", 2, "vector.values[1]"), "samples[2].vector.values[1]");
}

TEST(WireRows, NamedRowsBecomeSparseOnes) {
  SampleList samples;
  v1::NamedVector* named = samples.Add()->mutable_features()->mutable_named();
  (*named->mutable_numbers())["height"] = 1.5;
  (*named->mutable_numbers())["width"] = -2;
  (*named->mutable_categories())["height"] = "tall";
  samples.Add()->mutable_features()->mutable_named();  // all zero
  (*samples.Add()->mutable_features()->mutable_named()->mutable_numbers())["age"] = NAN;
  (*samples.Add()->mutable_features()->mutable_named()->mutable_numbers())["age"] = 1e31;
  (*samples.Add()->mutable_features()->mutable_named()->mutable_numbers())[""] = 1;
  (*samples.Add()->mutable_features()->mutable_named()->mutable_categories())[""] = "red";
  const auto rows = DecodeSamples(samples, nullptr, {}, kMaxRows);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->rows.size(), 2u);
  std::map<uint64_t, float> expected = {{NumberIndex("height"), 1.5f},
                                        {NumberIndex("width"), -2.0f},
                                        {CategoryIndex("height", "tall"), 1.0f}};
  const RowView row = rows->rows.row(0);
  EXPECT_TRUE(row.named && row.sparse);
  ASSERT_EQ(row.indices.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(row.values[i], expected[row.indices[i]]);
  EXPECT_TRUE(std::is_sorted(row.indices.begin(), row.indices.end()));
  EXPECT_TRUE(rows->rows.row(1).named);
  ASSERT_EQ(rows->rejected.size(), 4u);
  const char* fields[] = {"features.named.numbers[age]", "features.named.numbers[age]",
                          "features.named.numbers", "features.named.categories"};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(FieldPathOf(rows->rejected[i].status), fields[i]);
}

TEST(WireRows, EveryKindOfTargetComesThroughAMatrix) {
  v1::SampleMatrix none = Matrix(3, 2);
  none.clear_targets();
  const auto bare = DecodeSamples({}, &none, {}, kMaxRows);
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_EQ(bare->rows.target(2).kind, TargetKind::kNone);

  v1::SampleMatrix vectors = Matrix(6, 2);
  vectors.set_rows(3);
  vectors.mutable_values()->resize(3 * 2 * sizeof(float));
  vectors.set_target_dimension(2);
  const auto several = DecodeSamples({}, &vectors, {}, kMaxRows);
  ASSERT_TRUE(several.ok()) << several.status();
  ASSERT_EQ(several->rows.target(2).values.size(), 2u);
  EXPECT_EQ(several->rows.target(2).values[0], 4);
  EXPECT_EQ(several->Path("samples", 2, "vector.values[1]"), "matrix.targets[5]");
  EXPECT_EQ(several->Path("samples", 2, "vector"), "matrix.target_dimension");

  v1::SampleMatrix populations = none;
  populations.add_populations(v1::POPULATION_NUMERATOR);
  populations.add_populations(v1::POPULATION_UNSPECIFIED);
  populations.add_populations(v1::POPULATION_DENOMINATOR);
  const auto two = DecodeSamples({}, &populations, {}, kMaxRows);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_THAT(two->places, ::testing::ElementsAre(0, 2));
  EXPECT_EQ(two->rows.target(0).population, Population::kNumerator);
  EXPECT_EQ(two->rows.target(1).population, Population::kDenominator);
  ASSERT_EQ(two->rejected.size(), 1u);
  EXPECT_EQ(two->rejected[0].number, 1u);
  EXPECT_EQ(two->Path("samples", 1, "population"), "matrix.populations[1]");
}

TEST(WireRows, ExactlyOneOfListAndMatrix) {
  const v1::SampleMatrix matrix = Matrix(1, 1);
  SampleList samples;
  EXPECT_EQ(FieldPathOf(DecodeSamples(samples, nullptr, {}, kMaxRows).status()), "samples");
  *samples.Add() = GoodSample();
  EXPECT_EQ(FieldPathOf(DecodeSamples(samples, &matrix, {}, kMaxRows).status()), "samples");
  InstanceList instances;
  EXPECT_EQ(FieldPathOf(DecodeInstances(instances, nullptr, kMaxRows).status()), "instances");
  EXPECT_EQ(FieldPathOf(DecodeInstances(instances, &matrix, kMaxRows).status()), "matrix.targets");
}

TEST(WireRows, BadRowsAreSetAsideAndTheOthersKept) {
  SampleList samples;
  *samples.Add() = GoodSample();
  samples.Add()->set_value(1);  // no features
  *samples.Add() = GoodSample();
  samples.rbegin()->set_population(v1::POPULATION_UNSPECIFIED);
  v1::SparseVector* sparse = samples.Add()->mutable_features()->mutable_sparse();
  sparse->add_indices(1);  // no value for it
  *samples.Add() = GoodSample();
  const auto rows = DecodeSamples(samples, nullptr, {0}, kMaxRows);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->places, ::testing::ElementsAre(4));
  ASSERT_EQ(rows->rejected.size(), 4u);
  const char* fields[] = {"label", "features", "population", "features.sparse.values"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rows->rejected[i].number, i);
    EXPECT_EQ(FieldPathOf(rows->rejected[i].status), fields[i]);
  }
}

TEST(WireBytes, LabelsThatAreNotUtf8AreNamedAndTheRestParses) {
  v1::StreamUpdateRequest request;
  for (const char* label : {"good", "bad", "caf\xc3\xa9"}) {
    v1::Sample* sample = request.mutable_batch()->add_samples();
    *sample = GoodSample();
    sample->set_label(label);
  }
  std::string bytes = request.SerializeAsString();
  bytes[bytes.find("bad")] = '\xff';
  std::vector<uint64_t> bad_labels;
  v1::StreamUpdateRequest parsed;
  const absl::Status status = ParseMessage(Bytes(bytes), 1 << 20, &parsed, &bad_labels);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(bad_labels, ::testing::ElementsAre(1));
  ASSERT_EQ(parsed.batch().samples_size(), 3);
  EXPECT_EQ(parsed.batch().samples(2).label(), "caf\xc3\xa9");

  request.mutable_batch()->clear_samples();
  *request.mutable_batch()->mutable_matrix() = Matrix(2, 1);
  request.mutable_batch()->mutable_matrix()->add_labels("x");
  request.mutable_batch()->mutable_matrix()->add_labels("bad");
  bytes = request.SerializeAsString();
  bytes[bytes.find("bad")] = '\xc0';
  bad_labels.clear();
  ASSERT_TRUE(ParseMessage(Bytes(bytes), 1 << 20, &parsed, &bad_labels).ok());
  EXPECT_THAT(bad_labels, ::testing::ElementsAre(1));
}

TEST(WireBytes, OtherTextThatIsNotUtf8IsAnErrorAboutItsField) {
  v1::UpdateRequest request;
  request.set_model("bad");
  *request.add_samples() = GoodSample();
  std::string bytes = request.SerializeAsString();
  bytes[bytes.find("bad")] = '\xff';
  v1::UpdateRequest parsed;
  std::vector<uint64_t> bad_labels;
  const absl::Status status = ParseMessage(Bytes(bytes), 1 << 20, &parsed, &bad_labels);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(FieldPathOf(status), "model");

  v1::CreateModelRequest create;
  (*create.mutable_config()->mutable_kernel()->mutable_parameters())["bad"] = 1;
  bytes = create.SerializeAsString();
  bytes[bytes.find("bad")] = '\xff';
  v1::CreateModelRequest parsed_create;
  EXPECT_EQ(FieldPathOf(ParseMessage(Bytes(bytes), 1 << 20, &parsed_create, nullptr)),
            "config.kernel.parameters[0].key");
}

TEST(WireBytes, TooManyBytesNameTheLimitAndTheFlag) {
  v1::UpdateRequest parsed;
  const absl::Status status =
      ParseMessage(Bytes(std::string((1 << 20) + 1, 'x')), 1 << 20, &parsed, nullptr);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--max_message_mib=1"));
}

// Bits flipped and ends cut, at places a seed chooses: never a crash, and an answer that is one or
// the other.
TEST(WireBytes, AnyBytesAreAMessageOrAnInvalidArgument) {
  v1::StreamUpdateRequest request;
  request.mutable_batch()->set_producer_sequence(7);
  for (int i = 0; i < 3; ++i) {
    v1::Sample* sample = request.mutable_batch()->add_samples();
    *sample = GoodSample();
    sample->set_label("caf\xc3\xa9");
    sample->set_weight(2);
  }
  const std::string good = request.SerializeAsString();
  constexpr uint64_t kSeed = 20240607;
  QuietProtobuf();
  for (uint32_t round = 0; round < 4000; ++round) {
    SCOPED_TRACE(absl::StrCat("seed ", kSeed, " round ", round));
    std::string bytes = good;
    uint64_t state = kSeed + round;
    const auto next = [&state](size_t limit) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<size_t>(state >> 33) % limit;
    };
    for (size_t flips = 1 + next(4); flips > 0; --flips) {
      bytes[next(bytes.size())] ^= static_cast<char>(1 << next(8));
    }
    if (next(4) == 0) bytes.resize(1 + next(bytes.size()));
    std::vector<uint64_t> bad_labels;
    v1::StreamUpdateRequest parsed;
    const absl::Status status = ParseMessage(Bytes(bytes), 1 << 20, &parsed, &bad_labels);
    if (!status.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      continue;
    }
    const v1::StreamUpdateRequest::Batch& batch = parsed.batch();
    DecodeSamples(batch.samples(), batch.has_matrix() ? &batch.matrix() : nullptr, bad_labels,
                  kMaxRows)
        .status()
        .IgnoreError();
  }
}

TEST(WireModel, ConfigSurvivesTheWayToTheWireAndBack) {
  ModelConfig config;
  config.loss.name = "logistic";
  config.kernel = {"laplacian", {{"bandwidth", 0.5}}};
  config.dimension = 7;
  config.standardize = Standardize::kOn;
  config.input_scales = {{1, 2, 3, 4, 5, 6, 7}, {.1, .2, .3, .4, .5, .6, .7}};
  config.labels = {"no", "yes"};
  config.averaging = Averaging::kUniform;
  config.seed = 0;
  config.max_batch_delay_seconds = 1.5;
  config.when_full = WhenFull::kFreeze;
  ASSERT_TRUE(CompleteConfig(config).ok());
  v1::ModelConfig wire;
  ConfigToWire(config, &wire);
  const auto back = ConfigFromWire(wire);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == config);
}

TEST(WireModel, TargetScalesSurviveTheWayToTheWireAndBack) {
  ModelConfig config;
  config.loss.name = "square";
  config.target_scales.scales = {2, 3};  // offsets are 0
  ASSERT_TRUE(CompleteConfig(config).ok());
  v1::ModelConfig wire;
  ConfigToWire(config, &wire);
  EXPECT_EQ(wire.target_offsets_size(), 2);
  const auto back = ConfigFromWire(wire);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == config);
}

TEST(WireModel, TermsSurviveTheWayToTheWireAndBack) {
  ModelConfig config;
  config.loss.name = "square";
  const ComponentConfig product = {"product", {}, {{1, Leaf("laplacian", 2)}, {1, Leaf("cauchy")}}};
  config.kernel = {"sum", {{"bandwidth", 2}}, {{0.25, Leaf("gaussian", 3)}, {2, product}}};
  ASSERT_TRUE(CompleteConfig(config).ok());
  v1::ModelConfig wire;
  ConfigToWire(config, &wire);
  auto back = ConfigFromWire(wire);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == config);
  // No weight is weight 1; a weight of 0 was given, and is refused.
  wire.mutable_kernel()->mutable_terms(0)->clear_weight();
  EXPECT_EQ(ConfigFromWire(wire)->kernel.terms[0].weight, 1);
  wire.mutable_kernel()->mutable_terms(0)->set_weight(0);
  back = ConfigFromWire(wire);
  EXPECT_EQ(FieldPathOf(CompleteConfig(*back)), "kernel.terms[0].weight");
}

TEST(WireModel, VarianceOfEveryMethodComesBack) {
  for (const VarianceMethod method :
       {VarianceMethod::kNone, VarianceMethod::kExact, VarianceMethod::kOperator,
        VarianceMethod::kTestPoints, VarianceMethod::kQuantilePair}) {
    ModelConfig config;
    config.loss.name = "square";
    config.variance.method = method;
    config.variance.features = 512;
    config.variance.noise_variance = 0.25;
    config.variance.coverage = 0.8;
    if (method == VarianceMethod::kTestPoints) config.variance.test_points = {{1, 2}, {3, 4}};
    ASSERT_TRUE(CompleteConfig(config).ok());
    v1::ModelConfig wire;
    ConfigToWire(config, &wire);
    const auto back = ConfigFromWire(wire);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(back->variance == config.variance) << static_cast<int>(method);
  }
  v1::ModelConfig wire;
  wire.mutable_variance()->set_method(static_cast<v1::VarianceMethod>(77));
  const absl::Status unknown = ConfigFromWire(wire).status();
  EXPECT_EQ(FieldPathOf(unknown), "variance.method");
}

TEST(WireModel, TheRaceSurvivesTheWayToTheWireAndBack) {
  for (const InputMetric metric :
       {InputMetric::kAuto, InputMetric::kOff, InputMetric::kDiagonal, InputMetric::kFull}) {
    ModelConfig config;
    config.loss.name = "square";
    config.candidates = {.bandwidth_scales = {0.25, 3}, .step_constants = {0.5}};
    config.input_metric = metric;
    config.replay = {.ratio = 2, .reservoir_rows = 1000, .order = StreamOrder::kOrdered};
    config.max_features = kUnlimitedFeatures;
    config.memory_mib = 77;
    config.feature_form = metric == InputMetric::kOff ? CosineForm::kSingle : CosineForm::kPair;
    ASSERT_TRUE(CompleteConfig(config).ok());
    v1::ModelConfig wire;
    ConfigToWire(config, &wire);
    EXPECT_TRUE(wire.has_max_features());
    EXPECT_EQ(wire.max_features(), 0u);
    const auto back = ConfigFromWire(wire);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == config);
  }
}

TEST(WireModel, NoNumberOfFeaturesIsTheDefault) {
  ModelConfig config = *ConfigFromWire(v1::ModelConfig());
  EXPECT_EQ(config.max_features, 0u);
  v1::ModelConfig wire;
  wire.set_max_features(kUnlimitedFeatures);
  config = *ConfigFromWire(wire);
  config.loss.name = "square";
  EXPECT_EQ(FieldPathOf(CompleteConfig(config)), "max_features");
}

TEST(WireModel, UnknownEnumsAndDurationsAreNamed) {
  v1::ModelConfig wire;
  wire.set_averaging(static_cast<v1::Averaging>(99));
  EXPECT_EQ(FieldPathOf(ConfigFromWire(wire).status()), "averaging");
  wire.Clear();
  wire.set_input_metric(static_cast<v1::InputMetric>(99));
  EXPECT_EQ(FieldPathOf(ConfigFromWire(wire).status()), "input_metric");
  wire.Clear();
  wire.set_feature_form(static_cast<v1::FeatureForm>(99));
  EXPECT_EQ(FieldPathOf(ConfigFromWire(wire).status()), "feature_form");
  wire.Clear();
  wire.mutable_replay()->set_order(static_cast<v1::StreamOrder>(99));
  EXPECT_EQ(FieldPathOf(ConfigFromWire(wire).status()), "replay.order");
  wire.Clear();
  wire.mutable_max_batch_delay()->set_nanos(2'000'000'000);
  EXPECT_EQ(FieldPathOf(ConfigFromWire(wire).status()), "max_batch_delay");
}

TEST(WorkerPool, EveryTaskOfALoopRunsOnceAlsoFromWithinATask) {
  WorkerPool pool(3, 10);
  std::vector<std::atomic<int>> counts(100);
  absl::Mutex mutex;
  bool done = false;
  ASSERT_TRUE(pool.Submit([&] {
    pool.ParallelFor(
        10, [&](size_t i) { pool.ParallelFor(10, [&, i](size_t j) { ++counts[10 * i + j]; }); });
    absl::MutexLock lock(&mutex);
    done = true;
  }));
  {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&done));
  }
  for (const std::atomic<int>& count : counts) EXPECT_EQ(count.load(), 1);
}

TEST(WorkerPool, RefusesWhatItsQueueCannotHold) {
  WorkerPool pool(0, 1);
  EXPECT_TRUE(pool.Submit([] {}));
  EXPECT_FALSE(pool.Submit([] {}));
  pool.Shutdown();
  EXPECT_FALSE(pool.Submit([] {}));
}

}  // namespace
}  // namespace kernelstream::server
