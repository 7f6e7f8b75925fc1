// Projections of rows that are mostly 0.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/sparse.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Once per target, so after it.
#include "core/simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernelstream {
namespace HWY_NAMESPACE {
namespace {

// Panels that a row's values are multiplied into at a time. Measured: with more, the frequencies of
// 123 inputs leave the first-level cache.
constexpr size_t kSparsePanels = kRegs < 4 ? 4 / kRegs : 1;

// frequencies: of the first of kPanels panels, panel_floats apart. Panel p goes to out + p *
// out_stride.
template <size_t kPanels>
HWY_INLINE void SparseTile(const float* HWY_RESTRICT frequencies, size_t panel_floats,
                           const uint32_t* HWY_RESTRICT places, const float* HWY_RESTRICT values,
                           size_t count, float* HWY_RESTRICT out, size_t out_stride) {
  const FloatTag d;
  Floats acc[kPanels * kRegs];
  Unroll<kPanels * kRegs>([&](auto i) HWY_ATTR { acc[i] = hn::Zero(d); });
  for (size_t j = 0; j < count; ++j) {
    const float* from = frequencies + size_t{places[j]} * kPanelWidth;
    const auto value = hn::Set(d, values[j]);
    Unroll<kPanels * kRegs>([&](auto i) HWY_ATTR {
      const auto frequency = hn::LoadU(d, from + i / kRegs * panel_floats + i % kRegs * kLanes);
      acc[i] = hn::MulAdd(value, frequency, acc[i]);
    });
  }
  Unroll<kPanels * kRegs>([&](auto i) HWY_ATTR {
    hn::StoreU(acc[i], d, out + i / kRegs * out_stride + i % kRegs * kLanes);
  });
}

void SparseProjections(const FeaturePanels& panels, size_t terms, const SparseTerms& x,
                       float* out) {
  const size_t waves = panels.waves, panel_floats = terms * kPanelWidth;
  const size_t count = (panels.first_wave + panels.num_panels + waves - 1) / waves;
  const size_t row_stride = x.rows * kPanelWidth;
  // Where the first feature panel on frequency panel q goes.
  const auto place_of = [&](size_t q) {
    return out + (std::max(q * waves, panels.first_wave) - panels.first_wave) * row_stride;
  };
  const auto for_each_row = [&](auto tile) HWY_ATTR {
    for (size_t r = 0; r < x.rows; ++r) {
      const size_t begin = x.begins[r];
      tile(x.places + begin, x.values + begin, x.begins[r + 1] - begin, r * kPanelWidth);
    }
  };
  size_t q = 0;
  // The first wave may be missing, which moves the places of all but the first panel.
  const auto one = [&](size_t panel) HWY_ATTR {
    const float* frequencies = panels.frequencies + panel * panel_floats;
    float* const to = place_of(panel);
    for_each_row([&](const uint32_t* places, const float* values, size_t size, size_t at) HWY_ATTR {
      SparseTile<1>(frequencies, panel_floats, places, values, size, to + at, 0);
    });
  };
  if (panels.first_wave != 0 && count > 0) one(q++);
  for (; q + kSparsePanels <= count; q += kSparsePanels) {
    const float* frequencies = panels.frequencies + q * panel_floats;
    float* const to = place_of(q);
    for_each_row([&](const uint32_t* places, const float* values, size_t size, size_t at) HWY_ATTR {
      SparseTile<kSparsePanels>(frequencies, panel_floats, places, values, size, to + at,
                                waves * row_stride);
    });
  }
  for (; q < count; ++q) one(q);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace kernelstream
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernelstream {

HWY_EXPORT(SparseProjections);

void SparseProjections(const FeaturePanels& panels, size_t terms, const SparseTerms& x,
                       float* out) {
  HWY_DYNAMIC_DISPATCH(SparseProjections)(panels, terms, x, out);
}

}  // namespace kernelstream
#endif  // HWY_ONCE
