// What the core has to reach, each beside what it reaches: lines for run.py's table. One thread
// unless said; medians of CPU time. The least time of a row and a feature is its operations at the
// multiply-add peak, measured right before and after: 2 for each term of a frequency (in pairs two
// features share one), 14 for a cosine, 2 for each output. In parentheses the share if a cosine
// could not be quicker than this project's own loop from cache to cache.
//   bars_bench
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "core/base/published_cell.h"
#include "core/feature/feature_map.h"
#include "core/simd/simd.h"
#include "server/service/worker_pool.h"
#include "tests/bench/bars.h"
#include "tests/bench/grown_model.h"
#include "tests/bench/machine_limits.h"

namespace kernelstream::bench {
namespace {

constexpr uint32_t kFeatures = 8192;

InlineExecutor one_thread;

struct Limits {
  double peak = 0;    // operations per second, a fused multiply-add being two
  double cosine = 0;  // seconds of the project's loop for one of a pair
};

// What is taken beside the least time: of limit, and with the loop's cosines in place of theirs.
struct Shares {
  std::vector<double> of_peak, of_loop;
};

// Of this moment: 0.1 ms.
double CosineSeconds() {
  constexpr size_t kRows = 64, kPanels = 4;
  static std::vector<float> projections(kPanels * kRows * kPanelWidth, 0.3f);
  static std::vector<float> phases(kPanels * kPanelWidth), out(projections.size());
  const FeaturePanels panels = {.phases = phases.data(), .num_panels = kPanels, .waves = 2};
  constexpr int kCalls = 100;
  const double start = ThreadSeconds();
  for (int i = 0; i < kCalls; ++i)
    FeaturesOfProjections(panels, projections.data(), kRows, out.data());
  return (ThreadSeconds() - start) / kCalls / static_cast<double>(out.size());
}

// Of this moment: half a millisecond.
Limits LimitsNow() { return {.peak = PeakFlops(ActiveSimdTarget(), 1), .cosine = CosineSeconds()}; }

// flops: without the cosines. Others use the machine too, so that it is now quicker and now slower:
// each call stands between two looks at its limits.
Shares SharesOfLimit(double flops, double cosines, const std::function<void()>& work) {
  Shares shares;
  work();
  Limits before = LimitsNow();
  for (double sum = 0; sum < 0.3 || shares.of_peak.size() < 15;) {
    const double start = ThreadSeconds();
    work();
    const double seconds = ThreadSeconds() - start;
    const Limits after = LimitsNow();
    const double operation = (1 / before.peak + 1 / after.peak) / 2;
    const double cosine = (before.cosine + after.cosine) / 2;
    shares.of_peak.push_back((flops + kCosineFlops * cosines) * operation / seconds);
    shares.of_loop.push_back((flops * operation + cosines * cosine) / seconds);
    before = after;
    sum += seconds;
  }
  return shares;
}

std::string WithLoop(const Shares& shares) {
  char text[64];
  std::snprintf(text, sizeof(text), " (%.2f with the cosine loop's own speed)",
                Median(shares.of_loop));
  return text;
}

// Operations of the projections for one feature in pairs, as default models have them.
double ProjectionFlops(size_t dim) { return static_cast<double>(dim); }

std::string Dim(size_t dim) { return absl::StrCat("dim ", dim); }

// Of a snapshot's scores.
std::vector<double> EvaluationTimes(const Snapshot& snapshot, const SampleBatch& rows) {
  std::vector<double> scores(rows.size());
  return TimesOf([&] { snapshot.Score(rows, one_thread, scores.data()); });
}

double WallSeconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Evaluation() {
  constexpr size_t kRows = 256;
  for (const size_t dim : {16, 54, 123, 784}) {
    const SampleBatch rows = NormalRows(kRows, dim, 2);
    GrownModel kept({.dim = dim}, one_thread);
    const Ref<Snapshot> snapshot = kept.trainer->MakeSnapshot();
    std::vector<double> of_rows(kRows);
    const double cosines = kRows * double{kFeatures};
    const Shares shares = SharesOfLimit(cosines * (ProjectionFlops(dim) + 2), cosines,
                                        [&] { snapshot->Score(rows, one_thread, of_rows.data()); });
    Print({1, absl::StrCat("evaluation, 256 rows, 8192 features, ", Dim(dim), WithLoop(shares)),
           Median(shares.of_peak), Spread(shares.of_peak), "of limit", true, 0.8});
    if (dim == 54 || dim == 784) {
      std::vector<double> ratios, of_peak;
      const SampleBatch many = NormalRows(2048, dim, 2);
      std::vector<double> scores(many.size());
      server::WorkerPool two_threads(1, 1);  // and this thread: as a server evaluates them
      const auto times_one = [&](absl::FunctionRef<void(Executor&)> work) {
        const double one = WallSeconds([&] { work(one_thread); });
        return one / WallSeconds([&] { work(two_threads); });
      };
      for (int i = 0; i < 15; ++i) {
        ratios.push_back(times_one([&](Executor& e) { snapshot->Score(many, e, scores.data()); }));
        // What the machine has to give: multiply-adds of registers.
        of_peak.push_back(times_one(
            [&](Executor& e) { e.ParallelFor(8, [](size_t) { PeakFlops(ActiveSimdTarget()); }); }));
      }
      std::printf("two threads, %s: multiply-adds of registers %.2f x one\n", Dim(dim).c_str(),
                  Median(of_peak));
      Print({2, absl::StrCat("the same, 2048 rows, two threads, ", Dim(dim)), Median(ratios),
             Spread(ratios), "x one", true, 1.9});
      const std::vector<double> times = EvaluationTimes(*snapshot, rows);
      GrownModel drawn({.dim = dim, .cache_bytes = 0}, one_thread);
      const std::vector<double> without = EvaluationTimes(*drawn.trainer->MakeSnapshot(), rows);
      Print({4, absl::StrCat("evaluation without cache, 256 rows, ", Dim(dim)),
             Median(times) / Median(without), Spread(without), "of kept", true, 0.6});
    }
  }
  constexpr size_t kNarrowRows = 1024;
  GrownModel narrow({.dim = 2}, one_thread);
  const std::vector<double> times =
      EvaluationTimes(*narrow.trainer->MakeSnapshot(), NormalRows(kNarrowRows, 2, 2));
  Print({3, "evaluation, 1024 rows, 8192 features, dim 2",
         1e9 * Median(times) / (kNarrowRows * double{kFeatures}), Spread(times),
         "ns per row x feature", false, 0.35});
}

void Sampling() {
  constexpr size_t kDim = 54, kPanels = kFeatures / kPanelWidth;
  std::vector<float> out(kFeatures * kDim);
  std::vector<double> numbers, words, ratios;
  for (int i = 0; i < 101; ++i) {
    double start = ThreadSeconds();
    SampleFrequencies(SpectralLaw::kNormal, kModelSeed, 0, kPanels, kDim, out.data());
    numbers.push_back((ThreadSeconds() - start) / (double{kFeatures} * kDim));
    // A block of Philox has four words and phases take one of them.
    start = ThreadSeconds();
    SamplePhases(kModelSeed, 0, kPanels * kDim, out.data());
    words.push_back((ThreadSeconds() - start) / (4.0 * kFeatures * kDim));
    ratios.push_back(numbers.back() / words.back());
  }
  Print(
      {5,
       absl::StrCat("a Gaussian frequency (", absl::SixDigits(1e9 * Median(numbers)),
                    " ns) beside a word of Philox (", absl::SixDigits(1e9 * Median(words)), " ns)"),
       Median(ratios), Spread(ratios), "x", false, 2.5});
}

void Wide() {
  constexpr size_t kDim = 784;
  constexpr uint32_t kWideFeatures = 65536;
  std::vector<float> coefficients(kWideFeatures, 1e-3f);
  const SampleBatch batch = NormalRows(1, kDim, 2);
  const RowView row = batch.row(0);
  FeatureCacheBudget budget(int64_t{1} << 30);
  const auto times_of = [&](Sampler sampler, int64_t& bytes) {
    FeatureSpec spec;
    spec.pairs = true;
    spec.sampler = sampler;
    const auto map = MakeFeatureMap(spec, kModelSeed, kDim, kWideFeatures, &budget);
    double sum = 0;
    auto times = TimesOf([&] {
      map->AddSums(ConstMatrixView(row.values.data(), 1, kDim), 1.0f / 28, 0,
                   kWideFeatures / kPanelWidth, coefficients.data(), 1, &sum);
    });
    bytes = map->cached_bytes();
    return times;
  };
  int64_t bytes = 0, structured_bytes = 0;
  const std::vector<double> times = times_of(Sampler::kIid, bytes);
  const std::vector<double> structured = times_of(Sampler::kStructured, structured_bytes);
  const double reading = static_cast<double>(bytes) / ReadBandwidth(static_cast<size_t>(bytes));
  Print({6, "one row, dim 784, 65536 features in memory", reading / Median(times), Spread(times),
         "of read bandwidth", true, 0.75});
  Print({6, "the same with the structured sampler", Median(times) / Median(structured),
         Spread(structured), "x as quick", true, 8});
}

struct Counted final : RefCounted {};

// Memory to copy between, source and target apart. Some cores copy ten times slower where the two
// addresses agree modulo 4096, so they begin on pages and are shifted against each other.
class CopyBuffers {
 public:
  explicit CopyBuffers(size_t bytes)
      : bytes_(bytes), from_(bytes + kPage, 1), to_(bytes + 2 * kPage) {}

  void Copy(size_t shift) {
    std::memcpy(Page(to_) + shift, Page(from_), bytes_);
    asm volatile("" : : "g"(to_.data()) : "memory");
  }
  // Seconds, again and again, at the best shift.
  double BestSeconds() {
    double best = 1e9;
    for (const size_t shift : {0, 64, 512, 2048}) {
      best = std::min(best, Median(TimesOf([&] { Copy(shift); })));
    }
    return best;
  }

 private:
  static constexpr size_t kPage = 4096;
  static char* Page(std::vector<char>& memory) {
    return memory.data() + (kPage - reinterpret_cast<uintptr_t>(memory.data()) % kPage) % kPage;
  }
  size_t bytes_;
  std::vector<char> from_, to_;
};

// Making a snapshot after each step as a busy model does, without a new fingerprint and with the
// one before still in use, beside copying as many coefficients at the same moment, from cold
// memory.
void Publish(size_t outputs) {
  constexpr uint32_t kPublished = 65536;
  GrownModel model({.dim = 16, .labels = std::max<size_t>(outputs, 2), .features = kPublished},
                   one_thread);
  CopyBuffers buffers(outputs * kPublished * sizeof(float));
  Ref<Snapshot> published = model.trainer->MakeSnapshot();
  std::vector<double> times, cold_copies;
  for (double sum = 0; sum < 0.2 || times.size() < 15;) {
    const double begin = ThreadSeconds();
    model.Learn(1);
    double start = ThreadSeconds();
    Ref<Snapshot> made = model.trainer->MakeSnapshot(published.get());
    times.push_back(ThreadSeconds() - start);
    published = std::move(made);
    model.Learn(1);
    start = ThreadSeconds();
    buffers.Copy(64);
    const double end = ThreadSeconds();
    cold_copies.push_back(end - start);
    sum += end - begin;
  }
  std::vector<double> digests;
  for (int i = 0; i < 15; ++i) {
    model.Learn(1);
    const double start = ThreadSeconds();
    published = model.trainer->MakeSnapshot();
    digests.push_back(ThreadSeconds() - start);
  }
  char figures[128];
  std::snprintf(
      figures, sizeof(figures),
      " (%.0f us, with a new fingerprint %.0f; copying then %.0f us, from the cache %.0f us)",
      1e6 * Median(times), 1e6 * Median(digests), 1e6 * Median(cold_copies),
      1e6 * buffers.BestSeconds());
  Print({12,
         absl::StrCat("publishing ", kPublished, " x ", outputs, " coefficients after a step",
                      figures),
         Median(cold_copies) / Median(times), Spread(times), "of copying", true, 0.7});
}

void Publication() {
  PublishedCell<Counted> cell(Ref<Counted>::Adopt(new Counted));
  constexpr int kReads = 1000;
  const auto read = [&] {
    for (int i = 0; i < kReads; ++i) {
      const Ref<Counted> held = cell.Get();
      asm volatile("" : : "g"(&held) : "memory");
    }
  };
  const std::vector<double> alone = TimesOf(read);
  Print({12, "a reader gets hold of the snapshot", 1e6 * Median(alone) / kReads, 0, "us", false,
         0.1});
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) {
      cell.Set(Ref<Counted>::Adopt(new Counted));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const std::vector<double> busy = TimesOf(read);
  stop = true;
  writer.join();
  Print({12, "the same while one is published each ms", 1e6 * Median(busy) / kReads, 0, "us", false,
         0.1});
  for (const size_t outputs : {size_t{1}, size_t{10}}) Publish(outputs);
}

void Training() {
  constexpr size_t kDim = 54;
  constexpr double kRows = kModelBatchRows;
  for (const size_t bandwidths : {size_t{1}, size_t{5}}) {
    GrownModel model({.dim = kDim, .bandwidths = bandwidths}, one_thread);
    const auto learners = static_cast<double>(bandwidths);
    const double flops = kRows * kFeatures * ProjectionFlops(kDim) + model.GramFlops() +
                         learners * kFeatures * 3 * 2 * kRows;  // two scores, update
    const Shares shares =
        SharesOfLimit(flops, learners * kRows * kFeatures, [&] { model.Learn(1); });
    Print({14,
           absl::StrCat("training step, dim 54, 64 rows, 8192 features, ", bandwidths,
                        bandwidths == 1 ? " bandwidth" : " bandwidths", WithLoop(shares)),
           Median(shares.of_peak), Spread(shares.of_peak), "of limit", true, 0.65});
  }
}

// costs: for a row and a feature, [size][turn], fewest features first. The worst of any size beside
// any smaller one.
void PrintGrowth(const char* what, const std::vector<std::vector<double>>& costs) {
  double worst = 0, spread = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    spread = std::max(spread, Spread(costs[i]));
    for (size_t j = i + 1; j < costs.size(); ++j) {
      worst = std::max(worst, Median(costs[j]) / Median(costs[i]));
    }
  }
  char ends[64];
  std::snprintf(ends, sizeof(ends), " (2^18 beside 2^10: %.2f)",
                Median(costs.back()) / Median(costs.front()));
  Print({15,
         absl::StrCat(what, " of a row, per feature, worst of 2^10 to 2^18 beside any fewer", ends),
         worst, spread, "x", false, 1.05});
}

// In turns, so that all sizes meet the same machine.
void Growth() {
  constexpr size_t kDim = 54, kRows = 256, kTurns = 3;
  const SampleBatch rows = NormalRows(kRows, kDim, 2);
  std::vector<std::unique_ptr<GrownModel>> models;
  for (const int bits : {10, 12, 14, 16, 18}) {
    models.push_back(std::make_unique<GrownModel>(
        GrownModel::Options{.dim = kDim, .features = uint32_t{1} << bits}, one_thread));
  }
  std::vector<std::vector<double>> evaluation(models.size()), training(models.size());
  for (size_t turn = 0; turn < kTurns; ++turn) {
    for (size_t i = 0; i < models.size(); ++i) {
      GrownModel& model = *models[i];
      const Ref<Snapshot> snapshot = model.trainer->MakeSnapshot();
      const double cost = 1e9 / model.config.max_features;
      evaluation[i].push_back(cost * Median(EvaluationTimes(*snapshot, rows)) / kRows);
      training[i].push_back(cost * Median(TimesOf([&] { model.Learn(1); })) / kModelBatchRows);
    }
  }
  for (size_t i = 0; i < models.size(); ++i) {
    std::printf("%8u features: evaluation %.3f, training %.3f ns per row x feature\n",
                models[i]->config.max_features, Median(evaluation[i]), Median(training[i]));
  }
  PrintGrowth("evaluation", evaluation);
  PrintGrowth("training", training);
}

}  // namespace
}  // namespace kernelstream::bench

int main() {
  using namespace kernelstream;
  using namespace kernelstream::bench;
  std::printf("%s seed=%d\n", MachineLine().c_str(), static_cast<int>(kModelSeed));
  const Limits limits = LimitsNow();
  std::printf(
      "limit: 2 operations for each term of a frequency, %.0f for a cosine, 2 for each output, at "
      "%.1f Gflop/s; the cosine loop alone takes %.3f ns, %.3f at the peak\n",
      kCosineFlops, 1e-9 * limits.peak, 1e9 * limits.cosine, 1e9 * kCosineFlops / limits.peak);
  if (limits.peak == 0) {
    std::fprintf(stderr,
                 "bars_bench: the multiply-add peak of this CPU's target is not known here\n");
    return 1;
  }
  Evaluation();
  Sampling();
  Wide();
  Publication();
  Training();
  Growth();
  return 0;
}
