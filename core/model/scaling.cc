#include "core/model/scaling.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/model/row_weights.h"

namespace kernelstream {
namespace {

constexpr double kIqrOfUnitNormal = 1.349;
constexpr double kFarthestTargetIqrs = 10;
// Of the targets about a robust scale's median, all but this share are within so many scales: where
// most targets are alike, the quartiles say nothing of the others.
constexpr double kShareFarOut = 0.05;
constexpr double kRobustReach = 15;
// Of fewer targets, quartiles say little.
constexpr size_t kFewestForQuartiles = 16;
// Two or three columns of similar size say little about their units.
constexpr size_t kFewestColumnsOfOneUnit = 8;

struct Moments {
  double mean = 0;
  double deviation = 0;
};

// Values in increasing order with the rows' weights; none: all count alike.
template <typename T>
class SortedColumn {
 public:
  // weights: as many as values, or none.
  SortedColumn(std::vector<T> values, std::span<const double> weights)
      : values_(std::move(values)) {
    if (UnlessEqual(weights).empty()) {
      std::sort(values_.begin(), values_.end());
      return;
    }
    std::vector<std::pair<T, double>> rows(values_.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = {values_[i], weights[i]};
    std::sort(rows.begin(), rows.end());
    for (size_t i = 0; i < rows.size(); ++i) {
      values_[i] = rows[i].first;
      weights_.push_back(rows[i].second);
      total_ += rows[i].second;
    }
  }

  // The value at `share` of the rows, between neighbours by their distance. With weights a value
  // stands in the middle of its weight, the first at share 0 and the last at share 1.
  double Quantile(double share) const {
    if (!weights_.empty()) return WeightedQuantile(share);
    const double position = share * static_cast<double>(values_.size() - 1);
    const auto below = static_cast<size_t>(position);
    return Between(below, position - static_cast<double>(below));
  }

  Moments MomentsOf() const {
    const auto n = static_cast<double>(values_.size());
    Moments moments;
    if (weights_.empty()) {
      for (const T value : values_) moments.mean += static_cast<double>(value) / n;
    } else {
      for (size_t i = 0; i < values_.size(); ++i) {
        moments.mean += weights_[i] / total_ * static_cast<double>(values_[i]);
      }
    }
    double variance = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      const double off = static_cast<double>(values_[i]) - moments.mean;
      variance += weights_.empty() ? off * off / n : weights_[i] / total_ * (off * off);
    }
    moments.deviation = std::sqrt(variance);
    return moments;
  }

  std::vector<T>& values() { return values_; }

 private:
  double Between(size_t below, double part) const {
    const size_t above = std::min(below + 1, values_.size() - 1);
    return (1 - part) * static_cast<double>(values_[below]) +
           part * static_cast<double>(values_[above]);
  }
  double WeightedQuantile(double share) const {
    const double first = weights_.front() / 2, last = total_ - weights_.back() / 2;
    double left = share * (last - first);  // to go from the middle of value `below`
    for (size_t below = 0; below + 1 < values_.size(); ++below) {
      const double gap = (weights_[below] + weights_[below + 1]) / 2;
      if (left <= gap) return Between(below, left / gap);
      left -= gap;
    }
    return static_cast<double>(values_.back());
  }

  std::vector<T> values_;
  std::vector<double> weights_;
  double total_ = 0;
};

std::vector<float> InverseOf(std::span<const double> scales) {
  std::vector<float> inverse;
  for (const double scale : scales) inverse.push_back(static_cast<float>(1 / scale));
  return inverse;
}

}  // namespace

InputScaling::InputScaling(std::vector<float> shift, std::vector<float> inverse_scale)
    : shift_(std::move(shift)), inverse_scale_(std::move(inverse_scale)) {
  for (size_t j = 0; j < shift_.size(); ++j) {
    if (shift_[j] != 0 || inverse_scale_[j] != 1) ++num_standardized_;
  }
}

InputScaling::InputScaling(const GivenScales& given)
    : InputScaling(std::vector<float>(given.offsets.begin(), given.offsets.end()),
                   InverseOf(given.scales)) {}

GivenScales InputScaling::AsGiven() const {
  GivenScales given;
  if (num_standardized_ == 0) return given;
  given.offsets.assign(shift_.begin(), shift_.end());
  // In float64, so that the inverse of the inverse rounds to what it was.
  for (const float inverse : inverse_scale_) given.scales.push_back(1 / double{inverse});
  return given;
}

InputScaling InputScaling::FromRows(ConstMatrixView rows, std::span<const double> weights) {
  std::vector<float> shift(rows.cols, 0), inverse_scale(rows.cols, 1);
  std::vector<float> values(rows.rows);
  for (size_t j = 0; j < rows.cols; ++j) {
    bool binary = true;
    for (size_t i = 0; i < rows.rows; ++i) {
      values[i] = rows.row(i)[j];
      binary = binary && (values[i] == 0 || values[i] == 1);
    }
    if (binary) continue;
    SortedColumn<float> column(values, weights);
    double centre = column.Quantile(0.5);
    double scale = (column.Quantile(0.75) - column.Quantile(0.25)) / kIqrOfUnitNormal;
    if (!(scale > 0)) {
      const Moments moments = column.MomentsOf();
      centre = moments.mean;
      scale = moments.deviation;
    }
    // Relative to the values' size, a constant column has rounding noise only.
    const double size =
        std::max(std::abs(column.values().front()), std::abs(column.values().back()));
    if (!(scale > 1e-7 * size)) {
      centre = column.Quantile(0.5);
      scale = 1;
    }
    shift[j] = static_cast<float>(centre);
    inverse_scale[j] = std::min(static_cast<float>(1 / scale), 1e30f);
  }
  return InputScaling(std::move(shift), std::move(inverse_scale));
}

bool InputScaling::ShareOneUnit(ConstMatrixView rows) {
  std::vector<float> largest(rows.cols, 0);
  std::vector<bool> varies(rows.cols, false);
  for (size_t i = 0; i < rows.rows; ++i) {
    const auto row = rows.row(i);
    for (size_t j = 0; j < rows.cols; ++j) {
      if (row[j] < 0) return false;
      largest[j] = std::max(largest[j], row[j]);
      varies[j] = varies[j] || row[j] != rows.row(0)[j];
    }
  }
  const float top = *std::max_element(largest.begin(), largest.end());
  size_t varying = 0, reaching = 0;
  for (size_t j = 0; j < rows.cols; ++j) {
    if (!varies[j]) continue;
    ++varying;
    if (largest[j] >= top / 2) ++reaching;
  }
  return varying >= kFewestColumnsOfOneUnit && 2 * reaching >= varying;
}

void Densify(const RowView& row, size_t dimension, float* out) {
  if (row.sparse) {
    std::fill(out, out + dimension, 0.0f);
    for (size_t i = 0; i < row.indices.size(); ++i) out[row.indices[i]] = row.values[i];
  } else {
    std::copy(row.values.begin(), row.values.end(), out);
    std::fill(out + row.values.size(), out + dimension, 0.0f);
  }
}

void InputScaling::Apply(const RowView& row, size_t dimension, float* out) const {
  Densify(row, dimension, out);
  const size_t scaled = std::min(dimension, shift_.size());
  for (size_t j = 0; j < scaled; ++j) {
    const bool standardized = shift_[j] != 0 || inverse_scale_[j] != 1;
    const double clip = standardized ? kInputClip : kRawInputClip;
    // In float64: the shift may be large against the scale.
    const double centred = (static_cast<double>(out[j]) - shift_[j]) * inverse_scale_[j];
    out[j] = static_cast<float>(std::clamp(centred, -clip, clip));
  }
  for (size_t j = scaled; j < dimension; ++j) {
    out[j] = std::clamp(out[j], -kRawInputClip, kRawInputClip);
  }
}

TargetScaling TargetScaling::FromTargets(std::span<const double> targets,
                                         std::span<const double> weights, bool robust) {
  SortedColumn<double> column(std::vector<double>(targets.begin(), targets.end()), weights);
  std::vector<double>& values = column.values();
  const double median = column.Quantile(0.5);
  const double low = column.Quantile(0.25), high = column.Quantile(0.75), range = high - low;
  robust = robust && values.size() >= kFewestForQuartiles;
  if (robust && range > 1e-12 * std::max(std::abs(low), std::abs(high))) {
    const double wide = std::max(median - column.Quantile(kShareFarOut / 2),
                                 column.Quantile(1 - kShareFarOut / 2) - median);
    return {.offset = median, .scale = std::max(range / kIqrOfUnitNormal, wide / kRobustReach)};
  }
  const double reach = kFarthestTargetIqrs * range;
  if (reach > 0) {
    for (double& value : values) value = std::clamp(value, median - reach, median + reach);
  }
  const Moments moments = column.MomentsOf();
  const double size = std::max(std::abs(values.front()), std::abs(values.back()));
  // Of a constant the mean has a rounding error, which losses with a kink would take for a
  // residual.
  if (!(moments.deviation > 1e-12 * size)) return {.offset = median, .scale = 1};
  return {.offset = moments.mean, .scale = moments.deviation};
}

}  // namespace kernelstream
