// Inner loops shared by the files of this folder, compiled once per SIMD target. Include after
// hwy/highway.h.
//
// A panel (16 lanes) is kRegs registers. Accumulators live in a flat array acc[(row * columns +
// column) * kRegs + reg]; every loop over it has constant bounds, so that the compiler keeps it in
// registers.
#if defined(KERNELSTREAM_CORE_SIMD_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELSTREAM_CORE_SIMD_PANEL_INL_H_
#undef KERNELSTREAM_CORE_SIMD_PANEL_INL_H_
#else
#define KERNELSTREAM_CORE_SIMD_PANEL_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "core/simd/simd.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kernelstream {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, kPanelWidth>;
using Floats = hn::Vec<FloatTag>;

constexpr size_t kLanes = hn::MaxLanes(FloatTag());
constexpr size_t kRegs = kPanelWidth / kLanes;

// Accumulator registers of a tile are kTileRows * kRegs: as many as leave room for one panel and a
// broadcast.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr size_t kTileRows = 12;  // of 32 registers
#elif HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_NEON
constexpr size_t kTileRows = 6;  // 24 of 32 registers
#else
constexpr size_t kTileRows = kLanes >= 8 ? 6 : 3;  // 12 of 16 registers
#endif
// Fewer than this many accumulators wait for their own multiply-adds.
constexpr size_t kMinAccumulators = 8;

constexpr size_t PanelsPerTile(size_t rows) {
  return std::clamp<size_t>(kMinAccumulators / (rows * kRegs), 1, 4);
}

// Calls visit(first, size) for `count` things in tiles of at most kMaxTile, as even as can be.
template <size_t kMaxTile, class Visit>
HWY_INLINE void ForEachTile(size_t count, Visit visit) {
  if (count == 0) return;
  const size_t tiles = (count + kMaxTile - 1) / kMaxTile;
  const size_t size = count / tiles, larger = count % tiles;
  for (size_t tile = 0, first = 0; tile < tiles; ++tile) {
    const size_t n = size + (tile < larger ? 1 : 0);
    visit(first, n);
    first += n;
  }
}

// sqrt(2) cos(2 pi t). r = t - round(t) is exact; z = 1/4 - |r| turns cosine into an odd sine on
// [-1/4, 1/4]. Minimax in z, then two coefficients moved by a few bits: absolute error 3e-7, never
// beyond +-float(sqrt 2).
HWY_INLINE Floats CosineOfTurns(Floats t) {
  const FloatTag d;
  const auto r = hn::Sub(t, hn::Round(t));
  const auto z = hn::Sub(hn::Set(d, 0.25f), hn::Abs(r));
  const auto z2 = hn::Mul(z, z);
  auto p = hn::Set(d, 0x1.bf4e82p+5f);
  p = hn::MulAdd(p, z2, hn::Set(d, -0x1.b107ecp+6f));
  p = hn::MulAdd(p, z2, hn::Set(d, 0x1.cd9ac8p+6f));
  p = hn::MulAdd(p, z2, hn::Set(d, -0x1.d3ba3cp+5f));
  p = hn::MulAdd(p, z2, hn::Set(d, 0x1.1c5832p+3f));
  return hn::Mul(p, z);
}

// Keeps gcc from loading a value anew for each use, as an operand of the arithmetic: loads are what
// limits MultiplyLanes.
HWY_INLINE void KeepInRegister(Floats& v) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC_ACTUAL
  asm("" : "+v"(v.raw));
#endif
}

// Copies rows [0, rows) of each panel, panels from_stride apart, to panels to_stride apart. Strides
// that are multiples of 4 KiB would make a row's panels compete for the same lines of the
// first-level cache. KeepInRegister: as one string instruction for each panel, which gcc would make
// of it, copying takes several times as long.
HWY_INLINE void PackRows(const float* HWY_RESTRICT from, size_t from_stride, size_t num_panels,
                         size_t rows, float* HWY_RESTRICT to, size_t to_stride) {
  const FloatTag d;
  for (size_t p = 0; p < num_panels; ++p) {
    for (size_t i = 0; i < rows * kPanelWidth; i += kLanes) {
      auto value = hn::LoadU(d, from + p * from_stride + i);
      KeepInRegister(value);
      hn::StoreU(value, d, to + p * to_stride + i);
    }
  }
}

// Calls visit(std::integral_constant<size_t, i>) for i < kCount: constant indices, so that arrays
// stay in registers.
template <size_t kCount, class Visit>
HWY_INLINE void Unroll(Visit visit) {
  [&]<size_t... kIndex>(std::index_sequence<kIndex...>) HWY_ATTR {
    (visit(std::integral_constant<size_t, kIndex>()), ...);
  }
  (std::make_index_sequence<kCount>());
}

// acc[r][p] += sum over terms j of left[r * row_stride + j * term_stride] * right[p * panel_stride
// + 16 j + lane].
template <size_t kRows, size_t kPanels>
HWY_INLINE void MultiplyAdd(const float* HWY_RESTRICT left, size_t row_stride, size_t term_stride,
                            size_t terms, const float* HWY_RESTRICT right, size_t panel_stride,
                            Floats (&acc)[kRows * kPanels * kRegs]) {
  const FloatTag d;
  for (size_t j = 0; j < terms; ++j) {
    for (size_t p = 0; p < kPanels; ++p) {
      Floats b[kRegs];
      for (size_t i = 0; i < kRegs; ++i) {
        b[i] = hn::LoadU(d, right + p * panel_stride + i * kLanes);
      }
      for (size_t r = 0; r < kRows; ++r) {
        const auto a = hn::Set(d, left[r * row_stride]);
        for (size_t i = 0; i < kRegs; ++i) {
          auto& sum = acc[(r * kPanels + p) * kRegs + i];
          sum = hn::MulAdd(a, b[i], sum);
        }
      }
    }
    left += term_stride;
    right += kPanelWidth;
  }
}

// acc[r][c] += sum over panels p, lane by lane, of a[p * a_stride + 16 r + lane] * b[p * b_stride +
// 16 c + lane].
template <size_t kRows, size_t kCols>
HWY_INLINE void MultiplyLanes(const float* HWY_RESTRICT a, size_t a_stride,
                              const float* HWY_RESTRICT b, size_t b_stride, size_t num_panels,
                              Floats (&acc)[kRows * kCols * kRegs]) {
  const FloatTag d;
  for (size_t p = 0; p < num_panels; ++p) {
    for (size_t i = 0; i < kRegs; ++i) {
      Floats column[kCols];
      for (size_t c = 0; c < kCols; ++c) {
        column[c] = hn::LoadU(d, b + c * kPanelWidth + i * kLanes);
      }
      for (size_t r = 0; r < kRows; ++r) {
        auto row = hn::LoadU(d, a + r * kPanelWidth + i * kLanes);
        KeepInRegister(row);
        for (size_t c = 0; c < kCols; ++c) {
          auto& sum = acc[(r * kCols + c) * kRegs + i];
          sum = hn::MulAdd(row, column[c], sum);
        }
      }
    }
    a += a_stride;
    b += b_stride;
  }
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE float SumHalves(FloatTag, Floats v) { return hn::GetLane(v); }
#else
template <class D>
HWY_INLINE float SumHalves(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return SumHalves(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
#endif

// The lane tree of simd.h.
HWY_INLINE float SumLanes(Floats (&v)[kRegs]) {
  for (size_t width = kRegs / 2; width > 0; width /= 2) {
    for (size_t i = 0; i < width; ++i) v[i] = hn::Add(v[i], v[i + width]);
  }
  return SumHalves(FloatTag(), v[0]);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kernelstream
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
