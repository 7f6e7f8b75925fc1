// Features of rows whose zeros are left out. Each row takes the frequencies of its own coordinates,
// in their order: from a block that is kept, else from those of the run's coordinates, which are
// drawn for a few panels at a time. Zeros add nothing to a sum in that order, so the bits are those
// of the dense row.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/aligned_floats.h"
#include "core/feature/random_feature_map.h"
#include "core/feature/scratch.h"

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

// All bandwidths have the projections of rows.values.
void RandomFeatureMap::ProjectSparse(const FeaturePanels& visited, const SparseTerms& rows,
                                     std::span<const float> inverse_bandwidths, size_t out_rows,
                                     std::span<float* const> out) const {
  thread_local AlignedFloats projection_buffer, feature_buffer;
  const size_t panel_floats = rows.rows * kPanelWidth;
  const size_t floats = visited.num_panels * panel_floats;
  const std::span<float> projections = Grow(projection_buffer, floats);
  SparseProjections(visited, terms_, rows, projections.data());
  const bool is_whole = rows.rows == out_rows;
  FeaturePanels panels = visited;
  for (size_t k = 0; k < out.size(); ++k) {
    panels.inverse_bandwidth = Scale(inverse_bandwidths[k]);
    float* const features = is_whole ? out[k] : Grow(feature_buffer, floats).data();
    FeaturesOfProjections(panels, projections.data(), rows.rows, features);
    Amplify({features, floats});
    if (is_whole) continue;
    for (size_t p = 0; p < visited.num_panels; ++p) {
      std::copy_n(features + p * panel_floats, panel_floats, out[k] + p * out_rows * kPanelWidth);
    }
  }
}

// inputs[k]: [spec().transformed_dim(1) * i] is that of rows' value i at bandwidth k. Row by row:
// with its own frequencies alone, it is a dense row of few inputs.
void RandomFeatureMap::GatherSparse(const FeaturePanels& visited, const SparseTerms& rows,
                                    std::span<const std::vector<float>> inputs,
                                    std::span<const float> inverse_bandwidths, size_t out_rows,
                                    std::span<float* const> out) const {
  thread_local AlignedFloats frequency_buffer, feature_buffer;
  const size_t floats = visited.num_panels * kPanelWidth;
  const std::span<float> features = Grow(feature_buffer, floats);
  const size_t lists = FrequencyLists(visited);
  for (size_t r = 0; r < rows.rows; ++r) {
    const std::span<const uint32_t> places = {rows.places + rows.begins[r],
                                              rows.begins[r + 1] - rows.begins[r]};
    const std::span<float> gathered = Grow(frequency_buffer, lists * places.size() * kPanelWidth);
    GatherFrequencies(visited.frequencies, lists, input_dim(), places, gathered.data());
    FeaturePanels panels = visited;
    panels.frequencies = gathered.data();
    for (size_t k = 0; k < inverse_bandwidths.size(); ++k) {
      panels.inverse_bandwidth = Scale(inverse_bandwidths[k]);
      const size_t terms = spec().transformed_dim(places.size());
      const float* const x = inputs[k].data() + spec().transformed_dim(rows.begins[r]);
      PanelFeatures(panels, {x, 1, terms}, features.data());
      Amplify(features);
      float* to = out[k] + r * kPanelWidth;
      for (size_t i = 0; i < floats; i += kPanelWidth, to += out_rows * kPanelWidth) {
        std::copy_n(features.data() + i, kPanelWidth, to);
      }
    }
  }
}

void RandomFeatureMap::SparseFeaturesAt(const SparseRows& x,
                                        std::span<const float> inverse_bandwidths,
                                        uint64_t first_panel, size_t num_panels,
                                        std::span<float* const> out) const {
  const bool share = has_one_projection();
  std::vector<std::vector<float>> inputs;
  for (const float inverse_bandwidth : inverse_bandwidths) {
    inputs.push_back(TransformedRows(x, share ? 1 : Scale(inverse_bandwidth)));
    if (share) break;
  }
  std::vector<uint32_t> coordinates(blocks_.empty() ? 0 : x.places.size());
  std::vector<float*> run_out(out.size());
  size_t first_row = 0;
  for (const SparseRows::Run& run : x.runs) {
    const RandomFeatureMap selected(spec(), seed(), run.ids);
    const bool may_be_kept = !blocks_.empty() && (run.ids.empty() || run.ids.back() < input_dim());
    for (size_t i = x.begins[first_row]; may_be_kept && i < x.begins[first_row + run.num_rows];
         ++i) {
      coordinates[i] = static_cast<uint32_t>(run.ids[x.places[i]]);
    }
    const auto visit = [&](const RandomFeatureMap& from, uint64_t first, size_t count) {
      const uint32_t* const places = &from == this ? coordinates.data() : x.places.data();
      const SparseTerms rows = {run.num_rows, x.begins.data() + first_row, places,
                                inputs[0].data()};
      from.VisitPanels(first, count, [&](const FeaturePanels& panels, uint64_t panel) {
        const size_t offset = ((panel - first_panel) * x.rows() + first_row) * kPanelWidth;
        for (size_t k = 0; k < out.size(); ++k) run_out[k] = out[k] + offset;
        if (share) {
          from.ProjectSparse(panels, rows, inverse_bandwidths, x.rows(), run_out);
        } else {
          from.GatherSparse(panels, rows, inputs, inverse_bandwidths, x.rows(), run_out);
        }
      });
    };
    for (uint64_t first = first_panel; first < first_panel + num_panels;) {
      const uint64_t block = first / kPanelsPerBlock;
      const size_t count =
          std::min((block + 1) * kPanelsPerBlock, first_panel + num_panels) - first;
      const bool is_kept = may_be_kept && CachedBlock(block) != nullptr;
      visit(is_kept ? *this : selected, first, count);
      first += count;
    }
    first_row += run.num_rows;
  }
}

}  // namespace kernelstream
