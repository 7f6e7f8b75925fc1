// The heavy loops of one step, over all candidates at once: features, scores, Gram matrices,
// movement. Candidates of one stream share its projections, those of one bandwidth its features.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/aligned_floats.h"
#include "core/base/finite.h"
#include "core/model/joint_sums.h"
#include "core/model/row_loss.h"
#include "core/model/trainer_impl.h"

namespace kernelstream {
namespace {

// Features of a mini-batch are kept between scoring and updating up to this size (of all bandwidths
// together), and computed again beyond it.
constexpr size_t kMostKeptFeatures = size_t{64} << 20;  // floats
// Of these, a thread keeps the memory for its next step; that of larger ones goes from step to step
// of all threads.
constexpr size_t kMostThreadFeatures = size_t{8} << 20;  // floats

// With more outputs than this, adding the sums of blocks takes longer than it saves threads
// waiting.
constexpr size_t kMostOutputsOfBlocks = 32;

// Below this the scale is multiplied into the coefficients, long before it could underflow.
constexpr double kSmallestScale = 1e-6;

// Distances of wider rows take longer than a Gram matrix of features.
constexpr size_t kWidestDistances = 2048;

// Scores beyond this, in standardised units, are wild, and count as this large. If most of a batch
// are, the steps are too large and will not recover.
constexpr double kLargestScore = 1e4;

// Makes scores that are no numbers, or too large, the largest. Returns whether the coefficients
// they come from are past hope.
bool TameScores(std::vector<double>& scores) {
  size_t wild = 0;
  for (double& score : scores) {
    if (std::abs(score) <= kLargestScore) continue;
    ++wild;
    score = std::isnan(score) ? kLargestScore : std::clamp(score, -kLargestScore, kLargestScore);
  }
  return 2 * wild > scores.size();
}

// Takes rows out of a step whose features overflow: zeros in gram [rows][rows] and derivative
// [rows][outputs]. Returns how many.
size_t LeaveOverflowsOut(size_t rows, size_t outputs, std::span<double> gram,
                         std::span<double> derivative) {
  size_t left_out = 0;
  for (size_t i = 0; i < rows && !gram.empty(); ++i) {
    if (std::isfinite(gram[i * rows + i])) continue;
    ++left_out;
    for (size_t j = 0; j < rows; ++j) gram[i * rows + j] = gram[j * rows + i] = 0;
    std::fill_n(derivative.begin() + static_cast<std::ptrdiff_t>(i * outputs), outputs, 0.0);
  }
  return left_out;
}

// Of gram [rows][rows]; 1 where all features are 0.
double MeanDiagonal(std::span<const double> gram, size_t rows) {
  double sum = 0;
  for (size_t i = 0; i < gram.size(); i += rows + 1) sum += gram[i];
  return sum == 0 ? 1 : sum / static_cast<double>(rows);
}

std::vector<float> WithOutputs(const std::vector<float>& old, size_t panels, size_t from,
                               size_t to) {
  std::vector<float> fresh(panels * to * kPanelWidth, 0.0f);
  if (old.empty()) return fresh;
  for (size_t p = 0; p < panels; ++p) {
    std::copy_n(old.data() + p * from * kPanelWidth, std::min(from, to) * kPanelWidth,
                fresh.data() + p * to * kPanelWidth);
  }
  return fresh;
}

// Scratch of this thread for the features of one chunk at several bandwidths.
std::vector<AlignedFloats>& ThreadFeatures(size_t bandwidths, size_t floats) {
  thread_local std::vector<AlignedFloats> buffers;
  if (buffers.size() < bandwidths) buffers.resize(bandwidths);
  for (size_t b = 0; b < bandwidths; ++b) {
    if (buffers[b].size() < floats) buffers[b].resize(floats);
  }
  return buffers;
}

}  // namespace

void Trainer::Impl::GrowOutputs(uint32_t outputs) {
  if (outputs <= state_.num_outputs) return;
  const size_t panels = PanelsFor(state_.num_features);
  for (CandidateState& c : state_.candidates) {
    c.last.values = WithOutputs(c.last.values, panels, state_.num_outputs, outputs);
    if (keeps_average()) {
      c.average.values = WithOutputs(c.average.values, panels, state_.num_outputs, outputs);
    }
  }
  state_.num_outputs = outputs;
  FitMemory();
}

void Trainer::Impl::GrowFeatures(uint64_t num_features) {
  state_.num_features = num_features;
  const size_t values = PanelsFor(num_features) * state_.num_outputs * kPanelWidth;
  for (CandidateState& c : state_.candidates) {
    c.last.values.resize(values, 0.0f);
    if (keeps_average()) c.average.values.resize(values, 0.0f);
  }
}

uint64_t Trainer::Impl::FeatureLimit() const {
  const bool unlimited = config_.max_features == kUnlimitedFeatures;
  // Where features are limited, learners make room for them until one is left.
  if (!unlimited && state_.candidates.size() > 1) return config_.max_features;
  const uint64_t sets = state_.candidates.size() * (keeps_average() ? 2 : 1);
  const uint64_t bytes_per_feature =
      std::max<uint64_t>(sets, 1) * state_.num_outputs * sizeof(float);
  const uint64_t fit =
      (uint64_t{config_.memory_mib} << 20) / bytes_per_feature / kPanelWidth * kPanelWidth;
  const uint64_t limit = std::clamp<uint64_t>(fit, kPanelWidth, kMaxFeatures);
  if (!unlimited) return std::min<uint64_t>(limit, config_.max_features);
  // What has grown stays while learners can make room.
  return state_.candidates.size() > 1 ? std::max(limit, state_.num_features) : limit;
}

Trainer::Impl::Range Trainer::Impl::NextRange(size_t rows) const {
  const uint64_t wanted = config_.block_features != 0 ? config_.block_features : rows;
  const uint64_t full = FeatureLimit();
  if (rules_[0]->updates_all_features()) {
    return {0, std::min(state_.num_features + wanted, full)};
  }
  if (state_.num_features < full) {
    return {state_.num_features, std::min(wanted, full - state_.num_features)};
  }
  return {state_.cursor, std::min(wanted, full - state_.cursor)};  // the oldest block again
}

void Trainer::Impl::PlanWork(CandidateFilter takes_part, Work& work) {
  const size_t candidates = state_.candidates.size();
  work.last_scores.assign(candidates, {});
  work.average_scores.assign(candidates, {});
  for (const GenerationState& generation : state_.generations) {
    StreamWork stream;
    for (size_t c = 0; c < candidates; ++c) {
      const CandidateState& candidate = state_.candidates[c];
      if (candidate.generation != generation.id || !takes_part(candidate)) continue;
      auto at =
          std::find_if(stream.bandwidths.begin(), stream.bandwidths.end(),
                       [&](const BandwidthWork& b) { return b.bandwidth == candidate.bandwidth; });
      if (at == stream.bandwidths.end()) {
        at = stream.bandwidths.insert(at, BandwidthWork{});
        at->bandwidth = candidate.bandwidth;
      }
      at->candidates.push_back(c);
    }
    if (stream.bandwidths.empty()) continue;
    stream.stream = &streams_.at(generation.id);
    stream.sparse = std::make_unique<SparseRows>();
    const InputsView mapped = stream.stream->metric->Mapped(work.x, stream.inputs);
    if (mapped.sparse == nullptr) stream.dense = mapped.dense;
    stream.x = WithoutZeros(mapped, stream.stream->features->spec(), *stream.sparse);
    work.streams.push_back(std::move(stream));
  }
}

void Trainer::Impl::MaskedFeatures(const StreamWork& work, size_t first_panel, size_t num_panels,
                                   uint64_t begin, uint64_t end,
                                   std::span<float* const> out) const {
  const size_t panel_floats = work.x.rows * kPanelWidth;
  std::vector<float> inverse_bandwidths;
  for (const BandwidthWork& b : work.bandwidths) {
    inverse_bandwidths.push_back(static_cast<float>(1 / b.bandwidth));
  }
  work.stream->features->FeaturesAt(work.x, inverse_bandwidths, first_panel, num_panels, out);
  if (!kernel_->is_bounded()) {
    // One that overflows must not reach the coefficients, not even times 0.
    for (float* features : out) {
      std::replace_if(
          features, features + num_panels * panel_floats,
          [](float value) { return !std::isfinite(value); }, 0.0f);
    }
  }
  const auto clear = [&](uint64_t feature) {
    for (float* features : out) {
      float* lanes = features + (feature / kPanelWidth - first_panel) * panel_floats;
      for (size_t i = 0; i < work.x.rows; ++i) lanes[i * kPanelWidth + feature % kPanelWidth] = 0;
    }
  };
  for (uint64_t f = first_panel * kPanelWidth; f < begin; ++f) clear(f);
  for (uint64_t f = end; f < (first_panel + num_panels) * kPanelWidth; ++f) clear(f);
}

double Trainer::Impl::SmallestStepConstant(const BandwidthWork& bandwidth) const {
  double smallest = std::numeric_limits<double>::infinity();
  for (const size_t c : bandwidth.candidates) {
    smallest = std::min(smallest, state_.candidates[c].step_constant);
  }
  return smallest;
}

// Which ones: see Evaluate.
size_t Trainer::Impl::GramChunks(const BandwidthWork& bandwidth, size_t rows) const {
  const FeatureChunks chunks(state_.num_features);
  const double smallest = SmallestStepConstant(bandwidth);
  // Curvatures without bound make the damping as small as they are large; features without bound
  // make a part of them unlike the whole.
  if (!(smallest > 0) || loss_->task() == Task::kDensityRatio || !kernel_->is_bounded()) {
    return chunks.size();
  }
  return chunks.ForGram(rows, smallest);
}

void Trainer::Impl::TakeKernelMatrices(StreamWork& stream) const {
  const size_t rows = stream.dense.rows;
  if (rows == 0 || stream.dense.cols > kWidestDistances || !kernel_->is_gaussian() ||
      loss_->task() == Task::kDensityRatio) {
    return;
  }
  std::vector<float> squares, values;
  for (BandwidthWork& bandwidth : stream.bandwidths) {
    const double smallest = SmallestStepConstant(bandwidth);
    if (!(smallest > 0)) continue;
    const double needed = FeatureChunks::GramFeatures(std::max(rows, block_rows_), smallest);
    if (static_cast<double>(state_.num_features) < needed) continue;
    if (squares.empty()) {
      squares.resize(rows * rows);
      values.resize(rows * rows);
      SquaredDistances(stream.dense, squares.data());
    }
    const double rate = 1 / (2 * bandwidth.bandwidth * bandwidth.bandwidth);
    Gaussians(squares.data(), static_cast<float>(rate), squares.size(), values.data());
    bandwidth.gram.assign(values.begin(), values.end());
    bandwidth.gram_features = 1;
  }
}

void Trainer::Impl::Evaluate(bool with_averages, bool with_gram, Work& work) {
  const size_t rows = work.x.rows, outputs = state_.num_outputs;
  const size_t panel_floats = rows * kPanelWidth;
  const uint64_t num_features = state_.num_features;
  with_gram = with_gram && rules_[0]->needs_gram() && rules_[0]->updates_all_features();
  with_averages = with_averages && keeps_average();

  size_t bandwidths = 0;
  for (const StreamWork& stream : work.streams) bandwidths += stream.bandwidths.size();
  const size_t floats = PanelsFor(num_features) * panel_floats;
  // Of the thread, not of the trainer: a server has few threads that learn and many models.
  thread_local std::vector<AlignedFloats> thread_features;
  const bool keep = with_gram && bandwidths * floats <= kMostKeptFeatures;
  const bool large = bandwidths * floats > kMostThreadFeatures;
  if (keep && large) {
    if (large_features_ == nullptr) large_features_ = std::make_unique<LargeFeatures>();
    work.large_features = LargeFeatures::Buffers(*large_features_);
  }
  if (keep) {
    auto& kept_features = large ? work.large_features.floats() : thread_features;
    if (kept_features.size() < bandwidths) kept_features.resize(bandwidths);
    size_t next = 0;
    for (StreamWork& stream : work.streams) {
      for (BandwidthWork& bandwidth : stream.bandwidths) {
        AlignedFloats& kept = kept_features[next++];
        if (kept.size() < floats) kept.resize(floats);
        bandwidth.features = kept.data();
      }
    }
  }

  // Each step takes the next chunks for its Gram matrices, so that none is favoured.
  const FeatureChunks chunks(num_features);
  const size_t num_chunks = chunks.size();
  const size_t first_gram = num_chunks == 0 ? 0 : state_.updates % num_chunks;
  const auto turn = [&](size_t chunk) { return (chunk + num_chunks - first_gram) % num_chunks; };
  const auto in_gram = [&](const BandwidthWork& bandwidth, size_t chunk) {
    return turn(chunk) < bandwidth.gram_chunks;
  };
  for (StreamWork& stream : work.streams) {
    if (!with_gram) continue;
    TakeKernelMatrices(stream);
    for (BandwidthWork& bandwidth : stream.bandwidths) {
      if (bandwidth.gram.empty()) bandwidth.gram_chunks = GramChunks(bandwidth, rows);
    }
  }

  // Chunks that share work, or are summed to a Gram matrix, stay whole.
  size_t together = 1, most_gram_chunks = 0;
  bool blocks_alone = outputs <= kMostOutputsOfBlocks;
  for (const StreamWork& stream : work.streams) {
    const size_t at_a_time = stream.stream->features->PanelsAtATime();
    together = std::max(together, FeatureChunks::Together(at_a_time));
    blocks_alone = blocks_alone && at_a_time <= kPanelsPerBlock;
    for (const BandwidthWork& bandwidth : stream.bandwidths) {
      most_gram_chunks = std::max(most_gram_chunks, bandwidth.gram_chunks);
    }
  }
  const auto may_be_cut = [&](size_t i) { return blocks_alone && turn(i) >= most_gram_chunks; };
  const std::vector<FeatureChunk> pieces = chunks.CutFor(options_.executor->threads(), may_be_cut);

  // Partial sums: [piece][...], added in order afterwards.
  const size_t candidates = state_.candidates.size();
  std::vector<std::vector<double>> last(pieces.size() * candidates),
      average(pieces.size() * candidates);
  std::vector<std::vector<float>> grams(chunks.size() * bandwidths);
  // Sums of piece i of the features of a stream, whose first bandwidth is number `next`.
  const auto sum_piece = [&](const StreamWork& stream, size_t next, size_t i,
                             std::span<float* const> out) {
    const FeatureChunk piece = pieces[i];
    const size_t offset = piece.first_panel * outputs * kPanelWidth;
    for (size_t b = 0; b < stream.bandwidths.size(); ++b) {
      std::vector<const float*> coefficients;
      std::vector<std::vector<double>*> sums;
      for (const size_t c : stream.bandwidths[b].candidates) {
        coefficients.push_back(state_.candidates[c].last.values.data() + offset);
        sums.push_back(&last[i * candidates + c]);
        if (!with_averages) continue;
        coefficients.push_back(state_.candidates[c].average.values.data() + offset);
        sums.push_back(&average[i * candidates + c]);
      }
      SumTogether(out[b], piece.num_panels, rows, coefficients, outputs, sums);
      if (in_gram(stream.bandwidths[b], FeatureChunks::ChunkOf(piece))) {  // a whole chunk
        std::vector<float>& gram = grams[FeatureChunks::ChunkOf(piece) * bandwidths + next];
        gram.resize(rows * rows);
        FeatureGram(out[b], piece.num_panels, rows, gram.data());
      }
      ++next;
    }
  };
  options_.executor->ParallelFor((pieces.size() + together - 1) / together, [&](size_t unit) {
    const size_t first = unit * together, end = std::min(first + together, pieces.size());
    const size_t first_panel = pieces[first].first_panel;
    const FeatureChunk run = {
        first_panel, pieces[end - 1].first_panel + pieces[end - 1].num_panels - first_panel};
    size_t next = 0;
    for (const StreamWork& stream : work.streams) {
      auto& scratch =
          ThreadFeatures(stream.bandwidths.size(), keep ? 0 : run.num_panels * panel_floats);
      std::vector<float*> out;
      for (size_t b = 0; b < stream.bandwidths.size(); ++b) {
        float* kept = stream.bandwidths[b].features;
        out.push_back(keep ? kept + run.first_panel * panel_floats : scratch[b].data());
      }
      MaskedFeatures(stream, run.first_panel, run.num_panels, 0, num_features, out);
      for (size_t i = first; i < end; ++i) {
        sum_piece(stream, next, i, out);
        for (float*& features : out) features += pieces[i].num_panels * panel_floats;
      }
      next += stream.bandwidths.size();
    }
  });

  size_t next = 0;
  for (StreamWork& stream : work.streams) {
    for (BandwidthWork& bandwidth : stream.bandwidths) {
      if (with_gram && bandwidth.gram.empty()) {
        bandwidth.gram.assign(rows * rows, 0);
        for (size_t i = 0; i < chunks.size(); ++i) {
          if (!in_gram(bandwidth, i)) continue;
          const std::vector<float>& gram = grams[i * bandwidths + next];
          for (size_t k = 0; k < gram.size(); ++k) bandwidth.gram[k] += gram[k];
          bandwidth.gram_features +=
              std::min<uint64_t>(num_features - chunks[i].first_panel * kPanelWidth,
                                 chunks[i].num_panels * kPanelWidth);
        }
      }
      ++next;
      for (const size_t c : bandwidth.candidates) {
        AddPieces(pieces, std::span(last).subspan(c), candidates, rows * outputs,
                  work.last_scores[c]);
        if (with_averages) {
          AddPieces(pieces, std::span(average).subspan(c), candidates, rows * outputs,
                    work.average_scores[c]);
        }
        for (double& score : work.last_scores[c]) score *= state_.candidates[c].last.scale;
      }
    }
  }
}

void Trainer::Impl::EvaluateRange(const Range& range, Work& work) {
  const size_t rows = work.x.rows;
  const size_t first_panel = range.begin / kPanelWidth;
  const uint64_t end = range.begin + range.size;
  const FeatureChunks chunks(end - first_panel * kPanelWidth);
  for (StreamWork& stream : work.streams) {
    const size_t bandwidths = stream.bandwidths.size();
    std::vector<std::vector<float>> grams(chunks.size() * bandwidths);
    options_.executor->ParallelFor(chunks.size(), [&](size_t i) {
      const size_t panels = chunks[i].num_panels;
      auto& scratch = ThreadFeatures(bandwidths, panels * rows * kPanelWidth);
      std::vector<float*> out;
      for (size_t b = 0; b < bandwidths; ++b) out.push_back(scratch[b].data());
      MaskedFeatures(stream, first_panel + chunks[i].first_panel, panels, range.begin, end, out);
      for (size_t b = 0; b < bandwidths; ++b) {
        std::vector<float>& gram = grams[i * bandwidths + b];
        gram.resize(rows * rows);
        FeatureGram(out[b], panels, rows, gram.data());
      }
    });
    for (size_t b = 0; b < bandwidths; ++b) {
      stream.bandwidths[b].gram.assign(rows * rows, 0);
      stream.bandwidths[b].gram_features = range.size;
      for (size_t i = 0; i < chunks.size(); ++i) {
        const std::vector<float>& gram = grams[i * bandwidths + b];
        for (size_t k = 0; k < gram.size(); ++k) stream.bandwidths[b].gram[k] += gram[k];
      }
    }
  }
}

std::vector<size_t> Trainer::Impl::FindDiverged(Work& work) const {
  std::vector<size_t> diverged;
  for (size_t c = 0; c < state_.candidates.size(); ++c) {
    const bool last = TameScores(work.last_scores[c]);
    const bool average = TameScores(work.average_scores[c]);
    if (last || average) diverged.push_back(c);
  }
  return diverged;
}

void Trainer::Impl::Reset(CandidateState& candidate) {
  ++state_.divergences;
  ++candidate.divergences;
  candidate.last.scale = 1;
  std::fill(candidate.last.values.begin(), candidate.last.values.end(), 0.0f);
  std::fill(candidate.average.values.begin(), candidate.average.values.end(), 0.0f);
  candidate.steps_since_restart = 0;
}

void Trainer::Impl::Move(const Range& range, Work& work) {
  const size_t rows = work.x.rows, outputs = state_.num_outputs;
  // Each candidate's step, from the batch as it was before the step.
  struct Job {
    const StreamWork* stream;
    size_t bandwidth;
    size_t candidate;
    std::vector<float> dual;
    bool failed = false;
  };
  std::vector<Job> jobs;
  for (const StreamWork& stream : work.streams) {
    for (size_t b = 0; b < stream.bandwidths.size(); ++b) {
      for (const size_t c : stream.bandwidths[b].candidates)
        jobs.push_back({&stream, b, c, {}, false});
    }
  }
  options_.executor->ParallelFor(jobs.size(), [&](size_t j) {
    Job& job = jobs[j];
    const std::vector<double>& scores = work.last_scores[job.candidate];
    std::vector<double> derivative(scores.size()), curvatures(rows), thresholds;
    const size_t per_row = work.targets_per_row;
    const std::span<const double> targets =
        TargetsFor(work, state_.candidates[job.candidate].last, thresholds);
    for (size_t i = 0; i < rows; ++i) {
      const std::span<const double> row(scores.data() + i * outputs, outputs);
      const auto row_targets = targets.subspan(i * per_row, per_row);
      RowDerivative(*loss_, row, row_targets, {derivative.data() + i * outputs, outputs});
      curvatures[i] = RowCurvature(*loss_, row, row_targets);
    }
    std::vector<double> gram = job.stream->bandwidths[job.bandwidth].gram;
    const uint64_t gram_features = job.stream->bandwidths[job.bandwidth].gram_features;
    for (double& value : gram) value /= static_cast<double>(gram_features);
    const size_t left_out = LeaveOverflowsOut(rows, outputs, gram, derivative);
    StepInput input;
    input.update = state_.updates;
    input.rows = rows;
    input.num_outputs = outputs;
    input.range_size = range.size;
    input.derivative = derivative;
    input.curvatures = curvatures;
    input.weights = work.weights;
    input.gram = gram;
    const FeatureSpec& spec = job.stream->stream->features->spec();
    input.mean_diagonal =
        spec.is_shift_invariant() ? spec.amplitude_square() : MeanDiagonal(gram, rows);
    StepOutput output = rules_[job.candidate]->Step(input);
    CoefficientState& last = state_.candidates[job.candidate].last;
    last.scale *= output.decay;
    if (last.scale < kSmallestScale) {
      for (float& value : last.values) value = static_cast<float>(last.scale * value);
      last.scale = 1;
    }
    if (last.scale != 1) {
      for (float& value : output.dual) value = static_cast<float>(value / last.scale);
    }
    job.dual = std::move(output.dual);
    job.failed = 2 * left_out > rows || !AllFinite(job.dual);
    if (job.failed) std::fill(job.dual.begin(), job.dual.end(), 0.0f);
  });
  for (const Job& job : jobs) {
    if (job.failed) Reset(state_.candidates[job.candidate]);
  }

  const size_t panel_floats = rows * kPanelWidth;
  const uint64_t end = range.begin + range.size;
  const size_t first_panel = range.begin / kPanelWidth;
  // Features that are not kept are made again, which is best done for a whole chunk.
  const bool kept = std::ranges::all_of(jobs, [](const Job& job) {
    return job.stream->bandwidths[job.bandwidth].features != nullptr;
  });
  const std::vector<FeatureChunk> pieces =
      FeatureChunks(end - first_panel * kPanelWidth)
          .CutFor(options_.executor->threads(), [kept](size_t) { return kept; });
  options_.executor->ParallelFor(pieces.size(), [&](size_t i) {
    const size_t panel = first_panel + pieces[i].first_panel;
    const size_t panels = pieces[i].num_panels;
    const StreamWork* made = nullptr;  // stream whose features are in the scratch
    std::vector<AlignedFloats>* scratch = nullptr;
    for (size_t first = 0; first < jobs.size();) {
      const StreamWork& stream = *jobs[first].stream;
      const size_t b = jobs[first].bandwidth;
      const float* features = nullptr;
      if (stream.bandwidths[b].features != nullptr) {
        features = stream.bandwidths[b].features + panel * panel_floats;
      } else {
        if (made != &stream) {
          made = &stream;
          scratch = &ThreadFeatures(stream.bandwidths.size(), panels * panel_floats);
          std::vector<float*> out;
          for (AlignedFloats& of_bandwidth : *scratch) out.push_back(of_bandwidth.data());
          out.resize(stream.bandwidths.size());
          MaskedFeatures(stream, panel, panels, range.begin, end, out);
        }
        features = (*scratch)[b].data();
      }
      std::vector<float*> coefficients;
      std::vector<const float*> duals;
      for (; first < jobs.size() && jobs[first].stream == &stream && jobs[first].bandwidth == b;
           ++first) {
        CandidateState& candidate = state_.candidates[jobs[first].candidate];
        coefficients.push_back(candidate.last.values.data() + panel * outputs * kPanelWidth);
        duals.push_back(jobs[first].dual.data());
      }
      MoveTogether(features, panels, rows, duals, outputs, coefficients);
    }
  });
}

}  // namespace kernelstream
