// Arbitrary values of everything the store keeps.
#ifndef KERNELSTREAM_TESTS_UNIT_STORE_RANDOM_H_
#define KERNELSTREAM_TESTS_UNIT_STORE_RANDOM_H_

#include <algorithm>
#include <bit>
#include <cstdint>
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
  ParameterMap Parameters() {
    ParameterMap out;
    for (uint64_t i = Below(4); i > 0; --i) out[Word()] = Double();
    return out;
  }
  ComponentConfig Component() { return {Word(), Parameters()}; }

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
        std::vector<uint32_t> indices(width);
        uint32_t index = static_cast<uint32_t>(Below(100));
        for (uint32_t& i : indices) i = index += 1 + static_cast<uint32_t>(Below(50));
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
    return state;
  }
  VarianceState Variance() {
    VarianceState state;
    state.rows = 1 + Below(1000);
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
                         .ratios = Floats(6)};
    return state;
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
    if (Coin()) state.warmup = Rows(20);
    state.input_shift = Floats(9);
    state.input_inverse_scale = Floats(9);
    state.target_offsets = {Double()};
    state.target_scales = {4.5};
    state.kernel_parameters = Parameters();
    state.rule_parameters = Parameters();
    for (uint64_t i = Below(4); i > 0; --i) state.labels.push_back(Coin() ? "" : Bytes(6));
    for (uint64_t i = Below(3); i > 0; --i) {
      CandidateState& candidate = state.candidates.emplace_back();
      candidate.bandwidth = Double();
      candidate.last = Coefficients(most_coefficients);
      if (Coin()) candidate.average = Coefficients(most_coefficients);
      candidate.steps_since_restart = Bits();
    }
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
  return Same(a.scale, b.scale) && Same(a.values, b.values) && Same(v.recent_loss, w.recent_loss) &&
         Same(v.recent_errors, w.recent_errors) && Same(v.recent_squares, w.recent_squares) &&
         Same(v.total_loss, w.total_loss) && Same(v.total_errors, w.total_errors) &&
         Same(v.total_squares, w.total_squares) && v.rows == w.rows;
}
inline bool Same(const VarianceState& a, const VarianceState& b) {
  const PosteriorState &p = a.posterior, &q = b.posterior;
  const CalibrationState &c = a.calibration, &d = b.calibration;
  return a.rows == b.rows && p.rows == q.rows && p.products == q.products &&
         p.target_products == q.target_products && p.factor_rows == q.factor_rows &&
         Same(p.factor_noise_variance, q.factor_noise_variance) && Same(p.factor, q.factor) &&
         Same(p.mean, q.mean) && Same(a.regression.coefficients, b.regression.coefficients) &&
         c.rows == d.rows && Same(c.squared_errors, d.squared_errors) &&
         Same(c.variances, d.variances) && Same(c.weight, d.weight) && Same(c.ratios, d.ratios);
}
inline bool Same(const TrainerState& a, const TrainerState& b) {
  if (a.candidates.size() != b.candidates.size()) return false;
  for (size_t i = 0; i < a.candidates.size(); ++i) {
    const CandidateState &x = a.candidates[i], &y = b.candidates[i];
    if (!Same(x.bandwidth, y.bandwidth) || !Same(x.last, y.last) || !Same(x.average, y.average) ||
        x.steps_since_restart != y.steps_since_restart) {
      return false;
    }
  }
  if (!Same(a.variance, b.variance) || !Same(a.variance_bandwidth, b.variance_bandwidth) ||
      a.variance_generation != b.variance_generation ||
      a.next_variance_row != b.next_variance_row) {
    return false;
  }
  return a.step == b.step && a.updates == b.updates && a.sequence == b.sequence &&
         a.rows_learned == b.rows_learned && a.rows_skipped == b.rows_skipped &&
         a.divergences == b.divergences && a.num_features == b.num_features &&
         a.cursor == b.cursor && a.dimension == b.dimension && a.input_dim == b.input_dim &&
         a.num_outputs == b.num_outputs && a.warm == b.warm && Same(a.warmup, b.warmup) &&
         Same(a.input_shift, b.input_shift) && Same(a.input_inverse_scale, b.input_inverse_scale) &&
         std::equal(a.target_offsets.begin(), a.target_offsets.end(), b.target_offsets.begin(),
                    b.target_offsets.end(), [](double x, double y) { return Same(x, y); }) &&
         a.target_scales == b.target_scales && a.kernel_parameters == b.kernel_parameters &&
         a.rule_parameters == b.rule_parameters && a.labels == b.labels &&
         a.fingerprint == b.fingerprint;
}

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_TESTS_UNIT_STORE_RANDOM_H_
