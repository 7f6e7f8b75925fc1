// Random features of a kernel, as data: what core/feature needs to generate them.
#ifndef KERNELSTREAM_CORE_BASE_FEATURE_SPEC_H_
#define KERNELSTREAM_CORE_BASE_FEATURE_SPEC_H_

#include <array>
#include <cstddef>
#include <vector>

#include "core/base/spectral_law.h"
#include "core/base/term_list.h"

namespace kernelstream {

// Most factors of one feature.
inline constexpr size_t kMaxFactors = 8;

// A feature as a function of the transformed input z(x) of dimension d, with s = frequency_scale /
// bandwidth and p = frequency . z(x):
enum class FeatureForm {
  // sqrt(2) cos(s p + phase), phase uniform on the circle. In pairs, if the spec says so: panels 2q
  // and 2q + 1 have the same frequencies, and phases a quarter turn apart.
  kCosine,
  // The same times exp(rate (s^2 |z|^2 - shift) / 2) / sqrt(1 - shift), rate = 1, or the draw of
  // RadialLaw::kExponential whose root multiplies the frequency.
  kCosineExponential,
  // exp(-s p).
  kExponential,
  // sqrt(s) p.
  kLinear,
  // sqrt(2) (s p)^degree where p > 0, else 0.
  kRectifiedPower,
  // Product of (s p_i + sign_i sqrt(shift)), i = 1 .. degree, frequency_i and sign_i independent.
  kProduct,
  // 4 times number l of 16, l the lane of the feature in its panel: of the circular convolution of
  // 16 numbers for each factor i = 1 .. degree. Number h of factor i is the sum of sign_ij s z_j
  // over coordinates j with hash_ij = h, and of sign_i sqrt(shift) if hash_i = h; hashes and signs
  // are the panel's. A TensorSketch (Pham & Pagh 2013).
  kSketch,
  // sqrt(sum of series) times the product of s p_i, i = 1 .. N, where P[N = n] = series[n] / sum of
  // series.
  kRandomProduct,
};

// z(x), coordinate by coordinate.
enum class InputTransform {
  kNone,
  // log(x + shift) - log(shift), so that 0 stays 0; x below -shift counts as a value just above it.
  kLog,
  // sqrt(x), 0 where x < 0.
  kSquareRoot,
  // x shortened to length sqrt(shift) / s where it is longer.
  kBall,
  // Two coordinates for each: all sqrt(x) cos(v log x), then all sqrt(x) sin(v log x), v a draw of
  // additive_law for each panel of 16 features; 0 where x <= 0. E[z(x) . z(x')] over v is the
  // kernel.
  kAdditive,
};

// A draw for each feature that multiplies all coordinates of its frequency.
enum class RadialLaw {
  kNone,
  // sqrt(shape / g), g gamma(shape): normal coordinates become a Student t of 2 shape degrees.
  kStudent,
  // sqrt(v), v exponential of rate 1 - shift.
  kExponential,
};

// How the frequencies of a block of kFeaturesPerBlock features are drawn together; each of them has
// the law of the spec whatever the sampler (core/feature/sampler.h).
enum class Sampler { kIid, kOrthogonal, kQuasiMonteCarlo, kStructured };

// How the features of several kernels become those of one.
enum class Composition {
  kNone,
  // Each panel of 16 features is one of a term, drawn with a probability proportional to weight
  // times amplitude_square() of the term.
  kSum,
  // Products of features of the terms, drawn independently. If all terms are cosines of the inputs,
  // so is the product: of the sum of the frequencies, which has the same mean and less variance.
  kProduct,
};

// Inputs as [height][width][channels]; a patch of it is that many pixels high and wide.
struct ImageShape {
  size_t height = 0, width = 0, channels = 0;
  size_t patch_height = 0, patch_width = 0;

  size_t size() const { return height * width * channels; }
  size_t patch_size() const { return patch_height * patch_width * channels; }
  // Places of the patch inside the image.
  size_t places() const { return (height - patch_height + 1) * (width - patch_width + 1); }
};

struct FeatureTerm;

struct FeatureSpec {
  FeatureForm form = FeatureForm::kCosine;
  // Of one coordinate of a frequency.
  SpectralLaw law = SpectralLaw::kNormal;
  InputTransform transform = InputTransform::kNone;
  RadialLaw radial = RadialLaw::kNone;
  double frequency_scale = 1;
  double shift = 0;
  double shape = 0;
  size_t degree = 1;
  SpectralLaw additive_law = SpectralLaw::kSech;
  bool pairs = false;  // where takes_pairs(); of a sum, of its terms
  // Of a composition: that of those of its terms that have it too (Sampled of
  // core/feature/sampler.h).
  Sampler sampler = Sampler::kIid;
  // kQuasiMonteCarlo: which of the net_slots Sobol dimensions of a coordinate the frequencies have.
  // Factors of a product have different ones.
  size_t net_slot = 0, net_slots = 1;
  std::array<double, kMaxFactors + 1> series = {};
  // Not empty: frequencies are sums over places of the patch of an independent draw of `law` times
  // a filter of normal draws, moved to that place: those of a cosine of the filtered image.
  ImageShape image = {};
  // Not kNone: frequency_scale multiplies that of the terms; form, law, ... are those of the
  // terms.
  Composition composition = Composition::kNone;
  TermList<FeatureTerm> terms = {};

  // Projections that are multiplied for one feature.
  size_t factors() const {
    if (form == FeatureForm::kProduct || form == FeatureForm::kSketch) return degree;
    return form == FeatureForm::kRandomProduct ? kMaxFactors : 1;
  }
  // Numbers of one feature beside its frequencies: a phase, or what simd.h lists for the form.
  size_t lane_rows() const { return form == FeatureForm::kCosineExponential ? 2 : factors(); }
  // Panels of features on one panel of frequencies.
  size_t waves() const { return pairs ? 2 : 1; }
  // True if pairs have less variance than single features at the same number of coefficients: if
  // k(2D) < 2 k(D)^2 wherever k is not small. Student's law with shape 0.2 fails where k < 0.12,
  // with shape 0.1 from k = 0.38 on.
  // Compositions: of all terms that take pairs.
  bool pairs_pay() const;
  // False where `pairs` changes nothing.
  bool takes_pairs() const;
  // Coordinates of z.
  size_t transformed_dim(size_t input_dim) const {
    return transform == InputTransform::kAdditive ? 2 * input_dim : input_dim;
  }
  // True if each coordinate of a frequency is drawn whatever the others are and however many there
  // are: features of rows that leave out their zeros can be made from the frequencies of the rest.
  bool takes_sparse_rows() const;
  // True if the features are cosines of the inputs themselves: k(x, x') is a function of x - x'.
  bool is_shift_invariant() const;
  // What the squares of features are multiplied by because of weights: k(0) where k is a function
  // of x - x'.
  double amplitude_square() const;
};

struct FeatureTerm {
  double weight = 1;
  FeatureSpec spec;  // its frequency_scale includes 1 / the term's own bandwidth
};

inline bool FeatureSpec::is_shift_invariant() const {
  if (composition == Composition::kNone) {
    return form == FeatureForm::kCosine && transform == InputTransform::kNone;
  }
  for (const FeatureTerm& term : terms) {
    if (!term.spec.is_shift_invariant()) return false;
  }
  return true;
}

inline bool FeatureSpec::takes_sparse_rows() const {
  for (const FeatureTerm& term : terms) {
    if (!term.spec.takes_sparse_rows()) return false;
  }
  return sampler == Sampler::kIid && image.size() == 0;
}

inline bool FeatureSpec::takes_pairs() const {
  if (composition == Composition::kNone) return form == FeatureForm::kCosine;
  if (composition == Composition::kProduct) return is_shift_invariant();
  for (const FeatureTerm& term : terms) {
    if (term.spec.takes_pairs()) return true;
  }
  return false;
}

inline bool FeatureSpec::pairs_pay() const {
  for (const FeatureTerm& term : terms) {
    if (term.spec.takes_pairs() && !term.spec.pairs_pay()) return false;
  }
  return takes_pairs() && (radial != RadialLaw::kStudent || shape >= 0.2);
}

inline double FeatureSpec::amplitude_square() const {
  if (composition == Composition::kNone) return 1;
  double sum = 0, product = 1;
  for (const FeatureTerm& term : terms) {
    const double square = term.spec.amplitude_square();
    sum += term.weight * square;
    product *= square;
  }
  return composition == Composition::kSum ? sum : product;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_FEATURE_SPEC_H_
