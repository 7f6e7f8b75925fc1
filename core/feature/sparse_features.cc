// Features of rows whose zeros are left out. The frequencies of a run's coordinates are drawn for a
// few panels at a time; each row takes those of its own coordinates, in their order, and is then a
// dense row of few inputs. Zeros add nothing to a sum in that order, so the bits are those of the
// dense row.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/feature/random_feature_map.h"

namespace kernelstream {
namespace {

// Copies the frequencies at `places` of num_lists lists, each [size][16], to out, each
// [places.size()][16].
void GatherFrequencies(const float* frequencies, size_t num_lists, size_t size,
                       std::span<const uint32_t> places, float* out) {
  for (size_t list = 0; list < num_lists; ++list) {
    for (const uint32_t place : places) {
      std::memcpy(out, frequencies + size_t{place} * kPanelWidth, kPanelWidth * sizeof(float));
      out += kPanelWidth;
    }
    frequencies += size * kPanelWidth;
  }
}

}  // namespace

// [values of row 0 as the kernel sees them, row 1, ...].
std::vector<float> RandomFeatureMap::TransformedRows(const SparseRows& x,
                                                     float inverse_bandwidth) const {
  if (spec().transform == InputTransform::kNone) return x.values;
  std::vector<float> out(spec().transformed_dim(x.values.size()));
  for (size_t r = 0; r < x.rows(); ++r) {
    const std::span<const float> row = x.row_values(r);
    TransformInputs(spec().transform, TransformParameter(inverse_bandwidth),
                    {row.data(), 1, row.size()}, out.data() + spec().transformed_dim(x.begins[r]));
  }
  return out;
}

void RandomFeatureMap::SparseFeaturesAt(const SparseRows& x,
                                        std::span<const float> inverse_bandwidths,
                                        uint64_t first_panel, size_t num_panels,
                                        std::span<float* const> out) const {
  const bool share = inverse_bandwidths.size() > 1 && has_one_projection();
  std::vector<std::vector<float>> inputs;
  for (const float inverse_bandwidth : inverse_bandwidths) {
    inputs.push_back(TransformedRows(x, share ? 1 : Scale(inverse_bandwidth)));
    if (share) break;
  }
  thread_local std::vector<float> gathered, projections, features;
  size_t first_row = 0;
  for (const SparseRows::Run& run : x.runs) {
    const RandomFeatureMap selected(spec(), seed(), run.ids);
    selected.VisitPanels(
        first_panel, num_panels, [&](const FeaturePanels& visited, uint64_t first) {
          const size_t count = visited.num_panels * kPanelWidth;
          projections.resize(std::max(projections.size(), count));
          features.resize(std::max(features.size(), count));
          const size_t lists = selected.FrequencyLists(visited);
          for (size_t r = first_row; r < first_row + run.num_rows; ++r) {
            const std::span<const uint32_t> places = x.row_places(r);
            gathered.resize(std::max(gathered.size(), lists * places.size() * kPanelWidth));
            GatherFrequencies(visited.frequencies, lists, run.ids.size(), places, gathered.data());
            FeaturePanels panels = visited;
            panels.frequencies = gathered.data();
            const auto row = [&](const std::vector<float>& of) {
              return ConstMatrixView(of.data() + spec().transformed_dim(x.begins[r]), 1,
                                     spec().transformed_dim(places.size()));
            };
            if (share) Projections(panels, row(inputs[0]), projections.data());
            for (size_t k = 0; k < inverse_bandwidths.size(); ++k) {
              panels.inverse_bandwidth = Scale(inverse_bandwidths[k]);
              if (share) {
                FeaturesOfProjections(panels, projections.data(), 1, features.data());
              } else {
                PanelFeatures(panels, row(inputs[k]), features.data());
              }
              Amplify({features.data(), count});
              float* to = out[k] + ((first - first_panel) * x.rows() + r) * kPanelWidth;
              for (size_t i = 0; i < count; i += kPanelWidth, to += x.rows() * kPanelWidth) {
                std::copy_n(features.data() + i, kPanelWidth, to);
              }
            }
          }
        });
    first_row += run.num_rows;
  }
}

}  // namespace kernelstream
