// Arbitrary values of everything the store keeps.
#ifndef KERNELSTREAM_TESTS_UNIT_STORE_RANDOM_H_
#define KERNELSTREAM_TESTS_UNIT_STORE_RANDOM_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/model/sample_batch.h"
#include "server/store/store.h"

namespace kernelstream::server {

// SplitMix64. Thread-compatible.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t n) { return Bits() % n; }
  bool Coin() { return (Bits() & 1) != 0; }
  // Any finite value but the rare extreme exponent.
  double Double() { return static_cast<double>(static_cast<int64_t>(Bits())) * 0x1p-40; }
  float Float() { return static_cast<float>(Double()); }
  std::string Bytes(size_t most) {
    std::string out(Below(most + 1), '\0');
    for (char& c : out) c = static_cast<char>(Bits());
    return out;
  }
  std::string Word() { return "w" + std::to_string(Below(1000)); }
  std::vector<float> Floats(size_t most) {
    std::vector<float> out(Below(most + 1));
    for (float& value : out) value = Float();
    return out;
  }
  std::vector<double> DoublesOf(size_t size) {
    std::vector<double> out(size);
    for (double& value : out) value = Double();
    return out;
  }
  std::vector<double> Doubles(size_t most) { return DoublesOf(Below(most + 1)); }
  ParameterMap Parameters() {
    ParameterMap out;
    for (uint64_t i = Below(4); i > 0; --i) out[Word()] = Double();
    return out;
  }
  ComponentConfig Component(size_t depth = 0) {
    ComponentConfig out = {Word(), Parameters()};
    for (uint64_t i = depth < 3 ? Below(3) : 0; i > 0; --i) {
      out.terms.push_back({Double(), Component(depth + 1)});
    }
    return out;
  }

  // Dense and sparse rows, numbers and labels, weights: each column uniform or mixed.
  SampleBatch Rows(size_t most) {
    SampleBatch rows;
    const uint64_t kinds = Below(3), targets = Below(3), size = Below(5);
    const bool weights = Coin();
    for (uint64_t n = 1 + Below(most); n > 0; --n) {
      const uint64_t width = size == 0 ? Below(6) : size;
      std::vector<float> values(width);
      for (float& value : values) value = Float();
      if (kinds == 0 || (kinds == 1 && Coin())) {
        std::vector<uint64_t> indices(width);
        uint64_t index = Below(100);
        const uint64_t step = Below(8) == 0 ? uint64_t{1} << 56 : 50;
        for (uint64_t& i : indices) i = index += 1 + Below(step);
        rows.AddSparse(indices, values);
      } else {
        rows.AddDense(values);
      }
      if (targets == 0 || (targets == 1 && Coin())) {
        rows.SetLabel(Bytes(5));
      } else if (targets == 1 || Coin()) {
        rows.SetTarget(Double());
      } else if (Coin()) {
        rows.SetPopulation(Coin() ? Population::kNumerator : Population::kDenominator);
      } else if (Coin()) {
        std::vector<double> vector(targets == 2 ? 3 : Below(4));
        for (double& value : vector) value = Double();
        rows.SetTargets(vector);
      }
      if (weights && Coin()) rows.SetWeight(Float());
    }
    return rows;
  }

  ModelConfig Config() {
    ModelConfig config;
    config.loss = Component();
    config.kernel = Component();
    config.dimension = static_cast<uint32_t>(Bits());
    config.standardize = static_cast<Standardize>(Below(3));
    for (GivenScales* given : {&config.input_scales, &config.target_scales}) {
      if (!Coin()) continue;
      given->offsets = Doubles(3);
      given->scales = DoublesOf(given->offsets.size());
    }
    for (uint64_t i = Below(4); i > 0; --i) config.labels.push_back(Bytes(6));
    config.max_labels = static_cast<uint32_t>(Bits());
    if (Coin()) config.l2_penalty = Coin() ? 0 : Double();
    config.update_rule = Component();
    config.averaging = static_cast<Averaging>(Below(4));
    if (Coin()) config.seed = Coin() ? 0 : Bits();
    config.sampler = Word();
    config.batch_rows = static_cast<uint32_t>(Bits());
    if (Coin()) config.max_batch_delay_seconds = Coin() ? 0 : Double();
    config.block_features = static_cast<uint32_t>(Bits());
    config.max_features = static_cast<uint32_t>(Bits());
    config.when_full = static_cast<WhenFull>(Below(2));
    config.warmup_rows = static_cast<uint32_t>(Bits());
    config.variance.method = static_cast<VarianceMethod>(Below(5));
    config.variance.features = static_cast<uint32_t>(Bits());
    if (Coin()) config.variance.noise_variance = Double();
    config.variance.coverage = Double();
    for (uint64_t i = Below(3); i > 0; --i) {
      config.variance.test_points.push_back({1.5f, static_cast<float>(Below(1000))});
    }
    config.candidates = {Doubles(4), Doubles(4)};
    config.input_metric = static_cast<InputMetric>(Below(4));
    config.feature_form = static_cast<CosineForm>(Below(3));
    if (Coin()) config.replay.ratio = static_cast<uint32_t>(Below(3));
    config.replay.reservoir_rows = static_cast<uint32_t>(Bits());
    config.replay.order = static_cast<StreamOrder>(Below(2));
    config.memory_mib = static_cast<uint32_t>(Bits());
    return config;
  }

  StoredModel Model(ModelUid uid) {
    return {uid, Word(), Config(), absl::FromUnixNanos(static_cast<int64_t>(Bits() >> 1))};
  }

  DecayedMean Mean() { return {Double(), Double()}; }
  CoefficientState Coefficients(size_t most) {
    CoefficientState state;
    state.scale = Double();
    state.values = Floats(most);
    state.validation = {Mean(), Mean(), Mean(), Double(), Double(), Double(), Bits()};
    if (Coin())
      state.threshold = {Double(), Double(), Double(), 1.0 + static_cast<double>(Below(100))};
    return state;
  }
  VarianceState Variance() {
    VarianceState state;
    state.rows = 1 + Below(1000);
    state.row_weight = Double();
    state.posterior = {.rows = Bits(),
                       .products = {Double(), Double()},
                       .target_products = {Double()},
                       .factor_rows = Bits(),
                       .factor_noise_variance = Double(),
                       .factor = Floats(5),
                       .mean = Floats(4)};
    state.regression.coefficients = Floats(30);
    state.calibration = {.rows = Bits(),
                         .squared_errors = Double(),
                         .variances = Double(),
                         .weight = Double(),
                         .ratios = Floats(6),
                         .weights = Floats(6)};
    state.mean_errors = {Bits(), Double(), Double()};
    return state;
  }
  MetricSums Metrics() {
    MetricSums sums;
    sums.rows = Bits();
    for (double* value :
         {&sums.weight, &sums.unknown_rows, &sums.known_weight, &sums.loss, &sums.log_loss,
          &sums.wrong, &sums.interval_weight, &sums.covered, &sums.width, &sums.interval_pinball,
          &sums.population_weight[0], &sums.population_weight[1], &sums.population_loss[0],
          &sums.population_loss[1]}) {
      *value = Double();
    }
    const auto fill = [this](size_t size, std::initializer_list<std::vector<double>*> lists) {
      for (std::vector<double>* list : lists) *list = DoublesOf(size);
    };
    fill(Below(5), {&sums.class_actual, &sums.class_predicted, &sums.class_correct});
    fill(Coin() ? kCalibrationBins : 0,
         {&sums.bin_weight, &sums.bin_probability, &sums.bin_correct});
    fill(Coin() ? kScoreBins : 0, {&sums.first_scores, &sums.second_scores});
    const size_t outputs = Below(4);
    fill(outputs, {&sums.squared, &sums.absolute, &sums.target_mean, &sums.target_spread});
    if (Coin()) fill(outputs, {&sums.pinball});
    return sums;
  }
  GenerationState Generation() {
    return {Bits(),
            static_cast<MetricForm>(Below(3)),
            static_cast<uint32_t>(Bits()),
            Floats(9),
            Double(),
            Bits()};
  }
  DriftState Drift() {
    return {Mean(), Mean(), Mean(),     Double(), Bits(), Bits(),
            Bits(), Mean(), Doubles(4), Double(), Coin(), Double()};
  }
  TrainerState State(size_t most_coefficients) {
    TrainerState state;
    state.step = Bits();
    state.updates = Bits();
    state.sequence = Below(1u << 30);
    state.rows_learned = Bits();
    state.rows_skipped = Bits();
    state.divergences = Bits();
    state.num_features = Bits();
    state.cursor = Bits();
    state.dimension = static_cast<uint32_t>(Bits());
    state.input_dim = static_cast<uint32_t>(Bits());
    state.num_outputs = static_cast<uint32_t>(Bits());
    state.warm = Coin();
    if (Coin()) state.waiting = Rows(20);
    state.input_shift = Floats(9);
    state.input_inverse_scale = Floats(9);
    state.target_offsets = Doubles(3);
    state.target_scales = DoublesOf(state.target_offsets.size());
    state.population_weights = {Double(), Double()};
    state.kernel_parameters = Parameters();
    state.rule_parameters = Parameters();
    for (uint64_t i = Below(4); i > 0; --i) state.labels.push_back(Coin() ? "" : Bytes(6));
    state.labels_are_numbers = Coin();
    for (uint64_t i = Below(3); i > 0; --i) {
      CandidateState& candidate = state.candidates.emplace_back();
      candidate.bandwidth = Double();
      candidate.last = Coefficients(most_coefficients);
      if (Coin()) candidate.average = Coefficients(most_coefficients);
      candidate.steps_since_restart = Bits();
      candidate.generation = Bits();
      candidate.step_constant = Double();
      candidate.replays = Coin();
      // As many as there are, at least one.
      state.generations.push_back(Generation());
    }
    state.next_generation = 1 + Below(100);
    state.next_generation_row = Bits();
    state.next_prune_row = Bits();
    state.learned_since_warm = Bits();
    state.pruned = Coin();
    state.constant_inputs = Coin();
    if (Coin()) state.recent = {Rows(30), Rows(30)};
    if (Coin()) state.reservoir = {Rows(30), Bits(), Bits(), Bits()};
    if (Coin()) state.held_out = {Rows(30), Bits() | 1, Bits(), Bits()};
    if (Coin()) state.drift = Drift();
    if (Coin()) state.metrics = {Metrics(), Metrics()};
    if (Coin()) state.variance = Variance();
    state.variance_bandwidth = state.variance.rows == 0 ? 0 : 0.5;
    state.variance_generation = state.variance.rows == 0 ? 0 : Bits();
    state.next_variance_row = state.variance.rows == 0 ? 0 : Bits();
    for (uint8_t& byte : state.fingerprint) byte = static_cast<uint8_t>(Bits());
    return state;
  }

 private:
  uint64_t state_;
};

// Equality, to the bit where numbers are concerned.
inline bool Same(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}
inline bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) return false;
  }
  return true;
}
inline bool Same(const SampleBatch& a, const SampleBatch& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const RowView x = a.row(i), y = b.row(i);
    const TargetView s = a.target(i), t = b.target(i);
    const std::vector<float> xv(x.values.begin(), x.values.end()),
        yv(y.values.begin(), y.values.end());
    if (x.sparse != y.sparse || !Same(xv, yv) || x.indices.size() != y.indices.size()) return false;
    for (size_t j = 0; j < x.indices.size(); ++j) {
      if (x.indices[j] != y.indices[j]) return false;
    }
    if (s.kind != t.kind || s.label != t.label || s.population != t.population) return false;
    if (!Same(s.value, t.value) || s.values.size() != t.values.size()) return false;
    for (size_t j = 0; j < s.values.size(); ++j) {
      if (!Same(s.values[j], t.values[j])) return false;
    }
    if (!Same(double{a.weight(i)}, double{b.weight(i)})) return false;
  }
  return true;
}
inline bool Same(const RowsRecord& a, const RowsRecord& b) {
  return a.first_sequence == b.first_sequence && Same(a.rows, b.rows) &&
         a.producer_id == b.producer_id && a.producer_sequence == b.producer_sequence &&
         a.next_producer_sequence == b.next_producer_sequence;
}
inline bool Same(const StoredModel& a, const StoredModel& b) {
  return a.uid == b.uid && a.name == b.name && a.config == b.config &&
         a.create_time == b.create_time;
}
inline bool Same(const DecayedMean& a, const DecayedMean& b) {
  return Same(a.sum, b.sum) && Same(a.weight, b.weight);
}
inline bool Same(const CoefficientState& a, const CoefficientState& b) {
  const ValidationState &v = a.validation, &w = b.validation;
  return Same(a.threshold.value, b.threshold.value) &&
         Same(a.threshold.spread, b.threshold.spread) && Same(a.threshold.near, b.threshold.near) &&
         Same(a.threshold.rows, b.threshold.rows) && Same(a.scale, b.scale) &&
         Same(a.values, b.values) && Same(v.recent_loss, w.recent_loss) &&
         Same(v.recent_errors, w.recent_errors) && Same(v.recent_squares, w.recent_squares) &&
         Same(v.total_loss, w.total_loss) && Same(v.total_errors, w.total_errors) &&
         Same(v.total_squares, w.total_squares) && v.rows == w.rows;
}
inline bool Same(const VarianceState& a, const VarianceState& b) {
  const PosteriorState &p = a.posterior, &q = b.posterior;
  const CalibrationState &c = a.calibration, &d = b.calibration;
  const MeanErrorsState &e = a.mean_errors, &f = b.mean_errors;
  return a.rows == b.rows && p.rows == q.rows && p.products == q.products &&
         p.target_products == q.target_products && p.factor_rows == q.factor_rows &&
         Same(p.factor_noise_variance, q.factor_noise_variance) && Same(p.factor, q.factor) &&
         Same(p.mean, q.mean) && Same(a.regression.coefficients, b.regression.coefficients) &&
         c.rows == d.rows && Same(c.squared_errors, d.squared_errors) &&
         Same(c.variances, d.variances) && Same(c.weight, d.weight) && Same(c.ratios, d.ratios) &&
         Same(c.weights, d.weights) && Same(a.row_weight, b.row_weight) && e.rows == f.rows &&
         Same(e.posterior, f.posterior) && Same(e.learner, f.learner);
}
inline bool Same(const CandidateState& a, const CandidateState& b) {
  return a.generation == b.generation && Same(a.bandwidth, b.bandwidth) &&
         Same(a.step_constant, b.step_constant) && a.replays == b.replays && Same(a.last, b.last) &&
         Same(a.average, b.average) && a.steps_since_restart == b.steps_since_restart;
}
inline bool Same(const GenerationState& a, const GenerationState& b) {
  return a.id == b.id && a.form == b.form && a.metric_dim == b.metric_dim &&
         Same(a.metric, b.metric) && Same(a.median_distance, b.median_distance) &&
         a.first_row == b.first_row;
}
inline bool Same(const DriftState& a, const DriftState& b) {
  return Same(a.fast, b.fast) && Same(a.slow, b.slow) && Same(a.exceeding, b.exceeding) &&
         Same(a.quantile, b.quantile) && a.rows == b.rows && a.reports == b.reports &&
         a.last_report_row == b.last_report_row && Same(a.same_label, b.same_label) &&
         a.label_weights == b.label_weights && Same(a.last_label, b.last_label) &&
         a.ordered == b.ordered && Same(a.usual_weight, b.usual_weight);
}
template <typename T>
bool Same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return Same(x, y); });
}
inline bool Same(const ReservoirState& a, const ReservoirState& b) {
  return Same(a.rows, b.rows) && a.seen == b.seen && a.draws == b.draws && a.flushes == b.flushes;
}
inline bool Same(const TrainerState& a, const TrainerState& b) {
  return Same(a.candidates, b.candidates) && Same(a.generations, b.generations) &&
         a.next_generation == b.next_generation && a.next_generation_row == b.next_generation_row &&
         a.next_prune_row == b.next_prune_row && a.learned_since_warm == b.learned_since_warm &&
         a.pruned == b.pruned && a.constant_inputs == b.constant_inputs &&
         Same(a.recent.previous, b.recent.previous) && Same(a.recent.current, b.recent.current) &&
         Same(a.reservoir, b.reservoir) && Same(a.held_out, b.held_out) && Same(a.drift, b.drift) &&
         a.metrics == b.metrics && a.step == b.step && a.updates == b.updates &&
         a.sequence == b.sequence && a.rows_learned == b.rows_learned &&
         a.rows_skipped == b.rows_skipped && a.divergences == b.divergences &&
         a.num_features == b.num_features && a.cursor == b.cursor && a.dimension == b.dimension &&
         a.input_dim == b.input_dim && a.num_outputs == b.num_outputs && a.warm == b.warm &&
         Same(a.waiting, b.waiting) && Same(a.input_shift, b.input_shift) &&
         Same(a.input_inverse_scale, b.input_inverse_scale) &&
         Same(a.target_offsets, b.target_offsets) && Same(a.target_scales, b.target_scales) &&
         a.population_weights == b.population_weights && Same(a.variance, b.variance) &&
         Same(a.variance_bandwidth, b.variance_bandwidth) &&
         a.variance_generation == b.variance_generation &&
         a.next_variance_row == b.next_variance_row && a.kernel_parameters == b.kernel_parameters &&
         a.rule_parameters == b.rule_parameters && a.labels == b.labels &&
         a.labels_are_numbers == b.labels_are_numbers && a.fingerprint == b.fingerprint;
}

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_TESTS_UNIT_STORE_RANDOM_H_
