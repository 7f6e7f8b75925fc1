// Bytes of a version 1 data directory. They must decode to the same values for ever: a failure here
// means that servers would not read what older ones wrote. Never change the bytes; add new ones.
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "core/model/trainer.h"
#include "gtest/gtest.h"
#include "server/store/codec.h"
#include "server/store/keys.h"
#include "tests/unit/store_random.h"

namespace kernelstream::server {
namespace {

constexpr ModelUid kUid = 0x0102030405060708;

constexpr char kModelKey[] = "0102030405060708636875726e";
constexpr char kModelValue[] =
    "04d074999ce8d6710a05636875726e10959a97ece39fe7cb171a8a010a0a0a086c6f676973746963"
    "12200a08676175737369616e12140a0962616e64776964746811000000000000e03f180320022a02"
    "6e6f2a03796573300239000000000000000042240a0870726f78696d616c12180a0d737465705f63"
    "6f6e7374616e7411000000000000f03f4803502a5a036969646040697b14ae47e17a943f78804080"
    "01028801f403";
constexpr char kRowsKey[] = "0102030405060708000000000000001100";
constexpr char kRowsValue[] =
    "0c3de431ebcfc7000a4f0802120203021a140000803f000020c0000050400000003f000080bf2202"
    "00012a0802000000701101003210000000000000c0bf00000000000000003a03796573420200014a"
    "080000803f0000003f1202703118052008";
constexpr char kTargetsValue[] =
    "33fafee8205421ca0a7708061201011a180000803f0000004000004040000080400000a0400000c0"
    "40323000000000000000000000000000000000000000000000000000000000000000000000000000"
    "001c40000000000000000052060102030400025a0202016218000000000000e03f00000000000008"
    "c00000000000001040";
constexpr char kCutKey[] = "0102030405060708000000000000001201";
constexpr char kCutValue[] = "73a47f1c036c6750";
constexpr char kLastSequenceKey[] = "010203040506070873";
constexpr char kLastSequenceValue[] = "07879e46a5e045420812";
constexpr char kProducerKey[] = "01020304050607087031";
constexpr char kProducerValue[] = "beadd917553b5cc108081012";
constexpr char kRequestKey[] = "01020304050607086963616c6c2d31";
constexpr char kRequestValue[] = "f966e4440d5f583508031206616e73776572";
constexpr char kRequestNumberKey[] = "01020304050607086e0000000000000003";
constexpr char kRequestNumberValue[] = "d7d5574922baad210a0663616c6c2d31";
constexpr char kFormatKey[] = "666f726d6174";
constexpr char kFormatValue[] = "fbbc455d9126b8380801";
constexpr char kCheckpointKey[] = "010203040506070800";
constexpr char kCheckpointValue[] =
    "eae68dedae057258080910121811200128203004380140014a0b08011201011a0400008040520400"
    "00003f5a040000004061000000000000d03f69000000000000104072140a0962616e647769647468"
    "11000000000000f83f7a180a0d737465705f636f6e7374616e7411000000000000f03f8201026e6f"
    "8201037965738a01880109000000000000f83f126609000000000000e83f10021a590a1209000000"
    "000000f03f11000000000000004012120900000000000008401100000000000010401a1209000000"
    "0000001440110000000000001840210000000000001c402900000000000020403100000000000022"
    "40380a1a1309000000000000f43f10011a060a0012001a002007920110000102030405060708090a"
    "0b0c0d0e0f980108a00102a80110b00103";
constexpr char kChunkKey[] = "0102030405060708010000000000000000";
constexpr char kChunkValue[] = "c2c3d061e180d55d0000803f00000040";

// The record of a stored value; "" if its checksum is not the one of this version.
std::string Record(absl::string_view key, absl::string_view value) {
  const std::string key_bytes = absl::HexStringToBytes(key);
  const std::string value_bytes = absl::HexStringToBytes(value);
  const auto record = keys::Unseal(key_bytes, value_bytes);
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? std::string(*record) : "";
}

TEST(Format, Version1ModelDecodes) {
  EXPECT_EQ(absl::BytesToHexString(keys::OfModelRecord(kUid, "churn")), kModelKey);
  const auto model = codec::DecodeModel(kUid, Record(kModelKey, kModelValue));
  ASSERT_TRUE(model.ok()) << model.status();
  StoredModel expected;
  expected.uid = kUid;
  expected.name = "churn";
  expected.create_time = absl::FromUnixNanos(1700000000123456789);
  expected.config.loss = {"logistic", {}};
  expected.config.kernel = {"gaussian", {{"bandwidth", 0.5}}};
  expected.config.dimension = 3;
  expected.config.standardize = Standardize::kOn;
  expected.config.labels = {"no", "yes"};
  expected.config.max_labels = 2;
  expected.config.l2_penalty = 0.0;
  expected.config.update_rule = {"proximal", {{"step_constant", 1.0}}};
  expected.config.averaging = Averaging::kPolynomial;
  expected.config.seed = 42;
  expected.config.sampler = "iid";
  expected.config.feature_form = CosineForm::kSingle;
  expected.config.batch_rows = 64;
  expected.config.max_batch_delay_seconds = 0.02;
  expected.config.max_features = 8192;
  expected.config.when_full = WhenFull::kFreeze;
  expected.config.warmup_rows = 500;
  // What format 1 did not know: one learner, without metric and replay.
  expected.config.candidates = {{1}, {1}};
  expected.config.input_metric = InputMetric::kOff;
  expected.config.replay = {0, 16384, StreamOrder::kDrifting};
  expected.config.memory_mib = kMaxMemoryMib;
  expected.config.variance.features = 1024;
  expected.config.variance.coverage = 0.9;
  EXPECT_TRUE(Same(*model, expected));
}

TEST(Format, Version1LogDecodes) {
  EXPECT_EQ(absl::BytesToHexString(keys::OfLog(kUid, 17, keys::kRows)), kRowsKey);
  EXPECT_EQ(absl::BytesToHexString(keys::OfLog(kUid, 18, keys::kCut)), kCutKey);
  const auto rows = codec::DecodeRows(17, Record(kRowsKey, kRowsValue));
  ASSERT_TRUE(rows.ok()) << rows.status();
  RowsRecord expected;
  expected.first_sequence = 17;
  expected.producer_id = "p1";
  expected.producer_sequence = 5;
  expected.next_producer_sequence = 8;
  expected.rows.AddDense(std::vector<float>{1.0f, -2.5f, 3.25f});
  expected.rows.SetTarget(-0.125);
  expected.rows.AddSparse(std::vector<uint64_t>{2, 70000}, std::vector<float>{0.5f, -1.0f});
  expected.rows.SetLabel("yes");
  expected.rows.SetWeight(0.5f);
  EXPECT_TRUE(Same(*rows, expected));
  EXPECT_TRUE(codec::DecodeCut(18, Record(kCutKey, kCutValue)).ok());
}

TEST(Format, Version1TargetsOfEveryKindDecode) {
  RowsRecord expected;
  expected.first_sequence = 17;
  expected.rows.AddDense(std::vector<float>{1.0f});
  expected.rows.AddDense(std::vector<float>{2.0f});
  expected.rows.SetTargets(std::vector<double>{0.5, -3});
  expected.rows.AddDense(std::vector<float>{3.0f});
  expected.rows.SetPopulation(Population::kNumerator);
  expected.rows.AddDense(std::vector<float>{4.0f});
  expected.rows.SetPopulation(Population::kDenominator);
  expected.rows.AddDense(std::vector<float>{5.0f});
  expected.rows.SetTarget(7);
  expected.rows.AddDense(std::vector<float>{6.0f});
  expected.rows.SetTargets(std::vector<double>{4});
  const auto rows = codec::DecodeRows(17, Record(kRowsKey, kTargetsValue));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(Same(*rows, expected));
}

TEST(Format, Version1PositionsDecode) {
  EXPECT_EQ(absl::BytesToHexString(keys::OfLastSequence(kUid)), kLastSequenceKey);
  EXPECT_EQ(absl::BytesToHexString(keys::OfProducer(kUid, "p1")), kProducerKey);
  EXPECT_EQ(absl::BytesToHexString(keys::OfRequest(kUid, "call-1")), kRequestKey);
  EXPECT_EQ(absl::BytesToHexString(keys::OfRequestNumber(kUid, 3)), kRequestNumberKey);
  EXPECT_EQ(absl::BytesToHexString(keys::kFormat), kFormatKey);
  EXPECT_EQ(*codec::DecodeCounter(Record(kLastSequenceKey, kLastSequenceValue)), 18u);
  const auto position = codec::DecodeProducer(Record(kProducerKey, kProducerValue));
  EXPECT_EQ(position->next_producer_sequence, 8u);
  EXPECT_EQ(position->sequence, 18u);
  const auto request = codec::DecodeRequest("call-1", Record(kRequestKey, kRequestValue));
  EXPECT_EQ(request->number, 3u);
  EXPECT_EQ(request->answer, "answer");
  EXPECT_EQ(*codec::DecodeRequestNumber(Record(kRequestNumberKey, kRequestNumberValue)), "call-1");
  EXPECT_EQ(*codec::DecodeFormat(Record(kFormatKey, kFormatValue)), 1u);
}

TEST(Format, Version1CheckpointDecodes) {
  EXPECT_EQ(absl::BytesToHexString(keys::OfCheckpoint(kUid)), kCheckpointKey);
  EXPECT_EQ(absl::BytesToHexString(keys::OfChunk(kUid, 0, 0)), kChunkKey);
  auto state = codec::DecodeCheckpoint(Record(kCheckpointKey, kCheckpointValue));
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_EQ(state->candidates.size(), 1u);
  ASSERT_TRUE(
      codec::FillChunk(Record(kChunkKey, kChunkValue), 0, state->candidates[0].last.values).ok());
  state->candidates[0].average.values = {-1.0f};
  TrainerState expected;
  expected.step = 9;
  expected.updates = 8;
  expected.sequence = 18;
  expected.rows_learned = 17;
  expected.rows_skipped = 1;
  expected.divergences = 2;
  expected.num_features = 32;
  expected.cursor = 16;
  expected.dimension = 3;
  expected.input_dim = 4;
  expected.warm = true;
  expected.waiting.AddDense(std::vector<float>{4.0f});
  expected.waiting.SetTarget(0);
  expected.input_shift = {0.5f};
  expected.input_inverse_scale = {2.0f};
  expected.target_offsets = {0.25};
  expected.target_scales = {4};
  expected.kernel_parameters = {{"bandwidth", 1.5}};
  expected.rule_parameters = {{"step_constant", 1}};
  expected.labels = {"no", "yes"};
  expected.generations.emplace_back().median_distance = 1.5;
  CandidateState& candidate = expected.candidates.emplace_back();
  candidate.bandwidth = 1.5;
  candidate.steps_since_restart = 7;
  candidate.last.scale = 0.75;
  candidate.last.values = {1.0f, 2.0f};
  candidate.last.validation = {{1, 2}, {3, 4}, {5, 6}, 7, 8, 9, 10};
  candidate.average.scale = 1.25;
  candidate.average.values = {-1.0f};
  for (uint8_t i = 0; i < 16; ++i) expected.fingerprint[i] = i;
  EXPECT_TRUE(Same(*state, expected));
}

// A regression and a classification of version 1, whole: records and coefficients of a trained
// model, scores of its last two rows (MakeOldRows), and those after one more mini-batch of them.
struct OldModel {
  const char* model;
  const char* checkpoint;
  const char* last;
  const char* average;
  double scores[2], later[2];
};
const OldModel kOldModels[] = {
    {
        "0a06737175617265108080a8b1e39fe7cb171a82010a080a0673717561726512260a086761757373"
        "69616e121a0a0f62616e6477696474685f7363616c6511000000000000f03f200130e80739000000"
        "000000000042240a0870726f78696d616c12180a0d737465705f636f6e7374616e74110000000000"
        "00f03f480150075a036969646004697b14ae47e17a943f7810800101880108",
        "08081018181828103002380140014a0052080000c03e0000403f5a087368913f433df03f61000000"
        "000040f83f69c0fef7bffffbdf3f72140a0962616e647769647468111b52e89e9020fa3f721a0a0f"
        "62616e6477696474685f7363616c6511000000000000f03f7a180a0d737465705f636f6e7374616e"
        "7411000000000000f03f8a01b701091b52e89e9020fa3f125409000000000000f03f10101a470a12"
        "09ecf845bff58729401131b7e320bb16374012091131b7e320bb1637401a1209ecf845bff5873940"
        "1131b7e320bb163740213b75efa32a762a40313b75efa32a763a4038181a5409000000000000f03f"
        "10101a470a120943b5fb073afb29401131b7e320bb16374012091131b7e320bb1637401a120943b5"
        "fb073afb39401131b7e320bb1637402123eb90f9c8eb2a403123eb90f9c8eb3a4038182006920110"
        "cc2e50c07c564299185f9a248283e725980106b00102",
        "fe553fbff5b663bd08751e3dd9289ebc2659b23db17509be5861203ec6f88d3d2b20553df980bdbc"
        "1bac68be83aa043d785e1ebbef30823b3e2b82bd831e1c3e",
        "cd393fbfc117d3bc7435da3cc63633bd06a9b63d4eeca7bdfabe163ed863653d94b1463d0a16f2bc"
        "7aa65ebe4907953c115b293cb6c4bb3bf03049bd1efb023e",
        {-0x1.4b0b8ap+0, 0x1.547998p+0},
        {-0x1.63bf88p+0, 0x1.1587p+1},
    },
    {
        "0a086c6f676973746963108080a8b1e39fe7cb171a84010a0a0a086c6f67697374696312260a0867"
        "6175737369616e121a0a0f62616e6477696474685f7363616c6511000000000000f03f200130e807"
        "39000000000000000042240a0870726f78696d616c12180a0d737465705f636f6e7374616e741100"
        "0000000000f03f480150075a036969646004697b14ae47e17a943f7810800101880108",
        "08081018181828103002380140014a0052080000c03e0000403f5a087368913f433df03f69000000"
        "000000f03f72140a0962616e647769647468111b52e89e9020fa3f721a0a0f62616e647769647468"
        "5f7363616c6511000000000000f03f7a180a0d737465705f636f6e7374616e7411000000000000f0"
        "3f8201022d31820101318a01b701091b52e89e9020fa3f125409000000000000f03f10101a470a12"
        "0982c5366adc1b28401131b7e320bb16374012120925a2cb4204d40d401131b7e320bb1637401a09"
        "1131b7e320bb16374021f29b26265835294029000000000000104038181a5409000000000000f03f"
        "10101a470a12094991e358646c28401131b7e320bb16374012120925a2cb4204d40d401131b7e320"
        "bb1637401a091131b7e320bb16374021e076cbe18d87294029000000000000104038182006920110"
        "f9cf31b61744ee86c9b35080df070c38980106b00102",
        "307f03bf7eb5403e5194f93d9b8f4ebed76d3e3e6e62443ed7cf0abe8f418c3ceb2d8fbdec3efbbd"
        "77ea71be463abb3d8115b4bd899b443df9b2e43da40918bd",
        "04f304bf89bc383e57abed3de7253abe0876343e2608423ec179f3bd4862453cb3b563bde962dbbd"
        "1e7c58be0adc933d016a88bdefbc193dc04fb33d1841cebc",
        {-0x1.058708p+1, -0x1.1dc45ap-2},
        {-0x1.e87f8p+0, 0x1.d568b8p-4},
    },
};

SampleBatch MakeOldRows(const std::string& loss) {
  SampleBatch rows;
  for (int i = 0; i < 26; ++i) {
    const float x = static_cast<float>((i * 7) % 11) / 4 - 1;
    const float z = static_cast<float>((i * 5) % 13) / 8;
    rows.AddDense(std::vector<float>{x, z});
    rows.SetTarget(loss == "square" ? x * x + z : x > z ? 1 : -1);
  }
  return rows;
}

// Not only the bytes: the trainer takes the state over, fingerprint and all, and learns on from it.
TEST(Format, Version1ModelsAreServedAndLearnOn) {
  for (const OldModel& old : kOldModels) {
    const auto model = codec::DecodeModel(kUid, absl::HexStringToBytes(old.model));
    ASSERT_TRUE(model.ok()) << model.status();
    codec::RowCounts row_counts = {1, 1, 1};
    auto state = codec::DecodeCheckpoint(absl::HexStringToBytes(old.checkpoint), &row_counts);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(row_counts, codec::RowCounts());
    CandidateState& candidate = state->candidates.at(0);
    ASSERT_TRUE(codec::FillChunk(absl::HexStringToBytes(old.last), 0, candidate.last.values).ok());
    ASSERT_TRUE(
        codec::FillChunk(absl::HexStringToBytes(old.average), 0, candidate.average.values).ok());
    InlineExecutor executor;
    auto trainer = Trainer::Restore(model->config, *state, {&executor, nullptr});
    ASSERT_TRUE(trainer.ok()) << model->name << ": " << trainer.status();
    const SampleBatch rows = MakeOldRows(model->name);
    std::vector<double> scores(rows.size());
    (*trainer)->MakeSnapshot()->Score(rows, executor, scores.data());
    for (int i = 0; i < 2; ++i) EXPECT_NEAR(scores[24 + i], old.scores[i], 1e-5) << model->name;
    (*trainer)->Step(rows, 24, 2, 26);
    (*trainer)->MakeSnapshot()->Score(rows, executor, scores.data());
    for (int i = 0; i < 2; ++i) EXPECT_NEAR(scores[24 + i], old.later[i], 1e-5) << model->name;
    // What it saves now is of this version, and comes back too.
    const TrainerState saved = (*trainer)->Save();
    EXPECT_TRUE(Trainer::Restore(model->config, saved, {&executor, nullptr}).ok());
  }
}

TEST(Format, NoPrefixOfARecordCrashesADecoder) {
  const std::string checkpoint = Record(kCheckpointKey, kCheckpointValue);
  const std::string rows = Record(kRowsKey, kRowsValue);
  const std::string model = Record(kModelKey, kModelValue);
  for (size_t size = 0; size < checkpoint.size(); ++size) {
    const absl::string_view cut = absl::string_view(checkpoint).substr(0, size);
    codec::DecodeCheckpoint(cut).status().IgnoreError();
    codec::DecodeRows(1, absl::string_view(rows).substr(0, size)).status().IgnoreError();
    codec::DecodeModel(1, absl::string_view(model).substr(0, size)).status().IgnoreError();
  }
  for (size_t i = 0; i < rows.size() * 8; ++i) {
    std::string flipped = rows;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    codec::DecodeRows(1, flipped).status().IgnoreError();
  }
}

}  // namespace
}  // namespace kernelstream::server
