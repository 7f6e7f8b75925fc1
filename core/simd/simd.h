// The vectorised loops. core/simd is the only folder that includes hwy/; plain functions come out.
// Each function runs on the best SIMD target of the CPU, chosen at run time (Highway).
//
// PANELS. Features are handled kPanelWidth = 16 at a time. Everything indexed by feature is stored
// in panels:
//   frequencies  [panel][coordinate][16]     phases [panel][16]
//   features     [panel][row][16]            coefficients [panel][output][16]
// Feature f is lane f % 16 of panel f / 16.
//
// SAME BITS EVERYWHERE. Lanes are virtual: always 16, made of however many registers the target
// needs. Within a lane, sums run in the order the comments below give, one fused multiply-add per
// term; lanes are added at the end by one fixed tree:
//   for (w = 8; w > 0; w /= 2) lane[i] += lane[i + w], i < w.
// So all targets with fused multiply-add (AVX2, AVX-512, NEON, ...) give equal bits; targets
// without it (SSE4, SSSE3) agree within the error bounds stated at each function. Row r's result
// never depends on which other rows are in the call.
//
// Thread-safe: pure functions of their arguments. Pointers need no alignment. Nothing allocates,
// except where said.
#ifndef KERNELSTREAM_CORE_SIMD_SIMD_H_
#define KERNELSTREAM_CORE_SIMD_SIMD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/feature_spec.h"
#include "core/base/matrix_view.h"
#include "core/base/spectral_law.h"

namespace kernelstream {

inline constexpr size_t kPanelWidth = 16;
// Features summed in float32 before a float64 takes over: 16 panels.
inline constexpr size_t kFeaturesPerBlock = 256;
inline constexpr size_t kPanelsPerBlock = kFeaturesPerBlock / kPanelWidth;

// Coordinates ids[0], ids[1], ...; without ids 0, 1, ..., size - 1.
struct Coordinates {
  size_t size = 0;
  const uint64_t* ids = nullptr;

  Coordinates(size_t count) : size(count) {}  // NOLINT: as an argument
  explicit Coordinates(std::span<const uint64_t> of) : size(of.size()), ids(of.data()) {}
  uint64_t operator[](size_t i) const { return ids == nullptr ? i : ids[i]; }
};

// Frequencies of `num_panels` panels at `inputs`. out: [num_panels][inputs.size][16]. Panel p, lane
// l is feature first_feature + 16 p + l (first_feature may be any multiple of 16). Coordinate j of
// feature f is the inverse CDF of the uniform
//   u = ((word >> 9) + 0.5) * 2^-23,
// word = word (j % 4) of Philox4x32-10 with key = key and counter FrequencyCounter(f, j / 4)
// (core/base/philox.h): a pure function of (key, f, j).
// Laws of the cosine (normal, Cauchy, Laplace, sech) in TURNS per unit of input / bandwidth: a draw
// divided by 2 pi. The others as they are. Relative error of each value <= 1e-6 against the exact
// quantile, 2e-6 for Levy. kJensenShannon is not possible.
void SampleFrequencies(SpectralLaw law, uint64_t key, uint64_t first_feature, size_t num_panels,
                       Coordinates inputs, float* out);

// The same, each coordinate from a cell of its law: u is in part cells[i] of 2^cell_bits equal
// parts of (0, 1), i = its place in out; the top cell_bits (1 to 8) bits of the word make way for
// it.
void SampleFromCells(SpectralLaw law, uint64_t key, uint64_t first_feature, size_t num_panels,
                     size_t input_dim, const uint8_t* cells, int cell_bits, float* out);

// Where the signs of a coordinate go.
struct SignLayout {
  size_t signs = 1;              // for each coordinate, at most 23
  size_t sign_stride = 1;        // in units of 16 floats
  size_t coordinate_stride = 1;  // in units of 16 floats
};

// Several Rademacher draws for each coordinate from the one word of SampleFrequencies: sign s of
// coordinate j is +1 if bit 31 - s of the word is set, else -1 (s = 0 equals law kRademacher). out:
// [num_panels][signs * inputs.size][16], coordinate inputs[i] of a panel at 16 * (s * sign_stride +
// i * coordinate_stride).
void SampleSigns(uint64_t key, uint64_t first_feature, size_t num_panels, Coordinates inputs,
                 const SignLayout& layout, float* out);

// Phases in turns, uniform on (0, 1): ((word >> 9) + 0.5) * 2^-23, word 0 of counter
// PhaseCounter(f). out: [num_panels][16].
void SamplePhases(uint64_t key, uint64_t first_feature, size_t num_panels, float* out);

// Inputs as the kernel sees them (core/base/feature_spec.h). out: [rows, cols], for kAdditive
// [rows, 2 cols] (square roots, then logarithms). parameter: what kLog adds (> 0), the length kBall
// shortens to; 0 for kAdditive, else without effect. Logarithms: absolute error 1e-7 + relative
// error 2e-7; of values below 2^-126 (negative ones too) that of 2^-126.
void TransformInputs(InputTransform transform, float parameter, ConstMatrixView x, float* out);

// A run of consecutive features, at most as many as the caller likes. Lanes are what a form needs
// beside frequencies, for each panel:
//   kCosine [16]: phase in turns     kCosineExponential [2][16]: phase in turns, rate
//   kProduct, kSketch, kRandomProduct [factors][16]: what is added to each projection
//   additive [16]: frequency over the logarithms, in turns, the same in all lanes
//   others [16]: unused
//
// WAVES. With waves = 2 (kCosine only), panels 2q and 2q + 1 share frequency panel q: one
// projection makes both. The run may begin with the second of two (first_wave = 1) and end with a
// first one. frequencies then has (first_wave + num_panels + 1) / 2 panels, phases still one row
// for each feature panel.
struct FeaturePanels {
  const float* frequencies = nullptr;  // [num_panels][factors][terms][16]
  const float* phases = nullptr;       // lanes
  size_t num_panels = 0;
  // Multiplies the projection: 1 / bandwidth (times the kernel's frequency_scale).
  float inverse_bandwidth = 1.0f;
  FeatureForm form = FeatureForm::kCosine;
  bool is_additive = false;  // x holds square roots and logarithms
  size_t factors = 1;
  size_t degree = 1;  // of kRectifiedPower, at most 3
  float shift = 0;    // of kCosineExponential
  size_t waves = 1;   // 1 or 2
  size_t first_wave = 0;
};

// Random features of transformed inputs x: [rows, terms], finite. out: [num_panels][rows][16].
// projection = sum over coordinates in order 0, 1, ... by fused multiply-add from 0.
// kCosine: sqrt(2) cos(2 pi t), t = fma(projection, inverse_bandwidth, phase), frequencies in
// turns;
//   in [-sqrt2, sqrt2]. Absolute error <= 4e-6 for |t| <= 1, growing with the rounding of the
//   projection: + 3e-6 * m (a phase of size |t| turns is known to |t| * 2^-24 at best), m = sum_j
//   |x_j w_j| / bandwidth + terms / 5 * the largest of them (what comes after a term that
//   dominates, as in heavy-tailed laws, is rounded at its size).
// kCosineExponential: the same times exp(min(60, rate (|x|^2 inverse_bandwidth^2 - shift) / 2)) /
//   sqrt(1 - shift). Error: that factor times (1e-5 + 3e-6 m + 3e-7 |its exponent|).
// kExponential: exp(-t), t = projection * inverse_bandwidth, 0 for t > 87. Relative error <= 1e-6 +
//   4e-7 m.
// kLinear: projection * sqrt(inverse_bandwidth). Error <= 4e-7 sum |terms|; additive: + 2e-5 sum_j
//   sqrt(x_j) + 4e-6 |frequency| sum_j sqrt(x_j) |log x_j|, times sqrt(inverse_bandwidth). Costs
//   two terms for each input and, once for each row and panel, a sine and a cosine for each input.
// kRectifiedPower: sqrt(2) t^degree where t > 0, else 0, t = 2 pi projection * inverse_bandwidth,
//   frequencies in turns. Error <= sqrt(2) degree (|t| + e)^(degree - 1) e + 4e-7 t^degree, e =
//   4e-6 m.
// kProduct, kRandomProduct: product over factors of fma(projection, inverse_bandwidth, lane).
//   Relative error of each factor <= 4e-7 (m + |lane|) / |factor|. Costs `factors` projections.
// kSketch: circular convolution over the lanes of the factors of kProduct, times 4: with c the
// lanes
//   so far, c'[l] = sum over k = 0, 1, ... of c[(l - k) mod 16] factor[k] by fused multiply-add.
//   Error <= 1e-5 degree times the product over factors of (sum_j |x_j| inverse_bandwidth +
//   |lanes|). Costs `factors` projections and 16 multiplications for each feature and factor.
void PanelFeatures(const FeaturePanels& panels, ConstMatrixView x, float* out);

// The same in two steps, for several bandwidths on one frequency stream: the projections
// x . frequency ([num_panels][rows][16], as in `out` above; of two waves only the first in the run
// is written), then the form of them, bit-equal to PanelFeatures. `out` may be `projections`
// itself. Not for kCosineExponential, products and
// additive panels.
void Projections(const FeaturePanels& panels, ConstMatrixView x, float* out);
void FeaturesOfProjections(const FeaturePanels& panels, const float* projections, size_t rows,
                           float* out);

// Rows whose other terms are 0. Row r has values[i] at term places[i], begins[r] <= i < begins[r +
// 1], places increasing.
struct SparseTerms {
  size_t rows = 0;
  const size_t* begins = nullptr;
  const uint32_t* places = nullptr;
  const float* values = nullptr;
};

// Projections of rows of `terms` terms for the cost of those that are not 0: the same bits as the
// dense rows have, places in out likewise. Same forms.
void SparseProjections(const FeaturePanels& panels, size_t terms, const SparseTerms& x, float* out);

// Sums of features times coefficients without writing the features to memory; the fused evaluation
// loop. coefficients: [num_panels][num_outputs][16]. sums: [rows][num_outputs], overwritten with
// float64 sums: per block of kPanelsPerBlock panels (counted from the first panel of the call),
// lanes accumulate over the block's panels in order in float32, the lane tree adds them, and block
// sums are added in order in float64.
void PanelSums(const FeaturePanels& panels, ConstMatrixView x, const float* coefficients,
               size_t num_outputs, double* sums);

// The same sums from features already computed: bit-equal to PanelSums.
// features: [num_panels][rows][16].
void FeatureSums(const float* features, size_t num_panels, size_t rows, const float* coefficients,
                 size_t num_outputs, double* sums);

// gram[i * rows + j] = sum over features f of features(i, f) * features(j, f), for all i, j
// (symmetric, both halves written), float32: the products of 128 features (counted from the first
// panel of the call) are summed in order, and these sums are added in order. Error <= 1e-5 * sum
// |terms| for up to 2^16 features.
void FeatureGram(const float* features, size_t num_panels, size_t rows, float* gram);

// out[i * rows + j] = sum over coordinates in order of (x_i - x_j)^2, each difference rounded, by
// fused multiply-add from 0, for all i, j (symmetric, 0 on the diagonal). Relative error <= 1e-7 (4
// + cols), of differences of the float32 inputs.
void SquaredDistances(ConstMatrixView x, float* out);

// out[i] = exp(-rate * squares[i]), i < count, squares >= 0: relative error 3e-7 + 1e-7 rate *
// squares[i]; 0 where the exponent is beyond 87. out may be squares.
void Gaussians(const float* squares, float rate, size_t count, float* out);

// coefficients(f, k) += sum over rows i = 0, 1, ... of weights[i * num_outputs + k] * features(i,
// f): the row sum starts at the old coefficient and runs by fused multiply-add in row order.
void AddWeightedFeatures(const float* features, size_t num_panels, size_t rows,
                         const float* weights, size_t num_outputs, float* coefficients);

// to[i] = fma(rate, from[i] - to[i], to[i]), i < count: moves an average towards a value.
void MoveTowards(const float* from, float rate, size_t count, float* to);

// For tests and benchmarks. Names as Highway prints them ("AVX2", "SSE4", ...), best first.
std::vector<std::string> SimdTargets();  // those this CPU can run
std::string ActiveSimdTarget();          // the one in use
bool SimdTargetHasFma(const std::string& name);
// Uses `name` from now on in every thread ("" = the best again). False if the CPU cannot. Not to be
// called while other threads are in these functions.
bool UseSimdTarget(const std::string& name);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_SIMD_SIMD_H_
