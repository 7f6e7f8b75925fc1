// Input and target scales, chosen once from the warm-up rows.
#ifndef KERNELSTREAM_CORE_MODEL_SCALING_H_
#define KERNELSTREAM_CORE_MODEL_SCALING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/matrix_view.h"
#include "core/model/model_config.h"
#include "core/model/sample_batch.h"

namespace kernelstream {

// Standardised inputs are clipped here, so no single value can dominate.
inline constexpr float kInputClip = 8.0f;
// Inputs that are used as they come are clipped here, so that their squares and sums of squares
// stay inside float32.
inline constexpr float kRawInputClip = 1e15f;

// The row's values as they were sent, 0 where it has none. Writes `dimension` values;
// row.MinDimension() <= dimension.
void Densify(const RowView& row, size_t dimension, float* out);

// Immutable. Row -> dense standardised row: (x - shift) * inverse_scale, clipped. Coordinates
// beyond the scale vectors are used as they come.
class InputScaling {
 public:
  // Uses inputs as they come.
  InputScaling() = default;
  // Frozen from warm-up rows [rows, dim], as they were sent: columns of zeros and ones are left
  // alone; otherwise the shift is the median and the scale the interquartile range / 1.349 (mean
  // and standard deviation where that is 0; 1 where the column is constant). weights: what each
  // row counts in them, [rows], > 0; empty or all equal: alike.
  static InputScaling FromRows(ConstMatrixView rows, std::span<const double> weights = {});
  // True if the columns look like readings of one instrument (pixels, histogram bins): no value is
  // negative and at least half of the columns that vary reach half of the largest value of all.
  // Scaling such columns one by one would blow up the rare ones; they are best left as they come.
  static bool ShareOneUnit(ConstMatrixView rows);
  // As given, complete; used in float32.
  explicit InputScaling(const GivenScales& given);
  // From saved vectors.
  InputScaling(std::vector<float> shift, std::vector<float> inverse_scale);

  // Writes `dimension` values; row.MinDimension() <= dimension.
  void Apply(const RowView& row, size_t dimension, float* out) const;

  const std::vector<float>& shift() const { return shift_; }
  const std::vector<float>& inverse_scale() const { return inverse_scale_; }
  // Columns that are changed.
  uint32_t num_standardized() const { return num_standardized_; }
  // What would give the same scaling; empty if no column is changed.
  GivenScales AsGiven() const;

 private:
  std::vector<float> shift_, inverse_scale_;
  uint32_t num_standardized_ = 0;
};

// Regression targets: standardised = (target - offset) / scale.
struct TargetScaling {
  double offset = 0;
  double scale = 1;
  // Mean and standard deviation after values beyond 10 interquartile ranges from the median were
  // pulled in; the value itself and scale 1 for constant targets. robust (Loss::is_robust), at
  // least 16 targets: median and interquartile range / 1.349 where that is not 0, or more, so that
  // 95 % of the targets are within 15 scales. weights: as InputScaling::FromRows.
  static TargetScaling FromTargets(std::span<const double> targets, std::span<const double> weights,
                                   bool robust);
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_SCALING_H_
