// Products of features with each other and with weights; Gaussians of distances; moving averages.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/linear_algebra.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/simd/math-inl.h"
#include "core/simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernelstream {
namespace HWY_NAMESPACE {
namespace {

// A square of the Gram matrix is accumulated at a time while the panels pass in groups. A group's
// features are packed in strips of 16 rows, [feature][16 rows]: one row times a strip, feature by
// feature, is what MultiplyAdd does, and strips stay in the first-level cache.
constexpr size_t kGramRows = 64;
constexpr size_t kGramPanels = 8;
constexpr size_t kStripFloats = kGramPanels * kPanelWidth * kPanelWidth;

constexpr size_t StripsOf(size_t rows) { return (rows + kPanelWidth - 1) / kPanelWidth; }

#if HWY_TARGET != HWY_SCALAR
// Each four lanes of v go to `to`, from one to the next 4 * kPanelWidth floats further.
template <class D>
HWY_INLINE void StoreQuads(D d, hn::Vec<D> v, float* to) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    StoreQuads(half, hn::LowerHalf(half, v), to);
    StoreQuads(half, hn::UpperHalf(half, v), to + hn::MaxLanes(half) * kPanelWidth);
  }
}

// Columns of up to 4 rows of 16 floats become rows of 4, kPanelWidth floats apart; rows that are
// missing are 0.
HWY_INLINE void TransposeQuad(const float* from, size_t rows, float* to) {
  const FloatTag d;
  const hn::Repartition<uint64_t, FloatTag> wide;
  for (size_t i = 0; i < kPanelWidth; i += kLanes) {
    Floats row[4];
    for (size_t r = 0; r < 4; ++r) {
      row[r] = r < rows ? hn::LoadU(d, from + r * kPanelWidth + i) : hn::Zero(d);
    }
    const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, row[0], row[1]));
    const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, row[2], row[3]));
    const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, row[0], row[1]));
    const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, row[2], row[3]));
    float* const at = to + i * kPanelWidth;
    StoreQuads(d, hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)), at);
    StoreQuads(d, hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)), at + kPanelWidth);
    StoreQuads(d, hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)), at + 2 * kPanelWidth);
    StoreQuads(d, hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)), at + 3 * kPanelWidth);
  }
}
#else
void TransposeQuad(const float* from, size_t rows, float* to) {
  for (size_t i = 0; i < kPanelWidth; ++i) {
    for (size_t r = 0; r < 4; ++r) {
      to[i * kPanelWidth + r] = r < rows ? from[r * kPanelWidth + i] : 0.0f;
    }
  }
}
#endif

// features: panels [rows][16], `stride` apart.
void PackStrips(const float* features, size_t stride, size_t num_panels, size_t rows, float* to) {
  for (size_t row = 0; row < StripsOf(rows) * kPanelWidth; row += 4) {
    const size_t count = std::min<size_t>(4, rows - std::min(rows, row));
    float* const strip = to + row / kPanelWidth * kStripFloats + row % kPanelWidth;
    for (size_t p = 0; p < num_panels; ++p) {
      TransposeQuad(features + p * stride + row * kPanelWidth, count,
                    strip + p * kPanelWidth * kPanelWidth);
    }
  }
}

// Adds the products of kRows rows of one strip with all rows of another to square
// [kRows][kGramRows].
template <size_t kRows = kTileRows>
void GramTile(size_t rows, const float* left, const float* right, size_t features, float* square) {
  if (rows == kRows) {
    const FloatTag d;
    Floats acc[kRows * kRegs];
    for (size_t e = 0; e < kRows * kRegs; ++e) acc[e] = hn::Zero(d);
    MultiplyAdd<kRows, 1>(left, 1, kPanelWidth, features, right, 0, acc);
    for (size_t e = 0; e < kRows * kRegs; ++e) {
      float* const to = square + e / kRegs * kGramRows + e % kRegs * kLanes;
      hn::StoreU(hn::Add(hn::LoadU(d, to), acc[e]), d, to);
    }
  } else if constexpr (kRows > 1) {
    GramTile<kRows - 1>(rows, left, right, features, square);
  }
}

void FeatureGram(const float* features, size_t num_panels, size_t rows, float* gram) {
  HWY_ALIGN float square[kGramRows * kGramRows];
  HWY_ALIGN float row_strips[StripsOf(kGramRows) * kStripFloats];
  HWY_ALIGN float col_strips[StripsOf(kGramRows) * kStripFloats];
  const size_t stride = rows * kPanelWidth;
  for (size_t row0 = 0; row0 < rows; row0 += kGramRows) {
    const size_t height = std::min(kGramRows, rows - row0);
    for (size_t col0 = 0; col0 <= row0; col0 += kGramRows) {
      const bool diagonal = col0 == row0;
      const size_t width = std::min(kGramRows, rows - col0);
      std::fill_n(square, height * kGramRows, 0.0f);
      for (size_t p = 0; p < num_panels; p += kGramPanels) {
        const float* group = features + p * stride;
        const size_t count = std::min(kGramPanels, num_panels - p);
        PackStrips(group + col0 * kPanelWidth, stride, count, width, col_strips);
        if (!diagonal) PackStrips(group + row0 * kPanelWidth, stride, count, height, row_strips);
        const float* const left = diagonal ? col_strips : row_strips;
        for (size_t r = 0; r < StripsOf(height); ++r) {
          const size_t strip_rows = std::min(kPanelWidth, height - r * kPanelWidth);
          for (size_t c = 0; c < (diagonal ? r + 1 : StripsOf(width)); ++c) {
            ForEachTile<kTileRows>(strip_rows, [&](size_t first, size_t tile) HWY_ATTR {
              GramTile(tile, left + r * kStripFloats + first, col_strips + c * kStripFloats,
                       count * kPanelWidth,
                       square + (r * kPanelWidth + first) * kGramRows + c * kPanelWidth);
            });
          }
        }
      }
      for (size_t r = 0; r < height; ++r) {
        for (size_t c = 0; c < (diagonal ? r + 1 : width); ++c) {
          const float value = square[r * kGramRows + c];
          gram[(row0 + r) * rows + col0 + c] = value;
          gram[(col0 + c) * rows + row0 + r] = value;
        }
      }
    }
  }
}

// Terms of squared distances at a time: one strip of rows stays in the first-level cache.
constexpr size_t kDistanceTerms = 256;

// sums[r][lane] += squared differences of row r of `left` and the rows of a strip [term][16 rows].
template <size_t kRows = kTileRows>
void DistanceTile(size_t rows, const float* left, size_t stride, const float* strip, size_t terms,
                  float* sums) {
  if (rows == kRows) {
    const FloatTag d;
    Floats acc[kRows * kRegs];
    for (size_t e = 0; e < kRows * kRegs; ++e) acc[e] = hn::LoadU(d, sums + e * kLanes);
    for (size_t j = 0; j < terms; ++j) {
      Floats b[kRegs];
      for (size_t i = 0; i < kRegs; ++i) b[i] = hn::LoadU(d, strip + j * kPanelWidth + i * kLanes);
      for (size_t r = 0; r < kRows; ++r) {
        const auto a = hn::Set(d, left[r * stride + j]);
        for (size_t i = 0; i < kRegs; ++i) {
          const auto difference = hn::Sub(b[i], a);
          auto& sum = acc[r * kRegs + i];
          sum = hn::MulAdd(difference, difference, sum);
        }
      }
    }
    for (size_t e = 0; e < kRows * kRegs; ++e) hn::StoreU(acc[e], d, sums + e * kLanes);
  } else if constexpr (kRows > 1) {
    DistanceTile<kRows - 1>(rows, left, stride, strip, terms, sums);
  }
}

void SquaredDistances(ConstMatrixView x, float* out) {
  HWY_ALIGN float strip[kDistanceTerms * kPanelWidth];
  HWY_ALIGN float sums[kGramRows * kPanelWidth];
  for (size_t col0 = 0; col0 < x.rows; col0 += kPanelWidth) {
    const size_t width = std::min(kPanelWidth, x.rows - col0);
    for (size_t row0 = col0; row0 < x.rows; row0 += kGramRows) {
      const size_t height = std::min(kGramRows, x.rows - row0);
      std::fill_n(sums, height * kPanelWidth, 0.0f);
      for (size_t first = 0; first < x.cols; first += kDistanceTerms) {
        const size_t terms = std::min(kDistanceTerms, x.cols - first);
        std::fill_n(strip, terms * kPanelWidth, 0.0f);
        for (size_t l = 0; l < width; ++l) {
          const float* const row = x.data + (col0 + l) * x.stride + first;
          for (size_t j = 0; j < terms; ++j) strip[j * kPanelWidth + l] = row[j];
        }
        ForEachTile<kTileRows>(height, [&](size_t r, size_t tile) HWY_ATTR {
          DistanceTile(tile, x.data + (row0 + r) * x.stride + first, x.stride, strip, terms,
                       sums + r * kPanelWidth);
        });
      }
      for (size_t r = 0; r < height; ++r) {
        for (size_t l = 0; l < width; ++l) {
          const float value = sums[r * kPanelWidth + l];
          out[(row0 + r) * x.rows + col0 + l] = value;
          out[(col0 + l) * x.rows + row0 + r] = value;
        }
      }
    }
  }
}

void Gaussians(const float* squares, float rate, size_t count, float* out) {
  const FloatTag d;
  const auto vrate = hn::Set(d, -rate);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(Exp(hn::Mul(hn::LoadU(d, squares + i), vrate)), d, out + i);
  }
  if (i == count) return;
  HWY_ALIGN float rest[kLanes] = {};
  std::copy(squares + i, squares + count, rest);
  hn::Store(Exp(hn::Mul(hn::Load(d, rest), vrate)), d, rest);
  std::copy_n(rest, count - i, out + i);
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
HWY_EXPORT(SquaredDistances);
HWY_EXPORT(Gaussians);
HWY_EXPORT(AddWeightedFeatures);
HWY_EXPORT(MoveTowards);

void FeatureGram(const float* features, size_t num_panels, size_t rows, float* gram) {
  HWY_DYNAMIC_DISPATCH(FeatureGram)(features, num_panels, rows, gram);
}

void SquaredDistances(ConstMatrixView x, float* out) {
  HWY_DYNAMIC_DISPATCH(SquaredDistances)(x, out);
}

void Gaussians(const float* squares, float rate, size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(Gaussians)(squares, rate, count, out);
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
