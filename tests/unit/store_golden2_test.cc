// Bytes of a version 2 data directory: what came with that version. As with version 1, they must
// decode to the same values for ever.
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "server/store/codec.h"
#include "server/store/keys.h"
#include "tests/unit/store_random.h"

namespace kernelstream::server {
namespace {

constexpr ModelUid kUid = 0x0102030405060708;

constexpr char kModelValue[] =
    "d291e8179ff83df10a05636875726e10959a97ece39fe7cb171ad7010a080a0673717561726512260a086761"
    "75737369616e121a0a0f62616e6477696474685f7363616c65110000000000000040200130e8073900000000"
    "0000e03f42240a0870726f78696d616c12180a0d737465705f636f6e7374616e7411000000000000f03f4801"
    "50005a036969646040697b14ae47e17a943f78ffffffff0f8001018801f4039201240a10000000000000d03f"
    "000000000000f03f12109a9999999999b93f0000000000000840980103a20106080010641802a80140c20117"
    "080210800419000000000000d03f219a9999999999e93f";
constexpr char kCheckpointValue[] =
    "6d79599c56c50c05080910122820380140014a008a015709000000000000f83f123709000000000000f03f1a"
    "060a0012001a00222409000000000000f03f1100000000000000401900000000000010402100000000000008"
    "401a1109000000000000f03f1a060a0012001a0020078a013c09000000000000e03f121109000000000000f0"
    "3f1a060a0012001a001a1109000000000000f03f1a060a0012001a002803319a9999999999b93f3801920110"
    "000102030405060708090a0b0c0d0e0fba010b100129000000000000f83fba01170803100318012204000020"
    "40290000000000000c40300bc00104c8010cd0010dd8010ee00101fa01080801100f1810201182027c0a1209"
    "000000000000f03f11000000000000004012120900000000000008401100000000000010401a120900000000"
    "0000144011000000000000184020082809300a3a120900000000000026401100000000000028404210000000"
    "0000002a400000000000002c40490000000000002e405001590000000000001c408a02f4040ac90408011100"
    "0000000000004019000000000000084021000000000000104029000000000000144031000000000000184039"
    "0000000000001c40420800000000000030404a080000000000003140520800000000000032405a7800000000"
    "0000384000000000000038400000000000003840000000000000384000000000000038400000000000003840"
    "0000000000003840000000000000384000000000000038400000000000003840000000000000384000000000"
    "0000384000000000000038400000000000003840000000000000384062780000000000003940000000000000"
    "3940000000000000394000000000000039400000000000003940000000000000394000000000000039400000"
    "0000000039400000000000003940000000000000394000000000000039400000000000003940000000000000"
    "3940000000000000394000000000000039406a780000000000003a400000000000003a400000000000003a40"
    "0000000000003a400000000000003a400000000000003a400000000000003a400000000000003a4000000000"
    "00003a400000000000003a400000000000003a400000000000003a400000000000003a400000000000003a40"
    "0000000000003a4082010800000000000033408a0108000000000000344092010800000000000035409a0108"
    "0000000000003640a201080000000000003740a9010000000000002040b1010000000000002240b901000000"
    "0000002440c1010000000000002640ca011000000000000028400000000000002a40d201100000000000002c"
    "400000000000002e401226ca011000000000000000000000000000000000d201100000000000000000000000"
    "0000000000920210000000000000d03f000000000000e03f9a021000000000000010400000000000001440a2"
    "021000000000000018400000000000001c40";
constexpr char kRowsChunkValue[] =
    "fbeeafd3bca3337a08011201021a080000803f000000405201025a0102621000000000000008400000000000"
    "001040";

StoredModel SecondModel() {
  StoredModel model;
  model.uid = kUid;
  model.name = "churn";
  model.create_time = absl::FromUnixNanos(1700000000123456789);
  ModelConfig& config = model.config;
  config.loss = {"square", {}};
  config.kernel = {"gaussian", {{"bandwidth_scale", 2}}};
  config.max_labels = 1000;
  config.l2_penalty = 0.5;
  config.update_rule = {"proximal", {{"step_constant", 1}}};
  config.candidates = {{0.25, 1}, {0.1, 3}};
  config.input_metric = InputMetric::kDiagonal;
  config.replay.ratio = 0;
  config.replay.reservoir_rows = 100;
  config.replay.order = StreamOrder::kOrdered;
  config.memory_mib = 64;
  config.variance.method = VarianceMethod::kExact;
  config.variance.features = 512;
  config.variance.noise_variance = 0.25;
  config.variance.coverage = 0.8;
  config.seed = 0;
  config.sampler = "iid";
  config.feature_form = CosineForm::kSingle;
  config.batch_rows = 64;
  config.max_batch_delay_seconds = 0.02;
  config.max_features = kUnlimitedFeatures;
  config.warmup_rows = 500;
  return model;
}

// A value of its own in every field.
TrainerState SecondState() {
  TrainerState state;
  state.step = 9;
  state.sequence = 18;
  state.num_features = 32;
  state.warm = true;
  state.target_offsets = {0.25, 0.5};
  state.target_scales = {4, 5};
  state.population_weights = {6, 7};
  state.generations.resize(2);
  state.generations[0].median_distance = 1.5;
  GenerationState& learned = state.generations[1];
  learned.id = 3;
  learned.form = MetricForm::kFull;
  learned.metric_dim = 1;
  learned.metric = {2.5f};
  learned.median_distance = 3.5;
  learned.first_row = 11;
  CandidateState& first = state.candidates.emplace_back();
  first.bandwidth = 1.5;
  first.steps_since_restart = 7;
  first.last.threshold = {.value = 1, .spread = 2, .near = 3, .rows = 4};
  CandidateState& second = state.candidates.emplace_back();
  second.generation = 3;
  second.bandwidth = 0.5;
  second.step_constant = 0.1;
  second.replays = false;
  state.next_generation = 4;
  state.next_generation_row = 12;
  state.next_prune_row = 13;
  state.learned_since_warm = 14;
  state.pruned = true;
  state.reservoir.rows.AddDense(std::vector<float>{1, 2});
  state.reservoir.rows.SetTargets(std::vector<double>{3, 4});
  state.reservoir.seen = 15;
  state.reservoir.draws = 16;
  state.reservoir.flushes = 17;
  state.drift.fast = {1, 2};
  state.drift.slow = {3, 4};
  state.drift.exceeding = {5, 6};
  state.drift.quantile = 7;
  state.drift.rows = 8;
  state.drift.reports = 9;
  state.drift.last_report_row = 10;
  state.drift.same_label = {11, 12};
  state.drift.label_weights = {13, 14};
  state.drift.last_label = 15;
  state.drift.ordered = true;
  MetricSums& sums = state.metrics.recent;
  sums.rows = 1;
  double next = 1;
  for (double* value :
       {&sums.weight, &sums.unknown_rows, &sums.known_weight, &sums.loss, &sums.log_loss,
        &sums.wrong, &sums.interval_weight, &sums.covered, &sums.width, &sums.interval_pinball,
        &sums.population_weight[0], &sums.population_weight[1], &sums.population_loss[0],
        &sums.population_loss[1]}) {
    *value = ++next;
  }
  for (std::vector<double>* list :
       {&sums.class_actual, &sums.class_predicted, &sums.class_correct, &sums.squared,
        &sums.absolute, &sums.pinball, &sums.target_mean, &sums.target_spread}) {
    *list = {++next};
  }
  for (std::vector<double>* list : {&sums.bin_weight, &sums.bin_probability, &sums.bin_correct}) {
    list->assign(kCalibrationBins, ++next);
  }
  for (uint8_t i = 0; i < 16; ++i) state.fingerprint[i] = i;
  return state;
}

std::string Record(const std::string& key, absl::string_view value) {
  const std::string bytes = absl::HexStringToBytes(value);
  const auto record = keys::Unseal(key, bytes);
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? std::string(*record) : "";
}

TEST(Format2, ModelDecodes) {
  const auto model =
      codec::DecodeModel(kUid, Record(keys::OfModelRecord(kUid, "churn"), kModelValue));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(Same(*model, SecondModel()));
}

TEST(Format2, CheckpointDecodes) {
  EXPECT_EQ(absl::BytesToHexString(keys::OfRowsChunk(kUid, 2, 1)),
            "0102030405060708020000000200000001");
  codec::RowCounts row_counts = {};
  auto state =
      codec::DecodeCheckpoint(Record(keys::OfCheckpoint(kUid), kCheckpointValue), &row_counts);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(row_counts, (codec::RowCounts{0, 0, 1}));
  const std::string chunk = Record(keys::OfRowsChunk(kUid, 2, 0), kRowsChunkValue);
  ASSERT_TRUE(codec::AppendRowChunk(chunk, *codec::RowSetsOf(*state)[2]).ok());
  EXPECT_TRUE(Same(*state, SecondState()));
}

}  // namespace
}  // namespace kernelstream::server
