// Bytes of a version 1 data directory. They must decode to the same values for ever: a failure here
// means that servers would not read what older ones wrote. Never change the bytes; add new ones.
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
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
  expected.config.batch_rows = 64;
  expected.config.max_batch_delay_seconds = 0.02;
  expected.config.max_features = 8192;
  expected.config.when_full = WhenFull::kFreeze;
  expected.config.warmup_rows = 500;
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
  expected.rows.AddSparse(std::vector<uint32_t>{2, 70000}, std::vector<float>{0.5f, -1.0f});
  expected.rows.SetLabel("yes");
  expected.rows.SetWeight(0.5f);
  EXPECT_TRUE(Same(*rows, expected));
  EXPECT_TRUE(codec::DecodeCut(18, Record(kCutKey, kCutValue)).ok());
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
  expected.warmup.AddDense(std::vector<float>{4.0f});
  expected.warmup.SetTarget(0);
  expected.input_shift = {0.5f};
  expected.input_inverse_scale = {2.0f};
  expected.target_offsets = {0.25};
  expected.target_scales = {4};
  expected.kernel_parameters = {{"bandwidth", 1.5}};
  expected.rule_parameters = {{"step_constant", 1}};
  expected.labels = {"no", "yes"};
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
