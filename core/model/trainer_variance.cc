// Uncertainty of the served predictions. It is estimated under one kernel (stream and bandwidth);
// when another one wins the race, it starts anew from the recent rows.
#include <algorithm>
#include <utility>

#include "core/model/model_features.h"
#include "core/model/trainer_impl.h"

namespace kernelstream {
namespace {

// learned_since_warm at which the kernel is chosen for the first time after the warm-up, and then
// at each doubling.
constexpr uint64_t kFirstChoiceRows = 1024;

// Features [0, num_features) of x: [panel][row][16].
std::vector<float> FirstFeatures(const FeatureMap& map, InputsView x, double inverse_bandwidth,
                                 size_t num_features) {
  std::vector<float> features(num_features * x.rows);
  map.Features(x, static_cast<float>(inverse_bandwidth), 0, num_features / kPanelWidth,
               features.data());
  return features;
}

}  // namespace

Trainer::Impl::Stream Trainer::Impl::SecondStream(const Stream& stream) const {
  if (!variance_->needs_second_features()) return {};
  Stream second = stream;
  second.features =
      MakeFeatureMap(ModelFeatures(*kernel_, config_), SecondFamilySeed(stream.features->seed()),
                     state_.input_dim, variance_->num_features(), options_.budget);
  return second;
}

void Trainer::Impl::StartVariance() {
  variance_stream_ = streams_.at(state_.variance_generation);
  second_stream_ = SecondStream(variance_stream_);
  std::vector<float> point_features;
  if (config_.variance.method == VarianceMethod::kTestPoints) {
    SampleBatch points;
    for (const std::vector<float>& point : variance_->test_points()) points.AddDense(point);
    Work work;
    for (size_t i = 0; i < points.size(); ++i) work.rows.push_back(i);
    TakeInputs(points, work);
    std::vector<float> mapped;
    point_features =
        FirstFeatures(*variance_stream_.features, variance_stream_.metric->Mapped(work.x, mapped),
                      1 / state_.variance_bandwidth, variance_->num_features());
  }
  variance_->Start(point_features);
}

void Trainer::Impl::ChooseVarianceKernel(bool event) {
  if (state_.next_variance_row == 0) state_.next_variance_row = kFirstChoiceRows;
  const bool due = state_.learned_since_warm >= state_.next_variance_row;
  if (due) state_.next_variance_row *= 2;
  if (!event && !due) return;
  const CandidateState& served = state_.candidates[ServedChoice().candidate];
  if (served.generation == state_.variance_generation &&
      served.bandwidth == state_.variance_bandwidth) {
    return;
  }
  const uint64_t old_generation = std::exchange(state_.variance_generation, served.generation);
  state_.variance_bandwidth = served.bandwidth;
  StartVariance();
  if (old_generation != served.generation) {
    KeepCandidates([](const CandidateState&) { return true; });  // drops a stream nobody needs now
  }
  const SampleBatch rows = recent_.Last(kRecentRows);
  for (size_t i = 0; i < rows.size(); i += BlockRows()) {
    Work work;
    TakeTargets(rows, i, std::min(BlockRows(), rows.size() - i), Rows::kKnown, work);
    TakeInputs(rows, work);
    LearnVariance(work, TakeVarianceInputs(work), {}, nullptr);
  }
}

void Trainer::Impl::AddVariance(Served& served) const {
  served.variance = variance_->Publish();
  served.variance_stream = variance_stream_;
  served.second_stream = second_stream_;
  served.variance_inverse_bandwidth = 1 / state_.variance_bandwidth;
  const double square = state_.target_scales[0] * state_.target_scales[0];
  served.variance_report = {.method = config_.variance.method,
                            .features = static_cast<uint32_t>(variance_->num_features()),
                            .coverage = config_.variance.coverage,
                            .bandwidth = state_.variance_bandwidth,
                            .rows = variance_->rows(),
                            .noise_variance = served.variance->noise_variance() * square,
                            .interval_factor = served.variance->interval_factor(),
                            .serves_mean = variance_->serves_mean()};
  if (!variance_->serves_mean()) return;
  served.features = variance_stream_.features;
  served.metric = variance_stream_.metric;
  served.values = variance_->mean();
  served.num_features = variance_->num_features();
  served.scale = 1;
  served.inverse_bandwidth = served.variance_inverse_bandwidth;
}

Trainer::Impl::VarianceInputs Trainer::Impl::TakeVarianceInputs(const Work& work) const {
  std::vector<float> mapped;
  const InputsView x = variance_stream_.metric->Mapped(work.x, mapped);
  const double inverse_bandwidth = 1 / state_.variance_bandwidth;
  const size_t num_features = variance_->num_features();
  VarianceInputs inputs;
  inputs.first = FirstFeatures(*variance_stream_.features, x, inverse_bandwidth, num_features);
  if (second_stream_.features != nullptr) {
    inputs.second = FirstFeatures(*second_stream_.features, x, inverse_bandwidth, num_features);
  }
  return inputs;
}

void Trainer::Impl::LearnVariance(const Work& work, const VarianceInputs& inputs,
                                  std::span<const double> residuals,
                                  std::vector<ScoreInterval>* intervals) {
  std::vector<RowUncertainty> assessed;
  variance_->Learn(inputs.view(), work.x.rows, work.targets, work.weights, residuals,
                   intervals == nullptr ? nullptr : &assessed);
  if (intervals == nullptr) return;
  for (const RowUncertainty& row : assessed) {
    intervals->push_back({-row.below, row.above, config_.variance.coverage});
  }
}

}  // namespace kernelstream
