// Frequencies and phases from counters: Philox4x32-10, then the inverse CDF.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/sampling.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Once per target, so after it.
#include "core/base/philox.h"
#include "core/simd/math-inl.h"
#include "core/simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernelstream {
namespace HWY_NAMESPACE {
namespace {

using WideTag = hn::CappedTag<uint64_t, kPanelWidth / 2>;
using Wide = hn::Vec<WideTag>;
using IntTag = hn::RebindToSigned<FloatTag>;
using WordTag = hn::RebindToUnsigned<FloatTag>;

// More than any coordinate / 4.
constexpr uint64_t kNoGroup = ~uint64_t{0};

constexpr float kInverseTwoPi = 0x1.45f306p-3f;

// Philox state of several features: one 32-bit word in the low half of each 64-bit lane; the high
// halves are noise.
struct Philox {
  Wide c0, c1, c2, c3;
};

HWY_INLINE Wide MulLow(Wide a, uint32_t multiplier) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(WideTag(), (hn::GetLane(a) & 0xFFFFFFFFu) * uint64_t{multiplier});
#else
  const hn::Repartition<uint32_t, WideTag> d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::Set(d32, multiplier));
#endif
}

HWY_INLINE void PhiloxRound(Philox& s, Wide key0, Wide key1) {
  const auto p0 = MulLow(s.c0, 0xD2511F53u);
  const auto p1 = MulLow(s.c2, 0xCD9E8D57u);
  s.c0 = hn::Xor(hn::ShiftRight<32>(p1), hn::Xor(s.c1, key0));
  s.c2 = hn::Xor(hn::ShiftRight<32>(p0), hn::Xor(s.c3, key1));
  s.c1 = p1;
  s.c3 = p0;
}

// Interleaves the words of even and odd features.
HWY_INLINE void StoreWords(Wide even, Wide odd, uint32_t* words) {
#if HWY_TARGET == HWY_SCALAR
  words[0] = static_cast<uint32_t>(hn::GetLane(even));
  words[1] = static_cast<uint32_t>(hn::GetLane(odd));
#else
  const WideTag d;
  const hn::Repartition<uint32_t, WideTag> d32;
  const auto low = hn::And(even, hn::Set(d, 0xFFFFFFFFu));
  hn::StoreU(hn::BitCast(d32, hn::Or(low, hn::ShiftLeft<32>(odd))), d32, words);
#endif
}

// words[w][l] = word w of the block of (key, counter of feature + l). feature is a multiple of 16.
HWY_INLINE void PanelWords(uint64_t key, RandomStream stream, uint64_t feature, uint64_t group,
                           uint32_t (&words)[4][kPanelWidth]) {
  const WideTag d;
  constexpr size_t kStep = 2 * hn::MaxLanes(WideTag());
  for (size_t lane = 0; lane < kPanelWidth; lane += kStep) {
    const PhiloxBlock counter = StreamCounter(stream, feature + lane, group);
    const auto index = hn::Iota(d, 0);
    Philox even = {hn::Set(d, counter[0]), hn::Set(d, counter[1]),
                   hn::Add(hn::Set(d, counter[2]), hn::Add(index, index)), hn::Set(d, counter[3])};
    Philox odd = even;
    odd.c2 = hn::Add(odd.c2, hn::Set(d, 1));
    auto [key0, key1] = PhiloxKey(key);
    for (int round = 0; round < 10; ++round) {
      PhiloxRound(even, hn::Set(d, key0), hn::Set(d, key1));
      PhiloxRound(odd, hn::Set(d, key0), hn::Set(d, key1));
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    StoreWords(even.c0, odd.c0, words[0] + lane);
    StoreWords(even.c1, odd.c1, words[1] + lane);
    StoreWords(even.c2, odd.c2, words[2] + lane);
    StoreWords(even.c3, odd.c3, words[3] + lane);
  }
}

// u - offset for the uniform u of each word: exact for offset 0 and 1/2.
HWY_INLINE Floats UniformMinus(const uint32_t* words, float offset) {
  const FloatTag d;
  const auto bits = hn::ShiftRight<9>(hn::LoadU(WordTag(), words));
  const auto j = hn::ConvertTo(d, hn::BitCast(IntTag(), bits));
  return hn::MulAdd(j, hn::Set(d, 0x1p-23f), hn::Set(d, 0x1p-24f - offset));
}

// Quantiles divided by 2 pi, as functions of q = u - 1/2.

// Normal: q * ratio(w), w = -log(4 u (1 - u)), with a minimax polynomial for the ratio in w up to 5
// and in sqrt(w) beyond. Both factors 1/2 -+ |q| are exact, so the relative error stays small in
// the tails and, the ratio being smooth at
// w = 0, also around u = 1/2. The polynomials' own relative errors are 9.4e-8 and 4.1e-8.
struct NormalTurns {
  HWY_INLINE Floats operator()(Floats q) const {
    const Floats one[1] = {q};
    Floats w[1], p[1];
    MiddleRatios<1>(one, w, p);
    const auto is_tail = IsTail(w[0]);
    if (!hn::AllFalse(FloatTag(), is_tail)) p[0] = hn::IfThenElse(is_tail, TailRatio(w[0]), p[0]);
    return hn::Mul(p[0], q);
  }

  static HWY_INLINE hn::Mask<FloatTag> IsTail(Floats w) {
    return hn::Gt(w, hn::Set(FloatTag(), 5.0f));
  }

  template <size_t kCount>
  static HWY_INLINE void MiddleRatios(const Floats (&q)[kCount], Floats (&w)[kCount],
                                      Floats (&p)[kCount]) {
    const FloatTag d;
    const auto half = hn::Set(d, 0.5f);
    Floats x[kCount];
    for (size_t i = 0; i < kCount; ++i) {
      const auto size = hn::Abs(q[i]);
      x[i] = hn::Mul(hn::Mul(hn::Sub(half, size), hn::Set(d, 4.0f)), hn::Add(half, size));
    }
    NegativeLogs<kCount>(x, w);
    for (size_t i = 0; i < kCount; ++i) x[i] = hn::Sub(w[i], hn::Set(d, 2.5f));
    for (size_t i = 0; i < kCount; ++i) p[i] = hn::Set(d, 0x1.b955a4p-27f);
    for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, 0x1.4c491p-23f));
    for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, -0x1.aa6b6p-20f));
    for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, -0x1.09a6cep-19f));
    for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, 0x1.9cbe2p-14f));
    for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, -0x1.27e402p-11f));
    for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, -0x1.ecfee2p-10f));
    for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, 0x1.c6c49ap-4f));
    for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, 0x1.5a0bdap-1f));
  }

  static HWY_INLINE Floats TailRatio(Floats w) {
    const FloatTag d;
    const auto x = hn::Sub(hn::Sqrt(w), hn::Set(d, 3.0f));
    auto p = hn::Set(d, -0x1.dbaedp-14f);
    p = hn::MulAdd(p, x, hn::Set(d, 0x1.a58e44p-15f));
    p = hn::MulAdd(p, x, hn::Set(d, 0x1.4eef36p-11f));
    p = hn::MulAdd(p, x, hn::Set(d, -0x1.b26b14p-10f));
    p = hn::MulAdd(p, x, hn::Set(d, 0x1.50e7bap-9f));
    p = hn::MulAdd(p, x, hn::Set(d, -0x1.c1af1p-9f));
    p = hn::MulAdd(p, x, hn::Set(d, 0x1.169418p-8f));
    p = hn::MulAdd(p, x, hn::Set(d, 0x1.cdbbd2p-2f));
    return hn::MulAdd(p, x, hn::Set(d, 0x1.46794p+0f));
  }
};

// sin(pi s) and cos(pi s), 0 <= s <= 1/4.
struct HalfTurns {
  Floats sine, cosine;
};
HWY_INLINE HalfTurns HalfTurnsOf(Floats s) {
  const FloatTag d;
  const auto s2 = hn::Mul(s, s);
  auto sine = hn::Set(d, -0x1.2d9302p-1f);
  sine = hn::MulAdd(sine, s2, hn::Set(d, 0x1.465e92p+1f));
  sine = hn::MulAdd(sine, s2, hn::Set(d, -0x1.4abbbap+2f));
  sine = hn::MulAdd(sine, s2, hn::Set(d, 0x1.921fb6p+1f));
  sine = hn::Mul(sine, s);
  auto cosine = hn::Set(d, 0x1.d9c364p-3f);
  cosine = hn::MulAdd(cosine, s2, hn::Set(d, -0x1.55c57cp+0f));
  cosine = hn::MulAdd(cosine, s2, hn::Set(d, 0x1.03c1dcp+2f));
  cosine = hn::MulAdd(cosine, s2, hn::Set(d, -0x1.3bd3ccp+2f));
  cosine = hn::MulAdd(cosine, s2, hn::Set(d, 1.0f));
  return {sine, cosine};
}

// Cauchy: tan(pi q), as 1 / tan(pi (1/2 - |q|)) beyond |q| = 1/4: sine and cosine of at most pi/4,
// one division.
struct CauchyTurns {
  HWY_INLINE Floats operator()(Floats q) const {
    const FloatTag d;
    const auto size = hn::Abs(q);
    const auto v = hn::Sub(hn::Set(d, 0.5f), size);
    const auto [sine, cosine] = HalfTurnsOf(hn::Min(v, size));
    const auto is_tail = hn::Lt(v, size);
    const auto top = hn::Mul(hn::IfThenElse(is_tail, cosine, sine), hn::Set(d, kInverseTwoPi));
    return hn::CopySign(hn::Div(top, hn::IfThenElse(is_tail, sine, cosine)), q);
  }
};

// Laplace: -log(1 - 2 |q|), the argument exact.
struct LaplaceTurns {
  HWY_INLINE Floats operator()(Floats q) const {
    const FloatTag d;
    const auto y = hn::NegMulAdd(hn::Abs(q), hn::Set(d, 2.0f), hn::Set(d, 1.0f));
    return hn::CopySign(hn::Mul(NegativeLog(y), hn::Set(d, kInverseTwoPi)), q);
  }
};

// Density sech(pi w): -log(tan(pi v / 2)) / pi, v = 1/2 - |q|, beyond |q| = 1/4, else
// 2 atanh(tan(pi |q| / 2)) / pi by the series of atanh, whose argument is below 0.415.
struct SechTurns {
  HWY_INLINE Floats operator()(Floats q) const {
    const FloatTag d;
    const auto size = hn::Abs(q);
    const auto v = hn::Sub(hn::Set(d, 0.5f), size);
    const auto [sine, cosine] = HalfTurnsOf(hn::Mul(hn::Min(v, size), hn::Set(d, 0.5f)));
    const auto t = hn::Div(sine, cosine);
    const auto z = hn::Mul(t, t);
    auto p = hn::Set(d, 2.0f / 17);
    p = hn::MulAdd(p, z, hn::Set(d, 2.0f / 15));
    p = hn::MulAdd(p, z, hn::Set(d, 2.0f / 13));
    p = hn::MulAdd(p, z, hn::Set(d, 2.0f / 11));
    p = hn::MulAdd(p, z, hn::Set(d, 2.0f / 9));
    p = hn::MulAdd(p, z, hn::Set(d, 2.0f / 7));
    p = hn::MulAdd(p, z, hn::Set(d, 2.0f / 5));
    p = hn::MulAdd(p, z, hn::Set(d, 2.0f / 3));
    p = hn::MulAdd(p, z, hn::Set(d, 2.0f));
    const auto value = hn::IfThenElse(hn::Lt(v, size), NegativeLog(t), hn::Mul(p, t));
    return hn::CopySign(hn::Mul(value, hn::Set(d, 0x1.9f02f6p-5f)), q);  // 1 / (2 pi^2)
  }
};

// Exponential, as it is: -log(u).
struct Exponential {
  HWY_INLINE Floats operator()(Floats q) const {
    return NegativeLog(hn::Add(q, hn::Set(FloatTag(), 0.5f)));
  }
};

// Levy, as it is: 1 / (2 z^2), z the normal quantile of u / 2 (u / 2 - 1/2 is exact).
struct Levy {
  HWY_INLINE Floats operator()(Floats q) const {
    const FloatTag d;
    const auto turns = NormalTurns()(hn::MulAdd(q, hn::Set(d, 0.5f), hn::Set(d, -0.25f)));
    return hn::Div(hn::Set(d, 0x1.9f02f6p-7f), hn::Mul(turns, turns));  // 1 / (8 pi^2)
  }
};

// -1 or +1.
struct Rademacher {
  HWY_INLINE Floats operator()(Floats q) const {
    return hn::CopySign(hn::Set(FloatTag(), 1.0f), q);
  }
};

// Puts cells into the top bits of words.
void EnterCells(const uint8_t* cells, int bits, uint32_t* words) {
  for (size_t l = 0; l < kPanelWidth; ++l) {
    words[l] = uint32_t{cells[l]} << (32 - bits) | words[l] >> bits;
  }
}

// Where quantiles go, one vector after the other. Finish once, at the end.
template <class Quantile>
class QuantileWriter {
 public:
  explicit QuantileWriter(float* out) : out_(out) {}
  HWY_INLINE void Put(Floats q) {
    hn::StoreU(Quantile()(q), FloatTag(), out_);
    out_ += kLanes;
  }
  HWY_INLINE void Finish() {}

 private:
  float* out_;
};

// Uniforms of 64 vectors wait until all are there: the chain of operations of a quantile is long,
// and only a loop of nothing else, several of them at once, keeps the arithmetic busy. One vector
// in twenty has a tail. A branch for each of them would be known only at the end of its chain, and
// what was begun meanwhile lost: so tails are put right afterwards.
template <>
class QuantileWriter<NormalTurns> {
 public:
  explicit QuantileWriter(float* out) : out_(out) {}
  HWY_INLINE void Put(Floats q) {
    hn::Store(q, FloatTag(), waiting_ + count_ * kLanes);
    if (++count_ == kMost) Write(kMost);
  }
  HWY_INLINE void Finish() { Write(count_ % kMost); }

 private:
  static constexpr size_t kMost = 64, kTogether = 4;

  HWY_INLINE void Write(size_t count) {
    const FloatTag d;
    uint64_t tails = 0;
    const size_t together = count / kTogether * kTogether;
    for (size_t i = 0; i < together; i += kTogether) tails |= Middle<kTogether>(i);
    for (size_t i = together; i < count; ++i) tails |= Middle<1>(i);
    for (; tails != 0; tails &= tails - 1) {
      const size_t i = hwy::Num0BitsBelowLS1Bit_Nonzero64(tails) * kLanes;
      hn::StoreU(NormalTurns()(hn::Load(d, waiting_ + i)), d, out_ + i);
    }
    out_ += count * kLanes;
    count_ = 0;
  }

  // kCount vectors from `first` on; a bit for each that has a tail.
  template <size_t kCount>
  HWY_INLINE uint64_t Middle(size_t first) {
    const FloatTag d;
    Floats q[kCount], w[kCount], ratio[kCount];
    for (size_t k = 0; k < kCount; ++k) q[k] = hn::Load(d, waiting_ + (first + k) * kLanes);
    NormalTurns::MiddleRatios<kCount>(q, w, ratio);
    uint64_t tails = 0;
    for (size_t k = 0; k < kCount; ++k) {
      hn::StoreU(hn::Mul(ratio[k], q[k]), d, out_ + (first + k) * kLanes);
      tails |= uint64_t{!hn::AllFalse(d, NormalTurns::IsTail(w[k]))} << (first + k);
    }
    return tails;
  }

  HWY_ALIGN float waiting_[kMost * kLanes];
  float* out_;
  size_t count_ = 0;
};

// cells may be null.
template <class Quantile>
void Sample(Quantile, uint64_t key, uint64_t first_feature, size_t num_panels, Coordinates inputs,
            const uint8_t* cells, int cell_bits, float* out) {
  HWY_ALIGN uint32_t words[4][kPanelWidth];
  QuantileWriter<Quantile> writer(out);
  for (size_t p = 0; p < num_panels; ++p) {
    uint64_t group = kNoGroup;
    for (size_t n = 0; n < inputs.size; ++n) {
      const uint64_t j = inputs[n];
      if (j / 4 != group) {
        group = j / 4;
        PanelWords(key, RandomStream::kFrequency, first_feature + p * kPanelWidth, group, words);
      }
      if (cells != nullptr) {
        EnterCells(cells, cell_bits, words[j % 4]);
        cells += kPanelWidth;
      }
      for (size_t i = 0; i < kPanelWidth; i += kLanes) {
        writer.Put(UniformMinus(words[j % 4] + i, 0.5f));
      }
    }
  }
  writer.Finish();
}

void SampleFromCells(SpectralLaw law, uint64_t key, uint64_t first_feature, size_t num_panels,
                     Coordinates inputs, const uint8_t* cells, int cell_bits, float* out) {
  const auto sample = [&](auto quantile) {
    Sample(quantile, key, first_feature, num_panels, inputs, cells, cell_bits, out);
  };
  switch (law) {
    case SpectralLaw::kNormal:
      return sample(NormalTurns());
    case SpectralLaw::kCauchy:
      return sample(CauchyTurns());
    case SpectralLaw::kLaplace:
      return sample(LaplaceTurns());
    case SpectralLaw::kSech:
      return sample(SechTurns());
    case SpectralLaw::kExponential:
      return sample(Exponential());
    case SpectralLaw::kLevy:
      return sample(Levy());
    case SpectralLaw::kRademacher:
      return sample(Rademacher());
    case SpectralLaw::kJensenShannon:
      break;  // never drawn coordinate by coordinate
  }
}

void SampleSigns(uint64_t key, uint64_t first_feature, size_t num_panels, Coordinates inputs,
                 const SignLayout& layout, float* out) {
  const FloatTag d;
  const WordTag dw;
  HWY_ALIGN uint32_t words[4][kPanelWidth];
  for (size_t p = 0; p < num_panels; ++p) {
    float* panel = out + p * layout.signs * inputs.size * kPanelWidth;
    uint64_t group = kNoGroup;
    for (size_t n = 0; n < inputs.size; ++n) {
      const uint64_t j = inputs[n];
      if (j / 4 != group) {
        group = j / 4;
        PanelWords(key, RandomStream::kFrequency, first_feature + p * kPanelWidth, group, words);
      }
      for (size_t s = 0; s < layout.signs; ++s) {
        float* to = panel + (s * layout.sign_stride + n * layout.coordinate_stride) * kPanelWidth;
        for (size_t i = 0; i < kPanelWidth; i += kLanes) {
          const auto word = hn::ShiftLeftSame(hn::LoadU(dw, words[j % 4] + i), static_cast<int>(s));
          const auto sign = hn::AndNot(word, hn::Set(dw, 0x80000000u));
          hn::StoreU(hn::BitCast(d, hn::Or(sign, hn::Set(dw, 0x3F800000u))), d, to + i);
        }
      }
    }
  }
}

void SamplePhases(uint64_t key, uint64_t first_feature, size_t num_panels, float* out) {
  HWY_ALIGN uint32_t words[4][kPanelWidth];
  for (size_t p = 0; p < num_panels; ++p) {
    PanelWords(key, RandomStream::kPhase, first_feature + p * kPanelWidth, 0, words);
    for (size_t i = 0; i < kPanelWidth; i += kLanes) {
      hn::StoreU(UniformMinus(words[0] + i, 0.0f), FloatTag(), out + p * kPanelWidth + i);
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

HWY_EXPORT(SampleFromCells);
HWY_EXPORT(SamplePhases);
HWY_EXPORT(SampleSigns);

void SampleFrequencies(SpectralLaw law, uint64_t key, uint64_t first_feature, size_t num_panels,
                       Coordinates inputs, float* out) {
  HWY_DYNAMIC_DISPATCH(SampleFromCells)
  (law, key, first_feature, num_panels, inputs, nullptr, 0, out);
}

void SampleFromCells(SpectralLaw law, uint64_t key, uint64_t first_feature, size_t num_panels,
                     size_t input_dim, const uint8_t* cells, int cell_bits, float* out) {
  HWY_DYNAMIC_DISPATCH(SampleFromCells)
  (law, key, first_feature, num_panels, input_dim, cells, cell_bits, out);
}

void SampleSigns(uint64_t key, uint64_t first_feature, size_t num_panels, Coordinates inputs,
                 const SignLayout& layout, float* out) {
  HWY_DYNAMIC_DISPATCH(SampleSigns)(key, first_feature, num_panels, inputs, layout, out);
}

void SamplePhases(uint64_t key, uint64_t first_feature, size_t num_panels, float* out) {
  HWY_DYNAMIC_DISPATCH(SamplePhases)(key, first_feature, num_panels, out);
}

}  // namespace kernelstream
#endif  // HWY_ONCE
