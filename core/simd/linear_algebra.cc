// Products of features with each other and with weights; moving averages.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/linear_algebra.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernelstream {
namespace HWY_NAMESPACE {
namespace {

// A square of the Gram matrix is accumulated at a time, all 16 lanes of each entry, while the
// panels pass in groups. A group's features are packed: they stay in the first-level cache, the
// entries in the second.
constexpr size_t kGramRows = 24;
constexpr size_t kGramPanels = 16;
#if HWY_ARCH_X86 && (HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3)
constexpr size_t kGramTileRows = 3, kGramTileCols = 1;
#else
constexpr size_t kGramTileRows = kTileRows / 2 > 0 ? kTileRows / 2 : 1, kGramTileCols = 2;
#endif

// lanes: [kRows][kGramRows][16] of the entries of rows a and columns b.
template <size_t kRows, size_t kCols>
HWY_INLINE void GramTile(const float* a, const float* b, size_t stride, size_t num_panels,
                         float* lanes) {
  const FloatTag d;
  Floats acc[kRows * kCols * kRegs];
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t i = 0; i < kCols * kRegs; ++i) {
      acc[r * kCols * kRegs + i] = hn::LoadU(d, lanes + r * kGramRows * kPanelWidth + i * kLanes);
    }
  }
  MultiplyLanes<kRows, kCols>(a, stride, b, stride, num_panels, acc);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t i = 0; i < kCols * kRegs; ++i) {
      hn::StoreU(acc[r * kCols * kRegs + i], d, lanes + r * kGramRows * kPanelWidth + i * kLanes);
    }
  }
}

// All columns up to and including last_col of kRows rows.
template <size_t kRows = kGramTileRows>
void GramTileRow(size_t rows, const float* a, const float* b, size_t cols, size_t stride,
                 size_t num_panels, float* lanes) {
  if (rows == kRows) {
    size_t c = 0;
    for (; c + kGramTileCols <= cols; c += kGramTileCols) {
      GramTile<kRows, kGramTileCols>(a, b + c * kPanelWidth, stride, num_panels,
                                     lanes + c * kPanelWidth);
    }
    for (; c < cols; ++c) {
      GramTile<kRows, 1>(a, b + c * kPanelWidth, stride, num_panels, lanes + c * kPanelWidth);
    }
  } else if constexpr (kRows > 1) {
    GramTileRow<kRows - 1>(rows, a, b, cols, stride, num_panels, lanes);
  }
}

void FeatureGram(const float* features, size_t num_panels, size_t rows, float* gram) {
  const FloatTag d;
  constexpr size_t kStride = kGramRows * kPanelWidth;
  HWY_ALIGN float lanes[kGramRows * kStride];
  HWY_ALIGN float row_features[kGramPanels * kStride];
  HWY_ALIGN float col_features[kGramPanels * kStride];
  const size_t stride = rows * kPanelWidth;
  for (size_t row0 = 0; row0 < rows; row0 += kGramRows) {
    const size_t height = std::min(kGramRows, rows - row0);
    for (size_t col0 = 0; col0 <= row0; col0 += kGramRows) {
      const bool diagonal = col0 == row0;
      const size_t width = std::min(kGramRows, rows - col0);
      std::fill_n(lanes, height * kGramRows * kPanelWidth, 0.0f);
      for (size_t p = 0; p < num_panels; p += kGramPanels) {
        const float* group = features + p * stride;
        const size_t count = std::min(kGramPanels, num_panels - p);
        PackRows(group + col0 * kPanelWidth, stride, count, width, col_features, kStride);
        if (!diagonal) {
          PackRows(group + row0 * kPanelWidth, stride, count, height, row_features, kStride);
        }
        const float* left = diagonal ? col_features : row_features;
        ForEachTile<kGramTileRows>(height, [&](size_t r, size_t tile) HWY_ATTR {
          GramTileRow(tile, left + r * kPanelWidth, col_features, diagonal ? r + tile : width,
                      kStride, count, lanes + r * kStride);
        });
      }
      for (size_t r = 0; r < height; ++r) {
        for (size_t c = 0; c < (diagonal ? r + 1 : width); ++c) {
          Floats sum[kRegs];
          for (size_t i = 0; i < kRegs; ++i) {
            sum[i] = hn::LoadU(d, lanes + (r * kGramRows + c) * kPanelWidth + i * kLanes);
          }
          const float value = SumLanes(sum);
          gram[(row0 + r) * rows + col0 + c] = value;
          gram[(col0 + c) * rows + row0 + r] = value;
        }
      }
    }
  }
}

// Coefficients of kOutputs outputs: panel p at coefficients + p * coefficient_stride.
template <size_t kOutputs, size_t kPanels>
HWY_INLINE size_t UpdateTile(const float* features, size_t num_panels, size_t rows,
                             const float* weights, size_t num_outputs, float* coefficients) {
  const FloatTag d;
  const size_t coefficient_stride = num_outputs * kPanelWidth;
  const size_t feature_stride = rows * kPanelWidth;
  size_t done = 0;
  for (; done + kPanels <= num_panels; done += kPanels) {
    float* to = coefficients + done * coefficient_stride;
    Floats acc[kOutputs * kPanels * kRegs];
    for (size_t k = 0; k < kOutputs; ++k) {
      for (size_t p = 0; p < kPanels; ++p) {
        for (size_t i = 0; i < kRegs; ++i) {
          acc[(k * kPanels + p) * kRegs + i] =
              hn::LoadU(d, to + p * coefficient_stride + k * kPanelWidth + i * kLanes);
        }
      }
    }
    MultiplyAdd<kOutputs, kPanels>(weights, 1, num_outputs, rows, features + done * feature_stride,
                                   feature_stride, acc);
    for (size_t k = 0; k < kOutputs; ++k) {
      for (size_t p = 0; p < kPanels; ++p) {
        for (size_t i = 0; i < kRegs; ++i) {
          hn::StoreU(acc[(k * kPanels + p) * kRegs + i], d,
                     to + p * coefficient_stride + k * kPanelWidth + i * kLanes);
        }
      }
    }
  }
  return done;
}

template <size_t kOutputs = kTileRows>
void UpdateOutputs(size_t outputs, const float* features, size_t num_panels, size_t rows,
                   const float* weights, size_t num_outputs, float* coefficients) {
  if (outputs == kOutputs) {
    constexpr size_t kPanels = PanelsPerTile(kOutputs);
    const size_t done = UpdateTile<kOutputs, kPanels>(features, num_panels, rows, weights,
                                                      num_outputs, coefficients);
    if constexpr (kPanels > 1) {
      UpdateTile<kOutputs, 1>(features + done * rows * kPanelWidth, num_panels - done, rows,
                              weights, num_outputs,
                              coefficients + done * num_outputs * kPanelWidth);
    }
  } else if constexpr (kOutputs > 1) {
    UpdateOutputs<kOutputs - 1>(outputs, features, num_panels, rows, weights, num_outputs,
                                coefficients);
  }
}

void AddWeightedFeatures(const float* features, size_t num_panels, size_t rows,
                         const float* weights, size_t num_outputs, float* coefficients) {
  if (rows == 0) return;
  // A few panels at a time, so that their features are still in the first-level cache for the next
  // outputs.
  constexpr size_t kPanels = PanelsPerTile(1);
  for (size_t p = 0; p < num_panels; p += kPanels) {
    ForEachTile<kTileRows>(num_outputs, [&](size_t k, size_t tile) HWY_ATTR {
      UpdateOutputs(tile, features + p * rows * kPanelWidth, std::min(kPanels, num_panels - p),
                    rows, weights + k, num_outputs,
                    coefficients + (p * num_outputs + k) * kPanelWidth);
    });
  }
}

void MoveTowards(const float* from, float rate, size_t count, float* to) {
  const FloatTag d;
  const auto vrate = hn::Set(d, rate);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto old = hn::LoadU(d, to + i);
    hn::StoreU(hn::MulAdd(vrate, hn::Sub(hn::LoadU(d, from + i), old), old), d, to + i);
  }
  const hn::CappedTag<float, 1> one;
  for (; i < count; ++i) {
    const auto old = hn::LoadU(one, to + i);
    const auto difference = hn::Sub(hn::LoadU(one, from + i), old);
    hn::StoreU(hn::MulAdd(hn::Set(one, rate), difference, old), one, to + i);
  }
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kernelstream
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernelstream {

HWY_EXPORT(FeatureGram);
HWY_EXPORT(AddWeightedFeatures);
HWY_EXPORT(MoveTowards);

void FeatureGram(const float* features, size_t num_panels, size_t rows, float* gram) {
  HWY_DYNAMIC_DISPATCH(FeatureGram)(features, num_panels, rows, gram);
}

void AddWeightedFeatures(const float* features, size_t num_panels, size_t rows,
                         const float* weights, size_t num_outputs, float* coefficients) {
  HWY_DYNAMIC_DISPATCH(AddWeightedFeatures)
  (features, num_panels, rows, weights, num_outputs, coefficients);
}

void MoveTowards(const float* from, float rate, size_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(MoveTowards)(from, rate, count, to);
}

}  // namespace kernelstream
#endif  // HWY_ONCE
