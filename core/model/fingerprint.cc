#include "core/model/fingerprint.h"

#include "absl/strings/string_view.h"
#include "core/base/digest.h"

namespace kernelstream {
namespace {

void Add(Digest128& digest, absl::string_view text) {
  digest.AddU64(text.size());
  digest.Add(text.data(), text.size());
}

void Add(Digest128& digest, const ParameterMap& parameters) {
  digest.AddU64(parameters.size());
  for (const auto& [name, value] : parameters) {
    Add(digest, name);
    digest.AddDouble(value);
  }
}

void Add(Digest128& digest, const ComponentConfig& component) {
  Add(digest, component.name);
  Add(digest, component.parameters);
  for (const ComponentTerm& term : component.terms) {
    digest.AddDouble(term.weight);
    Add(digest, term.component);
  }
}

void Add(Digest128& digest, const std::vector<float>& values) {
  digest.AddU64(values.size());
  digest.Add(values.data(), values.size() * sizeof(float));
}

void Add(Digest128& digest, const std::vector<double>& values) {
  digest.AddU64(values.size());
  for (const double value : values) digest.AddDouble(value);
}

void Add(Digest128& digest, const std::vector<std::string>& texts) {
  digest.AddU64(texts.size());
  for (const std::string& text : texts) Add(digest, text);
}

// As 32-bit words where they all fit.
void AddIndices(Digest128& digest, std::span<const uint64_t> indices) {
  if (!indices.empty() && indices.back() > UINT32_MAX) {
    digest.Add(indices.data(), indices.size_bytes());
    return;
  }
  const std::vector<uint32_t> narrow(indices.begin(), indices.end());
  digest.Add(narrow.data(), narrow.size() * sizeof(uint32_t));
}

void Add(Digest128& digest, const SampleBatch& batch) {
  digest.AddU64(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    const RowView row = batch.row(i);
    digest.AddU64(row.values.size() * 2 + (row.sparse ? 1 : 0));
    digest.Add(row.values.data(), row.values.size_bytes());
    AddIndices(digest, row.indices);
    const TargetView target = batch.target(i);
    digest.AddDouble(target.value);
    Add(digest, target.label);
    if (target.kind == TargetKind::kVector) {
      digest.AddU64(target.values.size());
      for (const double value : target.values) digest.AddDouble(value);
    } else if (target.kind == TargetKind::kPopulation) {
      digest.AddU64(1 + static_cast<uint64_t>(target.population));
    }
    digest.AddDouble(batch.weight(i));
  }
}

// What configs had in the first format.
void AddFirst(Digest128& digest, const ModelConfig& config) {
  Add(digest, config.loss);
  Add(digest, config.kernel);
  digest.AddU64(config.dimension);
  digest.AddU64(static_cast<uint64_t>(config.standardize));
  Add(digest, config.labels);
  digest.AddU64(config.max_labels);
  digest.AddDouble(config.l2_penalty.value_or(-1));
  Add(digest, config.update_rule);
  digest.AddU64(static_cast<uint64_t>(config.averaging));
  digest.AddU64(config.seed.value_or(0));
  Add(digest, config.sampler);
  digest.AddU64(config.batch_rows);
  digest.AddU64(config.block_features);
  digest.AddU64(config.max_features);
  digest.AddU64(static_cast<uint64_t>(config.when_full));
  digest.AddU64(config.warmup_rows);
}

void Add(Digest128& digest, const ModelConfig& config) {
  AddFirst(digest, config);
  Add(digest, config.candidates.bandwidth_scales);
  Add(digest, config.candidates.step_constants);
  digest.AddU64(static_cast<uint64_t>(config.input_metric));
  digest.AddU64(config.replay.ratio.value_or(0));
  digest.AddU64(config.replay.reservoir_rows);
  digest.AddU64(static_cast<uint64_t>(config.replay.order));
  digest.AddU64(config.memory_mib);
  if (config.hashed) digest.AddU64(1);
  // Older configs, which have none of these, keep their fingerprints.
  for (const GivenScales* given : {&config.input_scales, &config.target_scales}) {
    if (given->empty()) continue;
    digest.AddU64(given == &config.input_scales ? 2 : 3);
    Add(digest, given->offsets);
    Add(digest, given->scales);
  }
  if (config.feature_form != CosineForm::kSingle) {
    digest.AddU64(static_cast<uint64_t>(config.feature_form));
  }
}

void Add(Digest128& digest, const DecayedMean& mean) {
  digest.AddDouble(mean.sum);
  digest.AddDouble(mean.weight);
}

// Part of it all: which coefficients are served, and when the average starts again, follows from
// it.
void Add(Digest128& digest, const ValidationState& validation) {
  Add(digest, validation.recent_loss);
  Add(digest, validation.recent_errors);
  Add(digest, validation.recent_squares);
  digest.AddDouble(validation.total_loss);
  digest.AddDouble(validation.total_errors);
  digest.AddDouble(validation.total_squares);
  digest.AddU64(validation.rows);
}

void Add(Digest128& digest, const CoefficientState& coefficients) {
  digest.AddDouble(coefficients.scale);
  digest.AddDouble(coefficients.threshold.value);
  Add(digest, coefficients.values);
  Add(digest, coefficients.validation);
}

// Of the coefficients of the first format.
void AddFirst(Digest128& digest, const CoefficientState& coefficients) {
  digest.AddDouble(coefficients.scale);
  Add(digest, coefficients.values);
  Add(digest, coefficients.validation);
}

// The counters, the warm-up and the input scales.
void AddFirst(Digest128& digest, const TrainerState& state) {
  digest.AddU64(state.step);
  digest.AddU64(state.updates);
  digest.AddU64(state.num_features);
  digest.AddU64(state.cursor);
  digest.AddU64(state.dimension);
  digest.AddU64(state.input_dim);
  digest.AddU64(state.num_outputs);
  digest.AddU64(state.warm ? 1 : 0);
  Add(digest, state.waiting);
  Add(digest, state.input_shift);
  Add(digest, state.input_inverse_scale);
}

void Add(Digest128& digest, const VarianceConfig& config) {
  digest.AddU64(static_cast<uint64_t>(config.method));
  digest.AddU64(config.features);
  digest.AddDouble(config.noise_variance.value_or(-1));
  digest.AddDouble(config.coverage);
  digest.AddU64(config.test_points.size());
  for (const std::vector<float>& point : config.test_points) Add(digest, point);
}

// All but the variance.
void AddMost(Digest128& digest, const ModelConfig& config, const TrainerState& state) {
  Add(digest, config);
  AddFirst(digest, state);
  Add(digest, state.target_offsets);
  Add(digest, state.target_scales);
  digest.AddDouble(state.population_weights[0]);
  digest.AddDouble(state.population_weights[1]);
  digest.AddU64(state.variance_generation);
  digest.AddDouble(state.variance_bandwidth);
  Add(digest, state.kernel_parameters);
  Add(digest, state.rule_parameters);
  Add(digest, state.labels);
  for (const GenerationState& generation : state.generations) {
    digest.AddU64(generation.id);
    digest.AddU64(static_cast<uint64_t>(generation.form));
    digest.AddU64(generation.metric_dim);
    Add(digest, generation.metric);
    digest.AddDouble(generation.median_distance);
    digest.AddU64(generation.first_row);
  }
  digest.AddU64(state.next_generation);
  digest.AddU64(state.next_generation_row);
  digest.AddU64(state.next_prune_row);
  digest.AddU64(state.learned_since_warm);
  digest.AddU64(state.pruned ? 1 : 0);
  for (const CandidateState& candidate : state.candidates) {
    digest.AddU64(candidate.generation);
    digest.AddDouble(candidate.step_constant);
    digest.AddU64(candidate.replays ? 1 : 0);
    digest.AddDouble(candidate.bandwidth);
    Add(digest, candidate.last);
    Add(digest, candidate.average);
    digest.AddU64(candidate.steps_since_restart);
  }
}

}  // namespace

std::array<uint8_t, 16> Fingerprint(const ModelConfig& config, const TrainerState& state,
                                    const VarianceEstimator* variance) {
  Digest128 digest;
  AddMost(digest, config, state);
  if (config.variance.method != VarianceMethod::kNone) Add(digest, config.variance);
  if (variance != nullptr) {
    digest.AddU64(state.next_variance_row);
    variance->AddTo(digest);
  }
  return digest.Finish();
}

std::array<uint8_t, 16> FingerprintWithoutVariance(const ModelConfig& config,
                                                   const TrainerState& state) {
  Digest128 digest;
  AddMost(digest, config, state);
  return digest.Finish();
}

std::array<uint8_t, 16> FirstFingerprint(const ModelConfig& config, const TrainerState& state) {
  Digest128 digest;
  AddFirst(digest, config);
  AddFirst(digest, state);
  digest.AddDouble(state.target_offsets.empty() ? 0 : state.target_offsets[0]);
  digest.AddDouble(state.target_scales.empty() ? 1 : state.target_scales[0]);
  Add(digest, state.kernel_parameters);
  Add(digest, state.rule_parameters);
  Add(digest, state.labels);
  for (const CandidateState& candidate : state.candidates) {
    digest.AddDouble(candidate.bandwidth);
    AddFirst(digest, candidate.last);
    AddFirst(digest, candidate.average);
    digest.AddU64(candidate.steps_since_restart);
  }
  return digest.Finish();
}

}  // namespace kernelstream
