// Triangles of features: products, Cholesky, solve.
#include "core/simd/triangle.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/triangle.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Once per target, so after it.
#include "core/simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernelstream {
namespace HWY_NAMESPACE {
namespace {

using DoubleTag = hn::CappedTag<double, kPanelWidth>;
using Doubles = hn::Vec<DoubleTag>;
constexpr size_t kDoubleLanes = hn::MaxLanes(DoubleTag());
constexpr size_t kDoubleRegs = kPanelWidth / kDoubleLanes;
// As many accumulators as kTileRows * kRegs.
constexpr size_t kDoubleTileRows = std::max<size_t>(1, kTileRows* kRegs / kDoubleRegs);
constexpr size_t kSquare = kPanelWidth * kPanelWidth;

// acc[r] +- sum over terms j of left[r * row_stride + 16 j] * right[16 j + lane].
template <bool kSubtract, size_t kRows>
HWY_INLINE void MultiplyPanels(const double* HWY_RESTRICT left, size_t terms,
                               const double* HWY_RESTRICT right,
                               Doubles (&acc)[kRows * kDoubleRegs]) {
  const DoubleTag d;
  for (size_t j = 0; j < terms; ++j) {
    Doubles b[kDoubleRegs];
    for (size_t i = 0; i < kDoubleRegs; ++i) b[i] = hn::LoadU(d, right + i * kDoubleLanes);
    for (size_t r = 0; r < kRows; ++r) {
      const auto a = hn::Set(d, left[r]);
      for (size_t i = 0; i < kDoubleRegs; ++i) {
        auto& sum = acc[r * kDoubleRegs + i];
        sum = kSubtract ? hn::NegMulAdd(a, b[i], sum) : hn::MulAdd(a, b[i], sum);
      }
    }
    left += kPanelWidth;
    right += kPanelWidth;
  }
}

// to[column r] -= sum over terms of left(column r) * right, kRows columns of one square.
template <size_t kRows>
HWY_INLINE void SubtractTile(const double* left, size_t terms, const double* right, double* to) {
  const DoubleTag d;
  Doubles acc[kRows * kDoubleRegs];
  for (size_t i = 0; i < kRows * kDoubleRegs; ++i) acc[i] = hn::LoadU(d, to + i * kDoubleLanes);
  MultiplyPanels<true, kRows>(left, terms, right, acc);
  for (size_t i = 0; i < kRows * kDoubleRegs; ++i) hn::StoreU(acc[i], d, to + i * kDoubleLanes);
}

template <size_t kRows>
HWY_INLINE void MultiplyTile(const double* left, const double* right, double* to) {
  const DoubleTag d;
  Doubles acc[kRows * kDoubleRegs];
  for (size_t i = 0; i < kRows * kDoubleRegs; ++i) acc[i] = hn::Zero(d);
  MultiplyPanels<false, kRows>(left, kPanelWidth, right, acc);
  for (size_t i = 0; i < kRows * kDoubleRegs; ++i) hn::StoreU(acc[i], d, to + i * kDoubleLanes);
}

template <size_t kRows = kDoubleTileRows>
void SubtractColumns(size_t columns, const double* left, size_t terms, const double* right,
                     double* to) {
  if (columns == kRows) {
    SubtractTile<kRows>(left, terms, right, to);
  } else if constexpr (kRows > 1) {
    SubtractColumns<kRows - 1>(columns, left, terms, right, to);
  }
}

template <size_t kRows = kDoubleTileRows>
void MultiplyColumns(size_t columns, const double* left, const double* right, double* to) {
  if (columns == kRows) {
    MultiplyTile<kRows>(left, right, to);
  } else if constexpr (kRows > 1) {
    MultiplyColumns<kRows - 1>(columns, left, right, to);
  }
}

// A square S [column][16 rows], symmetric -> the inverse of its Cholesky factor, [column][16 rows],
// 0 above the diagonal.
bool InvertSquare(double* square) {
  double lower[kPanelWidth][kPanelWidth] = {};
  for (size_t j = 0; j < kPanelWidth; ++j) {
    double pivot = square[j * kPanelWidth + j];
    for (size_t k = 0; k < j; ++k) pivot -= lower[j][k] * lower[j][k];
    if (!(pivot > 0) || !std::isfinite(pivot)) return false;
    lower[j][j] = std::sqrt(pivot);
    for (size_t i = j + 1; i < kPanelWidth; ++i) {
      double sum = square[j * kPanelWidth + i];
      for (size_t k = 0; k < j; ++k) sum -= lower[i][k] * lower[j][k];
      lower[i][j] = sum / lower[j][j];
    }
  }
  std::fill_n(square, kSquare, 0.0);
  for (size_t j = 0; j < kPanelWidth; ++j) {
    double* column = square + j * kPanelWidth;
    column[j] = 1 / lower[j][j];
    for (size_t i = j + 1; i < kPanelWidth; ++i) {
      double sum = 0;
      for (size_t k = j; k < i; ++k) sum -= lower[i][k] * column[k];
      column[i] = sum / lower[i][i];
    }
  }
  return true;
}

bool FactorTriangle(size_t num_panels, double* triangle) {
  HWY_ALIGN double square[kSquare];
  for (size_t p = 0; p < num_panels; ++p) {
    double* panel = triangle + TriangleSize(p);
    for (size_t q = 0; q <= p; ++q) {
      const double* other = triangle + TriangleSize(q);
      double* to = panel + q * kSquare;
      ForEachTile<kDoubleTileRows>(kPanelWidth, [&](size_t column, size_t tile) HWY_ATTR {
        SubtractColumns(tile, other + column, q * kPanelWidth, panel, to + column * kPanelWidth);
      });
      if (q == p) continue;
      std::copy_n(to, kSquare, square);
      ForEachTile<kDoubleTileRows>(kPanelWidth, [&](size_t column, size_t tile) HWY_ATTR {
        MultiplyColumns(tile, other + q * kSquare + column, square, to + column * kPanelWidth);
      });
    }
    if (!InvertSquare(panel + p * kSquare)) return false;
  }
  return true;
}

// kRows columns of one square of products.
template <size_t kRows>
HWY_INLINE void ProductTile(const float* left, size_t rows, const float* right, double* to) {
  const FloatTag d;
  Floats acc[kRows * kRegs];
  for (size_t i = 0; i < kRows * kRegs; ++i) acc[i] = hn::Zero(d);
  MultiplyAdd<kRows, 1>(left, 1, kPanelWidth, rows, right, 0, acc);
  HWY_ALIGN float sums[kRows * kPanelWidth];
  for (size_t i = 0; i < kRows * kRegs; ++i) hn::StoreU(acc[i], d, sums + i * kLanes);
  for (size_t i = 0; i < kRows * kPanelWidth; ++i) to[i] += double{sums[i]};
}

template <size_t kRows = kTileRows>
void ProductColumns(size_t columns, const float* left, size_t rows, const float* right,
                    double* to) {
  if (columns == kRows) {
    ProductTile<kRows>(left, rows, right, to);
  } else if constexpr (kRows > 1) {
    ProductColumns<kRows - 1>(columns, left, rows, right, to);
  }
}

void AddFeatureProducts(const float* features, size_t num_panels, size_t rows, double* triangle) {
  const size_t stride = rows * kPanelWidth;
  for (size_t p = 0; p < num_panels; ++p) {
    double* panel = triangle + TriangleSize(p);
    for (size_t q = 0; q <= p; ++q) {
      ForEachTile<kTileRows>(kPanelWidth, [&](size_t column, size_t tile) HWY_ATTR {
        ProductColumns(tile, features + q * stride + column, rows, features + p * stride,
                       panel + q * kSquare + column * kPanelWidth);
      });
    }
  }
}

// kRows rows of panel p. z: [panel][rows][16] from the first of the kRows rows on.
template <size_t kRows>
HWY_INLINE void SolveTile(const float* panel, size_t p, size_t stride, float* z) {
  const FloatTag d;
  float* to = z + p * stride;
  Floats acc[kRows * kRegs];
  for (size_t i = 0; i < kRows * kRegs; ++i) acc[i] = hn::Zero(d);
  for (size_t q = 0; q < p; ++q) {
    MultiplyAdd<kRows, 1>(z + q * stride, kPanelWidth, 1, kPanelWidth, panel + q * kSquare, 0, acc);
  }
  for (size_t i = 0; i < kRows * kRegs; ++i) {
    hn::StoreU(hn::Sub(hn::LoadU(d, to + i * kLanes), acc[i]), d, to + i * kLanes);
    acc[i] = hn::Zero(d);
  }
  MultiplyAdd<kRows, 1>(to, kPanelWidth, 1, kPanelWidth, panel + p * kSquare, 0, acc);
  for (size_t i = 0; i < kRows * kRegs; ++i) hn::StoreU(acc[i], d, to + i * kLanes);
}

template <size_t kRows = kTileRows>
void SolveRows(size_t rows, const float* panel, size_t p, size_t stride, float* z) {
  if (rows == kRows) {
    SolveTile<kRows>(panel, p, stride, z);
  } else if constexpr (kRows > 1) {
    SolveRows<kRows - 1>(rows, panel, p, stride, z);
  }
}

void SolveTriangle(const float* factor, size_t num_panels, size_t rows, float* features) {
  // Rows whose features stay in the second-level cache while a panel of the factor passes.
  constexpr size_t kHotRows = 48;
  for (size_t first = 0; first < rows; first += kHotRows) {
    const size_t count = std::min(kHotRows, rows - first);
    for (size_t p = 0; p < num_panels; ++p) {
      ForEachTile<kTileRows>(count, [&](size_t r, size_t tile) HWY_ATTR {
        SolveRows(tile, factor + TriangleSize(p), p, rows * kPanelWidth,
                  features + (first + r) * kPanelWidth);
      });
    }
  }
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kernelstream
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernelstream {

HWY_EXPORT(AddFeatureProducts);
HWY_EXPORT(FactorTriangle);
HWY_EXPORT(SolveTriangle);

void AddFeatureProducts(const float* features, size_t num_panels, size_t rows, double* triangle) {
  HWY_DYNAMIC_DISPATCH(AddFeatureProducts)(features, num_panels, rows, triangle);
}

bool FactorTriangle(size_t num_panels, double* triangle) {
  return HWY_DYNAMIC_DISPATCH(FactorTriangle)(num_panels, triangle);
}

void SolveTriangle(const float* factor, size_t num_panels, size_t rows, float* features) {
  HWY_DYNAMIC_DISPATCH(SolveTriangle)(factor, num_panels, rows, features);
}

}  // namespace kernelstream
#endif  // HWY_ONCE
