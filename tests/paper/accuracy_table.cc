// Held-out errors after one pass, of models created with nothing but their loss. Prints one line
// per data set: mean and spread over seeds, beside the bar this project sets itself.
//   KERNELSTREAM_DATA=FOLDER accuracy_table [--seeds=3] [--features=8192] [--threads=2]
//                                           [--batch_rows=64] [--block_features=N] [--replay=N]
//                                           [--sorted] [--trace] [NAME...]
// --sorted: the training rows come sorted by label, and the model is told so.
// Exit status 1 if a bar is missed, or drift is reported of rows that come in a random order.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/model/trainer.h"
#include "tests/support/data_sets.h"
#include "tests/support/learning.h"

namespace kernelstream {
namespace {

struct Split {
  SampleBatch train, test;
};

struct Problem {
  std::string name;
  std::string loss;
  double bar;         // error rate, or mean squared error over the variance of the test targets
  uint32_t features;  // 0: the default
  bool prequential;   // the stream in its own order; the error of predictions made before learning
  std::function<Split(const std::string& data, uint64_t seed)> load;
  bool sorted = false;  // the stream comes sorted by label, declared so
};

// Every row to one side, then the training rows in a random order.
Split SplitBy(const SampleBatch& rows, uint64_t seed, const std::function<bool(size_t)>& is_test) {
  Split split;
  SampleBatch train;
  for (size_t i = 0; i < rows.size(); ++i) (is_test(i) ? split.test : train).AppendRow(rows, i);
  split.train = Shuffled(train, seed);
  return split;
}

// The last `test` rows of a random order (a tenth of all, unless the set has its own split) are
// held out.
Split RandomSplit(const SampleBatch& rows, uint64_t seed, size_t test) {
  const SampleBatch shuffled = Shuffled(rows, 1000 + seed);
  return SplitBy(shuffled, seed, [&](size_t i) { return i + test >= shuffled.size(); });
}

std::function<Split(const std::string&, uint64_t)> Masked(const std::string& name) {
  return [name](const std::string& data, uint64_t seed) {
    const SampleBatch rows = ReadCsv(data + "/tabular/" + name + ".csv.gz", /*labels=*/false);
    const std::vector<bool> mask =
        ReadMask(data + "/tabular/" + name + "_test_mask.csv.gz", static_cast<size_t>(seed));
    return SplitBy(rows, seed, [&](size_t i) { return mask[i]; });
  };
}

std::function<Split(const std::string&, uint64_t)> Random(const std::string& file, bool labels,
                                                          size_t test) {
  return [=](const std::string& data, uint64_t seed) {
    return RandomSplit(ReadCsv(data + "/" + file, labels), seed, test);
  };
}

std::function<Split(const std::string&, uint64_t)> Stream(const std::string& file) {
  return [file](const std::string& data, uint64_t) {
    return Split{ReadCsv(data + "/" + file, /*labels=*/true), {}};
  };
}

Split Adult(const std::string& data, uint64_t seed) {
  return {Shuffled(ReadLibsvm(data + "/adult/a9a.libsvm.gz"), seed),
          ReadLibsvm(data + "/adult/a9a.t.libsvm.gz")};
}

Split Mnist(const std::string& data, uint64_t seed, bool two_digits) {
  const auto load = [&](MnistPart part) {
    const SampleBatch rows = ReadMnist(data, part);
    SampleBatch kept;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto label = rows.target(i).label;
      if (!two_digits || label == "6" || label == "8") kept.AppendRow(rows, i);
    }
    return kept;
  };
  return {Shuffled(load(MnistPart::kTrain), seed), load(MnistPart::kTest)};
}

// Cover type 2 against the rest.
Split Covtype(const std::string& data, uint64_t seed) {
  const SampleBatch rows = ReadCsv(data + "/covtype/covtype_92962.csv.gz", /*labels=*/false);
  SampleBatch binary;
  for (size_t i = 0; i < rows.size(); ++i) {
    binary.AppendRow(rows, i);
    binary.SetTarget(rows.target(i).value == 2 ? 1 : -1);
  }
  return RandomSplit(binary, seed, 10000);
}

Split Synthetic(const std::string&, uint64_t seed) {
  return {SyntheticRows(65536, 10 + seed, 0.1), SyntheticRows(4096, 2, 0)};
}

std::vector<Problem> Problems() {
  const auto mnist = [](const std::string& data, uint64_t seed) {
    return Mnist(data, seed, false);
  };
  const auto two = [](const std::string& data, uint64_t seed) { return Mnist(data, seed, true); };
  return {
      {"adult", "logistic", .152, 0, false, Adult},
      {"kin40k", "square", .030, 0, false, Masked("kin40k")},
      {"cal_housing", "square", .228, 0, false, Random("streams/cal_housing.csv.gz", false, 2064)},
      {"bike", "square", .006, 0, false, Masked("bike")},
      {"elevators", "square", .135, 0, false, Masked("elevators")},
      {"protein", "square", .40, 0, false, Masked("protein")},
      {"letter", "softmax", .050, 0, false, Random("tabular/letter.csv.gz", true, 2000)},
      {"spambase", "logistic", .070, 0, false, Random("tabular/spambase.csv.gz", true, 460)},
      {"shuttle", "softmax", .0025, 0, false, Random("tabular/shuttle.csv.gz", true, 5800)},
      {"mnist_8_vs_6", "logistic", .008, 0, false, two},
      {"covtype", "logistic", .15, 0, false, Covtype},
      {"synthetic", "square", .0002, 0, false, Synthetic},
      {"electricity", "logistic", .23, 0, true, Stream("streams/elec.csv.gz")},
      {"sea", "logistic", .12, 0, true, Stream("streams/sea_stream.csv.gz")},
      {"mnist", "softmax", .028, 0, false, mnist},
      {"mnist_16384", "softmax", .025, 16384, false, mnist},
      {"covtype_65536", "logistic", .135, 65536, false, Covtype},
      {"mnist_sorted", "softmax", .05, 0, false, mnist, /*sorted=*/true},
  };
}

double VarianceOfTargets(const SampleBatch& rows) {
  double sum = 0, squares = 0;
  const auto n = static_cast<double>(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    sum += rows.target(i).value;
    squares += rows.target(i).value * rows.target(i).value;
  }
  return squares / n - (sum / n) * (sum / n);
}

SampleBatch SortedByLabel(const SampleBatch& rows) {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rows.target(a).label < rows.target(b).label; });
  SampleBatch sorted;
  for (const size_t i : order) sorted.AppendRow(rows, i);
  return sorted;
}

struct Result {
  double error = 0, seconds = 0;
  size_t rows = 0;
  uint64_t drift_reports = 0;
  bool may_drift = false;  // the rows do not come in a random order
  std::string served;
};

struct Overrides {  // 0: the default
  uint32_t features = 0, batch_rows = 0, block_features = 0;
  std::optional<uint32_t> replay;
  bool sorted = false;  // the stream comes sorted by label, declared so
  bool trace = false;   // print the race now and then
};

Result Run(const Problem& problem, const std::string& data, uint64_t seed,
           const Overrides& overrides) {
  Split split = problem.load(data, seed);
  const bool sorted = overrides.sorted || problem.sorted;
  if (sorted) split.train = SortedByLabel(split.train);
  ModelConfig config;
  config.loss.name = problem.loss;
  config.seed = 42 + seed;
  config.max_features = overrides.features != 0 ? overrides.features : problem.features;
  config.batch_rows = overrides.batch_rows;
  config.block_features = overrides.block_features;
  config.replay.ratio = overrides.replay;
  if (sorted) config.replay.order = StreamOrder::kOrdered;
  if (const absl::Status status = CompleteConfig(config); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(2);
  }
  InlineExecutor executor;
  FeatureCacheBudget budget(int64_t{2} << 30);
  auto trainer = Trainer::Create(config, {&executor, &budget});
  Result result;
  result.rows = split.train.size();
  result.may_drift = problem.prequential || sorted;
  double before = 0;
  std::chrono::duration<double> learning{};
  for (size_t i = 0; i < split.train.size(); i += config.batch_rows) {
    const size_t count = std::min<size_t>(config.batch_rows, split.train.size() - i);
    if (problem.prequential && i > 0) {
      SampleBatch next;
      for (size_t k = i; k < i + count; ++k) next.AppendRow(split.train, k);
      before += ErrorOn(*(*trainer)->MakeSnapshot(), next, executor) * static_cast<double>(count);
    }
    const auto start = std::chrono::steady_clock::now();
    (*trainer)->Step(split.train, i, count, i + count);
    learning += std::chrono::steady_clock::now() - start;
    if (overrides.trace && (i / config.batch_rows) % 64 == 63) {
      const Ref<Snapshot> s = (*trainer)->MakeSnapshot();
      for (const CandidateReport& c : s->resolved().candidates) {
        std::printf("  %zu gen %llu form %d bw %.3g c %.2g last %.4f avg %.4f%s\n", i,
                    static_cast<unsigned long long>(c.generation), static_cast<int>(c.form),
                    c.bandwidth, c.step_constant, c.recent_loss, c.recent_average_loss,
                    c.served ? " *" : "");
      }
    }
  }
  result.seconds = learning.count();
  const Ref<Snapshot> snapshot = (*trainer)->MakeSnapshot();
  result.drift_reports = snapshot->drift_reports();
  if (problem.prequential) {
    result.error = before / static_cast<double>(split.train.size());
  } else {
    result.error = ErrorOn(*snapshot, split.test, executor);
    if (snapshot->loss().task() == Task::kRegression && problem.name != "synthetic") {
      result.error /= VarianceOfTargets(split.test);
    }
  }
  for (const CandidateReport& c : snapshot->resolved().candidates) {
    if (!c.served) continue;
    constexpr const char* kForms[] = {"isotropic", "diagonal", "full"};
    char text[96];
    std::snprintf(text, sizeof(text), "%s, bandwidth %.3g, c %.2g",
                  kForms[static_cast<int>(c.form)], c.bandwidth, c.step_constant);
    result.served = text;
  }
  return result;
}

int Main(int argc, char** argv) {
  uint64_t seeds = 3;
  Overrides overrides;
  int threads = 2;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--seeds=", 0) == 0) {
      seeds = std::strtoull(argument.c_str() + 8, nullptr, 10);
    } else if (argument.rfind("--features=", 0) == 0) {
      overrides.features = static_cast<uint32_t>(std::strtoul(argument.c_str() + 11, nullptr, 10));
    } else if (argument.rfind("--batch_rows=", 0) == 0) {
      overrides.batch_rows =
          static_cast<uint32_t>(std::strtoul(argument.c_str() + 13, nullptr, 10));
    } else if (argument.rfind("--block_features=", 0) == 0) {
      overrides.block_features =
          static_cast<uint32_t>(std::strtoul(argument.c_str() + 17, nullptr, 10));
    } else if (argument == "--sorted") {
      overrides.sorted = true;
    } else if (argument == "--trace") {
      overrides.trace = true;
    } else if (argument.rfind("--replay=", 0) == 0) {
      overrides.replay = static_cast<uint32_t>(std::strtoul(argument.c_str() + 9, nullptr, 10));
    } else if (argument.rfind("--threads=", 0) == 0) {
      threads = std::atoi(argument.c_str() + 10);
    } else {
      names.push_back(argument);
    }
  }
  const auto folder = DataFolder();
  if (!folder.has_value()) {
    std::fprintf(stderr, "set KERNELSTREAM_DATA to the folder with the data sets\n");
    return 2;
  }
  struct Job {
    Problem problem;
    std::vector<Result> results;
  };
  std::vector<Job> jobs;
  for (const Problem& problem : Problems()) {
    if (!names.empty() && std::find(names.begin(), names.end(), problem.name) == names.end()) {
      continue;
    }
    jobs.push_back({problem, std::vector<Result>(seeds)});
  }
  std::atomic<size_t> next{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      for (size_t k = next++; k < jobs.size() * seeds; k = next++) {
        Job& job = jobs[k / seeds];
        Result& result = job.results[k % seeds];
        result = Run(job.problem, *folder, k % seeds, overrides);
        std::fprintf(stderr, "%s seed %zu: %.5f  %.1f s  drift reports %llu  %s\n",
                     job.problem.name.c_str(), static_cast<size_t>(k % seeds), result.error,
                     result.seconds, static_cast<unsigned long long>(result.drift_reports),
                     result.served.c_str());
      }
    });
  }
  for (std::thread& worker : workers) worker.join();

  bool all = true;
  std::printf(
      "| data | rows | loss | error, mean of %llu | spread | bar | rows/s, one thread | served |\n"
      "|---|---|---|---|---|---|---|---|\n",
      static_cast<unsigned long long>(seeds));
  for (const Job& job : jobs) {
    double mean = 0, low = 1e9, high = 0, seconds = 0;
    for (const Result& result : job.results) {
      mean += result.error / static_cast<double>(seeds);
      low = std::min(low, result.error);
      high = std::max(high, result.error);
      seconds += result.seconds / static_cast<double>(seeds);
    }
    all = all && mean <= job.problem.bar;
    std::printf("| %s | %zu | %s | %.5f%s | %.5f | %.4g | %.0f | %s |\n", job.problem.name.c_str(),
                job.results[0].rows, job.problem.loss.c_str(), mean,
                mean <= job.problem.bar ? "" : " MISSED", high - low, job.problem.bar,
                static_cast<double>(job.results[0].rows) / seconds, job.results[0].served.c_str());
  }
  for (const Job& job : jobs) {
    for (size_t seed = 0; seed < job.results.size(); ++seed) {
      const Result& result = job.results[seed];
      if (result.may_drift || result.drift_reports == 0) continue;
      all = false;
      std::printf("%s seed %zu: DRIFT reported %llu times of rows in a random order\n",
                  job.problem.name.c_str(), seed,
                  static_cast<unsigned long long>(result.drift_reports));
    }
  }
  return all ? 0 : 1;
}

}  // namespace
}  // namespace kernelstream

int main(int argc, char** argv) { return kernelstream::Main(argc, argv); }
