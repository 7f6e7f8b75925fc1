#include "client/src/convert.h"

#include "absl/strings/cord.h"

namespace kernelstream::client {
namespace {

// The enums of client.h have the numbers of the wire; these lines keep it so.
static_assert(static_cast<int>(Averaging::kUniform) == v1::AVERAGING_UNIFORM);
static_assert(static_cast<int>(Averaging::kPolynomial) == v1::AVERAGING_POLYNOMIAL);
static_assert(static_cast<int>(Averaging::kLast) == v1::AVERAGING_LAST);
static_assert(static_cast<int>(WhenFull::kFreeze) == v1::WHEN_FULL_FREEZE);
static_assert(static_cast<int>(Standardize::kAuto) == v1::STANDARDIZE_AUTO);
static_assert(static_cast<int>(Standardize::kOff) == v1::STANDARDIZE_OFF);
static_assert(static_cast<int>(FeatureForm::kAuto) == v1::FEATURE_FORM_AUTO);
static_assert(static_cast<int>(FeatureForm::kPair) == v1::FEATURE_FORM_PAIR);
static_assert(static_cast<int>(InputMetric::kAuto) == v1::INPUT_METRIC_AUTO);
static_assert(static_cast<int>(InputMetric::kFull) == v1::INPUT_METRIC_FULL);
static_assert(static_cast<int>(StreamOrder::kOrdered) == v1::STREAM_ORDER_ORDERED);
static_assert(static_cast<int>(WarningKind::kFarTargets) == v1::Warning::KIND_FAR_TARGETS);
static_assert(static_cast<int>(Phase::kWarmingUp) == v1::PHASE_WARMING_UP);
static_assert(static_cast<int>(Phase::kFailed) == v1::PHASE_FAILED);
static_assert(static_cast<int>(AckLevel::kApplied) == v1::ACK_LEVEL_APPLIED);
static_assert(static_cast<int>(PredictionOutput::kValue) == v1::PREDICTION_OUTPUT_VALUE);
static_assert(static_cast<int>(PredictionOutput::kPredictionInterval) ==
              v1::PREDICTION_OUTPUT_PREDICTION_INTERVAL);
static_assert(static_cast<int>(VarianceMethod::kNone) == v1::VARIANCE_METHOD_NONE);
static_assert(static_cast<int>(VarianceMethod::kExact) == v1::VARIANCE_METHOD_EXACT);
static_assert(static_cast<int>(VarianceMethod::kQuantilePair) == v1::VARIANCE_METHOD_QUANTILE_PAIR);

void Fill(const Component& from, v1::Component* to) {
  to->set_name(from.name);
  for (const auto& [name, value] : from.parameters) (*to->mutable_parameters())[name] = value;
  for (const ComponentTerm& term : from.terms) {
    v1::Component::Term* added = to->add_terms();
    added->set_weight(term.weight);
    Fill(term.component, added->mutable_component());
  }
}

// A repeated field and a vector, either way.
void Copy(const std::vector<double>& from, google::protobuf::RepeatedField<double>* to) {
  to->Add(from.begin(), from.end());
}
void Copy(const google::protobuf::RepeatedField<double>& from, std::vector<double>* to) {
  to->assign(from.begin(), from.end());
}

bool IsEmpty(const Component& component) {
  return component.name.empty() && component.parameters.empty() && component.terms.empty();
}

template <typename Map>
Component MakeComponent(const std::string& name, const Map& parameters) {
  Component component;
  component.name = name;
  for (const auto& [key, value] : parameters) component.parameters[key] = value;
  return component;
}

Component FromProto(const v1::Component& from) {
  Component component = MakeComponent(from.name(), from.parameters());
  for (const v1::Component::Term& term : from.terms()) {
    component.terms.push_back({term.has_weight() ? term.weight() : 1, FromProto(term.component())});
  }
  return component;
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

void Fill(absl::Duration from, google::protobuf::Duration* to) {
  absl::Duration rest;
  to->set_seconds(absl::IDivDuration(from, absl::Seconds(1), &rest));
  to->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

void Fill(const ResolvedVariance& from, v1::ResolvedVariance* to) {
  to->set_method(static_cast<v1::VarianceMethod>(from.method));
  to->set_features(from.features);
  to->set_coverage(from.coverage);
  to->set_noise_variance(from.noise_variance);
  to->set_interval_factor(from.interval_factor);
  to->set_bandwidth(from.bandwidth);
  to->set_rows(from.rows);
  to->set_serves_mean(from.serves_mean);
}

ResolvedVariance FromProto(const v1::ResolvedVariance& from) {
  return {.method = static_cast<VarianceMethod>(from.method()),
          .features = from.features(),
          .coverage = from.coverage(),
          .noise_variance = from.noise_variance(),
          .interval_factor = from.interval_factor(),
          .bandwidth = from.bandwidth(),
          .rows = from.rows(),
          .serves_mean = from.serves_mean()};
}

void Fill(const ResolvedConfig& from, v1::ResolvedConfig* to) {
  to->set_dimension(from.dimension);
  to->set_kernel(from.kernel.name);
  to->set_loss(from.loss.name);
  to->set_update_rule(from.update_rule.name);
  to->mutable_kernel_parameters()->insert(from.kernel.parameters.begin(),
                                          from.kernel.parameters.end());
  to->mutable_loss_parameters()->insert(from.loss.parameters.begin(), from.loss.parameters.end());
  to->mutable_update_rule_parameters()->insert(from.update_rule.parameters.begin(),
                                               from.update_rule.parameters.end());
  for (const std::string& label : from.labels) to->add_labels(label);
  to->set_standardized_inputs(from.standardized_inputs);
  Copy(from.input_offsets, to->mutable_input_offsets());
  Copy(from.input_scales, to->mutable_input_scales());
  Copy(from.input_relevance, to->mutable_input_relevance());
  to->set_target_offset(from.target_offset);
  to->set_target_scale(from.target_scale);
  Copy(from.target_offsets, to->mutable_target_offsets());
  Copy(from.target_scales, to->mutable_target_scales());
  to->set_threshold(from.threshold);
  to->set_max_features(from.max_features);
  to->set_batch_rows(from.batch_rows);
  to->set_seed(from.seed);
  to->set_serving(static_cast<v1::Averaging>(from.serving));
  to->set_l2_penalty(from.l2_penalty);
  for (const CandidateReport& candidate : from.candidates) {
    v1::CandidateReport* added = to->add_candidates();
    added->set_generation(candidate.generation);
    added->set_metric(static_cast<v1::InputMetric>(candidate.metric));
    added->set_bandwidth(candidate.bandwidth);
    added->set_step_constant(candidate.step_constant);
    added->set_replays(candidate.replays);
    added->set_recent_loss(candidate.recent_loss);
    added->set_recent_average_loss(candidate.recent_average_loss);
    added->set_served(candidate.served);
    if (!candidate.served) continue;
    to->set_served_bandwidth(added->bandwidth());
    to->set_served_step_constant(added->step_constant());
    to->set_served_metric(added->metric());
  }
  if (from.variance) Fill(*from.variance, to->mutable_variance());
}

ResolvedConfig FromProto(const v1::ResolvedConfig& from) {
  ResolvedConfig to;
  to.dimension = from.dimension();
  to.kernel = MakeComponent(from.kernel(), from.kernel_parameters());
  to.loss = MakeComponent(from.loss(), from.loss_parameters());
  to.update_rule = MakeComponent(from.update_rule(), from.update_rule_parameters());
  to.labels.assign(from.labels().begin(), from.labels().end());
  to.standardized_inputs = from.standardized_inputs();
  Copy(from.input_offsets(), &to.input_offsets);
  Copy(from.input_scales(), &to.input_scales);
  Copy(from.input_relevance(), &to.input_relevance);
  to.target_offset = from.target_offset();
  to.target_scale = from.target_scale();
  Copy(from.target_offsets(), &to.target_offsets);
  Copy(from.target_scales(), &to.target_scales);
  to.threshold = from.threshold();
  to.max_features = from.max_features();
  to.batch_rows = from.batch_rows();
  to.seed = from.seed();
  to.serving = static_cast<Averaging>(from.serving());
  to.l2_penalty = from.l2_penalty();
  for (const v1::CandidateReport& candidate : from.candidates()) {
    to.candidates.push_back({.generation = candidate.generation(),
                             .metric = static_cast<InputMetric>(candidate.metric()),
                             .bandwidth = candidate.bandwidth(),
                             .step_constant = candidate.step_constant(),
                             .replays = candidate.replays(),
                             .recent_loss = candidate.recent_loss(),
                             .recent_average_loss = candidate.recent_average_loss(),
                             .served = candidate.served()});
  }
  if (from.has_variance()) to.variance = FromProto(from.variance());
  return to;
}

void Fill(const VarianceConfig& from, v1::VarianceConfig* to) {
  to->set_method(static_cast<v1::VarianceMethod>(from.method));
  to->set_features(from.features);
  if (from.noise_variance) to->set_noise_variance(*from.noise_variance);
  to->set_coverage(from.coverage);
  for (const std::vector<float>& point : from.test_points) {
    to->add_test_points()->mutable_values()->Add(point.begin(), point.end());
  }
}

VarianceConfig FromProto(const v1::VarianceConfig& from) {
  VarianceConfig to;
  to.method = static_cast<VarianceMethod>(from.method());
  to.features = from.features();
  if (from.has_noise_variance()) to.noise_variance = from.noise_variance();
  to.coverage = from.coverage();
  for (const v1::TestPoint& point : from.test_points()) {
    to.test_points.emplace_back(point.values().begin(), point.values().end());
  }
  return to;
}

void Fill(const std::vector<ClassMetrics>& from,
          google::protobuf::RepeatedPtrField<v1::ClassMetrics>* to) {
  for (const ClassMetrics& metrics : from) {
    v1::ClassMetrics* added = to->Add();
    added->set_label(metrics.label);
    added->set_weight(metrics.weight);
    added->set_precision(metrics.precision);
    added->set_recall(metrics.recall);
    added->set_f1(metrics.f1);
  }
}

std::vector<ClassMetrics> FromProto(
    const google::protobuf::RepeatedPtrField<v1::ClassMetrics>& from) {
  std::vector<ClassMetrics> to;
  for (const v1::ClassMetrics& metrics : from) {
    to.push_back({.label = metrics.label(),
                  .weight = metrics.weight(),
                  .precision = metrics.precision(),
                  .recall = metrics.recall(),
                  .f1 = metrics.f1()});
  }
  return to;
}

void Fill(const Metrics& from, v1::Metrics* to) {
  to->mutable_values()->insert(from.values.begin(), from.values.end());
  Fill(from.classes, to->mutable_classes());
  to->set_rows(from.rows);
}

Metrics FromProto(const v1::Metrics& from) {
  return {.values = {from.values().begin(), from.values().end()},
          .classes = FromProto(from.classes()),
          .rows = from.rows()};
}

}  // namespace

v1::AckLevel ToProto(AckLevel ack) { return static_cast<v1::AckLevel>(ack); }

v1::ModelConfig ToProto(const ModelConfig& from) {
  v1::ModelConfig to;
  if (!IsEmpty(from.loss)) Fill(from.loss, to.mutable_loss());
  if (!IsEmpty(from.kernel)) Fill(from.kernel, to.mutable_kernel());
  if (!IsEmpty(from.update_rule)) Fill(from.update_rule, to.mutable_update_rule());
  if (from.dimension != 0 || from.hashed || from.standardize != Standardize::kUnspecified ||
      !from.input_offsets.empty() || !from.input_scales.empty()) {
    to.mutable_input()->set_dimension(from.dimension);
    to.mutable_input()->set_hashed(from.hashed);
    to.mutable_input()->set_standardize(static_cast<v1::Standardize>(from.standardize));
    Copy(from.input_offsets, to.mutable_input()->mutable_offsets());
    Copy(from.input_scales, to.mutable_input()->mutable_scales());
  }
  Copy(from.target_offsets, to.mutable_target_offsets());
  Copy(from.target_scales, to.mutable_target_scales());
  for (const std::string& label : from.labels) to.add_labels(label);
  to.set_max_labels(from.max_labels);
  if (from.l2_penalty) to.set_l2_penalty(*from.l2_penalty);
  to.set_averaging(static_cast<v1::Averaging>(from.averaging));
  if (from.seed) to.set_seed(*from.seed);
  to.set_sampler(from.sampler);
  to.set_batch_rows(from.batch_rows);
  if (from.max_batch_delay) Fill(*from.max_batch_delay, to.mutable_max_batch_delay());
  to.set_block_features(from.block_features);
  if (from.max_features) to.set_max_features(*from.max_features);
  to.set_when_full(static_cast<v1::WhenFull>(from.when_full));
  to.set_warmup_rows(from.warmup_rows);
  Fill(from.variance, to.mutable_variance());
  if (!from.candidates.bandwidth_scales.empty() || !from.candidates.step_constants.empty()) {
    v1::CandidateGrid* grid = to.mutable_candidates();
    grid->mutable_bandwidth_scales()->Add(from.candidates.bandwidth_scales.begin(),
                                          from.candidates.bandwidth_scales.end());
    grid->mutable_step_constants()->Add(from.candidates.step_constants.begin(),
                                        from.candidates.step_constants.end());
  }
  to.set_input_metric(static_cast<v1::InputMetric>(from.input_metric));
  to.set_feature_form(static_cast<v1::FeatureForm>(from.feature_form));
  if (from.replay.ratio || from.replay.reservoir_rows != 0 ||
      from.replay.order != StreamOrder::kUnspecified) {
    if (from.replay.ratio) to.mutable_replay()->set_ratio(*from.replay.ratio);
    to.mutable_replay()->set_reservoir_rows(from.replay.reservoir_rows);
    to.mutable_replay()->set_order(static_cast<v1::StreamOrder>(from.replay.order));
  }
  to.set_memory_mib(from.memory_mib);
  return to;
}

ModelConfig FromProto(const v1::ModelConfig& from) {
  ModelConfig to;
  to.loss = FromProto(from.loss());
  to.kernel = FromProto(from.kernel());
  to.update_rule = FromProto(from.update_rule());
  to.dimension = from.input().dimension();
  to.hashed = from.input().hashed();
  to.standardize = static_cast<Standardize>(from.input().standardize());
  Copy(from.input().offsets(), &to.input_offsets);
  Copy(from.input().scales(), &to.input_scales);
  Copy(from.target_offsets(), &to.target_offsets);
  Copy(from.target_scales(), &to.target_scales);
  to.labels.assign(from.labels().begin(), from.labels().end());
  to.max_labels = from.max_labels();
  if (from.has_l2_penalty()) to.l2_penalty = from.l2_penalty();
  to.averaging = static_cast<Averaging>(from.averaging());
  if (from.has_seed()) to.seed = from.seed();
  to.sampler = from.sampler();
  to.batch_rows = from.batch_rows();
  if (from.has_max_batch_delay()) to.max_batch_delay = FromProto(from.max_batch_delay());
  to.block_features = from.block_features();
  if (from.has_max_features()) to.max_features = from.max_features();
  to.when_full = static_cast<WhenFull>(from.when_full());
  to.warmup_rows = from.warmup_rows();
  to.variance = FromProto(from.variance());
  to.candidates = {.bandwidth_scales = {from.candidates().bandwidth_scales().begin(),
                                        from.candidates().bandwidth_scales().end()},
                   .step_constants = {from.candidates().step_constants().begin(),
                                      from.candidates().step_constants().end()}};
  to.input_metric = static_cast<InputMetric>(from.input_metric());
  to.feature_form = static_cast<FeatureForm>(from.feature_form());
  if (from.replay().has_ratio()) to.replay.ratio = from.replay().ratio();
  to.replay.reservoir_rows = from.replay().reservoir_rows();
  to.replay.order = static_cast<StreamOrder>(from.replay().order());
  to.memory_mib = from.memory_mib();
  return to;
}

v1::ValidationMetrics ToProto(const ValidationMetrics& from) {
  v1::ValidationMetrics to;
  to.set_recent_loss(from.recent_loss);
  to.set_mean_loss(from.mean_loss);
  to.set_recent_error_rate(from.recent_error_rate);
  to.set_mean_error_rate(from.mean_error_rate);
  to.set_recent_squared_error(from.recent_squared_error);
  to.set_mean_squared_error(from.mean_squared_error);
  to.set_rows(from.rows);
  Fill(from.recent, to.mutable_recent());
  Fill(from.total, to.mutable_total());
  return to;
}

ValidationMetrics FromProto(const v1::ValidationMetrics& from) {
  return {.recent_loss = from.recent_loss(),
          .mean_loss = from.mean_loss(),
          .recent_error_rate = from.recent_error_rate(),
          .mean_error_rate = from.mean_error_rate(),
          .recent_squared_error = from.recent_squared_error(),
          .mean_squared_error = from.mean_squared_error(),
          .rows = from.rows(),
          .recent = FromProto(from.recent()),
          .total = FromProto(from.total())};
}

v1::Model ToProto(const ModelInfo& from) {
  v1::Model to;
  to.set_name(from.name);
  to.set_uid(from.uid);
  *to.mutable_config() = ToProto(from.config);
  const absl::Duration since_epoch = from.create_time - absl::UnixEpoch();
  absl::Duration rest;
  to.mutable_create_time()->set_seconds(
      absl::IDivDuration(absl::Floor(since_epoch, absl::Seconds(1)), absl::Seconds(1), &rest));
  to.mutable_create_time()->set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(since_epoch - absl::Floor(since_epoch, absl::Seconds(1)))));
  v1::ModelState& state = *to.mutable_state();
  state.set_phase(static_cast<v1::Phase>(from.phase));
  state.set_step(from.step);
  state.set_num_features(from.num_features);
  state.set_rows_learned(from.rows_learned);
  state.set_rows_pending(from.rows_pending);
  state.set_rows_rejected(from.rows_rejected);
  state.set_sequence(from.sequence);
  state.set_fingerprint(from.fingerprint);
  state.set_fingerprint_step(from.fingerprint_step);
  state.set_simd_target(from.simd_target);
  if (from.resolved) Fill(*from.resolved, state.mutable_resolved());
  if (from.validation) *state.mutable_validation() = ToProto(*from.validation);
  state.set_failure(from.failure);
  for (const Warning& warning : from.warnings) {
    v1::Warning* added = state.add_warnings();
    added->set_kind(static_cast<v1::Warning::Kind>(warning.kind));
    added->set_text(warning.text);
  }
  state.set_drift_reports(from.drift_reports);
  state.mutable_frequencies()->set_bytes(from.frequency_bytes);
  state.mutable_frequencies()->set_kept_bytes(from.kept_frequency_bytes);
  return to;
}

ModelInfo FromProto(const v1::Model& from) {
  ModelInfo to;
  to.name = from.name();
  to.uid = from.uid();
  to.config = FromProto(from.config());
  to.create_time = absl::FromUnixSeconds(from.create_time().seconds()) +
                   absl::Nanoseconds(from.create_time().nanos());
  const v1::ModelState& state = from.state();
  to.phase = static_cast<Phase>(state.phase());
  to.step = state.step();
  to.num_features = state.num_features();
  to.rows_learned = state.rows_learned();
  to.rows_pending = state.rows_pending();
  to.rows_rejected = state.rows_rejected();
  to.sequence = state.sequence();
  to.fingerprint = state.fingerprint();
  to.fingerprint_step = state.fingerprint_step();
  to.simd_target = state.simd_target();
  if (state.has_resolved()) to.resolved = FromProto(state.resolved());
  if (state.has_validation()) to.validation = FromProto(state.validation());
  to.failure = state.failure();
  for (const v1::Warning& warning : state.warnings()) {
    to.warnings.push_back(
        {.kind = static_cast<WarningKind>(warning.kind()), .text = warning.text()});
  }
  to.drift_reports = state.drift_reports();
  to.frequency_bytes = state.frequencies().bytes();
  to.kept_frequency_bytes = state.frequencies().kept_bytes();
  return to;
}

v1::ComponentInfo ToProto(const ComponentInfo& from) {
  v1::ComponentInfo to;
  to.set_name(from.name);
  to.set_documentation(from.documentation);
  for (const ParameterInfo& parameter : from.parameters) {
    v1::ParameterInfo* added = to.add_parameters();
    added->set_name(parameter.name);
    added->set_documentation(parameter.documentation);
    added->set_min(parameter.min);
    added->set_max(parameter.max);
    if (parameter.default_value) added->set_default_value(*parameter.default_value);
  }
  to.set_inputs(from.inputs);
  to.mutable_kernels()->Add(from.kernels.begin(), from.kernels.end());
  return to;
}

ComponentInfo FromProto(const v1::ComponentInfo& from) {
  ComponentInfo to{.name = from.name(),
                   .documentation = from.documentation(),
                   .parameters = {},
                   .inputs = from.inputs(),
                   .kernels = {from.kernels().begin(), from.kernels().end()}};
  for (const v1::ParameterInfo& parameter : from.parameters()) {
    ParameterInfo& added = to.parameters.emplace_back();
    added.name = parameter.name();
    added.documentation = parameter.documentation();
    added.min = parameter.min();
    added.max = parameter.max();
    if (parameter.has_default_value()) added.default_value = parameter.default_value();
  }
  return to;
}

v1::EvaluateResponse ToProto(const EvaluateResult& from) {
  v1::EvaluateResponse to;
  to.mutable_metrics()->insert(from.metrics.begin(), from.metrics.end());
  Fill(from.classes, to.mutable_classes());
  to.set_rows(from.rows);
  to.set_step(from.step);
  to.set_sequence(from.sequence);
  to.set_num_features(from.num_features);
  to.set_model_uid(from.model_uid);
  return to;
}

EvaluateResult FromProto(const v1::EvaluateResponse& from) {
  EvaluateResult to;
  to.metrics.insert(from.metrics().begin(), from.metrics().end());
  to.classes = FromProto(from.classes());
  to.rows = from.rows();
  to.step = from.step();
  to.sequence = from.sequence();
  to.num_features = from.num_features();
  to.model_uid = from.model_uid();
  return to;
}

UpdateResult FromProto(const v1::UpdateResponse& from) {
  UpdateResult to;
  to.sequence = from.sequence();
  to.step = from.step();
  to.rows_accepted = from.rows_accepted();
  for (const v1::RejectedSample& rejected : from.rejected()) {
    to.rejected.push_back(FromProto(rejected));
  }
  to.next_producer_sequence = from.next_producer_sequence();
  to.duplicate = from.duplicate();
  return to;
}

RejectedRow FromProto(const v1::RejectedSample& from) {
  return {.row = from.producer_sequence(), .status = FromProto(from.status())};
}

absl::Status FromProto(const google::rpc::Status& from) {
  absl::Status to(static_cast<absl::StatusCode>(from.code()), from.message());
  if (!to.ok()) to.SetPayload(kErrorDetailsUrl, absl::Cord(from.SerializeAsString()));
  return to;
}

}  // namespace kernelstream::client
