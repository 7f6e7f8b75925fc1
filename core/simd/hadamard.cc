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

// Index bits within a register.
template <size_t kStep = 1>
HWY_INLINE Floats LowBits(Floats v) {
  if constexpr (kStep < kLanes) {
    return LowBits<2 * kStep>(Butterfly<kStep>(v));
  } else {
    return v;
  }
}

// The first four index bits of each panel.
HWY_INLINE void TransformPanels(float* HWY_RESTRICT v, size_t size) {
  const FloatTag d;
  for (size_t i = 0; i < size; i += kPanelWidth) {
    Floats r[kRegs];
    Unroll<kRegs>([&](auto k) HWY_ATTR { r[k] = LowBits(hn::LoadU(d, v + i + k * kLanes)); });
    for (size_t step = 1; step < kRegs; step *= 2) {
      Unroll<kRegs>([&](auto k) HWY_ATTR {
        if ((k & step) != 0) return;
        const auto a = r[k], b = r[k + step];
        r[k] = hn::Add(a, b);
        r[k + step] = hn::Sub(a, b);
      });
    }
    Unroll<kRegs>([&](auto k) HWY_ATTR { hn::StoreU(r[k], d, v + i + k * kLanes); });
  }
}

// Two index bits at once: steps `step` and 2 step.
HWY_INLINE void TransformTwoBits(float* HWY_RESTRICT v, size_t size, size_t step) {
  const FloatTag d;
  for (size_t i = 0; i < size; i += 4 * step) {
    for (size_t j = i; j < i + step; j += kLanes) {
      const auto a = hn::LoadU(d, v + j), b = hn::LoadU(d, v + j + step);
      const auto c = hn::LoadU(d, v + j + 2 * step), e = hn::LoadU(d, v + j + 3 * step);
      const auto ab = hn::Add(a, b), ba = hn::Sub(a, b), ce = hn::Add(c, e), ec = hn::Sub(c, e);
      hn::StoreU(hn::Add(ab, ce), d, v + j);
      hn::StoreU(hn::Add(ba, ec), d, v + j + step);
      hn::StoreU(hn::Sub(ab, ce), d, v + j + 2 * step);
      hn::StoreU(hn::Sub(ba, ec), d, v + j + 3 * step);
    }
  }
}

HWY_INLINE void TransformOneBit(float* HWY_RESTRICT v, size_t size, size_t step) {
  const FloatTag d;
  for (size_t i = 0; i < size; i += 2 * step) {
    for (size_t j = i; j < i + step; j += kLanes) {
      const auto a = hn::LoadU(d, v + j), b = hn::LoadU(d, v + j + step);
      hn::StoreU(hn::Add(a, b), d, v + j);
      hn::StoreU(hn::Sub(a, b), d, v + j + step);
    }
  }
}

void Transform(float* v, size_t size) {
  TransformPanels(v, size);
  size_t step = kPanelWidth;
  for (; 4 * step <= size; step *= 4) TransformTwoBits(v, size, step);
  if (step < size) TransformOneBit(v, size, step);
}

void HadamardProjections(const HadamardGroup& group, ConstMatrixView x, size_t first_panel,
                         size_t num_panels, float* scratch, float* const* out) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  float* HWY_RESTRICT first = scratch;
  float* HWY_RESTRICT second = scratch + group.size;
  for (size_t r = 0; r < x.rows; ++r) {
    const auto row = x.row(r);
    for (size_t j = 0; j < x.cols; ++j) first[j] = row[j] * group.signs[j];
    std::fill(first + x.cols, first + group.size, 0.0f);
    Transform(first, group.size);
    for (size_t i = 0; i < group.size; i += kLanes) {
      const auto moved = hn::GatherIndex(d, first, hn::LoadU(di, group.places + i));
      hn::StoreU(hn::Mul(moved, hn::LoadU(d, group.gains + i)), d, second + i);
    }
    Transform(second, group.size);
    for (size_t p = 0; p < num_panels; ++p) {
      const size_t from = (first_panel + p) * kPanelWidth;
      for (size_t i = 0; i < kPanelWidth; i += kLanes) {
        const auto value = hn::LoadU(d, second + from + i);
        hn::StoreU(hn::Mul(value, hn::LoadU(d, group.scales + from + i)), d,
                   out[p] + r * kPanelWidth + i);
      }
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

HWY_EXPORT(HadamardProjections);

void HadamardProjections(const HadamardGroup& group, ConstMatrixView x, size_t first_panel,
                         size_t num_panels, float* scratch, float* const* out) {
  HWY_DYNAMIC_DISPATCH(HadamardProjections)(group, x, first_panel, num_panels, scratch, out);
}

}  // namespace kernelstream
#endif  // HWY_ONCE
