#include "core/model/snapshot.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "core/model/feature_chunks.h"

namespace kernelstream {
namespace {

// Rows evaluated together: enough to share the frequencies, few enough to stay in the caches.
constexpr size_t kRowsPerTile = 256;

// Measured: a cosine, and a frequency drawn anew, in multiply-adds.
constexpr uint64_t kWorkOfCosine = 16;
constexpr uint64_t kWorkOfDraw = 32;

struct FrequencyWork {
  uint64_t operations = 0;  // of a projection
  uint64_t numbers = 0;     // that are drawn, or kept
};

FrequencyWork WorkOfFrequency(const FeatureSpec& spec, uint64_t dimension) {
  if (spec.sampler != Sampler::kStructured) return {dimension, dimension};
  if (spec.terms.empty()) return {uint64_t{2} * std::bit_width(dimension), 4};
  // As if every feature were of all terms: of a sum, that is at most.
  FrequencyWork work;
  for (const FeatureTerm& term : spec.terms) {
    const FrequencyWork more = WorkOfFrequency(term.spec, dimension);
    work.operations += more.operations;
    work.numbers += more.numbers;
  }
  return work;
}

}  // namespace

size_t Snapshot::DimensionFor(const SampleBatch& rows) const {
  size_t dimension = features_->input_dim();
  if (hashed_) return dimension;
  for (size_t i = 0; i < rows.size(); ++i) {
    dimension = std::max(dimension, rows.row(i).MinDimension());
  }
  return dimension;
}

uint64_t Snapshot::WorkOf(const SampleBatch& rows) const {
  if (features_ == nullptr) return rows.size() * num_outputs_;
  if (hashed_) {
    uint64_t values = 0;
    for (size_t i = 0; i < rows.size(); ++i) values += rows.row(i).values.size();
    return num_scored_ *
           (values * (1 + kWorkOfDraw) + rows.size() * (kWorkOfCosine + num_outputs_));
  }
  const uint64_t dimension = DimensionFor(rows);
  // For one feature: operations of its projection, and numbers that are drawn.
  const FeatureSpec& spec = features_->spec();
  const FrequencyWork frequency = WorkOfFrequency(spec, dimension);
  const uint64_t projected = frequency.operations / spec.waves();
  const uint64_t needed = num_scored_ * frequency.numbers / spec.waves();
  // Wider rows are evaluated without the cache.
  const uint64_t kept = dimension > features_->input_dim()
                            ? 0
                            : static_cast<uint64_t>(features_->cached_bytes()) / sizeof(float);
  const uint64_t drawn = needed - std::min(needed, kept);
  return rows.size() * num_scored_ * (projected + kWorkOfCosine + num_outputs_) +
         kWorkOfDraw * drawn;
}

std::vector<double> Snapshot::InputRelevance() const {
  return metric_ == nullptr ? std::vector<double>() : metric_->Relevance();
}

Snapshot::FrequencyBytes Snapshot::frequency_bytes() const {
  if (features_ == nullptr) return {};
  const int64_t all = features_->BytesOf(num_scored_);
  return {all, std::min(all, features_->cached_bytes())};
}

void Snapshot::TakeInputs(const SampleBatch& rows, size_t first, size_t count, size_t dimension,
                          const LearnedMetric& metric, TileInputs& out) const {
  if (hashed_) {
    out.sparse = MakeSparseRows(count, [&](size_t i) { return rows.row(first + i); });
    out.x = out.sparse;
    return;
  }
  out.scaled.resize(std::max(out.scaled.size(), count * dimension));
  for (size_t i = 0; i < count; ++i) {
    scaling_->Apply(rows.row(first + i), dimension, out.scaled.data() + i * dimension);
  }
  out.x =
      WithoutZeros(metric.Mapped(ConstMatrixView(out.scaled.data(), count, dimension), out.mapped),
                   features_->spec(), out.sparse);
}

void Snapshot::Score(const SampleBatch& rows, Executor& executor, double* out) const {
  const size_t outputs = num_outputs_;
  if (features_ == nullptr || num_scored_ == 0) {
    for (size_t i = 0; i < rows.size(); ++i)
      std::copy(constant_.begin(), constant_.end(), out + i * outputs);
    return;
  }
  const size_t dimension = DimensionFor(rows);
  const std::shared_ptr<const FeatureMap> features =
      dimension > features_->input_dim() ? features_->Widen(dimension, /*keep=*/false) : features_;

  const FeatureChunks chunks(num_scored_);
  const size_t together = FeatureChunks::Together(features->PanelsAtATime());
  const auto inverse_bandwidth = static_cast<float>(inverse_bandwidth_);
  const size_t tiles = (rows.size() + kRowsPerTile - 1) / kRowsPerTile;
  executor.ParallelFor(tiles, [&](size_t tile) {
    thread_local TileInputs inputs;
    thread_local std::vector<double> sums;
    const size_t first = tile * kRowsPerTile;
    const size_t count = std::min(kRowsPerTile, rows.size() - first);
    TakeInputs(rows, first, count, dimension, *metric_, inputs);
    double* const scores = out + first * outputs;
    std::fill(scores, scores + count * outputs, 0.0);
    sums.resize(std::max(sums.size(), together * count * outputs));
    for (size_t c = 0; c < chunks.size(); c += together) {
      const FeatureChunk run = chunks.Run(c, together);
      const size_t num_sums = std::min(together, chunks.size() - c) * count * outputs;
      std::fill_n(sums.begin(), num_sums, 0.0);
      features->AddChunkSums(inputs.x, inverse_bandwidth, run.first_panel / kPanelsPerBlock,
                             run.num_panels, FeatureChunks::kPanelsPerChunk,
                             coefficients_.data() + run.first_panel * outputs * kPanelWidth,
                             outputs, sums.data());
      for (size_t i = 0; i < num_sums; ++i) scores[i % (count * outputs)] += sums[i];
    }
    for (size_t i = 0; i < count * outputs; ++i) {
      scores[i] = coefficient_scale_ * scores[i] + constant_[i % outputs];
    }
  });
}

TargetScaling Snapshot::ScalingOf(size_t k) const {
  return k < resolved_.targets.size() ? resolved_.targets[k] : TargetScaling();
}

size_t Snapshot::LabelOf(std::span<const double> scores) const {
  if (loss_->task() == Task::kBinary) return scores[0] > 0 ? 1 : 0;
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

void Snapshot::ProbabilitiesOf(std::span<const double> scores, std::span<double> out) const {
  loss_->Probabilities(scores, out);
}

double Snapshot::ValueOf(std::span<const double> scores, size_t k) const {
  // Novelty: below 0 for novel rows. Density ratios: log p / q.
  if (loss_->task() != Task::kRegression) return scores[k] - threshold_;
  const TargetScaling scaling = ScalingOf(k);
  return scores[k] * scaling.scale + scaling.offset;
}

Prediction Snapshot::Link(std::span<const double> scores) const {
  Prediction prediction;
  prediction.scores.assign(scores.begin(), scores.end());
  prediction.value = ValueOf(scores, 0);
  if (loss_->task() == Task::kRegression) {
    for (size_t k = 0; k < scores.size(); ++k) prediction.values.push_back(ValueOf(scores, k));
    return prediction;
  }
  if (!HasLabels(loss_->task())) return prediction;
  const size_t best = LabelOf(scores);
  if (best < labels().size()) prediction.label = labels()[best];
  if (loss_->has_probabilities() && !labels().empty()) {
    prediction.probabilities.resize(labels().size());
    ProbabilitiesOf(scores, prediction.probabilities);
  }
  return prediction;
}

absl::StatusOr<double> Snapshot::LossTarget(const TargetView& target) const {
  if (loss_->task() == Task::kRegression) {
    return (target.value - resolved_.target_offset) / resolved_.target_scale;
  }
  if (loss_->task() == Task::kNovelty) return threshold_;
  if (loss_->task() == Task::kDensityRatio) return LossTargetOf(target.population);
  const std::optional<uint32_t> index = table_->Find(target);
  if (!index.has_value()) {
    return absl::NotFoundError(absl::StrCat("the model has not seen label \"",
                                            Shortened(RowRules::CanonicalLabel(target)), "\""));
  }
  return LossTargetOf(loss_->task(), *index);
}

absl::Status Snapshot::AppendLossTargets(const TargetView& target, std::vector<double>& out) const {
  if (loss_->task() != Task::kRegression || target.kind != TargetKind::kVector) {
    if (loss_->task() == Task::kRegression && num_outputs_ != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("the row has 1 target; the model has ", num_outputs_));
    }
    const absl::StatusOr<double> one = LossTarget(target);
    if (one.ok()) out.push_back(*one);
    return one.status();
  }
  if (target.values.size() != num_outputs_) {
    return absl::InvalidArgumentError(absl::StrCat("the row has ", target.values.size(),
                                                   " targets; the model has ", num_outputs_));
  }
  for (size_t k = 0; k < num_outputs_; ++k) {
    const TargetScaling scaling = ScalingOf(k);
    out.push_back((target.values[k] - scaling.offset) / scaling.scale);
  }
  return absl::OkStatus();
}

void Snapshot::Assess(const SampleBatch& rows, Executor& executor, RowUncertainty* out) const {
  const size_t dimension = std::max(DimensionFor(rows), variance_features_->input_dim());
  const auto wide = [&](const std::shared_ptr<const FeatureMap>& map) {
    return map != nullptr && dimension > map->input_dim() ? map->Widen(dimension, /*keep=*/false)
                                                          : map;
  };
  const auto first_map = wide(variance_features_), second_map = wide(second_features_);
  const size_t panels = variance_->num_features() / kPanelWidth;
  const size_t tiles = (rows.size() + kRowsPerTile - 1) / kRowsPerTile;
  executor.ParallelFor(tiles, [&](size_t tile) {
    const size_t first = tile * kRowsPerTile;
    const size_t count = std::min(kRowsPerTile, rows.size() - first);
    TileInputs inputs;
    TakeInputs(rows, first, count, dimension, *variance_metric_, inputs);
    const auto features = [&](const std::shared_ptr<const FeatureMap>& map) {
      std::vector<float> values;
      if (map == nullptr) return values;
      values.resize(panels * count * kPanelWidth);
      map->Features(inputs.x, static_cast<float>(variance_inverse_bandwidth_), 0, panels,
                    values.data());
      return values;
    };
    const std::vector<float> one = features(first_map), two = features(second_map);
    variance_->Assess(rows, first, count, {one.data(), two.data()}, out + first);
  });
}

void Snapshot::AddUncertainty(const RowUncertainty& uncertainty, Prediction& prediction) const {
  const double scale = resolved_.target_scale;
  if (uncertainty.variance.has_value()) prediction.variance = *uncertainty.variance * scale * scale;
  prediction.interval = {prediction.value - uncertainty.below * scale,
                         prediction.value + uncertainty.above * scale};
}

}  // namespace kernelstream
