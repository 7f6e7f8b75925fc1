// Structured projections: signs, transform, permutation and gains, transform, scales.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/hadamard.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Once per target, so after it.
#include "core/simd/hadamard.h"
#include "core/simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernelstream {
namespace HWY_NAMESPACE {
namespace {

// The lane whose index differs in the bit of kStep, and a sign change of the lanes that have it.
template <size_t kStep>
HWY_INLINE Floats Butterfly(Floats v) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  HWY_ALIGN int32_t lanes[kLanes], signs[kLanes];
  for (size_t l = 0; l < kLanes; ++l) {
    lanes[l] = static_cast<int32_t>(l ^ kStep);
    signs[l] = (l & kStep) != 0 ? INT32_MIN : 0;
  }
  const auto other = hn::TableLookupLanes(v, hn::SetTableIndices(d, lanes));
  return hn::Add(other, hn::Xor(v, hn::BitCast(d, hn::Load(di, signs))));
}

// Steps kStep, 2 kStep, ... within a register.
template <size_t kStep>
HWY_INLINE Floats LowBits(Floats v) {
  if constexpr (kStep < kLanes) {
    return LowBits<2 * kStep>(Butterfly<kStep>(v));
  } else {
    return v;
  }
}

// Butterflies between registers.
template <size_t kCount, size_t kStep>
HWY_INLINE void Butterflies(Floats (&r)[kCount]) {
  if constexpr (kStep < kCount) {
    Unroll<kCount>([&](auto k) HWY_ATTR {
      constexpr size_t i = decltype(k)::value;
      if constexpr ((i & kStep) == 0) {
        const auto a = r[i], b = r[i + kStep];
        r[i] = hn::Add(a, b);
        r[i + kStep] = hn::Sub(a, b);
      }
    });
    Butterflies<kCount, 2 * kStep>(r);
  }
}

// Steps kFirst, 2 kFirst, ... within each kBlock numbers.
template <size_t kFirst, size_t kBlock>
void TransformBlocks(float* HWY_RESTRICT v, size_t size) {
  const FloatTag d;
  constexpr size_t kCount = kBlock / kLanes;
  for (size_t i = 0; i < size; i += kBlock) {
    Floats r[kCount];
    Unroll<kCount>(
        [&](auto k) HWY_ATTR { r[k] = LowBits<kFirst>(hn::LoadU(d, v + i + k * kLanes)); });
    Butterflies<kCount, (kFirst > kLanes ? kFirst / kLanes : 1)>(r);
    Unroll<kCount>([&](auto k) HWY_ATTR { hn::StoreU(r[k], d, v + i + k * kLanes); });
  }
}

// Steps step, 2 step, ..., kCount / 2 step.
template <size_t kCount>
void TransformSteps(float* HWY_RESTRICT v, size_t size, size_t step) {
  const FloatTag d;
  for (size_t i = 0; i < size; i += kCount * step) {
    for (size_t j = i; j < i + step; j += kLanes) {
      Floats r[kCount];
      Unroll<kCount>([&](auto k) HWY_ATTR { r[k] = hn::LoadU(d, v + j + k * step); });
      Butterflies<kCount, 1>(r);
      Unroll<kCount>([&](auto k) HWY_ATTR { hn::StoreU(r[k], d, v + j + k * step); });
    }
  }
}

// The transform of size / kFirst numbers, each kFirst times next to each other for as many rows.
template <size_t kFirst>
void Transform(float* v, size_t size) {
  if (size < 64) {
    TransformBlocks<kFirst, kPanelWidth>(v, size);
    if (size == 32) TransformSteps<2>(v, size, kPanelWidth);
    return;
  }
  TransformBlocks<kFirst, 64>(v, size);
  for (size_t step = 64; step < size;) {
    const size_t left = size / step;
    if (left == 2) {
      TransformSteps<2>(v, size, step);
      return;
    }
    // Three index bits at once, unless that leaves one.
    if (left == 4 || left == 16) {
      TransformSteps<4>(v, size, step);
      step *= 4;
    } else {
      TransformSteps<8>(v, size, step);
      step *= 8;
    }
  }
}

void ProjectRow(const HadamardGroup& group, ConstMatrixView x, size_t row, size_t first_panel,
                size_t num_panels, float* scratch, float* const* out) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  float* HWY_RESTRICT first = scratch;
  float* HWY_RESTRICT second = scratch + group.size;
  const auto values = x.row(row);
  for (size_t j = 0; j < x.cols; ++j) first[j] = values[j] * group.signs[j];
  std::fill(first + x.cols, first + group.size, 0.0f);
  Transform<1>(first, group.size);
  for (size_t i = 0; i < group.size; i += kLanes) {
    const auto moved = hn::GatherIndex(d, first, hn::LoadU(di, group.places + i));
    hn::StoreU(hn::Mul(moved, hn::LoadU(d, group.gains + i)), d, second + i);
  }
  Transform<1>(second, group.size);
  for (size_t p = 0; p < num_panels; ++p) {
    const size_t from = (first_panel + p) * kPanelWidth;
    for (size_t i = 0; i < kPanelWidth; i += kLanes) {
      const auto value = hn::LoadU(d, second + from + i);
      hn::StoreU(hn::Mul(value, hn::LoadU(d, group.scales + from + i)), d,
                 out[p] + row * kPanelWidth + i);
    }
  }
}

// kTogether rows, number by number next to each other: the permutation moves them by one load and
// one store, and most butterflies lie between registers.
constexpr size_t kTogether = 4;

void ProjectRows(const HadamardGroup& group, ConstMatrixView x, size_t row, size_t first_panel,
                 size_t num_panels, float* scratch, float* const* out) {
  const FloatTag d;
  const hn::CappedTag<float, kTogether> d4;
  constexpr size_t kLanes4 = hn::MaxLanes(hn::CappedTag<float, kTogether>());
  float* HWY_RESTRICT first = scratch;
  float* HWY_RESTRICT second = scratch + kTogether * group.size;
  const float* from[kTogether];
  for (size_t r = 0; r < kTogether; ++r) from[r] = x.row(row + r).data();
  size_t j = 0;
  for (; j + kLanes <= x.cols; j += kLanes) {
    const auto sign = hn::LoadU(d, group.signs + j);
    const auto signed_row = [&](size_t r)
                                HWY_ATTR { return hn::Mul(hn::LoadU(d, from[r] + j), sign); };
    hn::StoreInterleaved4(signed_row(0), signed_row(1), signed_row(2), signed_row(3), d,
                          first + kTogether * j);
  }
  for (; j < x.cols; ++j) {
    for (size_t r = 0; r < kTogether; ++r) first[kTogether * j + r] = from[r][j] * group.signs[j];
  }
  std::fill(first + kTogether * x.cols, first + kTogether * group.size, 0.0f);
  Transform<kTogether>(first, kTogether * group.size);
  const float* HWY_RESTRICT gains = group.gains;
  const int32_t* HWY_RESTRICT places = group.places;
  for (size_t i = 0, size = group.size; i < size; ++i) {
    const auto gain = hn::Set(d4, gains[i]);
    const float* moved = first + kTogether * static_cast<size_t>(places[i]);
    for (size_t r = 0; r < kTogether; r += kLanes4) {
      hn::StoreU(hn::Mul(hn::LoadU(d4, moved + r), gain), d4, second + kTogether * i + r);
    }
  }
  Transform<kTogether>(second, kTogether * group.size);
  for (size_t p = 0; p < num_panels; ++p) {
    const size_t at = (first_panel + p) * kPanelWidth;
    float* to = out[p] + row * kPanelWidth;
    for (size_t i = 0; i < kPanelWidth; i += kLanes) {
      Floats v0, v1, v2, v3;
      hn::LoadInterleaved4(d, second + kTogether * (at + i), v0, v1, v2, v3);
      const auto scale = hn::LoadU(d, group.scales + at + i);
      hn::StoreU(hn::Mul(v0, scale), d, to + i);
      hn::StoreU(hn::Mul(v1, scale), d, to + kPanelWidth + i);
      hn::StoreU(hn::Mul(v2, scale), d, to + 2 * kPanelWidth + i);
      hn::StoreU(hn::Mul(v3, scale), d, to + 3 * kPanelWidth + i);
    }
  }
}

void HadamardProjections(const HadamardGroup& group, ConstMatrixView x, size_t first_panel,
                         size_t num_panels, float* scratch, float* const* out) {
  // More would not stay in the second-level cache.
  constexpr size_t kLargestTogether = 8192;
  size_t r = 0;
  for (; group.size <= kLargestTogether && r + kTogether <= x.rows; r += kTogether) {
    ProjectRows(group, x, r, first_panel, num_panels, scratch, out);
  }
  for (; r < x.rows; ++r) ProjectRow(group, x, r, first_panel, num_panels, scratch, out);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kernelstream
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernelstream {

HWY_EXPORT(HadamardProjections);

void HadamardProjections(const HadamardGroup& group, ConstMatrixView x, size_t first_panel,
                         size_t num_panels, float* scratch, float* const* out) {
  HWY_DYNAMIC_DISPATCH(HadamardProjections)(group, x, first_panel, num_panels, scratch, out);
}

}  // namespace kernelstream
#endif  // HWY_ONCE
