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
  const SampleBatch rows = LastRows(state_.recent, kRecentRows);
  for (size_t i = 0; i < rows.size(); i += BlockRows()) {
    Work work;
    TakeTargets(rows, i, std::min(BlockRows(), rows.size() - i), Rows::kKnown, work);
    TakeInputs(rows, work);
    LearnVariance(work, {}, nullptr);
  }
}

void Trainer::Impl::LearnVariance(const Work& work, std::span<const double> residuals,
                                  std::vector<ScoreInterval>* intervals) {
  const size_t rows = work.x.rows;
  std::vector<float> mapped;
  const InputsView x = variance_stream_.metric->Mapped(work.x, mapped);
  const double inverse_bandwidth = 1 / state_.variance_bandwidth;
  const std::vector<float> first =
      FirstFeatures(*variance_stream_.features, x, inverse_bandwidth, variance_->num_features());
  std::vector<float> second;
  if (second_stream_.features != nullptr) {
    second =
        FirstFeatures(*second_stream_.features, x, inverse_bandwidth, variance_->num_features());
  }
  std::vector<RowUncertainty> assessed;
  variance_->Learn({first.data(), second.data()}, rows, work.targets, work.weights, residuals,
                   intervals == nullptr ? nullptr : &assessed);
  if (intervals == nullptr) return;
  for (const RowUncertainty& row : assessed) {
    intervals->push_back({-row.below, row.above, config_.variance.coverage});
  }
}

}  // namespace kernelstream
