// The loops of core/simd beside what the core can do at best. KERNELSTREAM_SIMD_TARGET=SSE4
// measures another target.
//
// Counters: ns = nanoseconds per (row x feature) or per number drawn; of_limit = time the hardware
// needs at least / time taken. The limit is the larger of arithmetic at the measured peak and, for
// rows = 1, reading the frequencies once.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#include "core/base/philox.h"
#include "core/simd/simd.h"
#include "tests/bench/machine_limits.h"

namespace kernelstream {
namespace {

using bench::kCosineFlops;

constexpr size_t kFeatures = 8192;
constexpr size_t kPanels = kFeatures / kPanelWidth;
constexpr uint64_t kSeed = 42;

double Peak() {
  static const double peak = bench::PeakFlops(ActiveSimdTarget());
  return peak;
}

double Bandwidth(size_t bytes) {
  static std::map<size_t, double> known;
  const auto [it, is_new] = known.try_emplace(bytes);
  if (is_new) it->second = bench::ReadBandwidth(bytes);
  return it->second;
}

std::vector<float> Frequencies(SpectralLaw law, size_t panels, size_t dim) {
  std::vector<float> out(panels * dim * kPanelWidth);
  SampleFrequencies(law, kSeed, 0, panels, dim, out.data());
  return out;
}

// Times `work` in batches of at least 20 microseconds. The library's columns are means; the
// counters are of the quickest batch, as others share the machine: both together show the spread.
// All in CPU time of this thread.
template <class Work>
void Measure(benchmark::State& state, double items, double limit_seconds, Work work) {
  int batch = 1;
  const double first = bench::ThreadSeconds();
  for (; bench::ThreadSeconds() - first < 2e-5; ++batch) work();
  double best = 1e9;
  for (auto _ : state) {
    const double start = bench::ThreadSeconds();
    for (int i = 0; i < batch; ++i) work();
    const double seconds = (bench::ThreadSeconds() - start) / batch;
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  state.counters["ns"] = 1e9 * best / items;
  if (limit_seconds > 0) state.counters["of_limit"] = limit_seconds / best;
}

double FlopSeconds(double flops) { return Peak() > 0 ? flops / Peak() : 0; }

void PhiloxScalar(benchmark::State& state) {
  uint32_t i = 0;
  Measure(state, 4 * 1000, 0, [&] {
    for (int n = 0; n < 1000; ++n) benchmark::DoNotOptimize(Philox4x32({++i, 2, 3, 4}, {5, 6}));
  });
}
BENCHMARK(PhiloxScalar)->UseManualTime();

// Sixteen blocks of Philox in lanes and next to nothing else.
void PhiloxLanes(benchmark::State& state) {
  std::vector<float> out(kFeatures);
  Measure(state, 4 * kFeatures, 0, [&] { SamplePhases(kSeed, 0, kPanels, out.data()); });
}
BENCHMARK(PhiloxLanes)->UseManualTime();

void Sample(benchmark::State& state, SpectralLaw law) {
  const size_t dim = static_cast<size_t>(state.range(0));
  std::vector<float> out(kFeatures * dim);
  Measure(state, static_cast<double>(kFeatures * dim), 0,
          [&] { SampleFrequencies(law, kSeed, 0, kPanels, dim, out.data()); });
}
BENCHMARK_CAPTURE(Sample, normal, SpectralLaw::kNormal)
    ->UseManualTime()
    ->ArgName("dim")
    ->Arg(2)
    ->Arg(64)
    ->Arg(784);
BENCHMARK_CAPTURE(Sample, cauchy, SpectralLaw::kCauchy)->UseManualTime()->ArgName("dim")->Arg(64);

struct Inputs {
  Inputs(size_t row_count, size_t dim)
      : rows(row_count),
        frequencies(Frequencies(SpectralLaw::kNormal, kPanels, dim)),
        phases(kFeatures),
        data(Frequencies(SpectralLaw::kNormal, (rows + 15) / 16, dim)),
        x(data.data(), rows, dim) {
    SamplePhases(kSeed, 0, kPanels, phases.data());
    panels = {frequencies.data(), phases.data(), kPanels, 1.0f};
  }
  // Least time for the features and, per feature, this many further operations.
  double Limit(double further_flops) const {
    const double flops = static_cast<double>(rows * kFeatures) *
                         (2.0 * static_cast<double>(x.cols) + kCosineFlops + further_flops);
    const size_t bytes = frequencies.size() * sizeof(float);
    const double reading = rows == 1 ? static_cast<double>(bytes) / Bandwidth(bytes) : 0;
    return std::max(FlopSeconds(flops), reading);
  }

  // The same features in pairs, on the first half of the frequencies.
  FeaturePanels Pairs() const {
    FeaturePanels pairs = panels;
    pairs.waves = 2;
    return pairs;
  }
  double PairLimit() const {
    const double flops =
        static_cast<double>(rows * kFeatures) * (static_cast<double>(x.cols) + kCosineFlops);
    const size_t bytes = frequencies.size() / 2 * sizeof(float);
    const double reading = rows == 1 ? static_cast<double>(bytes) / Bandwidth(bytes) : 0;
    return std::max(FlopSeconds(flops), reading);
  }

  size_t rows;
  std::vector<float> frequencies, phases, data;
  ConstMatrixView x;
  FeaturePanels panels;
};

void Features(benchmark::State& state) {
  const Inputs in(state.range(0), state.range(1));
  std::vector<float> out(in.rows * kFeatures);
  Measure(state, static_cast<double>(in.rows * kFeatures), in.Limit(0),
          [&] { PanelFeatures(in.panels, in.x, out.data()); });
}
BENCHMARK(Features)
    ->UseManualTime()
    ->ArgNames({"rows", "dim"})
    ->ArgsProduct({{1, 64, 256}, {2, 16, 54, 123, 784}});

void PairFeatures(benchmark::State& state) {
  const Inputs in(state.range(0), state.range(1));
  std::vector<float> out(in.rows * kFeatures);
  Measure(state, static_cast<double>(in.rows * kFeatures), in.PairLimit(),
          [&] { PanelFeatures(in.Pairs(), in.x, out.data()); });
}
BENCHMARK(PairFeatures)
    ->UseManualTime()
    ->ArgNames({"rows", "dim"})
    ->ArgsProduct({{1, 64, 256}, {2, 16, 54, 123, 784}});

void Sums(benchmark::State& state) {
  const Inputs in(state.range(0), state.range(1));
  const size_t outputs = static_cast<size_t>(state.range(2));
  const std::vector<float> coefficients = Frequencies(SpectralLaw::kNormal, kPanels, outputs);
  std::vector<double> sums(in.rows * outputs);
  Measure(state, static_cast<double>(in.rows * kFeatures),
          in.Limit(2.0 * static_cast<double>(outputs)),
          [&] { PanelSums(in.panels, in.x, coefficients.data(), outputs, sums.data()); });
}
BENCHMARK(Sums)
    ->UseManualTime()
    ->ArgNames({"rows", "dim", "outputs"})
    ->ArgsProduct({{1, 64, 256}, {2, 16, 54, 123, 784}, {1, 10}})
    ->Args({64, 54, 1000});

void Gram(benchmark::State& state) {
  const size_t rows = static_cast<size_t>(state.range(0));
  const std::vector<float> features = Frequencies(SpectralLaw::kNormal, kPanels, rows);
  std::vector<float> gram(rows * rows);
  const double items = static_cast<double>(rows * (rows + 1) / 2 * kFeatures);
  Measure(state, items, FlopSeconds(2 * items),
          [&] { FeatureGram(features.data(), kPanels, rows, gram.data()); });
}
BENCHMARK(Gram)->UseManualTime()->ArgName("rows")->Arg(16)->Arg(64)->Arg(256);

void Update(benchmark::State& state) {
  const size_t rows = static_cast<size_t>(state.range(0));
  const size_t outputs = static_cast<size_t>(state.range(1));
  const std::vector<float> features = Frequencies(SpectralLaw::kNormal, kPanels, rows);
  const std::vector<float> weights(rows * outputs, 1e-6f);
  std::vector<float> coefficients(kFeatures * outputs);
  const double items = static_cast<double>(rows * outputs * kFeatures);
  const size_t bytes = features.size() * sizeof(float);
  const double limit =
      std::max(FlopSeconds(2 * items), static_cast<double>(bytes) / Bandwidth(bytes));
  Measure(state, items, limit, [&] {
    AddWeightedFeatures(features.data(), kPanels, rows, weights.data(), outputs,
                        coefficients.data());
  });
}
BENCHMARK(Update)
    ->UseManualTime()
    ->ArgNames({"rows", "outputs"})
    ->Args({64, 1})
    ->Args({64, 10})
    ->Args({64, 100});

}  // namespace
}  // namespace kernelstream

int main(int argc, char** argv) {
  if (const char* target = std::getenv("KERNELSTREAM_SIMD_TARGET")) {
    if (!kernelstream::UseSimdTarget(target)) {
      std::fprintf(stderr, "this CPU has no target %s\n", target);
      return 1;
    }
  }
  std::printf("%s seed=%d features=%d\n", kernelstream::bench::MachineLine().c_str(),
              static_cast<int>(kernelstream::kSeed), static_cast<int>(kernelstream::kFeatures));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
