// Training steps, evaluation of snapshots, publishing and reading, beside what the core can do at
// best.
//
// Counters: rows_per_s; of_limit = time the hardware needs at least / time taken. The least time of
// a training step is (features + Gram of as many features as the step takes + scores of two
// coefficient sets + update) at the measured multiply-add peak of one core; of a publication,
// copying the coefficients once at the measured read bandwidth.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#include "core/feature/feature_map.h"
#include "core/model/feature_chunks.h"
#include "core/model/linear_solve.h"
#include "core/model/sparse_inputs.h"
#include "tests/bench/grown_model.h"
#include "tests/bench/machine_limits.h"
#include "tests/support/random.h"
#include "tests/support/thread_executor.h"

namespace kernelstream {
namespace {

using bench::GrownModel;
using bench::kCosineFlops;

constexpr uint64_t kSeed = bench::kModelSeed;
constexpr uint32_t kBatchRows = bench::kModelBatchRows;

double Peak() {
  static const double peak = bench::PeakFlops(ActiveSimdTarget());
  return peak;
}

void TrainingStep(benchmark::State& state) {
  const auto dim = static_cast<size_t>(state.range(0));
  const auto labels = static_cast<size_t>(state.range(1));
  const auto features = static_cast<uint32_t>(state.range(2));
  InlineExecutor executor;
  GrownModel model({.dim = dim, .labels = labels, .features = features}, executor);
  const double outputs = labels > 2 ? static_cast<double>(labels) : 1;
  const double b = kBatchRows;
  const double flops =
      b * features * (static_cast<double>(dim) + kCosineFlops) +  // features in pairs
      model.GramFlops() + b * features * 2 * outputs * 3;         // scores twice, update
  double best = 1e9;
  for (auto _ : state) {
    const double start = bench::ThreadSeconds();
    model.Learn(1);
    const double seconds = bench::ThreadSeconds() - start;
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  state.counters["rows_per_s"] = b / best;
  if (Peak() > 0) state.counters["of_limit"] = flops / Peak() / best;
}
BENCHMARK(TrainingStep)
    ->UseManualTime()
    ->ArgNames({"dim", "labels", "features"})
    ->Args({8, 2, 8192})
    ->Args({54, 2, 8192})
    ->Args({123, 2, 8192})
    ->Args({784, 2, 8192})
    ->Args({784, 10, 8192})
    ->Args({16, 2048, 2048})
    ->Args({54, 2, 65536})
    ->Args({54, 2, 262144});

// Cholesky and substitution of a step of 64 rows, as the proximal rule does it, in float64: half as
// many operations fit into a vector.
void Solve(benchmark::State& state) {
  const auto n = static_cast<size_t>(state.range(0)), outputs = static_cast<size_t>(state.range(1));
  Random random(kSeed);
  std::vector<double> matrix(n * n), right(n * outputs, 1);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < i; ++j) matrix[i * n + j] = matrix[j * n + i] = random.Normal() / 64;
    matrix[i * n + i] = 2;
  }
  double best = 1e9;
  for (auto _ : state) {
    std::vector<double> a = matrix, x = right;
    const double start = bench::ThreadSeconds();
    SolvePositiveDefinite(n, outputs, a, x);
    benchmark::DoNotOptimize(x.data());
    const double seconds = bench::ThreadSeconds() - start;
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  const auto rows = static_cast<double>(n);
  const double flops = rows * rows * rows / 3 + 2 * rows * rows * static_cast<double>(outputs);
  state.counters["us"] = 1e6 * best;
  if (Peak() > 0) state.counters["of_limit"] = flops / (Peak() / 2) / best;
}
BENCHMARK(Solve)->UseManualTime()->ArgNames({"rows", "outputs"})->Args({64, 1})->Args({64, 10});

// The parts of a training step of 64 rows, one learner, one output, one after the other as in a
// step: features in pairs, scores of two coefficient sets, Gram, solve, update.
void StepParts(benchmark::State& state) {
  const auto dim = static_cast<size_t>(state.range(0));
  constexpr size_t kFeatures = 8192, kPanels = kFeatures / kPanelWidth, kParts = 5;
  std::vector<float> x(kBatchRows * dim), frequencies(kFeatures * dim), phases(kFeatures);
  SampleFrequencies(SpectralLaw::kNormal, kSeed, 0, kPanels, dim, frequencies.data());
  SamplePhases(kSeed, 0, kPanels, phases.data());
  Random random(kSeed);
  for (float& value : x) value = static_cast<float>(random.Normal());
  const FeaturePanels panels = {.frequencies = frequencies.data(),
                                .phases = phases.data(),
                                .num_panels = kPanels,
                                .inverse_bandwidth = 0.1f,
                                .waves = 2};
  const ConstMatrixView inputs(x.data(), kBatchRows, dim);
  std::vector<float> features(kFeatures * kBatchRows), gram(kBatchRows * kBatchRows),
      coefficients(kFeatures), dual(kBatchRows, 1e-6f);
  std::vector<double> scores(kBatchRows), system(gram.size()), right(kBatchRows);
  const std::function<void()> parts[kParts] = {
      [&] { PanelFeatures(panels, inputs, features.data()); },
      [&] {
        for (int set = 0; set < 2; ++set) {
          FeatureSums(features.data(), kPanels, kBatchRows, coefficients.data(), 1, scores.data());
        }
      },
      [&] {
        SquaredDistances(inputs, gram.data());
        Gaussians(gram.data(), 0.01f, gram.size(), gram.data());
      },
      [&] {
        for (size_t i = 0; i < gram.size(); ++i) system[i] = gram[i];
        for (size_t i = 0; i < kBatchRows; ++i) system[i * (kBatchRows + 1)] += 0.2, right[i] = 1;
        SolvePositiveDefinite(kBatchRows, 1, system, right);
      },
      [&] {
        AddWeightedFeatures(features.data(), kPanels, kBatchRows, dual.data(), 1,
                            coefficients.data());
      }};
  double best[kParts];
  std::fill_n(best, kParts, 1e9);
  for (auto _ : state) {
    double sum = 0;
    for (size_t i = 0; i < kParts; ++i) {
      const double start = bench::ThreadSeconds();
      parts[i]();
      const double seconds = bench::ThreadSeconds() - start;
      best[i] = std::min(best[i], seconds);
      sum += seconds;
    }
    state.SetIterationTime(sum);
  }
  const char* names[kParts] = {"features_us", "scores_us", "gram_us", "solve_us", "update_us"};
  for (size_t i = 0; i < kParts; ++i) state.counters[names[i]] = 1e6 * best[i];
  // Gram, solve and update beside the features.
  state.counters["rest_of_features"] = (best[2] + best[3] + best[4]) / best[0];
}
BENCHMARK(StepParts)->UseManualTime()->ArgName("dim")->Arg(8)->Arg(54)->Arg(123)->Arg(784);

// What racing candidates cost: 1, 20 (a new model), and about what is left after pruning.
void TrainingRace(benchmark::State& state) {
  InlineExecutor executor;
  const auto dim = static_cast<size_t>(state.range(0));
  GrownModel one({.dim = dim}, executor);
  GrownModel race({.dim = dim,
                   .bandwidths = static_cast<size_t>(state.range(1)),
                   .step_constants = static_cast<size_t>(state.range(2))},
                  executor);
  double best_one = 1e9, best = 1e9;
  for (auto _ : state) {
    const double start = bench::ThreadSeconds();
    one.Learn(1);
    const double middle = bench::ThreadSeconds();
    race.Learn(1);
    const double end = bench::ThreadSeconds();
    state.SetIterationTime(end - middle);
    best_one = std::min(best_one, middle - start);
    best = std::min(best, end - middle);
  }
  state.counters["rows_per_s"] = kBatchRows / best;
  state.counters["rows_per_s_of_one"] = kBatchRows / best_one;
  state.counters["times_one"] = best / best_one;
}
BENCHMARK(TrainingRace)
    ->UseManualTime()
    ->ArgNames({"dim", "bandwidths", "step_constants"})
    ->ArgsProduct({{8, 54, 123, 784}, {5}, {1, 4}});

void Evaluate(benchmark::State& state) {
  const auto dim = static_cast<size_t>(state.range(0));
  const auto count = static_cast<size_t>(state.range(1));
  InlineExecutor executor;
  GrownModel model({.dim = dim}, executor);
  const Ref<Snapshot> snapshot = model.trainer->MakeSnapshot();
  SampleBatch rows;
  for (size_t i = 0; i < count; ++i) rows.AppendRow(model.rows, i);
  std::vector<double> scores(count);
  double best = 1e9;
  for (auto _ : state) {
    const double start = bench::ThreadSeconds();
    snapshot->Score(rows, executor, scores.data());
    const double seconds = bench::ThreadSeconds() - start;
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  const double cells = static_cast<double>(count) * 8192;
  state.counters["rows_per_s"] = static_cast<double>(count) / best;
  if (Peak() > 0) {
    state.counters["of_limit"] =
        cells * (static_cast<double>(dim) + kCosineFlops + 2) / Peak() / best;
  }
}
BENCHMARK(Evaluate)->UseManualTime()->ArgNames({"dim", "rows"})->ArgsProduct({{54, 123}, {1, 256}});

// Scores of rows that are mostly 0, beside those of the same rows with their zeros. Gaussian
// kernel, pairs, 8192 features that are kept.
void EvaluateSparse(benchmark::State& state) {
  constexpr size_t kFeatures = 8192;
  const auto dim = static_cast<size_t>(state.range(0));
  const auto count = static_cast<size_t>(state.range(1));
  FeatureSpec spec;
  spec.pairs = true;
  FeatureCacheBudget budget(int64_t{1} << 30);
  const auto map = MakeFeatureMap(spec, kSeed, dim, kFeatures, &budget);
  Random random(kSeed);
  std::vector<float> x(count * dim), coefficients(kFeatures, 1);
  for (float& value : x) {
    if (100 * random.Uniform() < static_cast<double>(state.range(2))) value = 1;
  }
  SampleBatch batch;
  for (size_t r = 0; r < count; ++r) batch.AddDense({x.data() + r * dim, dim});
  const SparseRows sparse = MakeSparseRows(count, [&](size_t r) { return batch.row(r); });
  std::vector<double> sums(count);
  double best_dense = 1e9, best = 1e9;
  const auto time = [&](InputsView rows, double& shortest) {
    const double start = bench::ThreadSeconds();
    map->AddSums(rows, 1, 0, kFeatures / kPanelWidth, coefficients.data(), 1, sums.data());
    benchmark::DoNotOptimize(sums.data());
    const double seconds = bench::ThreadSeconds() - start;
    shortest = std::min(shortest, seconds);
    return seconds;
  };
  for (auto _ : state) {
    time(ConstMatrixView(x.data(), count, dim), best_dense);
    state.SetIterationTime(time(sparse, best));
  }
  const double cells = static_cast<double>(count) * kFeatures;
  state.counters["ns_per_cell"] = 1e9 * best / cells;
  state.counters["ns_per_cell_dense"] = 1e9 * best_dense / cells;
  state.counters["times_faster"] = best_dense / best;
}
BENCHMARK(EvaluateSparse)
    ->UseManualTime()
    ->ArgNames({"dim", "rows", "percent"})
    ->ArgsProduct({{123, 784}, {1, 256}, {2, 10, 20, 33}});

// Scores of wide inputs: structured frequencies beside independent ones that are read from memory.
// Gaussian kernel, pairs, 65 536 features, as Snapshot::Score asks for them; the least time of a
// row is the arithmetic at the peak or, for independent frequencies, reading them, whichever is
// more.
void EvaluateWide(benchmark::State& state) {
  constexpr size_t kDim = 784, kFeatures = 65536;
  const auto rows = static_cast<size_t>(state.range(0));
  FeatureSpec spec;
  spec.pairs = true;
  if (state.range(1) != 0) spec.sampler = Sampler::kStructured;
  FeatureCacheBudget budget(int64_t{1} << 30);
  const auto map = MakeFeatureMap(spec, kSeed, kDim, kFeatures, &budget);
  Random random(kSeed);
  std::vector<float> x(rows * kDim), coefficients(kFeatures);
  for (float& value : x) value = static_cast<float>(random.Normal() / 28);
  for (float& value : coefficients) value = static_cast<float>(random.Normal());
  const FeatureChunks chunks(kFeatures);
  const size_t together = FeatureChunks::Together(map->PanelsAtATime());
  std::vector<double> sums(together * rows);
  double best = 1e9;
  for (auto _ : state) {
    const double start = bench::ThreadSeconds();
    for (size_t c = 0; c < chunks.size(); c += together) {
      const FeatureChunk run = chunks.Run(c, together);
      map->AddChunkSums(ConstMatrixView(x.data(), rows, kDim), 1, run.first_panel / kPanelsPerBlock,
                        run.num_panels, FeatureChunks::kPanelsPerChunk,
                        coefficients.data() + run.first_panel * kPanelWidth, 1, sums.data());
    }
    benchmark::DoNotOptimize(sums.data());
    const double seconds = bench::ThreadSeconds() - start;
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  const double cells = static_cast<double>(rows) * kFeatures;
  const auto bytes = static_cast<size_t>(map->cached_bytes());
  const double reading = static_cast<double>(bytes) / bench::ReadBandwidth(bytes);
  const double terms = state.range(1) != 0 ? 2 * 10.0 : 1.0 * kDim;
  const double arithmetic = Peak() > 0 ? cells * (terms + kCosineFlops + 2) / Peak() : 0;
  state.counters["us_per_row"] = 1e6 * best / static_cast<double>(rows);
  state.counters["ns_per_feature"] = 1e9 * best / cells;
  state.counters["kept_MB"] = 1e-6 * static_cast<double>(bytes);
  state.counters["of_limit"] = std::max(reading, arithmetic) / best;
}
BENCHMARK(EvaluateWide)
    ->UseManualTime()
    ->ArgNames({"rows", "structured"})
    ->ArgsProduct({{1, 64}, {0, 1}});

void MakeSnapshot(benchmark::State& state) {
  const auto labels = static_cast<size_t>(state.range(0));
  InlineExecutor executor;
  GrownModel model({.dim = 16, .labels = labels, .features = static_cast<uint32_t>(state.range(1))},
                   executor);
  const double bytes =
      static_cast<double>(state.range(1)) * (labels > 2 ? static_cast<double>(labels) : 1) * 4;
  double best = 1e9;
  for (auto _ : state) {
    const double start = bench::ThreadSeconds();
    benchmark::DoNotOptimize(model.trainer->MakeSnapshot());
    const double seconds = bench::ThreadSeconds() - start;
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  state.counters["us"] = 1e6 * best;
  state.counters["copy_limit_us"] = 1e6 * bytes / bench::ReadBandwidth(static_cast<size_t>(bytes));
}
BENCHMARK(MakeSnapshot)
    ->UseManualTime()
    ->ArgNames({"labels", "features"})
    ->Args({2, 8192})
    ->Args({10, 8192})
    ->Args({10, 65536});

struct Counted final : RefCounted {};

// How long a reader takes to get hold of the published object; range(0): publications per second
// meanwhile.
void ReadPublished(benchmark::State& state) {
  PublishedCell<Counted> cell(Ref<Counted>::Adopt(new Counted));
  std::atomic<bool> stop{false};
  std::thread writer;
  if (state.range(0) > 0) {
    writer = std::thread([&] {
      while (!stop) {
        cell.Set(Ref<Counted>::Adopt(new Counted));
        std::this_thread::sleep_for(std::chrono::microseconds(1000000 / state.range(0)));
      }
    });
  }
  for (auto _ : state) benchmark::DoNotOptimize(cell.Get());
  stop = true;
  if (writer.joinable()) writer.join();
}
BENCHMARK(ReadPublished)->ArgName("publications_per_s")->Arg(0)->Arg(1000);

void Publish(benchmark::State& state) {
  PublishedCell<Counted> cell(Ref<Counted>::Adopt(new Counted));
  for (auto _ : state) cell.Set(Ref<Counted>::Adopt(new Counted));
}
BENCHMARK(Publish);

}  // namespace
}  // namespace kernelstream

int main(int argc, char** argv) {
  std::printf("%s seed=%d\n", kernelstream::bench::MachineLine().c_str(),
              static_cast<int>(kernelstream::kSeed));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
