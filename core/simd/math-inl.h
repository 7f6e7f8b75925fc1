// Elementary functions in float32, compiled once per SIMD target. Include after hwy/highway.h.
#if defined(KERNELSTREAM_CORE_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELSTREAM_CORE_SIMD_MATH_INL_H_
#undef KERNELSTREAM_CORE_SIMD_MATH_INL_H_
#else
#define KERNELSTREAM_CORE_SIMD_MATH_INL_H_
#endif

#include "core/simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernelstream {
namespace HWY_NAMESPACE {

// -log(y), y positive and normal, absolute error 1e-7 + relative error 1e-7; around y = 1 relative
// error 4e-7 alone. Several at once, operation by operation: the chain of one is long.
template <size_t kCount>
HWY_INLINE void NegativeLogs(const Floats (&y)[kCount], Floats (&out)[kCount]) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  // y = 2^exponent * (1 + f), 1 + f in [sqrt(1/2), sqrt(2)).
  Floats exponent[kCount], f[kCount], p[kCount];
  for (size_t i = 0; i < kCount; ++i) {
    const auto bits = hn::BitCast(di, y[i]);
    const auto whole = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3F3504F3)));
    const auto mantissa = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(whole)));
    exponent[i] = hn::ConvertTo(d, whole);
    f[i] = hn::Sub(mantissa, hn::Set(d, 1.0f));
    p[i] = hn::Set(d, -0x1.9dd332p-4f);
  }
  for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], f[i], hn::Set(d, 0x1.504526p-3f));
  for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], f[i], hn::Set(d, -0x1.62fa68p-3f));
  for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], f[i], hn::Set(d, 0x1.970064p-3f));
  for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], f[i], hn::Set(d, -0x1.ff2b2cp-3f));
  for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], f[i], hn::Set(d, 0x1.555ccap-2f));
  for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], f[i], hn::Set(d, -0x1.0000ep-1f));
  for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], f[i], hn::Set(d, 0x1.fffffap-1f));
  for (size_t i = 0; i < kCount; ++i) {
    p[i] = hn::Mul(p[i], f[i]);
    out[i] = hn::NegMulAdd(exponent[i], hn::Set(d, 0x1.62e43p-1f), hn::Neg(p[i]));
  }
}

HWY_INLINE Floats NegativeLog(Floats y) {
  const Floats in[1] = {y};
  Floats out[1];
  NegativeLogs<1>(in, out);
  return out[0];
}

// exp(x), relative error 2e-7; 0 below -87, exp(88) above 88.
HWY_INLINE Floats Exp(Floats x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const auto lowest = hn::Set(d, -87.0f);
  const auto clamped = hn::Min(hn::Max(x, lowest), hn::Set(d, 88.0f));
  const auto k = hn::Round(hn::Mul(clamped, hn::Set(d, 0x1.715476p+0f)));
  // log 2 in two parts, the first with few bits, so that k times it is exact.
  auto r = hn::NegMulAdd(k, hn::Set(d, 0x1.63p-1f), clamped);
  r = hn::NegMulAdd(k, hn::Set(d, -0x1.bd0106p-13f), r);
  // Taylor series; |r| <= 0.347: the first neglected term is 1.3e-7 of r^2 / 2.
  auto p = hn::Set(d, 1.0f / 5040);
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 720));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 120));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 24));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 6));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  p = hn::MulAdd(hn::Mul(p, r), r, r);
  p = hn::Add(p, hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(di, k));
  const auto value = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenElseZero(hn::Ge(x, lowest), value);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kernelstream
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
