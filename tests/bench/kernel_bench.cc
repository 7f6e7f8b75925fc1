// Features per second of every kernel and sampler of the registries, beside what the core can do at
// best.
//   kernel_bench [seconds per measurement, default 0.1]
//
// Prints the table of tests/bench/README.md. A feature is counted once for each row. "kept": the
// frequencies stay in the cache of features, as in a model that is served; "drawn": they are drawn
// at each use. Everything in CPU time of one thread, quickest of many calls; "spread" is how much
// longer the median call took. The limit is arithmetic at the measured multiply-add peak: 2 for
// each term of a projection (one projection for two features in pairs; two Hadamard transforms
// where structured), 14 for a cosine; additive kernels have two terms and a share of a cosine and a
// sine for each input. Exponentials and transforms of inputs are not counted.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "core/feature/feature_map.h"
#include "core/feature/sampler.h"
#include "core/kernel/kernel.h"
#include "core/simd/simd.h"
#include "tests/bench/machine_limits.h"
#include "tests/support/kernel_rows.h"
#include "tests/support/kernel_settings.h"

namespace kernelstream {
namespace {

using bench::kCosineFlops;

constexpr uint64_t kSeed = 42;
constexpr size_t kRows = 64;
constexpr size_t kFeatures = 4096;
constexpr size_t kPanels = kFeatures / kPanelWidth;
constexpr size_t kDims[] = {16, 128};

struct Timing {
  double best = 1e9;
  double median = 0;
};

Timing Measure(double seconds, const std::function<void()>& work) {
  work();
  std::vector<double> times;
  for (double used = 0; used < seconds || times.size() < 3; used += times.back()) {
    const double start = bench::ThreadSeconds();
    work();
    times.push_back(bench::ThreadSeconds() - start);
  }
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

// Of the projections of one frequency.
double ProjectionFlops(const FeatureSpec& spec, size_t dim) {
  const bool structured = spec.sampler == Sampler::kStructured;
  if (spec.composition == Composition::kNone) {
    // Two transforms; an addition takes the slot of a multiply-add.
    if (structured) return 4 * std::ceil(std::log2(dim));
    return 2 * static_cast<double>(spec.factors() * spec.transformed_dim(dim));
  }
  if (spec.is_shift_invariant() && !structured) return 2 * static_cast<double>(dim);
  double flops = 0;
  for (const FeatureTerm& term : spec.terms) {
    const double share = spec.composition == Composition::kProduct
                             ? 1
                             : term.weight * term.spec.amplitude_square() / spec.amplitude_square();
    flops += share * ProjectionFlops(term.spec, dim);
  }
  return flops;
}

double FlopsPerFeature(const FeatureSpec& spec, size_t dim) {
  double flops = 0;
  if (spec.composition != Composition::kNone && !spec.is_shift_invariant()) {
    for (const FeatureTerm& term : spec.terms) {
      FeatureSpec of_term = term.spec;
      of_term.pairs = spec.pairs && of_term.takes_pairs();
      const double share =
          spec.composition == Composition::kProduct
              ? 1
              : term.weight * term.spec.amplitude_square() / spec.amplitude_square();
      flops += share * FlopsPerFeature(of_term, dim);
    }
    return flops;
  }
  flops = ProjectionFlops(spec, dim) / static_cast<double>(spec.waves());
  if (spec.form == FeatureForm::kCosine || spec.form == FeatureForm::kCosineExponential) {
    flops += kCosineFlops;
  }
  if (spec.transform == InputTransform::kAdditive) {
    flops += 2 * kCosineFlops * static_cast<double>(dim) / kPanelWidth;
  }
  return flops;
}

// The cosine alone, of projections in the first cache.
double CosineSeconds(double seconds) {
  constexpr size_t kSome = 16;
  const std::vector<float> projections(kSome * kRows * kPanelWidth, 0.3f);
  std::vector<float> phases(kSome * kPanelWidth), out(projections.size());
  SamplePhases(kSeed, 0, kSome, phases.data());
  const FeaturePanels panels = {.phases = phases.data(), .num_panels = kSome};
  const Timing time = Measure(
      seconds, [&] { FeaturesOfProjections(panels, projections.data(), kRows, out.data()); });
  return time.best / static_cast<double>(out.size());
}

// Rows that suit the kernel, and the bandwidth that a model would choose from them.
struct Inputs {
  Inputs(const Kernel& kernel, size_t dim) {
    const KernelRows made = RowsFor(kernel, kRows, dim, kSeed);
    std::vector<std::vector<double>> rows;
    for (size_t i = 0; i < kRows; ++i) {
      const auto row = made.rows.row(i).values;
      values.insert(values.end(), row.begin(), row.end());
      rows.emplace_back(row.begin(), row.end());
    }
    std::vector<double> distances;
    for (size_t i = 1; i < kRows; ++i) distances.push_back(kernel.Distance(rows[i], rows[i - 1]));
    std::nth_element(distances.begin(), distances.begin() + kRows / 2, distances.end());
    inverse_bandwidth = static_cast<float>(1 / std::max(distances[kRows / 2], 1e-6));
    x = {values.data(), kRows, dim};
  }
  std::vector<float> values;
  ConstMatrixView x;
  float inverse_bandwidth = 1;
};

// Complete but for what a model would choose from its rows.
std::unique_ptr<const Kernel> KernelFor(const ComponentConfig& config, size_t dim) {
  auto complete = CompleteKernel(config);
  if (!complete.ok()) return nullptr;
  const std::vector<float> row(dim);
  if (config.name == "convolution") ChooseKernelParameters({row.data(), 1, dim}, *complete);
  auto kernel = MakeUnitKernel(*complete);
  return kernel.ok() ? *std::move(kernel) : nullptr;
}

void PrintRow(const std::string& name, const ComponentConfig& config, const SamplerEntry& sampler,
              bool pairs, double peak, double seconds) {
  std::printf("| `%s` |", name.c_str());
  for (const size_t dim : kDims) {
    const auto kernel = KernelFor(config, dim);
    FeatureSpec spec = Sampled(kernel->features(), sampler);
    spec.pairs = pairs;
    const Inputs in(*kernel, dim);
    FeatureCacheBudget budget(int64_t{1} << 30);
    std::vector<float> out(kRows * kFeatures);
    const auto time = [&](FeatureCacheBudget* cache) {
      const auto map = MakeFeatureMap(spec, kSeed, dim, kFeatures, cache);
      return Measure(seconds,
                     [&] { map->Features(in.x, in.inverse_bandwidth, 0, kPanels, out.data()); });
    };
    const Timing kept = time(&budget), drawn = time(nullptr);
    const double cells = kRows * kFeatures;
    std::printf(" %.0f | ", 1e-6 * cells / kept.best);
    if (peak > 0) {
      std::printf("%.0f %%", 100 * cells * FlopsPerFeature(spec, dim) / peak / kept.best);
    }
    std::printf(" | %.0f %% | %.0f |", 100 * (kept.median / kept.best - 1),
                1e-6 * cells / drawn.best);
  }
  std::printf("\n");
  std::fflush(stdout);
}

// Alone, in pairs, and in the better form with each sampler that applies.
bool PrintRows(const std::string& title, const ComponentConfig& config, double peak,
               double seconds) {
  const auto kernel = KernelFor(config, kDims[0]);
  if (kernel == nullptr) {
    std::fprintf(stderr, "%s cannot be made\n", title.c_str());
    return false;
  }
  const FeatureSpec spec = kernel->features();
  const bool pairs = spec.takes_pairs();
  const std::string name = absl::StrCat(title, pairs ? ", pairs" : "");
  const SamplerEntry& iid = *FindSampler("iid");
  if (pairs && spec.composition == Composition::kNone)
    PrintRow(title, config, iid, false, peak, seconds);
  PrintRow(name, config, iid, pairs, peak, seconds);
  for (const SamplerEntry& sampler : SamplerRegistry()) {
    if (sampler.sampler == Sampler::kIid || !SamplerApplies(sampler, spec)) continue;
    PrintRow(absl::StrCat(name, ", ", sampler.doc.name), config, sampler, pairs, peak, seconds);
  }
  return true;
}

// "sum of gaussian, polynomial".
std::string TitleOf(const ComponentConfig& config) {
  if (config.terms.empty()) return SettingText(config);
  std::string title;
  for (const ComponentTerm& term : config.terms) {
    absl::StrAppend(&title, title.empty() ? config.name + " of " : ", ", term.component.name);
  }
  return title;
}

int Main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.1;
  const double peak = bench::PeakFlops(ActiveSimdTarget());
  std::printf("%s seed=%d rows=%zu features=%zu\n", bench::MachineLine().c_str(),
              static_cast<int>(kSeed), kRows, kFeatures);
  std::printf("# a cosine alone takes %.3f ns; its %.0f operations at the peak %.3f ns\n\n",
              1e9 * CosineSeconds(seconds), kCosineFlops, peak > 0 ? 1e9 * kCosineFlops / peak : 0);
  std::printf("| 10^6 features/s |");
  for (const size_t dim : kDims) std::printf(" dim %zu: kept | of limit | spread | drawn |", dim);
  std::printf("\n|---|%s%s\n", "---|---|---|---|", "---|---|---|---|");
  for (const KernelEntry& entry : KernelRegistry()) {
    if (entry.doc.takes_terms) continue;
    for (const ComponentConfig& setting : KernelSettings(entry.doc.name)) {
      if (setting.parameters.contains("offset")) continue;  // the same work
      if (!PrintRows(TitleOf(setting), setting, peak, seconds)) return 1;
    }
  }
  // Cosines of the inputs, which are one cosine, and others.
  const ComponentConfig compositions[] = {
      {"sum", {}, {{1, Leaf("gaussian")}, {1, Leaf("laplacian")}}},
      {"sum", {}, {{1, Leaf("gaussian")}, {1, Leaf("polynomial")}}},
      {"product", {}, {{1, Leaf("gaussian")}, {1, Leaf("laplacian")}}},
      {"product", {}, {{1, Leaf("gaussian")}, {1, Leaf("polynomial")}}}};
  for (const ComponentConfig& composition : compositions) {
    if (!PrintRows(TitleOf(composition), composition, peak, seconds)) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace kernelstream

int main(int argc, char** argv) { return kernelstream::Main(argc, argv); }
