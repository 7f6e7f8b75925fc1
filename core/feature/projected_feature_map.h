// Features made in two steps: projections, in whichever way they are quickest, then their form.
#ifndef KERNELSTREAM_CORE_FEATURE_PROJECTED_FEATURE_MAP_H_
#define KERNELSTREAM_CORE_FEATURE_PROJECTED_FEATURE_MAP_H_

#include <span>

#include "core/feature/feature_map.h"
#include "core/feature/random_feature_map.h"

namespace kernelstream {

// Immutable in what it computes; thread-safe. Cosines, or powers, of projections that ProjectionsAt
// makes; all bandwidths share them. Dense inputs only.
class ProjectedFeatureMap : public FeatureMap {
 public:
  void FeaturesAt(InputsView x, std::span<const float> inverse_bandwidths, uint64_t first_panel,
                  size_t num_panels, std::span<float* const> out) const final;
  // The same frequencies, written out; nothing of them is kept.
  const RandomFeatureMap* AsRandom() const final { return &written_out_; }
  // Of frequencies, so the same for pairs.
  void ProjectionsAt(ConstMatrixView x, uint64_t first_panel,
                     std::span<float* const> out) const override = 0;

 protected:
  ProjectedFeatureMap(const FeatureSpec& spec, uint64_t seed, size_t input_dim,
                      uint64_t max_features);
  // What FeaturesOfProjections needs beside projections: [num_panels][16].
  virtual void Lanes(uint64_t first_panel, size_t num_panels, float* lanes) const;

 private:
  const RandomFeatureMap written_out_;
  const float amplitude_;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_FEATURE_PROJECTED_FEATURE_MAP_H_
