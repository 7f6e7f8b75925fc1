#include "server/store/codec.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message_lite.h"
#include "kernelstream/storage/v1/record.pb.h"
#include "server/store/rows_codec.h"
#include "server/store/variance_codec.h"

namespace kernelstream::server::codec {
namespace {

namespace v1 = storage::v1;

// Maps are written in key order.
std::string Serialize(const google::protobuf::MessageLite& message) {
  std::string out;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return out;
}

absl::Status Parse(absl::string_view bytes, google::protobuf::MessageLite& message) {
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError(absl::StrCat("not a ", message.GetTypeName()));
  }
  return absl::OkStatus();
}

// The code's enumerations start at 0 and the file's at 1, in the same order; this file is where
// that is fixed.
static_assert(static_cast<int>(Standardize::kAuto) == v1::ConfigRecord::STANDARDIZE_AUTO - 1);
static_assert(static_cast<int>(Standardize::kOn) == v1::ConfigRecord::STANDARDIZE_ON - 1);
static_assert(static_cast<int>(Standardize::kOff) == v1::ConfigRecord::STANDARDIZE_OFF - 1);
static_assert(static_cast<int>(Averaging::kAuto) == v1::ConfigRecord::AVERAGING_AUTO - 1);
static_assert(static_cast<int>(Averaging::kLast) == v1::ConfigRecord::AVERAGING_LAST - 1);
static_assert(static_cast<int>(Averaging::kPolynomial) ==
              v1::ConfigRecord::AVERAGING_POLYNOMIAL - 1);
static_assert(static_cast<int>(Averaging::kUniform) == v1::ConfigRecord::AVERAGING_UNIFORM - 1);
static_assert(static_cast<int>(WhenFull::kKeepLearning) ==
              v1::ConfigRecord::WHEN_FULL_KEEP_LEARNING - 1);
static_assert(static_cast<int>(WhenFull::kFreeze) == v1::ConfigRecord::WHEN_FULL_FREEZE - 1);
static_assert(static_cast<int>(VarianceMethod::kNone) == v1::VarianceConfigRecord::METHOD_NONE - 1);
static_assert(static_cast<int>(VarianceMethod::kExact) ==
              v1::VarianceConfigRecord::METHOD_EXACT - 1);
static_assert(static_cast<int>(VarianceMethod::kOperator) ==
              v1::VarianceConfigRecord::METHOD_OPERATOR - 1);
static_assert(static_cast<int>(VarianceMethod::kTestPoints) ==
              v1::VarianceConfigRecord::METHOD_TEST_POINTS - 1);
static_assert(static_cast<int>(VarianceMethod::kQuantilePair) ==
              v1::VarianceConfigRecord::METHOD_QUANTILE_PAIR - 1);

template <typename Record, typename Enum>
Record ToRecord(Enum value) {
  return static_cast<Record>(static_cast<int>(value) + 1);
}

// False: a number this version does not know.
template <typename Enum>
bool FromRecord(int record, Enum last, Enum& out) {
  if (record < 1 || record > static_cast<int>(last) + 1) return false;
  out = static_cast<Enum>(record - 1);
  return true;
}

void ToRecord(const ComponentConfig& component, v1::ComponentRecord& out) {
  out.set_name(component.name);
  for (const auto& [name, value] : component.parameters) (*out.mutable_parameters())[name] = value;
}

ComponentConfig FromRecord(const v1::ComponentRecord& record) {
  return {record.name(), {record.parameters().begin(), record.parameters().end()}};
}

void ToRecord(const VarianceConfig& config, v1::VarianceConfigRecord& out) {
  out.set_method(ToRecord<v1::VarianceConfigRecord::Method>(config.method));
  out.set_features(config.features);
  if (config.noise_variance) out.set_noise_variance(*config.noise_variance);
  out.set_coverage(config.coverage);
  for (const std::vector<float>& point : config.test_points) {
    out.add_test_points(std::string(BytesOf(std::span<const float>(point))));
  }
}

absl::Status FromRecord(const v1::VarianceConfigRecord& record, VarianceConfig& out) {
  if (!FromRecord(record.method(), VarianceMethod::kQuantilePair, out.method)) {
    return absl::DataLossError("a config record holds a variance method that is not known");
  }
  out.features = record.features();
  if (record.has_noise_variance()) out.noise_variance = record.noise_variance();
  out.coverage = record.coverage();
  for (const std::string& bytes : record.test_points()) {
    std::vector<float>& point = out.test_points.emplace_back();
    if (!ReadArray(bytes, point)) {
      return absl::DataLossError("a config record holds a broken test point");
    }
  }
  return absl::OkStatus();
}

void ToRecord(const ModelConfig& config, v1::ConfigRecord& out) {
  ToRecord(config.loss, *out.mutable_loss());
  ToRecord(config.kernel, *out.mutable_kernel());
  out.set_dimension(config.dimension);
  out.set_standardize(ToRecord<v1::ConfigRecord::Standardize>(config.standardize));
  for (const std::string& label : config.labels) out.add_labels(label);
  out.set_max_labels(config.max_labels);
  if (config.l2_penalty) out.set_l2_penalty(*config.l2_penalty);
  ToRecord(config.update_rule, *out.mutable_update_rule());
  out.set_averaging(ToRecord<v1::ConfigRecord::Averaging>(config.averaging));
  if (config.seed) out.set_seed(*config.seed);
  out.set_sampler(config.sampler);
  out.set_batch_rows(config.batch_rows);
  if (config.max_batch_delay_seconds) {
    out.set_max_batch_delay_seconds(*config.max_batch_delay_seconds);
  }
  out.set_block_features(config.block_features);
  out.set_max_features(config.max_features);
  out.set_when_full(ToRecord<v1::ConfigRecord::WhenFull>(config.when_full));
  out.set_warmup_rows(config.warmup_rows);
  ToRecord(config.variance, *out.mutable_variance());
}

absl::Status FromRecord(const v1::ConfigRecord& record, ModelConfig& out) {
  out.loss = FromRecord(record.loss());
  out.kernel = FromRecord(record.kernel());
  out.dimension = record.dimension();
  out.labels.assign(record.labels().begin(), record.labels().end());
  out.max_labels = record.max_labels();
  if (record.has_l2_penalty()) out.l2_penalty = record.l2_penalty();
  out.update_rule = FromRecord(record.update_rule());
  if (record.has_seed()) out.seed = record.seed();
  out.sampler = record.sampler();
  out.batch_rows = record.batch_rows();
  if (record.has_max_batch_delay_seconds()) {
    out.max_batch_delay_seconds = record.max_batch_delay_seconds();
  }
  out.block_features = record.block_features();
  out.max_features = record.max_features();
  out.warmup_rows = record.warmup_rows();
  // Absent in older records, whose models have none.
  if (record.has_variance()) {
    if (absl::Status s = FromRecord(record.variance(), out.variance); !s.ok()) return s;
  } else {
    out.variance.features = 1024;
    out.variance.coverage = 0.9;
  }
  if (!FromRecord(record.standardize(), Standardize::kOff, out.standardize) ||
      !FromRecord(record.averaging(), Averaging::kUniform, out.averaging) ||
      !FromRecord(record.when_full(), WhenFull::kFreeze, out.when_full)) {
    return absl::DataLossError("a config record holds a value that is not known");
  }
  return absl::OkStatus();
}

void ToRecord(const DecayedMean& mean, v1::MeanRecord& out) {
  out.set_sum(mean.sum);
  out.set_weight(mean.weight);
}

DecayedMean FromRecord(const v1::MeanRecord& record) { return {record.sum(), record.weight()}; }

void ToRecord(const CoefficientState& state, v1::CoefficientRecord& out) {
  out.set_scale(state.scale);
  out.set_num_values(state.values.size());
  v1::ValidationRecord& validation = *out.mutable_validation();
  ToRecord(state.validation.recent_loss, *validation.mutable_recent_loss());
  ToRecord(state.validation.recent_errors, *validation.mutable_recent_errors());
  ToRecord(state.validation.recent_squares, *validation.mutable_recent_squares());
  validation.set_total_loss(state.validation.total_loss);
  validation.set_total_errors(state.validation.total_errors);
  validation.set_total_squares(state.validation.total_squares);
  validation.set_rows(state.validation.rows);
}

absl::Status FromRecord(const v1::CoefficientRecord& record, CoefficientState& out) {
  // More than any config allows: a damaged size must not become an allocation.
  constexpr uint64_t kMostValues = uint64_t{1} << 36;
  if (record.num_values() > kMostValues) return absl::DataLossError("too many coefficients");
  out.scale = record.scale();
  out.values.resize(record.num_values());
  const v1::ValidationRecord& validation = record.validation();
  out.validation.recent_loss = FromRecord(validation.recent_loss());
  out.validation.recent_errors = FromRecord(validation.recent_errors());
  out.validation.recent_squares = FromRecord(validation.recent_squares());
  out.validation.total_loss = validation.total_loss();
  out.validation.total_errors = validation.total_errors();
  out.validation.total_squares = validation.total_squares();
  out.validation.rows = validation.rows();
  return absl::OkStatus();
}

}  // namespace

std::string EncodeFormat(uint32_t version) {
  v1::FormatRecord record;
  record.set_version(version);
  return Serialize(record);
}

absl::StatusOr<uint32_t> DecodeFormat(absl::string_view bytes) {
  v1::FormatRecord record;
  if (absl::Status status = Parse(bytes, record); !status.ok()) return status;
  return record.version();
}

std::string EncodeCounter(uint64_t value) {
  v1::CounterRecord record;
  record.set_value(value);
  return Serialize(record);
}

absl::StatusOr<uint64_t> DecodeCounter(absl::string_view bytes) {
  v1::CounterRecord record;
  if (absl::Status status = Parse(bytes, record); !status.ok()) return status;
  return record.value();
}

std::string EncodeModel(const StoredModel& model) {
  v1::ModelRecord record;
  record.set_name(model.name);
  record.set_create_time_unix_nanos(absl::ToUnixNanos(model.create_time));
  ToRecord(model.config, *record.mutable_config());
  return Serialize(record);
}

absl::StatusOr<StoredModel> DecodeModel(ModelUid uid, absl::string_view bytes) {
  v1::ModelRecord record;
  if (absl::Status status = Parse(bytes, record); !status.ok()) return status;
  StoredModel model;
  model.uid = uid;
  model.name = record.name();
  model.create_time = absl::FromUnixNanos(record.create_time_unix_nanos());
  if (absl::Status status = FromRecord(record.config(), model.config); !status.ok()) return status;
  return model;
}

std::string EncodeRows(const RowsRecord& record) {
  v1::RowsLogRecord out;
  EncodeRowsBlock(record.rows, *out.mutable_rows());
  out.set_producer_id(record.producer_id);
  out.set_producer_sequence(record.producer_sequence);
  out.set_next_producer_sequence(record.next_producer_sequence);
  return Serialize(out);
}

absl::StatusOr<RowsRecord> DecodeRows(uint64_t first_sequence, absl::string_view bytes) {
  v1::RowsLogRecord record;
  if (absl::Status status = Parse(bytes, record); !status.ok()) return status;
  RowsRecord out;
  out.first_sequence = first_sequence;
  out.producer_id = record.producer_id();
  out.producer_sequence = record.producer_sequence();
  out.next_producer_sequence = record.next_producer_sequence();
  if (absl::Status status = DecodeRowsBlock(record.rows(), out.rows); !status.ok()) return status;
  if (out.rows.empty()) return absl::DataLossError("a rows record holds no row");
  return out;
}

std::string EncodeCut() { return Serialize(v1::CutLogRecord()); }

absl::StatusOr<CutRecord> DecodeCut(uint64_t sequence, absl::string_view bytes) {
  v1::CutLogRecord record;
  if (absl::Status status = Parse(bytes, record); !status.ok()) return status;
  return CutRecord{sequence};
}

std::string EncodeProducer(const ProducerPosition& position) {
  v1::ProducerRecord record;
  record.set_next_producer_sequence(position.next_producer_sequence);
  record.set_sequence(position.sequence);
  return Serialize(record);
}

absl::StatusOr<ProducerPosition> DecodeProducer(absl::string_view bytes) {
  v1::ProducerRecord record;
  if (absl::Status status = Parse(bytes, record); !status.ok()) return status;
  return ProducerPosition{record.next_producer_sequence(), record.sequence()};
}

std::string EncodeRequest(const RequestRecord& request) {
  v1::RequestAnswerRecord record;
  record.set_number(request.number);
  record.set_answer(request.answer);
  return Serialize(record);
}

absl::StatusOr<RequestRecord> DecodeRequest(absl::string_view request_id, absl::string_view bytes) {
  v1::RequestAnswerRecord record;
  if (absl::Status status = Parse(bytes, record); !status.ok()) return status;
  return RequestRecord{std::string(request_id), record.number(), record.answer()};
}

std::string EncodeRequestNumber(absl::string_view request_id) {
  v1::RequestNumberRecord record;
  record.set_request_id(std::string(request_id));
  return Serialize(record);
}

absl::StatusOr<std::string> DecodeRequestNumber(absl::string_view bytes) {
  v1::RequestNumberRecord record;
  if (absl::Status status = Parse(bytes, record); !status.ok()) return status;
  return record.request_id();
}

std::string EncodeCheckpoint(const TrainerState& state) {
  v1::CheckpointRecord record;
  record.set_step(state.step);
  record.set_updates(state.updates);
  record.set_divergences(state.divergences);
  record.set_cursor(state.cursor);
  record.set_dimension(state.dimension);
  record.set_sequence(state.sequence);
  record.set_rows_learned(state.rows_learned);
  record.set_rows_skipped(state.rows_skipped);
  record.set_num_features(state.num_features);
  record.set_input_dim(state.input_dim);
  record.set_num_outputs(state.num_outputs);
  record.set_warm(state.warm);
  EncodeRowsBlock(state.warmup, *record.mutable_warmup());
  record.set_input_shift(std::string(BytesOf(std::span<const float>(state.input_shift))));
  record.set_input_inverse_scale(
      std::string(BytesOf(std::span<const float>(state.input_inverse_scale))));
  if (!state.target_scales.empty()) {
    record.set_target_offset(state.target_offsets[0]);
    record.set_target_scale(state.target_scales[0]);
  }
  record.mutable_kernel_parameters()->insert(state.kernel_parameters.begin(),
                                             state.kernel_parameters.end());
  record.mutable_rule_parameters()->insert(state.rule_parameters.begin(),
                                           state.rule_parameters.end());
  for (const std::string& label : state.labels) record.add_labels(label);
  for (const CandidateState& candidate : state.candidates) {
    v1::CandidateRecord& out = *record.add_candidates();
    out.set_bandwidth(candidate.bandwidth);
    ToRecord(candidate.last, *out.mutable_last());
    ToRecord(candidate.average, *out.mutable_average());
    out.set_steps_since_restart(candidate.steps_since_restart);
  }
  EncodeVariance(state, record);
  record.set_fingerprint(state.fingerprint.data(), state.fingerprint.size());
  return Serialize(record);
}

absl::StatusOr<TrainerState> DecodeCheckpoint(absl::string_view bytes) {
  v1::CheckpointRecord record;
  if (absl::Status status = Parse(bytes, record); !status.ok()) return status;
  TrainerState state;
  state.step = record.step();
  state.updates = record.updates();
  state.divergences = record.divergences();
  state.cursor = record.cursor();
  state.dimension = record.dimension();
  state.sequence = record.sequence();
  state.rows_learned = record.rows_learned();
  state.rows_skipped = record.rows_skipped();
  state.num_features = record.num_features();
  state.input_dim = record.input_dim();
  state.num_outputs = record.num_outputs();
  state.warm = record.warm();
  if (absl::Status status = DecodeRowsBlock(record.warmup(), state.warmup); !status.ok()) {
    return status;
  }
  if (!ReadArray(record.input_shift(), state.input_shift) ||
      !ReadArray(record.input_inverse_scale(), state.input_inverse_scale)) {
    return absl::DataLossError("a checkpoint record's input scales are cut");
  }
  if (record.target_scale() > 0) state.target_offsets = {record.target_offset()};
  if (record.target_scale() > 0) state.target_scales = {record.target_scale()};
  state.kernel_parameters = {record.kernel_parameters().begin(), record.kernel_parameters().end()};
  state.rule_parameters = {record.rule_parameters().begin(), record.rule_parameters().end()};
  state.labels.assign(record.labels().begin(), record.labels().end());
  for (const v1::CandidateRecord& candidate : record.candidates()) {
    CandidateState& out = state.candidates.emplace_back();
    out.bandwidth = candidate.bandwidth();
    out.steps_since_restart = candidate.steps_since_restart();
    if (absl::Status status = FromRecord(candidate.last(), out.last); !status.ok()) return status;
    if (absl::Status status = FromRecord(candidate.average(), out.average); !status.ok()) {
      return status;
    }
  }
  if (absl::Status s = DecodeVariance(record, state); !s.ok()) return s;
  if (record.fingerprint().size() != state.fingerprint.size()) {
    return absl::DataLossError("a checkpoint record's fingerprint is not 16 bytes");
  }
  std::copy(record.fingerprint().begin(), record.fingerprint().end(), state.fingerprint.begin());
  return state;
}

absl::string_view ChunkBytes(const std::vector<float>& values, size_t chunk) {
  const std::span<const float> all = values;
  const size_t first = chunk * kChunkValues;
  return BytesOf(all.subspan(first, std::min(kChunkValues, all.size() - first)));
}

absl::Status FillChunk(absl::string_view bytes, size_t chunk, std::vector<float>& values) {
  if (bytes.size() != ChunkBytes(values, chunk).size()) {
    return absl::DataLossError("a coefficient chunk has the wrong size");
  }
  std::memcpy(values.data() + chunk * kChunkValues, bytes.data(), bytes.size());
  return absl::OkStatus();
}

}  // namespace kernelstream::server::codec
