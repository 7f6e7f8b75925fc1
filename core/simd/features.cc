// Random Fourier features and their sums: project, cosine, accumulate.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/features.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernelstream {
namespace HWY_NAMESPACE {
namespace {

// Frequencies that stay in the first-level cache while the rows pass by, and rows that stay in the second-level cache
// while the frequencies pass by.
constexpr size_t kHotFrequencyFloats = 4096;
constexpr size_t kHotInputFloats = 40960;
// Rows whose features of one block of panels stay in cache until they are summed.
constexpr size_t kSumChunkRows = 48;

size_t RowsPerChunk(size_t input_dim) {
  const size_t tiles = kHotInputFloats / std::max<size_t>(input_dim, 1) / kTileRows;
  return kTileRows * std::clamp<size_t>(tiles, kSumChunkRows / kTileRows, 64);
}

// Features of kRows rows for panels [first, first + count). Panel p, row r goes to out + p * out_stride + 16 r.
template <size_t kRows, size_t kPanels>
HWY_INLINE size_t FeatureTile(const FeaturePanels& panels, size_t first, size_t count,
                              const float* x, size_t stride, size_t input_dim, float* out,
                              size_t out_stride) {
  const FloatTag d;
  const size_t panel_floats = input_dim * kPanelWidth;
  const auto scale = hn::Set(d, panels.inverse_bandwidth);
  size_t done = 0;
  for (; done + kPanels <= count; done += kPanels) {
    Floats acc[kRows * kPanels * kRegs];
    for (auto& v : acc) v = hn::Zero(d);
    MultiplyAdd<kRows, kPanels>(x, stride, 1, input_dim,
                                panels.frequencies + (first + done) * panel_floats, panel_floats,
                                acc);
    const float* phases = panels.phases + (first + done) * kPanelWidth;
    for (size_t p = 0; p < kPanels; ++p) {
      for (size_t i = 0; i < kRegs; ++i) {
        const auto phase = hn::LoadU(d, phases + p * kPanelWidth + i * kLanes);
        for (size_t r = 0; r < kRows; ++r) {
          const auto t = hn::MulAdd(acc[(r * kPanels + p) * kRegs + i], scale, phase);
          hn::StoreU(CosineOfTurns(t), d,
                     out + (done + p) * out_stride + r * kPanelWidth + i * kLanes);
        }
      }
    }
  }
  return done;
}

template <size_t kRows>
void FeaturesOfRows(const FeaturePanels& panels, size_t first, size_t count, const float* x,
                    size_t stride, size_t input_dim, float* out, size_t out_stride) {
  constexpr size_t kPanels = PanelsPerTile(kRows);
  const size_t done = FeatureTile<kRows, kPanels>(panels, first, count, x, stride, input_dim, out,
                                                  out_stride);
  if constexpr (kPanels > 1) {
    FeatureTile<kRows, 1>(panels, first + done, count - done, x, stride, input_dim,
                          out + done * out_stride, out_stride);
  }
}

template <size_t kRows = kTileRows>
void FeaturesOfTile(size_t rows, const FeaturePanels& panels, size_t first, size_t count,
                    const float* x, size_t stride, size_t input_dim, float* out,
                    size_t out_stride) {
  if (rows == kRows) {
    FeaturesOfRows<kRows>(panels, first, count, x, stride, input_dim, out, out_stride);
  } else if constexpr (kRows > 1) {
    FeaturesOfTile<kRows - 1>(rows, panels, first, count, x, stride, input_dim, out, out_stride);
  }
}

// Features of all rows of x for panels [first, first + count).
void FeaturesOfPanels(const FeaturePanels& panels, size_t first, size_t count, ConstMatrixView x,
                      float* out, size_t out_stride) {
  const size_t group = std::clamp<size_t>(
      kHotFrequencyFloats / (std::max<size_t>(x.cols, 1) * kPanelWidth), 1, kPanelsPerBlock);
  for (size_t p = 0; p < count; p += group) {
    const size_t n = std::min(group, count - p);
    for (size_t row = 0; row < x.rows;) {
      const size_t tile = NextTile(x.rows - row, kTileRows);
      FeaturesOfTile(tile, panels, first + p, n, x.data + row * x.stride, x.stride, x.cols,
                     out + p * out_stride + row * kPanelWidth, out_stride);
      row += tile;
    }
  }
}

// Adds one block's sums of kRows rows and kCols outputs.
template <size_t kRows, size_t kCols>
HWY_INLINE void SumTile(const float* features, size_t feature_stride, const float* coefficients,
                        size_t coefficient_stride, size_t num_panels, size_t num_outputs,
                        double* sums) {
  Floats acc[kRows * kCols * kRegs];
  for (auto& v : acc) v = hn::Zero(FloatTag());
  MultiplyLanes<kRows, kCols>(features, feature_stride, coefficients, coefficient_stride,
                              num_panels, acc);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < kCols; ++c) {
      sums[r * num_outputs + c] += double{SumLanes(acc + (r * kCols + c) * kRegs)};
    }
  }
}

template <size_t kCols, size_t kRows>
void SumRows(size_t rows, const float* features, size_t feature_stride, const float* coefficients,
             size_t coefficient_stride, size_t num_panels, size_t num_outputs, double* sums) {
  if (rows == kRows) {
    SumTile<kRows, kCols>(features, feature_stride, coefficients, coefficient_stride, num_panels,
                          num_outputs, sums);
  } else if constexpr (kRows > 1) {
    SumRows<kCols, kRows - 1>(rows, features, feature_stride, coefficients, coefficient_stride,
                              num_panels, num_outputs, sums);
  }
}

// Adds one block's sums of all rows for kCols outputs, in tiles of at most kMaxRows rows.
template <size_t kCols, size_t kMaxRows>
void SumColumns(size_t rows, const float* features, size_t feature_stride,
                const float* coefficients, size_t coefficient_stride, size_t num_panels,
                size_t num_outputs, double* sums) {
  for (size_t row = 0; row < rows;) {
    const size_t tile = NextTile(rows - row, kMaxRows);
    SumRows<kCols, kMaxRows>(tile, features + row * kPanelWidth, feature_stride, coefficients,
                             coefficient_stride, num_panels, num_outputs,
                             sums + row * num_outputs);
    row += tile;
  }
}

// Adds the sums of one block (at most kPanelsPerBlock panels).
// features: panel p, row r at p * feature_stride + 16 r. coefficients: of the block's first panel.
void SumBlock(size_t rows, const float* features, size_t feature_stride, const float* coefficients,
              size_t num_outputs, size_t num_panels, double* sums) {
  const size_t stride = num_outputs * kPanelWidth;
  size_t k = 0;
  if constexpr (kTileRows >= 4) {
    if (rows == 1) {
      for (; k + 4 <= num_outputs; k += 4) {
        SumColumns<4, 1>(rows, features, feature_stride, coefficients + k * kPanelWidth, stride,
                         num_panels, num_outputs, sums + k);
      }
    }
    for (; k + 2 <= num_outputs; k += 2) {
      SumColumns<2, kTileRows / 2>(rows, features, feature_stride, coefficients + k * kPanelWidth,
                                   stride, num_panels, num_outputs, sums + k);
    }
  }
  for (; k < num_outputs; ++k) {
    SumColumns<1, kTileRows>(rows, features, feature_stride, coefficients + k * kPanelWidth,
                             stride, num_panels, num_outputs, sums + k);
  }
}

void CosineFeatures(const FeaturePanels& panels, ConstMatrixView x, float* out) {
  const size_t chunk = RowsPerChunk(x.cols);
  for (size_t row = 0; row < x.rows; row += chunk) {
    const size_t rows = std::min(chunk, x.rows - row);
    FeaturesOfPanels(panels, 0, panels.num_panels, x.Rows(row, rows), out + row * kPanelWidth,
                     x.rows * kPanelWidth);
  }
}

void CosineSums(const FeaturePanels& panels, ConstMatrixView x, const float* coefficients,
                size_t num_outputs, double* sums) {
  HWY_ALIGN float features[kPanelsPerBlock * kSumChunkRows * kPanelWidth];
  std::fill_n(sums, x.rows * num_outputs, 0.0);
  for (size_t row = 0; row < x.rows;) {
    const size_t rows = NextTile(x.rows - row, kSumChunkRows);
    const size_t stride = rows * kPanelWidth;
    for (size_t first = 0; first < panels.num_panels; first += kPanelsPerBlock) {
      const size_t count = std::min(kPanelsPerBlock, panels.num_panels - first);
      FeaturesOfPanels(panels, first, count, x.Rows(row, rows), features, stride);
      SumBlock(rows, features, stride, coefficients + first * num_outputs * kPanelWidth,
               num_outputs, count, sums + row * num_outputs);
    }
    row += rows;
  }
}

void FeatureSums(const float* features, size_t num_panels, size_t rows, const float* coefficients,
                 size_t num_outputs, double* sums) {
  std::fill_n(sums, rows * num_outputs, 0.0);
  for (size_t row = 0; row < rows;) {
    const size_t chunk = NextTile(rows - row, kSumChunkRows);
    for (size_t first = 0; first < num_panels; first += kPanelsPerBlock) {
      SumBlock(chunk, features + (first * rows + row) * kPanelWidth, rows * kPanelWidth,
               coefficients + first * num_outputs * kPanelWidth, num_outputs,
               std::min(kPanelsPerBlock, num_panels - first), sums + row * num_outputs);
    }
    row += chunk;
  }
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kernelstream
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernelstream {

HWY_EXPORT(CosineFeatures);
HWY_EXPORT(CosineSums);
HWY_EXPORT(FeatureSums);

void CosineFeatures(const FeaturePanels& panels, ConstMatrixView x, float* out) {
  HWY_DYNAMIC_DISPATCH(CosineFeatures)(panels, x, out);
}

void CosineSums(const FeaturePanels& panels, ConstMatrixView x, const float* coefficients,
                size_t num_outputs, double* sums) {
  HWY_DYNAMIC_DISPATCH(CosineSums)(panels, x, coefficients, num_outputs, sums);
}

void FeatureSums(const float* features, size_t num_panels, size_t rows, const float* coefficients,
                 size_t num_outputs, double* sums) {
  HWY_DYNAMIC_DISPATCH(FeatureSums)(features, num_panels, rows, coefficients, num_outputs, sums);
}

}  // namespace kernelstream
#endif  // HWY_ONCE
