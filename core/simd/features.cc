// Random features and their sums: project, apply the form, accumulate.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/features.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Once per target, so after it.
#include "core/simd/forms-inl.h"
#include "core/simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernelstream {
namespace HWY_NAMESPACE {
namespace {

// Terms of a projection summed at a time, for all rows: their frequencies stay in the first-level
// cache.
constexpr size_t kHotTerms = 256;
// Inputs that stay in the second-level cache while the frequencies pass by.
constexpr size_t kHotInputFloats = 40960;
// Rows whose features of one block of panels stay in the second-level cache until they are summed,
// and those that stay in the first-level cache during a group of outputs.
constexpr size_t kSumChunkRows = 48;
constexpr size_t kHotSumRows = 24;
constexpr size_t kHotOutputs = 16;
constexpr size_t kMostHotRows = 64 * kTileRows;
// Panels of frequencies that one row reads side by side: memory is read faster in more streams.
constexpr size_t kRowStreams = kMinAccumulators / kRegs;

// Feature panels [begin, end) of `panels`, made from frequency panels [first, first + count), terms
// [first_term, first_term + terms). Panel p, row r goes to out + (p - begin) * out_stride + 16 r. A
// projection that is not complete waits for its next terms where the first panel made from it goes.
struct Piece {
  const FeaturePanels& panels;
  size_t begin, end;
  size_t first, count;
  size_t input_dim;
  size_t first_term, terms;
  size_t out_stride;
  bool cosine = true;  // false: projections are what is asked for, or what another form needs

  // Panels that are made from frequency panel q: [First(q), End(q)), at most two.
  HWY_INLINE size_t First(size_t q) const {
    const size_t waves = panels.waves;
    return std::max(begin, std::max(q * waves, panels.first_wave) - panels.first_wave);
  }
  HWY_INLINE size_t End(size_t q) const {
    return std::min(end, (q + 1) * panels.waves - panels.first_wave);
  }
};

// The piece of feature panels [begin, end) and all terms.
HWY_INLINE Piece WholePiece(const FeaturePanels& panels, size_t begin, size_t end, size_t input_dim,
                            size_t out_stride, bool cosine) {
  const size_t first = (panels.first_wave + begin) / panels.waves;
  const size_t last = (panels.first_wave + end + panels.waves - 1) / panels.waves;
  return {panels, begin, end, first, last - first, input_dim, 0, input_dim, out_stride, cosine};
}

// x: from the first term on. kWhole: the piece has all terms.
template <size_t kRows, size_t kPanels, bool kWhole, size_t kWaves>
HWY_INLINE size_t FeatureTile(const Piece& piece, const float* x, size_t stride, float* out) {
  const FloatTag d;
  const size_t panel_floats = piece.input_dim * kPanelWidth;
  const bool is_last =
      piece.cosine && (kWhole || piece.first_term + piece.terms == piece.input_dim);
  const auto scale = hn::Set(d, piece.panels.inverse_bandwidth);
  size_t done = 0;
  for (; done + kPanels <= piece.count; done += kPanels) {
    const size_t first = piece.first + done;
    Floats acc[kRows * kPanels * kRegs];
    Unroll<kRows * kPanels * kRegs>([&](auto i) HWY_ATTR { acc[i] = hn::Zero(d); });
    if (!kWhole && piece.first_term != 0) {
      Unroll<kPanels>([&](auto p) HWY_ATTR {
        const float* from = out + (piece.First(first + p) - piece.begin) * piece.out_stride;
        for (size_t r = 0; r < kRows; ++r) {
          for (size_t i = 0; i < kRegs; ++i) {
            acc[(r * kPanels + p) * kRegs + i] = hn::LoadU(d, from + r * kPanelWidth + i * kLanes);
          }
        }
      });
    }
    const float* frequencies =
        piece.panels.frequencies + first * panel_floats + piece.first_term * kPanelWidth;
    MultiplyAdd<kRows, kPanels>(x, stride, 1, piece.terms, frequencies, panel_floats, acc);
    Unroll<kPanels>([&](auto p) HWY_ATTR {
      const auto store = [&](size_t panel) HWY_ATTR {
        float* to = out + (panel - piece.begin) * piece.out_stride;
        const float* phases = piece.panels.phases + panel * kPanelWidth;
        for (size_t i = 0; i < kRegs; ++i) {
          const auto phase = hn::LoadU(d, phases + i * kLanes);
          for (size_t r = 0; r < kRows; ++r) {
            auto value = acc[(r * kPanels + p) * kRegs + i];
            if (is_last) value = CosineOfTurns(hn::MulAdd(value, scale, phase));
            hn::StoreU(value, d, to + r * kPanelWidth + i * kLanes);
          }
        }
      };
      if constexpr (kWaves == 1) {
        store(first + p);
      } else {
        const size_t panel = piece.First(first + p);
        store(panel);
        if (is_last && panel + 1 < piece.End(first + p)) store(panel + 1);
      }
    });
  }
  return done;
}

template <bool kWhole, size_t kWaves, size_t kRows = kTileRows>
void WavesOfTile(size_t rows, const Piece& piece, const float* x, size_t stride, float* out) {
  if (rows == kRows) {
    Piece rest = piece;
    const auto tiles = [&](auto panels) HWY_ATTR {
      const size_t done = FeatureTile<kRows, panels, kWhole, kWaves>(rest, x, stride, out);
      rest.first += done;
      rest.count -= done;
    };
    constexpr size_t kPanels = PanelsPerTile(kRows);
    constexpr size_t kStreams = kRows == 1 ? kRowStreams : kPanels;
    if constexpr (kStreams > kPanels) tiles(std::integral_constant<size_t, kStreams>());
    tiles(std::integral_constant<size_t, kPanels>());
    if constexpr (kPanels > 1) tiles(std::integral_constant<size_t, 1>());
  } else if constexpr (kRows > 1) {
    WavesOfTile<kWhole, kWaves, kRows - 1>(rows, piece, x, stride, out);
  }
}

template <bool kWhole>
void FeaturesOfTile(size_t rows, const Piece& piece, const float* x, size_t stride, float* out) {
  if (piece.panels.waves == 1) {
    WavesOfTile<kWhole, 1>(rows, piece, x, stride, out);
  } else {
    WavesOfTile<kWhole, 2>(rows, piece, x, stride, out);
  }
}

// Features or projections of all rows of x, at most kMostHotRows, for panels [first, first +
// count).
void PlainFeaturesOfPanels(const FeaturePanels& panels, size_t first, size_t count,
                           ConstMatrixView x, float* out, size_t out_stride, bool projections) {
  if (count == 0) return;
  // One tile of rows takes every frequency once: no reason to come back to it.
  const bool one_tile = x.rows <= kTileRows;
  const bool cosine = !projections && panels.form == FeatureForm::kCosine;
  const Piece all = WholePiece(panels, first, first + count, x.cols, out_stride, cosine);
  const size_t group =
      one_tile ? all.count
               : std::clamp<size_t>(kHotTerms / std::max<size_t>(x.cols, 1), 1, all.count);
  const size_t max_terms = one_tile ? x.cols : kHotTerms;
  float exponents[kMostHotRows];
  if (!projections && panels.form == FeatureForm::kCosineExponential) {
    RowExponents(panels, x, exponents);
  }
  for (size_t q = 0; q < all.count; q += group) {
    Piece piece = all;
    piece.first += q;
    piece.count = std::min(group, all.count - q);
    do {
      piece.terms = std::min(max_terms, x.cols - piece.first_term);
      const bool is_last = piece.first_term + piece.terms == x.cols;
      ForEachTile<kTileRows>(x.rows, [&](size_t row, size_t tile) HWY_ATTR {
        const float* tile_x = x.data + row * x.stride + piece.first_term;
        float* tile_out = out + row * kPanelWidth;
        if (piece.terms == x.cols) {
          FeaturesOfTile<true>(tile, piece, tile_x, x.stride, tile_out);
        } else {
          FeaturesOfTile<false>(tile, piece, tile_x, x.stride, tile_out);
        }
        if (cosine || projections || !is_last) return;
        float* to = tile_out + (piece.first - first) * out_stride;
        ApplyForm(panels, piece.first, piece.count, tile, exponents + row, to, out_stride, to,
                  out_stride);
      });
      piece.first_term += piece.terms;
    } while (piece.first_term < x.cols);
  }
}

// to[l] = sum over k of to[(l - k) mod 16] factor[k].
HWY_INLINE void Convolve(const float* factor, float* to) {
  const FloatTag d;
  HWY_ALIGN float twice[2 * kPanelWidth];
  std::copy_n(to, kPanelWidth, twice);
  std::copy_n(to, kPanelWidth, twice + kPanelWidth);
  for (size_t i = 0; i < kPanelWidth; i += kLanes) {
    auto sum = hn::Zero(d);
    for (size_t k = 0; k < kPanelWidth; ++k) {
      sum = hn::MulAdd(hn::LoadU(d, twice + kPanelWidth + i - k), hn::Set(d, factor[k]), sum);
    }
    hn::StoreU(sum, d, to + i);
  }
}

// Products or sketches of several projections: factor after factor, each multiplied into what is
// there.
void ProductFeaturesOfPanels(const FeaturePanels& panels, size_t first, size_t count,
                             ConstMatrixView x, float* out, size_t out_stride) {
  const FloatTag d;
  HWY_ALIGN float projections[kTileRows * kPanelWidth];
  const bool sketch = panels.form == FeatureForm::kSketch;
  const auto scale = hn::Set(d, panels.inverse_bandwidth);
  for (size_t p = 0; p < count; ++p) {
    for (size_t factor = 0; factor < panels.factors; ++factor) {
      FeaturePanels one = panels;
      one.frequencies += ((first + p) * panels.factors + factor) * x.cols * kPanelWidth;
      one.phases += ((first + p) * panels.factors + factor) * kPanelWidth;
      const Piece piece = WholePiece(one, 0, 1, x.cols, 0, false);
      ForEachTile<kTileRows>(x.rows, [&](size_t row, size_t tile) HWY_ATTR {
        FeaturesOfTile<true>(tile, piece, x.data + row * x.stride, x.stride, projections);
        float* to = out + p * out_stride + row * kPanelWidth;
        for (size_t i = 0; i < tile * kPanelWidth; i += kLanes) {
          const auto offset = hn::LoadU(d, one.phases + i % kPanelWidth);
          auto value = hn::MulAdd(hn::LoadU(d, projections + i), scale, offset);
          if (sketch) {
            if (factor == 0) value = hn::Mul(value, hn::Set(d, 4.0f));
            hn::StoreU(value, d, factor == 0 ? to + i : projections + i);
          } else {
            hn::StoreU(factor == 0 ? value : hn::Mul(hn::LoadU(d, to + i), value), d, to + i);
          }
        }
        if (!sketch || factor == 0) return;
        for (size_t r = 0; r < tile * kPanelWidth; r += kPanelWidth) {
          Convolve(projections + r, to + r);
        }
      });
    }
  }
}

// Projections of inputs that are transformed anew for each panel: row [sqrt(x) ..., log(x) ...] ->
// sqrt(2 x_j) cos(2 pi v log(x_j)) ..., then the same sines; kAdditiveInputs coordinates at a time.
void AdditiveFeaturesOfPanels(const FeaturePanels& panels, size_t first, size_t count,
                              ConstMatrixView x, float* out, size_t out_stride) {
  constexpr size_t kAdditiveRows = 2 * kTileRows, kAdditiveInputs = 64;
  constexpr size_t kStride = 2 * kAdditiveInputs;
  // Cosines and sines are summed apart, so that inputs of 0 between others change nothing.
  HWY_ALIGN float waves[kAdditiveRows * kStride], sine_sums[kAdditiveRows * kPanelWidth];
  const size_t inputs = x.cols / 2;
  for (size_t p = 0; p < count; ++p) {
    FeaturePanels one = panels;
    one.frequencies += (first + p) * x.cols * kPanelWidth;
    const float frequency = panels.phases[(first + p) * kPanelWidth];
    for (size_t row = 0; row < x.rows; row += kAdditiveRows) {
      const size_t rows = std::min(kAdditiveRows, x.rows - row);
      float* to = out + p * out_stride + row * kPanelWidth;
      std::fill_n(to, rows * kPanelWidth, 0.0f);
      std::fill_n(sine_sums, rows * kPanelWidth, 0.0f);
      for (size_t j = 0; j < inputs; j += kAdditiveInputs) {
        const size_t terms = std::min(kAdditiveInputs, inputs - j);
        for (size_t r = 0; r < rows; ++r) {
          const float* from = x.data + (row + r) * x.stride + j;
          float* wave = waves + r * kStride;
          Waves(from, from + inputs, terms, frequency, wave, wave + kAdditiveInputs);
        }
        const Piece cosines = {one, 0, 1, 0, 1, x.cols, j, terms, 0, false};
        const Piece sines = {one, 0, 1, 0, 1, x.cols, inputs + j, terms, 0, false};
        ForEachTile<kTileRows>(rows, [&](size_t r, size_t tile) HWY_ATTR {
          const float* wave = waves + r * kStride;
          const size_t at = r * kPanelWidth;
          FeaturesOfTile<false>(tile, cosines, wave, kStride, to + at);
          FeaturesOfTile<false>(tile, sines, wave + kAdditiveInputs, kStride, sine_sums + at);
        });
      }
      for (size_t i = 0; i < rows * kPanelWidth; ++i) to[i] += sine_sums[i];
      ApplyForm(panels, first + p, 1, rows, nullptr, to, 0, to, 0);
    }
  }
}

// Features of all rows of x, at most kMostHotRows, for panels [first, first + count).
void FeaturesOfPanels(const FeaturePanels& panels, size_t first, size_t count, ConstMatrixView x,
                      float* out, size_t out_stride) {
  if (panels.is_additive) {
    AdditiveFeaturesOfPanels(panels, first, count, x, out, out_stride);
  } else if (panels.form == FeatureForm::kProduct || panels.form == FeatureForm::kSketch ||
             panels.form == FeatureForm::kRandomProduct) {
    ProductFeaturesOfPanels(panels, first, count, x, out, out_stride);
  } else {
    PlainFeaturesOfPanels(panels, first, count, x, out, out_stride, false);
  }
}

// Adds one block's sums of kRows rows and kCols outputs.
template <size_t kRows, size_t kCols>
HWY_INLINE void SumTile(const float* features, size_t feature_stride, const float* coefficients,
                        size_t coefficient_stride, size_t num_panels, size_t num_outputs,
                        double* sums) {
  Floats acc[kRows * kCols * kRegs];
  Unroll<kRows * kCols * kRegs>([&](auto i) HWY_ATTR { acc[i] = hn::Zero(FloatTag()); });
  MultiplyLanes<kRows, kCols>(features, feature_stride, coefficients, coefficient_stride,
                              num_panels, acc);
  Unroll<kRows * kCols>([&](auto entry) HWY_ATTR {
    Floats lanes[kRegs];
    Unroll<kRegs>([&](auto i) HWY_ATTR { lanes[i] = acc[entry * kRegs + i]; });
    sums[entry / kCols * num_outputs + entry % kCols] += double{SumLanes(lanes)};
  });
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
HWY_INLINE void SumColumns(size_t rows, const float* features, size_t feature_stride,
                           const float* coefficients, size_t coefficient_stride, size_t num_panels,
                           size_t num_outputs, double* sums) {
  ForEachTile<kMaxRows>(rows, [&](size_t row, size_t tile) HWY_ATTR {
    SumRows<kCols, kMaxRows>(tile, features + row * kPanelWidth, feature_stride, coefficients,
                             coefficient_stride, num_panels, num_outputs, sums + row * num_outputs);
  });
}

// Adds one block's sums of outputs [0, count) of num_outputs.
void SumOutputs(size_t rows, const float* features, size_t feature_stride,
                const float* coefficients, size_t num_outputs, size_t count, size_t num_panels,
                double* sums) {
  const size_t stride = num_outputs * kPanelWidth;
  size_t k = 0;
  if constexpr (kTileRows >= 4) {
    if (rows == 1) {
      for (; k + 4 <= count; k += 4) {
        SumColumns<4, 1>(rows, features, feature_stride, coefficients + k * kPanelWidth, stride,
                         num_panels, num_outputs, sums + k);
      }
    }
    for (; k + 2 <= count; k += 2) {
      SumColumns<2, kTileRows / 2>(rows, features, feature_stride, coefficients + k * kPanelWidth,
                                   stride, num_panels, num_outputs, sums + k);
    }
  }
  for (; k < count; ++k) {
    SumColumns<1, kTileRows>(rows, features, feature_stride, coefficients + k * kPanelWidth, stride,
                             num_panels, num_outputs, sums + k);
  }
}

// Adds the sums of one block (at most kPanelsPerBlock panels).
// features: panel p, row r at p * feature_stride + 16 r. coefficients: of the block's first panel.
void SumBlock(size_t rows, const float* features, size_t feature_stride, const float* coefficients,
              size_t num_outputs, size_t num_panels, double* sums) {
  for (size_t k = 0; k < num_outputs; k += kHotOutputs) {
    const size_t count = std::min(kHotOutputs, num_outputs - k);
    for (size_t row = 0; row < rows; row += kHotSumRows) {
      SumOutputs(std::min(kHotSumRows, rows - row), features + row * kPanelWidth, feature_stride,
                 coefficients + k * kPanelWidth, num_outputs, count, num_panels,
                 sums + row * num_outputs + k);
    }
  }
}

template <class Visit>
HWY_INLINE void ForEachChunk(ConstMatrixView x, Visit visit) {
  const size_t hot_rows = kHotInputFloats / std::max<size_t>(x.cols, 1) / kTileRows * kTileRows;
  const size_t chunk = std::clamp<size_t>(hot_rows, kSumChunkRows, kMostHotRows);
  for (size_t row = 0; row < x.rows; row += chunk) {
    visit(row, x.Rows(row, std::min(chunk, x.rows - row)));
  }
}

void PanelFeatures(const FeaturePanels& panels, ConstMatrixView x, float* out) {
  ForEachChunk(x, [&](size_t row, ConstMatrixView rows) HWY_ATTR {
    FeaturesOfPanels(panels, 0, panels.num_panels, rows, out + row * kPanelWidth,
                     x.rows * kPanelWidth);
  });
}

void Projections(const FeaturePanels& panels, ConstMatrixView x, float* out) {
  ForEachChunk(x, [&](size_t row, ConstMatrixView rows) HWY_ATTR {
    PlainFeaturesOfPanels(panels, 0, panels.num_panels, rows, out + row * kPanelWidth,
                          x.rows * kPanelWidth, true);
  });
}

void FeaturesOfProjections(const FeaturePanels& panels, const float* projections, size_t rows,
                           float* out) {
  const size_t stride = rows * kPanelWidth;
  if (panels.waves == 2) return ApplyWaves(panels, rows, projections, out);
  ApplyForm(panels, 0, panels.num_panels, rows, nullptr, projections, stride, out, stride);
}

void PanelSums(const FeaturePanels& panels, ConstMatrixView x, const float* coefficients,
               size_t num_outputs, double* sums) {
  // Odd, see PackRows.
  constexpr size_t kStride = (kSumChunkRows + 1) * kPanelWidth;
  HWY_ALIGN float features[kPanelsPerBlock * kStride];
  std::fill_n(sums, x.rows * num_outputs, 0.0);
  // Few rows at a time suffice where neither frequencies nor coefficients are many.
  const size_t chunk =
      x.cols < kHotTerms / 2 && num_outputs <= kHotOutputs ? kHotSumRows : kSumChunkRows;
  for (size_t row = 0; row < x.rows; row += chunk) {
    const size_t rows = std::min(chunk, x.rows - row);
    for (size_t first = 0; first < panels.num_panels; first += kPanelsPerBlock) {
      const size_t count = std::min(kPanelsPerBlock, panels.num_panels - first);
      FeaturesOfPanels(panels, first, count, x.Rows(row, rows), features, kStride);
      SumBlock(rows, features, kStride, coefficients + first * num_outputs * kPanelWidth,
               num_outputs, count, sums + row * num_outputs);
    }
  }
}

void FeatureSums(const float* features, size_t num_panels, size_t rows, const float* coefficients,
                 size_t num_outputs, double* sums) {
  constexpr size_t kStride = (kSumChunkRows + 1) * kPanelWidth;
  HWY_ALIGN float packed[kPanelsPerBlock * kStride];
  std::fill_n(sums, rows * num_outputs, 0.0);
  for (size_t row = 0; row < rows; row += kSumChunkRows) {
    const size_t chunk = std::min(kSumChunkRows, rows - row);
    for (size_t first = 0; first < num_panels; first += kPanelsPerBlock) {
      const size_t count = std::min(kPanelsPerBlock, num_panels - first);
      const float* from = features + (first * rows + row) * kPanelWidth;
      size_t stride = rows * kPanelWidth;
      if (num_outputs > 2) {
        PackRows(from, stride, count, chunk, packed, kStride);
        from = packed;
        stride = kStride;
      }
      SumBlock(chunk, from, stride, coefficients + first * num_outputs * kPanelWidth, num_outputs,
               count, sums + row * num_outputs);
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

HWY_EXPORT(PanelFeatures);
HWY_EXPORT(Projections);
HWY_EXPORT(FeaturesOfProjections);
HWY_EXPORT(PanelSums);
HWY_EXPORT(FeatureSums);

void PanelFeatures(const FeaturePanels& panels, ConstMatrixView x, float* out) {
  HWY_DYNAMIC_DISPATCH(PanelFeatures)(panels, x, out);
}

void Projections(const FeaturePanels& panels, ConstMatrixView x, float* out) {
  HWY_DYNAMIC_DISPATCH(Projections)(panels, x, out);
}

void FeaturesOfProjections(const FeaturePanels& panels, const float* projections, size_t rows,
                           float* out) {
  HWY_DYNAMIC_DISPATCH(FeaturesOfProjections)(panels, projections, rows, out);
}

void PanelSums(const FeaturePanels& panels, ConstMatrixView x, const float* coefficients,
               size_t num_outputs, double* sums) {
  HWY_DYNAMIC_DISPATCH(PanelSums)(panels, x, coefficients, num_outputs, sums);
}

void FeatureSums(const float* features, size_t num_panels, size_t rows, const float* coefficients,
                 size_t num_outputs, double* sums) {
  HWY_DYNAMIC_DISPATCH(FeatureSums)(features, num_panels, rows, coefficients, num_outputs, sums);
}

}  // namespace kernelstream
#endif  // HWY_ONCE
