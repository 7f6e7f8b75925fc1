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

constexpr uint64_t kSeed = 42;
constexpr size_t kRows = 64;
constexpr size_t kFeatures = 4096;
constexpr size_t kPanels = kFeatures / kPanelWidth;
constexpr size_t kDims[] = {16, 128};
constexpr double kCosineFlops = 14;

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

double FlopsPerFeature(const FeatureSpec& spec, size_t dim) {
  auto terms = static_cast<double>(spec.factors() * spec.transformed_dim(dim));
  // Two transforms; an addition takes the slot of a multiply-add.
  if (spec.sampler == Sampler::kStructured) terms = 2 * std::ceil(std::log2(dim));
  double flops = 2 * terms / static_cast<double>(spec.waves());
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

void PrintRow(const std::string& name, const Kernel& kernel, const FeatureSpec& spec, double peak,
              double seconds) {
  std::printf("| `%s` |", name.c_str());
  for (const size_t dim : kDims) {
    const Inputs in(kernel, dim);
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
    for (const ComponentConfig& setting : KernelSettings(entry.doc.name)) {
      if (setting.parameters.contains("offset")) continue;  // the same work
      // That of their terms, and, where features are kept, of a Gaussian.
      if (!setting.terms.empty() || setting.name == "convolution") continue;
      ComponentConfig config = setting;
      auto complete = CompleteKernel(config);
      if (complete.ok()) config = *std::move(complete);
      const auto kernel = MakeUnitKernel(config);
      if (!kernel.ok()) {
        std::fprintf(stderr, "%s: %s\n", SettingText(setting).c_str(),
                     std::string(kernel.status().message()).c_str());
        return 1;
      }
      FeatureSpec spec = (*kernel)->features();
      std::string name = SettingText(setting);
      PrintRow(name, **kernel, spec, peak, seconds);
      if (spec.form == FeatureForm::kCosine) {
        spec.pairs = true;
        name += ", pairs";
        PrintRow(name, **kernel, spec, peak, seconds);
      }
      for (const SamplerEntry& sampler : SamplerRegistry()) {
        if (sampler.sampler == spec.sampler || !sampler.applies(spec)) continue;
        FeatureSpec drawn = spec;
        drawn.sampler = sampler.sampler;
        PrintRow(absl::StrCat(name, ", ", sampler.doc.name), **kernel, drawn, peak, seconds);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace kernelstream

int main(int argc, char** argv) { return kernelstream::Main(argc, argv); }
