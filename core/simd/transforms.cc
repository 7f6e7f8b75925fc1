// Input transforms.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/transforms.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Once per target, so after it.
#include <cmath>

#include "core/simd/math-inl.h"
#include "core/simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernelstream {
namespace HWY_NAMESPACE {
namespace {

constexpr float kTiny = 0x1p-126f;

// to[j] = function(from[j]), j < count.
template <class Function>
HWY_INLINE void Map(const float* from, size_t count, float* to, Function function) {
  const FloatTag d;
  size_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    hn::StoreU(function(hn::LoadU(d, from + j)), d, to + j);
  }
  if (j == count) return;
  HWY_ALIGN float rest[kLanes];
  std::fill_n(rest, kLanes, 1.0f);
  std::copy_n(from + j, count - j, rest);
  hn::Store(function(hn::Load(d, rest)), d, rest);
  std::copy_n(rest, count - j, to + j);
}

HWY_INLINE Floats LogOf(Floats x) {
  const FloatTag d;
  return hn::Neg(NegativeLog(hn::Max(x, hn::Set(d, kTiny))));
}

HWY_INLINE Floats RootOf(Floats x) { return hn::Sqrt(hn::Max(x, hn::Zero(FloatTag()))); }

// Shortens the row to `length` where it is longer.
void Shorten(std::span<const float> row, float length, float* to) {
  double sum = 0;
  for (const float value : row) sum += double{value} * value;
  const double size = std::sqrt(sum);
  const float factor = size > length ? static_cast<float>(length / size) : 1.0f;
  for (size_t j = 0; j < row.size(); ++j) to[j] = factor * row[j];
}

void TransformInputs(InputTransform transform, float parameter, ConstMatrixView x, float* out) {
  for (size_t r = 0; r < x.rows; ++r) {
    const auto row = x.row(r);
    const auto root = [](Floats v) HWY_ATTR { return RootOf(v); };
    const auto log = [](Floats v) HWY_ATTR { return LogOf(v); };
    const auto log_ratio = [&](Floats v) HWY_ATTR {
      return LogOf(hn::MulAdd(v, hn::Set(FloatTag(), 1 / parameter), hn::Set(FloatTag(), 1.0f)));
    };
    switch (transform) {
      case InputTransform::kNone:
        std::copy(row.begin(), row.end(), out + r * x.cols);
        break;
      case InputTransform::kLog:
        Map(row.data(), x.cols, out + r * x.cols, log_ratio);
        break;
      case InputTransform::kSquareRoot:
        Map(row.data(), x.cols, out + r * x.cols, root);
        break;
      case InputTransform::kBall:
        Shorten(row, parameter, out + r * x.cols);
        break;
      case InputTransform::kAdditive:
        Map(row.data(), x.cols, out + 2 * r * x.cols, root);
        Map(row.data(), x.cols, out + (2 * r + 1) * x.cols, log);
        break;
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

HWY_EXPORT(TransformInputs);

void TransformInputs(InputTransform transform, float parameter, ConstMatrixView x, float* out) {
  HWY_DYNAMIC_DISPATCH(TransformInputs)(transform, parameter, x, out);
}

}  // namespace kernelstream
#endif  // HWY_ONCE
