#include "server/store/codec.h"

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernelstream/storage/v1/record.pb.h"
#include "server/store/record_bytes.h"
#include "server/store/rows_codec.h"

namespace kernelstream::server::codec {
namespace {

namespace v1 = storage::v1;

// EnumToRecord and EnumFromRecord rest on these.
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
static_assert(static_cast<int>(InputMetric::kAuto) == v1::ConfigRecord::INPUT_METRIC_AUTO - 1);
static_assert(static_cast<int>(InputMetric::kOff) == v1::ConfigRecord::INPUT_METRIC_OFF - 1);
static_assert(static_cast<int>(InputMetric::kDiagonal) ==
              v1::ConfigRecord::INPUT_METRIC_DIAGONAL - 1);
static_assert(static_cast<int>(InputMetric::kFull) == v1::ConfigRecord::INPUT_METRIC_FULL - 1);
static_assert(static_cast<int>(StreamOrder::kDrifting) == v1::ReplayRecord::ORDER_DRIFTING - 1);
static_assert(static_cast<int>(StreamOrder::kOrdered) == v1::ReplayRecord::ORDER_ORDERED - 1);

void ToRecord(const ComponentConfig& component, v1::ComponentRecord& out) {
  out.set_name(component.name);
  for (const auto& [name, value] : component.parameters) (*out.mutable_parameters())[name] = value;
  for (const ComponentTerm& term : component.terms) {
    v1::ComponentTermRecord& added = *out.add_terms();
    added.set_weight(term.weight);
    ToRecord(term.component, *added.mutable_component());
  }
}

ComponentConfig FromRecord(const v1::ComponentRecord& record) {
  ComponentConfig component = {record.name(),
                               {record.parameters().begin(), record.parameters().end()}};
  for (const v1::ComponentTermRecord& term : record.terms()) {
    component.terms.push_back({term.weight(), FromRecord(term.component())});
  }
  return component;
}

void ToRecord(const VarianceConfig& config, v1::VarianceConfigRecord& out) {
  out.set_method(EnumToRecord<v1::VarianceConfigRecord::Method>(config.method));
  out.set_features(config.features);
  if (config.noise_variance) out.set_noise_variance(*config.noise_variance);
  out.set_coverage(config.coverage);
  for (const std::vector<float>& point : config.test_points) {
    out.add_test_points(std::string(BytesOf(std::span<const float>(point))));
  }
}

absl::Status FromRecord(const v1::VarianceConfigRecord& record, VarianceConfig& out) {
  if (!EnumFromRecord(record.method(), VarianceMethod::kQuantilePair, out.method)) {
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
  out.set_standardize(EnumToRecord<v1::ConfigRecord::Standardize>(config.standardize));
  for (const std::string& label : config.labels) out.add_labels(label);
  out.set_max_labels(config.max_labels);
  if (config.l2_penalty) out.set_l2_penalty(*config.l2_penalty);
  ToRecord(config.update_rule, *out.mutable_update_rule());
  out.set_averaging(EnumToRecord<v1::ConfigRecord::Averaging>(config.averaging));
  if (config.seed) out.set_seed(*config.seed);
  out.set_sampler(config.sampler);
  out.set_batch_rows(config.batch_rows);
  if (config.max_batch_delay_seconds) {
    out.set_max_batch_delay_seconds(*config.max_batch_delay_seconds);
  }
  out.set_block_features(config.block_features);
  out.set_max_features(config.max_features);
  out.set_when_full(EnumToRecord<v1::ConfigRecord::WhenFull>(config.when_full));
  out.set_warmup_rows(config.warmup_rows);
  ToRecord(config.variance, *out.mutable_variance());
  v1::CandidateGridRecord& grid = *out.mutable_candidates();
  for (const double scale : config.candidates.bandwidth_scales) grid.add_bandwidth_scales(scale);
  for (const double constant : config.candidates.step_constants) grid.add_step_constants(constant);
  out.set_input_metric(EnumToRecord<v1::ConfigRecord::InputMetric>(config.input_metric));
  if (config.replay.ratio) out.mutable_replay()->set_ratio(*config.replay.ratio);
  out.mutable_replay()->set_reservoir_rows(config.replay.reservoir_rows);
  out.mutable_replay()->set_order(EnumToRecord<v1::ReplayRecord::Order>(config.replay.order));
  out.set_memory_mib(config.memory_mib);
  out.set_hashed(config.hashed);
  Copy(config.input_scales.offsets, out.mutable_input_offsets());
  Copy(config.input_scales.scales, out.mutable_input_scales());
  Copy(config.target_scales.offsets, out.mutable_target_offsets());
  Copy(config.target_scales.scales, out.mutable_target_scales());
  if (config.feature_form != CosineForm::kSingle) {
    out.set_feature_form(EnumToRecord<v1::ConfigRecord::FeatureForm>(config.feature_form));
  }
}

// What a config of format 1 stands for, in the words of this version.
void SetSingleLearner(ModelConfig& config) {
  config.candidates.bandwidth_scales = {1};
  const auto step_constant = config.update_rule.parameters.find("step_constant");
  if (config.update_rule.name == "proximal" &&
      step_constant != config.update_rule.parameters.end()) {
    config.candidates.step_constants = {step_constant->second};
  }
  config.input_metric = InputMetric::kOff;
  config.replay = {.ratio = 0, .reservoir_rows = 16384, .order = StreamOrder::kDrifting};
  config.memory_mib = kMaxMemoryMib;
}

absl::Status FromRecord(const v1::ConfigRecord& record, ModelConfig& out) {
  out.loss = FromRecord(record.loss());
  out.kernel = FromRecord(record.kernel());
  out.dimension = record.dimension();
  out.hashed = record.hashed();
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
  const absl::Status unknown =
      absl::DataLossError("a config record holds a value that is not known");
  // Absent in older records, whose models keep their features.
  out.feature_form = CosineForm::kSingle;
  if (record.feature_form() != v1::ConfigRecord::FEATURE_FORM_UNSPECIFIED &&
      !EnumFromRecord(record.feature_form(), CosineForm::kPair, out.feature_form)) {
    return unknown;
  }
  Copy(record.input_offsets(), out.input_scales.offsets);
  Copy(record.input_scales(), out.input_scales.scales);
  Copy(record.target_offsets(), out.target_scales.offsets);
  Copy(record.target_scales(), out.target_scales.scales);
  for (const GivenScales* given : {&out.input_scales, &out.target_scales}) {
    if (given->offsets.size() == given->scales.size()) continue;
    return absl::DataLossError("a config record has more scales than offsets, or fewer");
  }
  if (!EnumFromRecord(record.standardize(), Standardize::kOff, out.standardize) ||
      !EnumFromRecord(record.averaging(), Averaging::kUniform, out.averaging) ||
      !EnumFromRecord(record.when_full(), WhenFull::kFreeze, out.when_full)) {
    return unknown;
  }
  if (!record.has_candidates()) {
    SetSingleLearner(out);
    return absl::OkStatus();
  }
  const v1::CandidateGridRecord& grid = record.candidates();
  out.candidates.bandwidth_scales.assign(grid.bandwidth_scales().begin(),
                                         grid.bandwidth_scales().end());
  out.candidates.step_constants.assign(grid.step_constants().begin(), grid.step_constants().end());
  if (record.replay().has_ratio()) out.replay.ratio = record.replay().ratio();
  out.replay.reservoir_rows = record.replay().reservoir_rows();
  out.memory_mib = record.memory_mib();
  if (!EnumFromRecord(record.input_metric(), InputMetric::kFull, out.input_metric) ||
      !EnumFromRecord(record.replay().order(), StreamOrder::kOrdered, out.replay.order)) {
    return unknown;
  }
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

}  // namespace kernelstream::server::codec
