// How features are divided for parallel work and for sums.
#ifndef KERNELSTREAM_CORE_MODEL_FEATURE_CHUNKS_H_
#define KERNELSTREAM_CORE_MODEL_FEATURE_CHUNKS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/simd/simd.h"

namespace kernelstream {

inline size_t PanelsFor(uint64_t num_features) {
  return static_cast<size_t>((num_features + kPanelWidth - 1) / kPanelWidth);
}

struct FeatureChunk {
  size_t first_panel = 0;
  size_t num_panels = 0;
};

// Immutable. Features 0 ... num_features - 1 in chunks of 1024, by features alone: sums are made
// per chunk and then added in chunk order, in training and in prediction alike, so they have the
// same bits for any number of threads.
class FeatureChunks {
 public:
  static constexpr size_t kPanelsPerChunk = 4 * kPanelsPerBlock;
  static constexpr size_t kMostTogether = 16;

  // Chunks whose features are best made by one call, where those of `panels_at_a_time` panels share
  // work (FeatureMap::PanelsAtATime): at most kMostTogether, which bounds the memory.
  static size_t Together(size_t panels_at_a_time) {
    return std::clamp<size_t>(panels_at_a_time / kPanelsPerChunk, 1, kMostTogether);
  }

  explicit FeatureChunks(uint64_t num_features) : panels_(PanelsFor(num_features)) {}
  size_t size() const { return (panels_ + kPanelsPerChunk - 1) / kPanelsPerChunk; }
  FeatureChunk operator[](size_t i) const { return Run(i, 1); }
  // The panels of `count` chunks from chunk i on, or of all that there are.
  FeatureChunk Run(size_t i, size_t count) const {
    const size_t first = i * kPanelsPerChunk;
    return {first, std::min(count * kPanelsPerChunk, panels_ - first)};
  }
  // What to give to so many threads, one piece after the other: the chunks, of which the last
  // `threads` that may be cut in blocks of kPanelsPerBlock panels, so that nobody waits long for
  // who began late or was interrupted. Sums of blocks, added in order, are the chunk's, bit for
  // bit. With one thread the chunks as they are, for a call for each block costs a few percent
  // more.
  template <typename MayBeCut>
  std::vector<FeatureChunk> CutFor(size_t threads, const MayBeCut& may_be_cut) const {
    std::vector<FeatureChunk> pieces;
    const size_t whole = threads > 1 ? size() - std::min(size(), threads) : size();
    for (size_t i = 0; i < size(); ++i) {
      const FeatureChunk chunk = (*this)[i];
      const size_t end = chunk.first_panel + chunk.num_panels;
      const size_t most = i >= whole && may_be_cut(i) ? kPanelsPerBlock : kPanelsPerChunk;
      for (size_t first = chunk.first_panel; first < end; first += most) {
        pieces.push_back({first, std::min(most, end - first)});
      }
    }
    return pieces;
  }
  static size_t ChunkOf(const FeatureChunk& piece) { return piece.first_panel / kPanelsPerChunk; }
  // Features that a Gram matrix of so many rows takes for steps of this constant (> 0). One of
  // fewer features than there are is as good while its noise, of norm about 2 (rows /
  // features)^(1/2), stays well below what the step is damped by. With at least so many features
  // in all, the kernel's own matrix is as close to theirs.
  static double GramFeatures(size_t rows, double step_constant) {
    return kGramFeaturesPerRow * static_cast<double>(rows) / step_constant;
  }
  // How many of the chunks that is.
  size_t ForGram(size_t rows, double step_constant) const {
    const double chunks =
        std::ceil(GramFeatures(rows, step_constant) / (kPanelsPerChunk * kPanelWidth));
    return chunks < static_cast<double>(size()) ? static_cast<size_t>(chunks) : size();
  }

 private:
  // At step constant 1.
  static constexpr double kGramFeaturesPerRow = 4;
  size_t panels_;
};

// scores = the sums of all pieces, at sums[0], sums[stride], ..., by chunk. Takes them as scratch.
inline void AddPieces(std::span<const FeatureChunk> pieces, std::span<std::vector<double>> sums,
                      size_t stride, size_t count, std::vector<double>& scores) {
  scores.assign(count, 0);
  for (size_t i = 0; i < pieces.size();) {
    std::vector<double>& chunk = sums[i * stride];
    const size_t of = FeatureChunks::ChunkOf(pieces[i]);
    for (++i; i < pieces.size() && FeatureChunks::ChunkOf(pieces[i]) == of; ++i) {
      const std::vector<double>& block = sums[i * stride];
      for (size_t k = 0; k < count; ++k) chunk[k] += block[k];
    }
    for (size_t k = 0; k < count; ++k) scores[k] += chunk[k];
  }
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_FEATURE_CHUNKS_H_
