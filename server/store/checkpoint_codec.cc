// Checkpoints: the codec of TrainerState.
#include <algorithm>
#include <cstring>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernelstream/storage/v1/record.pb.h"
#include "server/store/codec.h"
#include "server/store/record_bytes.h"
#include "server/store/rows_codec.h"
#include "server/store/variance_codec.h"

namespace kernelstream::server::codec {
namespace {

namespace v1 = storage::v1;

// Bytes of rows after which a chunk is full.
constexpr size_t kRowsChunkBytes = size_t{1} << 20;

// EnumToRecord and EnumFromRecord rest on these.
static_assert(static_cast<int>(MetricForm::kIsotropic) == v1::GenerationRecord::FORM_ISOTROPIC - 1);
static_assert(static_cast<int>(MetricForm::kDiagonal) == v1::GenerationRecord::FORM_DIAGONAL - 1);
static_assert(static_cast<int>(MetricForm::kFull) == v1::GenerationRecord::FORM_FULL - 1);

void ToRecord(const DecayedMean& mean, v1::MeanRecord& out) {
  out.set_sum(mean.sum);
  out.set_weight(mean.weight);
}

DecayedMean FromRecord(const v1::MeanRecord& record) { return {record.sum(), record.weight()}; }

void ToRecord(const CoefficientState& state, v1::CoefficientRecord& out) {
  out.set_scale(state.scale);
  out.set_num_values(state.values.size());
  if (state.threshold.rows > 0) {
    out.mutable_threshold()->set_value(state.threshold.value);
    out.mutable_threshold()->set_spread(state.threshold.spread);
    out.mutable_threshold()->set_rows(state.threshold.rows);
    out.mutable_threshold()->set_near(state.threshold.near);
  }
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
  if (record.has_threshold()) {
    out.threshold.value = record.threshold().value();
    out.threshold.spread = record.threshold().spread();
    out.threshold.near = record.threshold().near();
    out.threshold.rows = record.threshold().rows();
  }
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

void ToRecord(const CandidateState& candidate, v1::CandidateRecord& out) {
  out.set_bandwidth(candidate.bandwidth);
  ToRecord(candidate.last, *out.mutable_last());
  ToRecord(candidate.average, *out.mutable_average());
  out.set_steps_since_restart(candidate.steps_since_restart);
  out.set_generation(candidate.generation);
  out.set_step_constant(candidate.step_constant);
  out.set_new_rows_only(!candidate.replays);
  out.set_divergences(candidate.divergences);
}

absl::Status FromRecord(const v1::CandidateRecord& record, CandidateState& out) {
  out.bandwidth = record.bandwidth();
  out.steps_since_restart = record.steps_since_restart();
  out.generation = record.generation();
  out.step_constant = record.step_constant();
  out.replays = !record.new_rows_only();
  out.divergences = record.divergences();
  if (absl::Status status = FromRecord(record.last(), out.last); !status.ok()) return status;
  return FromRecord(record.average(), out.average);
}

void ToRecord(const GenerationState& generation, v1::GenerationRecord& out) {
  out.set_id(generation.id);
  out.set_form(EnumToRecord<v1::GenerationRecord::Form>(generation.form));
  out.set_metric_dim(generation.metric_dim);
  out.set_metric(std::string(BytesOf(std::span<const float>(generation.metric))));
  out.set_median_distance(generation.median_distance);
  out.set_first_row(generation.first_row);
}

absl::Status FromRecord(const v1::GenerationRecord& record, GenerationState& out) {
  out.id = record.id();
  out.metric_dim = record.metric_dim();
  out.median_distance = record.median_distance();
  out.first_row = record.first_row();
  if (!EnumFromRecord(record.form(), MetricForm::kFull, out.form)) {
    return absl::DataLossError("a checkpoint record holds a form of metric that is not known");
  }
  if (!ReadArray(record.metric(), out.metric)) {
    return absl::DataLossError("a checkpoint record's metric is cut");
  }
  return absl::OkStatus();
}

void ToRecord(const ReservoirState& reservoir, v1::ReservoirRecord& out) {
  out.set_rows(reservoir.rows.size());
  out.set_seen(reservoir.seen);
  out.set_draws(reservoir.draws);
  out.set_flushes(reservoir.flushes);
}

// All but the rows.
void FromRecord(const v1::ReservoirRecord& record, ReservoirState& out) {
  out.seen = record.seen();
  out.draws = record.draws();
  out.flushes = record.flushes();
}

void ToRecord(const DriftState& drift, v1::DriftRecord& out) {
  ToRecord(drift.fast, *out.mutable_fast());
  ToRecord(drift.slow, *out.mutable_slow());
  ToRecord(drift.exceeding, *out.mutable_exceeding());
  out.set_quantile(drift.quantile);
  out.set_rows(drift.rows);
  out.set_reports(drift.reports);
  out.set_last_report_row(drift.last_report_row);
  ToRecord(drift.same_label, *out.mutable_same_label());
  out.mutable_label_weights()->Add(drift.label_weights.begin(), drift.label_weights.end());
  out.set_last_label(drift.last_label);
  out.set_ordered(drift.ordered);
  out.set_usual_weight(drift.usual_weight);
}

DriftState FromRecord(const v1::DriftRecord& record) {
  DriftState drift;
  drift.fast = FromRecord(record.fast());
  drift.slow = FromRecord(record.slow());
  drift.exceeding = FromRecord(record.exceeding());
  drift.quantile = record.quantile();
  drift.rows = record.rows();
  drift.reports = record.reports();
  drift.last_report_row = record.last_report_row();
  drift.same_label = FromRecord(record.same_label());
  drift.label_weights.assign(record.label_weights().begin(), record.label_weights().end());
  drift.last_label = record.last_label();
  drift.ordered = record.ordered();
  drift.usual_weight = record.usual_weight();
  return drift;
}

void ToRecord(const MetricSums& sums, v1::MetricSumsRecord& out) {
  out.set_rows(sums.rows);
  out.set_weight(sums.weight);
  out.set_unknown_rows(sums.unknown_rows);
  out.set_known_weight(sums.known_weight);
  out.set_loss(sums.loss);
  out.set_log_loss(sums.log_loss);
  out.set_wrong(sums.wrong);
  out.set_interval_weight(sums.interval_weight);
  out.set_covered(sums.covered);
  out.set_width(sums.width);
  out.set_interval_pinball(sums.interval_pinball);
  Copy(sums.class_actual, out.mutable_class_actual());
  Copy(sums.class_predicted, out.mutable_class_predicted());
  Copy(sums.class_correct, out.mutable_class_correct());
  Copy(sums.bin_weight, out.mutable_bin_weight());
  Copy(sums.bin_probability, out.mutable_bin_probability());
  Copy(sums.bin_correct, out.mutable_bin_correct());
  Copy(sums.first_scores, out.mutable_first_scores());
  Copy(sums.second_scores, out.mutable_second_scores());
  Copy(sums.squared, out.mutable_squared());
  Copy(sums.absolute, out.mutable_absolute());
  Copy(sums.pinball, out.mutable_pinball());
  Copy(sums.target_mean, out.mutable_target_mean());
  Copy(sums.target_spread, out.mutable_target_spread());
  Copy(sums.population_weight, out.mutable_population_weight());
  Copy(sums.population_loss, out.mutable_population_loss());
}

absl::Status FromRecord(const v1::MetricSumsRecord& record, MetricSums& out) {
  out.rows = record.rows();
  out.weight = record.weight();
  out.unknown_rows = record.unknown_rows();
  out.known_weight = record.known_weight();
  out.loss = record.loss();
  out.log_loss = record.log_loss();
  out.wrong = record.wrong();
  out.interval_weight = record.interval_weight();
  out.covered = record.covered();
  out.width = record.width();
  out.interval_pinball = record.interval_pinball();
  Copy(record.class_actual(), out.class_actual);
  Copy(record.class_predicted(), out.class_predicted);
  Copy(record.class_correct(), out.class_correct);
  Copy(record.bin_weight(), out.bin_weight);
  Copy(record.bin_probability(), out.bin_probability);
  Copy(record.bin_correct(), out.bin_correct);
  Copy(record.first_scores(), out.first_scores);
  Copy(record.second_scores(), out.second_scores);
  Copy(record.squared(), out.squared);
  Copy(record.absolute(), out.absolute);
  Copy(record.pinball(), out.pinball);
  Copy(record.target_mean(), out.target_mean);
  Copy(record.target_spread(), out.target_spread);
  if (record.population_weight_size() != 2 || record.population_loss_size() != 2 ||
      !IsConsistent(out)) {
    return absl::DataLossError("a checkpoint record's metrics do not fit each other");
  }
  std::copy(record.population_weight().begin(), record.population_weight().end(),
            out.population_weight.begin());
  std::copy(record.population_loss().begin(), record.population_loss().end(),
            out.population_loss.begin());
  return absl::OkStatus();
}

}  // namespace

std::string EncodeCheckpoint(const TrainerState& state) {
  v1::CheckpointRecord record;
  record.set_step(state.step);
  record.set_updates(state.updates);
  record.set_divergences(state.divergences);
  record.set_cursor(state.cursor);
  record.set_dimension(state.dimension);
  record.set_sparse_dim(state.sparse_dim);
  record.set_sequence(state.sequence);
  record.set_rows_learned(state.rows_learned);
  record.set_rows_skipped(state.rows_skipped);
  record.set_num_features(state.num_features);
  record.set_input_dim(state.input_dim);
  record.set_num_outputs(state.num_outputs);
  record.set_warm(state.warm);
  EncodeRowsBlock(state.waiting, *record.mutable_waiting());
  record.set_input_shift(std::string(BytesOf(std::span<const float>(state.input_shift))));
  record.set_input_inverse_scale(
      std::string(BytesOf(std::span<const float>(state.input_inverse_scale))));
  Copy(state.target_offsets, record.mutable_target_offsets());
  Copy(state.target_scales, record.mutable_target_scales());
  Copy(state.population_weights, record.mutable_population_weights());
  record.mutable_kernel_parameters()->insert(state.kernel_parameters.begin(),
                                             state.kernel_parameters.end());
  record.mutable_rule_parameters()->insert(state.rule_parameters.begin(),
                                           state.rule_parameters.end());
  for (const std::string& label : state.labels) record.add_labels(label);
  record.set_labels_are_numbers(state.labels_are_numbers);
  for (const GenerationState& generation : state.generations) {
    ToRecord(generation, *record.add_generations());
  }
  for (const CandidateState& candidate : state.candidates) {
    ToRecord(candidate, *record.add_candidates());
  }
  record.set_next_generation(state.next_generation);
  record.set_next_generation_row(state.next_generation_row);
  record.set_next_prune_row(state.next_prune_row);
  record.set_learned_since_warm(state.learned_since_warm);
  record.set_pruned(state.pruned);
  record.set_constant_inputs(state.constant_inputs);
  record.set_recent_previous_rows(state.recent.previous.size());
  record.set_recent_current_rows(state.recent.current.size());
  ToRecord(state.reservoir, *record.mutable_reservoir());
  if (state.held_out.draws > 0 || state.held_out.seen > 0) {
    ToRecord(state.held_out, *record.mutable_held_out());
  }
  ToRecord(state.drift, *record.mutable_drift());
  ToRecord(state.metrics.recent, *record.mutable_metrics()->mutable_recent());
  ToRecord(state.metrics.total, *record.mutable_metrics()->mutable_total());
  EncodeVariance(state, record);
  record.set_fingerprint(state.fingerprint.data(), state.fingerprint.size());
  return Serialize(record);
}

absl::StatusOr<TrainerState> DecodeCheckpoint(absl::string_view bytes, RowCounts* row_counts) {
  v1::CheckpointRecord record;
  if (absl::Status status = Parse(bytes, record); !status.ok()) return status;
  TrainerState state;
  state.step = record.step();
  state.updates = record.updates();
  state.divergences = record.divergences();
  state.cursor = record.cursor();
  state.dimension = record.dimension();
  state.sparse_dim = record.sparse_dim();
  state.sequence = record.sequence();
  state.rows_learned = record.rows_learned();
  state.rows_skipped = record.rows_skipped();
  state.num_features = record.num_features();
  state.input_dim = record.input_dim();
  state.num_outputs = record.num_outputs();
  state.warm = record.warm();
  if (absl::Status status = DecodeRowsBlock(record.waiting(), state.waiting); !status.ok()) {
    return status;
  }
  if (!ReadArray(record.input_shift(), state.input_shift) ||
      !ReadArray(record.input_inverse_scale(), state.input_inverse_scale)) {
    return absl::DataLossError("a checkpoint record's input scales are cut");
  }
  Copy(record.target_offsets(), state.target_offsets);
  Copy(record.target_scales(), state.target_scales);
  if (state.target_offsets.size() != state.target_scales.size()) {
    return absl::DataLossError("a checkpoint record's target scales do not fit each other");
  }
  if (state.target_scales.empty() && record.target_scale() > 0) {
    state.target_offsets = {record.target_offset()};
    state.target_scales = {record.target_scale()};
  }
  if (record.population_weights_size() == 2) {
    state.population_weights = {record.population_weights(0), record.population_weights(1)};
  }
  state.kernel_parameters = {record.kernel_parameters().begin(), record.kernel_parameters().end()};
  state.rule_parameters = {record.rule_parameters().begin(), record.rule_parameters().end()};
  state.labels.assign(record.labels().begin(), record.labels().end());
  state.labels_are_numbers = record.labels_are_numbers();
  for (const v1::GenerationRecord& generation : record.generations()) {
    if (absl::Status status = FromRecord(generation, state.generations.emplace_back());
        !status.ok()) {
      return status;
    }
  }
  for (const v1::CandidateRecord& candidate : record.candidates()) {
    if (absl::Status status = FromRecord(candidate, state.candidates.emplace_back());
        !status.ok()) {
      return status;
    }
  }
  if (state.generations.empty() && !state.candidates.empty()) {
    GenerationState& only = state.generations.emplace_back();
    only.median_distance = state.candidates[0].bandwidth;
  }
  if (record.next_generation() != 0) state.next_generation = record.next_generation();
  state.next_generation_row = record.next_generation_row();
  state.next_prune_row = record.next_prune_row();
  state.learned_since_warm = record.learned_since_warm();
  state.pruned = record.pruned();
  state.constant_inputs = record.constant_inputs();
  FromRecord(record.reservoir(), state.reservoir);
  FromRecord(record.held_out(), state.held_out);
  if (row_counts != nullptr) {
    *row_counts = {record.recent_previous_rows(), record.recent_current_rows(),
                   record.reservoir().rows(), record.held_out().rows()};
  }
  if (record.has_drift()) state.drift = FromRecord(record.drift());
  if (record.has_metrics()) {
    absl::Status status = FromRecord(record.metrics().recent(), state.metrics.recent);
    status.Update(FromRecord(record.metrics().total(), state.metrics.total));
    if (!status.ok()) return status;
  }
  if (absl::Status status = DecodeVariance(record, state); !status.ok()) return status;
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

std::vector<std::string> EncodeRowChunks(const SampleBatch& rows) {
  std::vector<std::string> chunks;
  SampleBatch part;
  for (size_t i = 0; i < rows.size(); ++i) {
    part.AppendRow(rows, i);
    if (part.bytes() < kRowsChunkBytes && i + 1 < rows.size()) continue;
    v1::RowsBlock block;
    EncodeRowsBlock(part, block);
    chunks.push_back(Serialize(block));
    part.Clear();
  }
  return chunks;
}

absl::Status AppendRowChunk(absl::string_view bytes, SampleBatch& rows) {
  v1::RowsBlock block;
  if (absl::Status status = Parse(bytes, block); !status.ok()) return status;
  SampleBatch part;
  if (absl::Status status = DecodeRowsBlock(block, part); !status.ok()) return status;
  if (part.empty()) return absl::DataLossError("a chunk of rows holds no row");
  for (size_t i = 0; i < part.size(); ++i) rows.AppendRow(part, i);
  return absl::OkStatus();
}

}  // namespace kernelstream::server::codec
