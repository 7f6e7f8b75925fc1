#include "server/service/wire_model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/digest.h"
#include "core/base/field_error.h"
#include "core/simd/simd.h"

namespace kernelstream::server {
namespace {

// Beyond it, a page of models would be mostly classes.
constexpr size_t kMostStateClasses = 100;

ComponentConfig ComponentFromWire(const v1::Component& wire) {
  ComponentConfig config;
  config.name = wire.name();
  config.parameters.insert(wire.parameters().begin(), wire.parameters().end());
  for (const v1::Component::Term& term : wire.terms()) {
    config.terms.push_back(
        {term.has_weight() ? term.weight() : 1, ComponentFromWire(term.component())});
  }
  return config;
}

void ComponentConfigToWire(const ComponentConfig& config, v1::Component* wire) {
  wire->set_name(config.name);
  for (const auto& [name, value] : config.parameters) (*wire->mutable_parameters())[name] = value;
  for (const ComponentTerm& term : config.terms) {
    v1::Component::Term* added = wire->add_terms();
    added->set_weight(term.weight);
    ComponentConfigToWire(term.component, added->mutable_component());
  }
}

absl::Status UnknownValue(absl::string_view field, int value) {
  return InvalidField(field,
                      absl::StrCat("unknown value ", value,
                                   "; see proto/kernelstream/v1/model.proto for the known ones"));
}

v1::Averaging AveragingToWire(Averaging averaging) {
  switch (averaging) {
    case Averaging::kAuto:
      return v1::AVERAGING_AUTO;
    case Averaging::kLast:
      return v1::AVERAGING_LAST;
    case Averaging::kPolynomial:
      return v1::AVERAGING_POLYNOMIAL;
    case Averaging::kUniform:
      return v1::AVERAGING_UNIFORM;
  }
  return v1::AVERAGING_UNSPECIFIED;
}

v1::Phase PhaseToWire(ModelStatus::Phase phase) {
  switch (phase) {
    case ModelStatus::Phase::kLoading:
      return v1::PHASE_UNSPECIFIED;
    case ModelStatus::Phase::kWarmingUp:
      return v1::PHASE_WARMING_UP;
    case ModelStatus::Phase::kLearning:
      return v1::PHASE_LEARNING;
    case ModelStatus::Phase::kFrozen:
      return v1::PHASE_FROZEN;
    case ModelStatus::Phase::kFailed:
      return v1::PHASE_FAILED;
  }
  return v1::PHASE_UNSPECIFIED;
}

v1::InputMetric MetricFormToWire(MetricForm form) {
  switch (form) {
    case MetricForm::kIsotropic:
      return v1::INPUT_METRIC_OFF;
    case MetricForm::kDiagonal:
      return v1::INPUT_METRIC_DIAGONAL;
    case MetricForm::kFull:
      return v1::INPUT_METRIC_FULL;
  }
  return v1::INPUT_METRIC_UNSPECIFIED;
}

v1::FeatureForm FeatureFormToWire(CosineForm form) {
  switch (form) {
    case CosineForm::kAuto:
      return v1::FEATURE_FORM_AUTO;
    case CosineForm::kSingle:
      return v1::FEATURE_FORM_SINGLE;
    case CosineForm::kPair:
      return v1::FEATURE_FORM_PAIR;
  }
  return v1::FEATURE_FORM_UNSPECIFIED;
}

v1::InputMetric InputMetricToWire(InputMetric metric) {
  switch (metric) {
    case InputMetric::kAuto:
      return v1::INPUT_METRIC_AUTO;
    case InputMetric::kOff:
      return v1::INPUT_METRIC_OFF;
    case InputMetric::kDiagonal:
      return v1::INPUT_METRIC_DIAGONAL;
    case InputMetric::kFull:
      return v1::INPUT_METRIC_FULL;
  }
  return v1::INPUT_METRIC_UNSPECIFIED;
}

v1::Warning::Kind WarningKindToWire(WarningKind kind) {
  switch (kind) {
    case WarningKind::kDrift:
      return v1::Warning::KIND_DRIFT;
    case WarningKind::kOrdered:
      return v1::Warning::KIND_ORDERED;
    case WarningKind::kOneLabel:
      return v1::Warning::KIND_ONE_LABEL;
    case WarningKind::kConstantTarget:
      return v1::Warning::KIND_CONSTANT_TARGET;
    case WarningKind::kConstantInputs:
      return v1::Warning::KIND_CONSTANT_INPUTS;
    case WarningKind::kDiverged:
      return v1::Warning::KIND_DIVERGED;
    case WarningKind::kNoMetric:
      return v1::Warning::KIND_NO_METRIC;
    case WarningKind::kFarTargets:
      return v1::Warning::KIND_FAR_TARGETS;
  }
  return v1::Warning::KIND_UNSPECIFIED;
}

void CandidateToWire(const CandidateReport& candidate, v1::CandidateReport* wire) {
  wire->set_generation(candidate.generation);
  wire->set_metric(MetricFormToWire(candidate.form));
  wire->set_bandwidth(candidate.bandwidth);
  wire->set_step_constant(candidate.step_constant);
  wire->set_replays(candidate.replays);
  wire->set_recent_loss(candidate.recent_loss);
  wire->set_recent_average_loss(candidate.recent_average_loss);
  wire->set_served(candidate.served);
}

uint32_t MaxFeaturesToWire(const ModelConfig& config) {
  return config.max_features == kUnlimitedFeatures ? 0 : config.max_features;
}

absl::Status RaceFromWire(const v1::ModelConfig& wire, ModelConfig& config) {
  config.candidates.bandwidth_scales.assign(wire.candidates().bandwidth_scales().begin(),
                                            wire.candidates().bandwidth_scales().end());
  config.candidates.step_constants.assign(wire.candidates().step_constants().begin(),
                                          wire.candidates().step_constants().end());
  switch (wire.input_metric()) {
    case v1::INPUT_METRIC_UNSPECIFIED:
    case v1::INPUT_METRIC_AUTO:
      config.input_metric = InputMetric::kAuto;
      break;
    case v1::INPUT_METRIC_OFF:
      config.input_metric = InputMetric::kOff;
      break;
    case v1::INPUT_METRIC_DIAGONAL:
      config.input_metric = InputMetric::kDiagonal;
      break;
    case v1::INPUT_METRIC_FULL:
      config.input_metric = InputMetric::kFull;
      break;
    default:
      return UnknownValue("input_metric", wire.input_metric());
  }
  switch (wire.feature_form()) {
    case v1::FEATURE_FORM_UNSPECIFIED:
    case v1::FEATURE_FORM_AUTO:
      config.feature_form = CosineForm::kAuto;
      break;
    case v1::FEATURE_FORM_SINGLE:
      config.feature_form = CosineForm::kSingle;
      break;
    case v1::FEATURE_FORM_PAIR:
      config.feature_form = CosineForm::kPair;
      break;
    default:
      return UnknownValue("feature_form", wire.feature_form());
  }
  if (wire.replay().has_ratio()) config.replay.ratio = wire.replay().ratio();
  config.replay.reservoir_rows = wire.replay().reservoir_rows();
  switch (wire.replay().order()) {
    case v1::STREAM_ORDER_UNSPECIFIED:
    case v1::STREAM_ORDER_DRIFTING:
      config.replay.order = StreamOrder::kDrifting;
      break;
    case v1::STREAM_ORDER_ORDERED:
      config.replay.order = StreamOrder::kOrdered;
      break;
    default:
      return UnknownValue("replay.order", wire.replay().order());
  }
  config.memory_mib = wire.memory_mib();
  return absl::OkStatus();
}

void RaceToWire(const ModelConfig& config, v1::ModelConfig* wire) {
  v1::CandidateGrid* grid = wire->mutable_candidates();
  grid->mutable_bandwidth_scales()->Add(config.candidates.bandwidth_scales.begin(),
                                        config.candidates.bandwidth_scales.end());
  grid->mutable_step_constants()->Add(config.candidates.step_constants.begin(),
                                      config.candidates.step_constants.end());
  wire->set_input_metric(InputMetricToWire(config.input_metric));
  wire->set_feature_form(FeatureFormToWire(config.feature_form));
  if (config.replay.ratio) wire->mutable_replay()->set_ratio(*config.replay.ratio);
  wire->mutable_replay()->set_reservoir_rows(config.replay.reservoir_rows);
  wire->mutable_replay()->set_order(config.replay.order == StreamOrder::kOrdered
                                        ? v1::STREAM_ORDER_ORDERED
                                        : v1::STREAM_ORDER_DRIFTING);
  wire->set_memory_mib(config.memory_mib);
}

v1::VarianceMethod VarianceMethodToWire(VarianceMethod method) {
  switch (method) {
    case VarianceMethod::kNone:
      return v1::VARIANCE_METHOD_NONE;
    case VarianceMethod::kExact:
      return v1::VARIANCE_METHOD_EXACT;
    case VarianceMethod::kOperator:
      return v1::VARIANCE_METHOD_OPERATOR;
    case VarianceMethod::kTestPoints:
      return v1::VARIANCE_METHOD_TEST_POINTS;
    case VarianceMethod::kQuantilePair:
      return v1::VARIANCE_METHOD_QUANTILE_PAIR;
  }
  return v1::VARIANCE_METHOD_UNSPECIFIED;
}

void ResolvedVarianceToWire(const VarianceReport& report, v1::ResolvedVariance* wire) {
  wire->set_method(VarianceMethodToWire(report.method));
  wire->set_features(report.features);
  wire->set_coverage(report.coverage);
  wire->set_noise_variance(report.noise_variance);
  wire->set_interval_factor(report.interval_factor);
  wire->set_bandwidth(report.bandwidth);
  wire->set_rows(report.rows);
  wire->set_serves_mean(report.serves_mean);
}

void GivenToWire(const GivenScales& given, google::protobuf::RepeatedField<double>* offsets,
                 google::protobuf::RepeatedField<double>* scales) {
  offsets->Add(given.offsets.begin(), given.offsets.end());
  scales->Add(given.scales.begin(), given.scales.end());
}

void ResolvedToWire(const ModelConfig& config, const Snapshot& snapshot, ModelDetail detail,
                    v1::ResolvedConfig* wire) {
  const ResolvedConfig& resolved = snapshot.resolved();
  wire->set_dimension(resolved.dimension);
  wire->set_kernel(config.kernel.name);
  wire->mutable_kernel_parameters()->insert(resolved.kernel_parameters.begin(),
                                            resolved.kernel_parameters.end());
  wire->set_loss(config.loss.name);
  wire->mutable_loss_parameters()->insert(config.loss.parameters.begin(),
                                          config.loss.parameters.end());
  wire->set_update_rule(config.update_rule.name);
  wire->mutable_update_rule_parameters()->insert(resolved.rule_parameters.begin(),
                                                 resolved.rule_parameters.end());
  for (const std::string& label : snapshot.labels()) wire->add_labels(label);
  wire->set_standardized_inputs(resolved.standardized_inputs);
  if (detail == ModelDetail::kAll) {
    const GivenScales& given = config.input_scales;
    GivenToWire(given.empty() ? snapshot.scaling().AsGiven() : given, wire->mutable_input_offsets(),
                wire->mutable_input_scales());
    for (const double share : snapshot.InputRelevance()) wire->add_input_relevance(share);
  }
  wire->set_target_offset(resolved.target_offset);
  wire->set_target_scale(resolved.target_scale);
  wire->set_max_features(MaxFeaturesToWire(config));
  wire->set_batch_rows(config.batch_rows);
  wire->set_seed(config.seed.value_or(0));
  wire->set_serving(AveragingToWire(resolved.serving));
  wire->set_l2_penalty(config.l2_penalty.value_or(0));
  for (const CandidateReport& candidate : resolved.candidates) {
    v1::CandidateReport& report = *wire->add_candidates();
    CandidateToWire(candidate, &report);
    if (!candidate.served) continue;
    wire->set_served_bandwidth(report.bandwidth());
    wire->set_served_step_constant(report.step_constant());
    wire->set_served_metric(report.metric());
  }
  if (resolved.variance.has_value()) {
    ResolvedVarianceToWire(*resolved.variance, wire->mutable_variance());
  }
  for (const TargetScaling& target : resolved.targets) {
    wire->add_target_offsets(target.offset);
    wire->add_target_scales(target.scale);
  }
  if (snapshot.loss().task() == Task::kNovelty) wire->set_threshold(snapshot.threshold());
}

void MetricsToWire(const TaskMetrics& metrics, v1::Metrics* wire) {
  for (const NamedMetric& metric : NamedMetrics(metrics)) {
    (*wire->mutable_values())[std::string(metric.name)] = metric.value;
  }
  wire->set_rows(metrics.rows);
}

absl::Status VarianceFromWire(const v1::VarianceConfig& wire, VarianceConfig& config) {
  switch (wire.method()) {
    case v1::VARIANCE_METHOD_UNSPECIFIED:
    case v1::VARIANCE_METHOD_NONE:
      config.method = VarianceMethod::kNone;
      break;
    case v1::VARIANCE_METHOD_EXACT:
      config.method = VarianceMethod::kExact;
      break;
    case v1::VARIANCE_METHOD_OPERATOR:
      config.method = VarianceMethod::kOperator;
      break;
    case v1::VARIANCE_METHOD_TEST_POINTS:
      config.method = VarianceMethod::kTestPoints;
      break;
    case v1::VARIANCE_METHOD_QUANTILE_PAIR:
      config.method = VarianceMethod::kQuantilePair;
      break;
    default:
      return UnknownValue("variance.method", wire.method());
  }
  config.features = wire.features();
  if (wire.has_noise_variance()) config.noise_variance = wire.noise_variance();
  config.coverage = wire.coverage();
  for (const v1::TestPoint& point : wire.test_points()) {
    config.test_points.emplace_back(point.values().begin(), point.values().end());
  }
  return absl::OkStatus();
}

void VarianceToWire(const VarianceConfig& config, v1::VarianceConfig* wire) {
  wire->set_method(VarianceMethodToWire(config.method));
  wire->set_features(config.features);
  if (config.noise_variance.has_value()) wire->set_noise_variance(*config.noise_variance);
  wire->set_coverage(config.coverage);
  for (const std::vector<float>& point : config.test_points) {
    wire->add_test_points()->mutable_values()->Add(point.begin(), point.end());
  }
}

}  // namespace

absl::StatusOr<ModelConfig> ConfigFromWire(const v1::ModelConfig& wire) {
  ModelConfig config;
  config.loss = ComponentFromWire(wire.loss());
  config.kernel = ComponentFromWire(wire.kernel());
  config.dimension = wire.input().dimension();
  config.hashed = wire.input().hashed();
  switch (wire.input().standardize()) {
    case v1::STANDARDIZE_UNSPECIFIED:
    case v1::STANDARDIZE_AUTO:
      config.standardize = Standardize::kAuto;
      break;
    case v1::STANDARDIZE_ON:
      config.standardize = Standardize::kOn;
      break;
    case v1::STANDARDIZE_OFF:
      config.standardize = Standardize::kOff;
      break;
    default:
      return UnknownValue("input.standardize", wire.input().standardize());
  }
  const auto given = [](const auto& offsets, const auto& scales) {
    return GivenScales{{offsets.begin(), offsets.end()}, {scales.begin(), scales.end()}};
  };
  config.input_scales = given(wire.input().offsets(), wire.input().scales());
  config.target_scales = given(wire.target_offsets(), wire.target_scales());
  config.labels.assign(wire.labels().begin(), wire.labels().end());
  config.max_labels = wire.max_labels();
  if (wire.has_l2_penalty()) config.l2_penalty = wire.l2_penalty();
  config.update_rule = ComponentFromWire(wire.update_rule());
  switch (wire.averaging()) {
    case v1::AVERAGING_UNSPECIFIED:
    case v1::AVERAGING_AUTO:
      config.averaging = Averaging::kAuto;
      break;
    case v1::AVERAGING_LAST:
      config.averaging = Averaging::kLast;
      break;
    case v1::AVERAGING_POLYNOMIAL:
      config.averaging = Averaging::kPolynomial;
      break;
    case v1::AVERAGING_UNIFORM:
      config.averaging = Averaging::kUniform;
      break;
    default:
      return UnknownValue("averaging", wire.averaging());
  }
  if (wire.has_seed()) config.seed = wire.seed();
  config.sampler = wire.sampler();
  config.batch_rows = wire.batch_rows();
  if (wire.has_max_batch_delay()) {
    const google::protobuf::Duration& delay = wire.max_batch_delay();
    if (std::abs(int64_t{delay.nanos()}) > 999'999'999 ||
        (delay.seconds() > 0 && delay.nanos() < 0) || (delay.seconds() < 0 && delay.nanos() > 0)) {
      return InvalidField("max_batch_delay",
                          absl::StrCat("nanos ", delay.nanos(), " with seconds ", delay.seconds(),
                                       " is no duration; expected below 1e9 and of the same sign"));
    }
    config.max_batch_delay_seconds = static_cast<double>(delay.seconds()) + 1e-9 * delay.nanos();
  }
  config.block_features = wire.block_features();
  if (wire.has_max_features()) {
    // The largest number is not one that a caller may mean.
    config.max_features = wire.max_features() == 0
                              ? kUnlimitedFeatures
                              : std::min(wire.max_features(), kUnlimitedFeatures - 1);
  }
  switch (wire.when_full()) {
    case v1::WHEN_FULL_UNSPECIFIED:
    case v1::WHEN_FULL_KEEP_LEARNING:
      config.when_full = WhenFull::kKeepLearning;
      break;
    case v1::WHEN_FULL_FREEZE:
      config.when_full = WhenFull::kFreeze;
      break;
    default:
      return UnknownValue("when_full", wire.when_full());
  }
  config.warmup_rows = wire.warmup_rows();
  if (absl::Status s = VarianceFromWire(wire.variance(), config.variance); !s.ok()) return s;
  if (absl::Status status = RaceFromWire(wire, config); !status.ok()) return status;
  return config;
}

void ConfigToWire(const ModelConfig& config, v1::ModelConfig* wire) {
  ComponentConfigToWire(config.loss, wire->mutable_loss());
  ComponentConfigToWire(config.kernel, wire->mutable_kernel());
  wire->mutable_input()->set_dimension(config.dimension);
  wire->mutable_input()->set_hashed(config.hashed);
  switch (config.standardize) {
    case Standardize::kAuto:
      wire->mutable_input()->set_standardize(v1::STANDARDIZE_AUTO);
      break;
    case Standardize::kOn:
      wire->mutable_input()->set_standardize(v1::STANDARDIZE_ON);
      break;
    case Standardize::kOff:
      wire->mutable_input()->set_standardize(v1::STANDARDIZE_OFF);
      break;
  }
  GivenToWire(config.input_scales, wire->mutable_input()->mutable_offsets(),
              wire->mutable_input()->mutable_scales());
  GivenToWire(config.target_scales, wire->mutable_target_offsets(), wire->mutable_target_scales());
  for (const std::string& label : config.labels) wire->add_labels(label);
  wire->set_max_labels(config.max_labels);
  if (config.l2_penalty.has_value()) wire->set_l2_penalty(*config.l2_penalty);
  ComponentConfigToWire(config.update_rule, wire->mutable_update_rule());
  wire->set_averaging(AveragingToWire(config.averaging));
  if (config.seed.has_value()) wire->set_seed(*config.seed);
  wire->set_sampler(config.sampler);
  wire->set_batch_rows(config.batch_rows);
  if (config.max_batch_delay_seconds.has_value()) {
    const auto nanos = static_cast<int64_t>(std::llround(*config.max_batch_delay_seconds * 1e9));
    wire->mutable_max_batch_delay()->set_seconds(nanos / 1'000'000'000);
    wire->mutable_max_batch_delay()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  }
  wire->set_block_features(config.block_features);
  wire->set_max_features(MaxFeaturesToWire(config));
  wire->set_when_full(config.when_full == WhenFull::kFreeze ? v1::WHEN_FULL_FREEZE
                                                            : v1::WHEN_FULL_KEEP_LEARNING);
  wire->set_warmup_rows(config.warmup_rows);
  VarianceToWire(config.variance, wire->mutable_variance());
  RaceToWire(config, wire);
}

void ClassesToWire(const std::vector<ClassMetrics>& classes, const std::vector<std::string>& labels,
                   google::protobuf::RepeatedPtrField<v1::ClassMetrics>* wire) {
  for (size_t i = 0; i < std::min(classes.size(), labels.size()); ++i) {
    v1::ClassMetrics* added = wire->Add();
    added->set_label(labels[i]);
    added->set_weight(classes[i].weight);
    added->set_precision(classes[i].precision);
    added->set_recall(classes[i].recall);
    added->set_f1(classes[i].f1);
  }
}

void ValidationToWire(const ValidationMetrics& metrics, v1::ValidationMetrics* wire) {
  wire->set_recent_loss(metrics.recent_loss);
  wire->set_mean_loss(metrics.mean_loss);
  wire->set_recent_error_rate(metrics.recent_error_rate);
  wire->set_mean_error_rate(metrics.mean_error_rate);
  wire->set_recent_squared_error(metrics.recent_squared_error);
  wire->set_mean_squared_error(metrics.mean_squared_error);
  wire->set_rows(metrics.rows);
  MetricsToWire(metrics.recent, wire->mutable_recent());
}

void ModelToWire(const HostedModel& model, ModelDetail detail, v1::Model* wire) {
  wire->set_name(model.name());
  wire->set_uid(UidText(model.uid()));
  ConfigToWire(model.config(), wire->mutable_config());
  if (detail == ModelDetail::kListed) {
    wire->mutable_config()->mutable_input()->clear_offsets();
    wire->mutable_config()->mutable_input()->clear_scales();
  }
  const int64_t nanos = absl::ToUnixNanos(model.create_time());
  wire->mutable_create_time()->set_seconds(nanos / 1'000'000'000);
  wire->mutable_create_time()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));

  const ModelStatus status = model.status();
  v1::ModelState* state = wire->mutable_state();
  state->set_phase(PhaseToWire(status.phase));
  state->set_failure(status.failure);
  state->set_rows_pending(status.rows_pending);
  state->set_rows_rejected(status.rows_rejected);
  state->set_simd_target(ActiveSimdTarget());
  if (!status.snapshot) return;
  const Snapshot& snapshot = *status.snapshot;
  state->set_step(snapshot.step());
  state->set_num_features(snapshot.num_features());
  state->set_rows_learned(snapshot.rows_learned());
  state->set_sequence(snapshot.sequence());
  state->set_fingerprint(DigestHex(snapshot.fingerprint()));
  state->set_fingerprint_step(snapshot.fingerprint_step());
  for (const ModelWarning& warning : snapshot.warnings()) {
    v1::Warning* added = state->add_warnings();
    added->set_kind(WarningKindToWire(warning.kind));
    added->set_text(warning.text);
  }
  state->set_drift_reports(snapshot.drift_reports());
  const Snapshot::FrequencyBytes frequencies = snapshot.frequency_bytes();
  state->mutable_frequencies()->set_bytes(static_cast<uint64_t>(frequencies.all));
  state->mutable_frequencies()->set_kept_bytes(static_cast<uint64_t>(frequencies.kept));
  const ValidationMetrics& validation = snapshot.validation();
  ValidationToWire(validation, state->mutable_validation());
  MetricsToWire(validation.total, state->mutable_validation()->mutable_total());
  if (snapshot.labels().size() <= kMostStateClasses) {
    ClassesToWire(validation.recent.classes, snapshot.labels(),
                  state->mutable_validation()->mutable_recent()->mutable_classes());
    ClassesToWire(validation.total.classes, snapshot.labels(),
                  state->mutable_validation()->mutable_total()->mutable_classes());
  }
  if (snapshot.phase() != ModelPhase::kWarmingUp) {
    ResolvedToWire(model.config(), snapshot, detail, state->mutable_resolved());
  }
}

void ComponentToWire(const ComponentDoc& doc, v1::ComponentInfo* wire) {
  wire->set_name(std::string(doc.name));
  wire->set_documentation(
      absl::StrCat(doc.doc, doc.source.empty() ? "" : ". Source: ", doc.source));
  for (const ParameterDoc& parameter : doc.parameters) {
    v1::ParameterInfo* info = wire->add_parameters();
    info->set_name(std::string(parameter.name));
    info->set_documentation(std::string(parameter.doc));
    info->set_min(parameter.min);
    info->set_max(parameter.max);
    if (parameter.default_value.has_value()) info->set_default_value(*parameter.default_value);
  }
}

std::string UidText(ModelUid uid) { return absl::StrCat(absl::Hex(uid, absl::kZeroPad16)); }

}  // namespace kernelstream::server
