// Feature forms as functions of projections, compiled once per SIMD target. Include after
// hwy/highway.h.
#if defined(KERNELSTREAM_CORE_SIMD_FORMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELSTREAM_CORE_SIMD_FORMS_INL_H_
#undef KERNELSTREAM_CORE_SIMD_FORMS_INL_H_
#else
#define KERNELSTREAM_CORE_SIMD_FORMS_INL_H_
#endif

#include <cmath>

#include "core/simd/math-inl.h"
#include "core/simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernelstream {
namespace HWY_NAMESPACE {

// out = form(projection), [panel][row][16] both, panels apart by their strides; from may be out.
// form(value, phase, row, panel, lane).
template <class Form>
HWY_INLINE void ForEachProjection(const FeaturePanels& panels, size_t first, size_t count,
                                  size_t rows, const float* from, size_t from_stride, float* out,
                                  size_t out_stride, Form form) {
  const FloatTag d;
  const size_t lane_rows = panels.form == FeatureForm::kCosineExponential ? 2 : 1;
  for (size_t p = 0; p < count; ++p) {
    for (size_t i = 0; i < kRegs; ++i) {
      const float* lanes = panels.phases + (first + p) * lane_rows * kPanelWidth + i * kLanes;
      const auto phase = hn::LoadU(d, lanes);
      for (size_t r = 0; r < rows; ++r) {
        const size_t at = r * kPanelWidth + i * kLanes;
        hn::StoreU(form(hn::LoadU(d, from + p * from_stride + at), phase, lanes, r), d,
                   out + p * out_stride + at);
      }
    }
  }
}

// exponents[r] = (|x_r|^2 / bandwidth^2 - shift) / 2, summed in coordinate order.
HWY_INLINE void RowExponents(const FeaturePanels& panels, ConstMatrixView x, float* exponents) {
  const float scale = panels.inverse_bandwidth * panels.inverse_bandwidth;
  for (size_t r = 0; r < x.rows; ++r) {
    double sum = 0;
    for (const float value : x.row(r)) sum += double{value} * value;
    exponents[r] = static_cast<float>((scale * sum - double{panels.shift}) * 0.5);
  }
}

template <size_t kDegree>
HWY_INLINE Floats RectifiedPower(Floats t) {
  const FloatTag d;
  const auto root_two = hn::Set(d, 0x1.6a09e6p+0f);
  if (kDegree == 0) return hn::IfThenElseZero(hn::Gt(t, hn::Zero(d)), root_two);
  t = hn::Max(t, hn::Zero(d));
  auto power = hn::Mul(t, root_two);
  for (size_t i = 1; i < kDegree; ++i) power = hn::Mul(power, t);
  return power;
}

// exponents: of the rows, for kCosineExponential.
HWY_INLINE void ApplyForm(const FeaturePanels& panels, size_t first, size_t count, size_t rows,
                          const float* exponents, const float* from, size_t from_stride, float* out,
                          size_t out_stride) {
  const FloatTag d;
  const auto apply = [&](auto form) HWY_ATTR {
    ForEachProjection(panels, first, count, rows, from, from_stride, out, out_stride, form);
  };
  const auto scale = hn::Set(d, panels.inverse_bandwidth);
  const auto radians = hn::Set(d, panels.inverse_bandwidth * 0x1.921fb6p+2f);
  switch (panels.form) {
    case FeatureForm::kCosine:
      return apply([&](Floats p, Floats phase, const float*, size_t)
                       HWY_ATTR { return CosineOfTurns(hn::MulAdd(p, scale, phase)); });
    case FeatureForm::kCosineExponential: {
      // Beyond exp(60) a feature stays as large as that.
      const auto amplitude = hn::Set(d, 1 / std::sqrt(1 - panels.shift));
      return apply([&](Floats p, Floats phase, const float* lanes, size_t r) HWY_ATTR {
        const auto rate = hn::LoadU(d, lanes + kPanelWidth);
        const auto growth =
            Exp(hn::Min(hn::Mul(rate, hn::Set(d, exponents[r])), hn::Set(d, 60.0f)));
        const auto cosine = CosineOfTurns(hn::MulAdd(p, scale, phase));
        return hn::Mul(hn::Mul(growth, amplitude), cosine);
      });
    }
    case FeatureForm::kExponential:
      return apply([&](Floats p, Floats, const float*, size_t)
                       HWY_ATTR { return Exp(hn::Neg(hn::Mul(p, scale))); });
    case FeatureForm::kLinear: {
      // The waves of additive kernels come sqrt(2) too large.
      const auto factor =
          hn::Set(d, std::sqrt(panels.inverse_bandwidth * (panels.is_additive ? 0.5f : 1.0f)));
      return apply([&](Floats p, Floats, const float*, size_t)
                       HWY_ATTR { return hn::Mul(p, factor); });
    }
    case FeatureForm::kRectifiedPower:
      switch (panels.degree) {
        case 0:
          return apply([&](Floats p, Floats, const float*, size_t)
                           HWY_ATTR { return RectifiedPower<0>(hn::Mul(p, radians)); });
        case 1:
          return apply([&](Floats p, Floats, const float*, size_t)
                           HWY_ATTR { return RectifiedPower<1>(hn::Mul(p, radians)); });
        case 2:
          return apply([&](Floats p, Floats, const float*, size_t)
                           HWY_ATTR { return RectifiedPower<2>(hn::Mul(p, radians)); });
        default:
          return apply([&](Floats p, Floats, const float*, size_t)
                           HWY_ATTR { return RectifiedPower<3>(hn::Mul(p, radians)); });
      }
    case FeatureForm::kProduct:
    case FeatureForm::kSketch:
    case FeatureForm::kRandomProduct:
      return;  // has a loop of its own
  }
}

// Both waves of every projection, which is where the first panel made from it goes.
HWY_INLINE void ApplyWaves(const FeaturePanels& panels, size_t rows, const float* from,
                           float* out) {
  const FloatTag d;
  const auto scale = hn::Set(d, panels.inverse_bandwidth);
  const size_t stride = rows * kPanelWidth;
  for (size_t p = 0; p < panels.num_panels;) {
    const bool is_pair = (panels.first_wave + p) % 2 == 0 && p + 1 < panels.num_panels;
    for (size_t i = 0; i < kRegs; ++i) {
      const float* phases = panels.phases + p * kPanelWidth + i * kLanes;
      const auto first = hn::LoadU(d, phases);
      const auto second = hn::LoadU(d, is_pair ? phases + kPanelWidth : phases);
      for (size_t r = 0; r < rows; ++r) {
        const size_t at = p * stride + r * kPanelWidth + i * kLanes;
        const auto value = hn::LoadU(d, from + at);
        hn::StoreU(CosineOfTurns(hn::MulAdd(value, scale, first)), d, out + at);
        if (!is_pair) continue;
        hn::StoreU(CosineOfTurns(hn::MulAdd(value, scale, second)), d, out + at + stride);
      }
    }
    p += is_pair ? 2 : 1;
  }
}

// cosines[j], sines[j] = sqrt(2) roots[j] cos and sin (2 pi frequency logs[j]), j < count.
HWY_INLINE void Waves(const float* HWY_RESTRICT roots, const float* HWY_RESTRICT logs, size_t count,
                      float frequency, float* HWY_RESTRICT cosines, float* HWY_RESTRICT sines) {
  const FloatTag d;
  const auto turns_of = hn::Set(d, frequency), quarter = hn::Set(d, 0.25f);
  const auto wave = [&](Floats root, Floats log, float* cosine, float* sine) HWY_ATTR {
    const auto turns = hn::Mul(log, turns_of);
    hn::StoreU(hn::Mul(CosineOfTurns(turns), root), d, cosine);
    hn::StoreU(hn::Mul(CosineOfTurns(hn::Sub(turns, quarter)), root), d, sine);
  };
  size_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    wave(hn::LoadU(d, roots + j), hn::LoadU(d, logs + j), cosines + j, sines + j);
  }
  if (j == count) return;
  HWY_ALIGN float root[kLanes] = {}, log[kLanes] = {}, cosine[kLanes], sine[kLanes];
  std::copy(roots + j, roots + count, root);
  std::copy(logs + j, logs + count, log);
  wave(hn::Load(d, root), hn::Load(d, log), cosine, sine);
  std::copy_n(cosine, count - j, cosines + j);
  std::copy_n(sine, count - j, sines + j);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kernelstream
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
