#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/cli/bench_load.h"
#include "client/cli/globals.h"
#include "client/cli/input_flags.h"
#include "client/cli/print.h"
#include "client/src/encode.h"
#include "nlohmann/json.hpp"

namespace kernelstream::client {
namespace {

// Of the input, or generated; they are sent again and again.
constexpr size_t kMostRows = 4096;
constexpr size_t kMostRowBytes = size_t{64} << 20;
constexpr size_t kWarmUpCalls = 50;

struct BenchFlags {
  std::string name;
  InputFlags input;
  absl::Duration time = absl::Seconds(3);
  int repeats = 3;
  size_t connections = 1;
  size_t in_flight = 64;
  size_t rows = 256;
  uint64_t seed = 42;
  bool update = false;
};

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    return std::string(absl::StripLeadingAsciiWhitespace(line.substr(line.find(':') + 1)));
  }
  return "unknown";
}

constexpr const char* kBuild =
#ifdef NDEBUG
    "release";
#else
    "debug";
#endif

// Thread-compatible. N(0, 1) from a seed, the same everywhere.
class Normals {
 public:
  explicit Normals(uint64_t seed) : state_(seed) {}
  double Next() {
    const double radius = std::sqrt(-2 * std::log(Uniform()));
    return radius * std::cos(2 * M_PI * Uniform());
  }

 private:
  // SplitMix64: Steele, Lea, Flood 2014.
  double Uniform() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
  }
  uint64_t state_;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// Half of largest minus smallest, over the median: what ± stands for.
double Spread(const std::vector<double>& values) {
  const double median = Median(values);
  if (median == 0) return 0;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return (*high - *low) / 2 / median;
}

// Calls of a repeat from which its p99.9 is one of them.
constexpr uint64_t kFewestForP999 = 1000;

// Thread-compatible. The repeats of one measurement.
struct Measured {
  std::string name = {};  // for machines
  std::string text = {};
  bool has_latency = true;
  // What this cannot be quicker than (borrowed): of a row at a time the latency, else the rate.
  const Measured* limit = nullptr;
  bool limits_rate = false;
  uint64_t fewest_calls = UINT64_MAX;                 // of a repeat
  std::vector<double> p50 = {}, p99 = {}, p999 = {};  // seconds
  std::vector<double> rates = {};                     // calls or rows per second
  bool empty() const { return rates.empty(); }

  void Add(const Load& load) {
    if (has_latency) {
      p50.push_back(absl::ToDoubleSeconds(load.latencies.Quantile(0.5)));
      p99.push_back(absl::ToDoubleSeconds(load.latencies.Quantile(0.99)));
      p999.push_back(absl::ToDoubleSeconds(load.latencies.Quantile(0.999)));
      fewest_calls = std::min(fewest_calls, load.latencies.count());
    }
    rates.push_back(load.rate(load.rows));
  }
  bool has_p999() const { return has_latency && fewest_calls >= kFewestForP999; }
  // Share of the limit that is reached.
  std::optional<double> OfLimit() const {
    if (limit == nullptr || limit->empty()) return std::nullopt;
    return limits_rate ? Median(rates) / Median(limit->rates) : Median(limit->p50) / Median(p50);
  }
};

std::string Milliseconds(const std::vector<double>& seconds) {
  return absl::StrFormat("%.3f", 1e3 * Median(seconds));
}

std::string Line(const Measured& m) {
  if (m.empty()) return "";
  const std::string rate = WithCommas(static_cast<uint64_t>(std::llround(Median(m.rates))));
  const std::string spread =
      absl::StrFormat("±%.0f %%", 100 * Spread(m.has_latency ? m.p50 : m.rates));
  if (!m.has_latency) {
    return absl::StrFormat("  %-32s %8s %8s %8s %12s   %s\n", m.text, "", "", "", rate, spread);
  }
  const std::optional<double> limit = m.OfLimit();
  const std::string share =
      limit ? absl::StrFormat("%*s%.0f %%", 9 - static_cast<int>(spread.size()), "", 100 * *limit)
            : "";
  return absl::StrFormat("  %-32s %8s %8s %8s %12s   %s%s\n", m.text, Milliseconds(m.p50),
                         Milliseconds(m.p99), m.has_p999() ? Milliseconds(m.p999) : "-", rate,
                         spread, share);
}

nlohmann::json Json(const Measured& m) {
  nlohmann::json json = {{m.has_latency ? "callsPerSecond" : "rowsPerSecond", Median(m.rates)},
                         {"spread", Spread(m.has_latency ? m.p50 : m.rates)},
                         {"repeats", m.rates.size()}};
  if (m.has_latency) {
    json["p50Seconds"] = Median(m.p50);
    json["p99Seconds"] = Median(m.p99);
    if (m.has_p999()) json["p999Seconds"] = Median(m.p999);
    if (const auto share = m.OfLimit()) json["ofLimit"] = *share;
  }
  return json;
}

// Thread-compatible. One run of `kernelstream bench`.
class BenchRun {
 public:
  BenchRun(const Globals& globals, BenchFlags flags) : globals_(globals), flags_(std::move(flags)) {
    in_flight_empty_.text = absl::StrCat("empty RPC, ", flags_.in_flight, " in flight");
    in_flight_.text = absl::StrCat("Predict, 1 row, ", flags_.in_flight, " in flight");
    stream_.text = absl::StrCat("StreamPredict, ", flags_.rows, " rows a request");
    stream_.has_latency = learned_.has_latency = false;
    single_row_.limit = &empty_;
    in_flight_.limit = &in_flight_empty_;
    in_flight_.limits_rate = true;
  }

  int Run();

 private:
  absl::Status Start();
  // Rows of the input, or generated ones that the model takes.
  absl::Status GetRows();
  absl::Status ReadRows();
  absl::Status GenerateRows();
  // Targets that the model itself would predict.
  absl::Status AddTargets();
  absl::Status MeasureAll();
  absl::Status MeasureLearning(absl::Duration slice, const RepeatedCall& predict);
  void Print() const;
  void PrintHeader() const;

  const Globals& globals_;
  BenchFlags flags_;
  std::vector<std::shared_ptr<Transport>> connections_;
  std::vector<std::unique_ptr<Client>> clients_;
  ModelInfo model_;
  std::string source_;  // of the rows
  std::vector<Row> rows_;
  std::vector<v1::PredictRequest> single_;  // requests of one row each
  std::vector<std::vector<Row>> requests_;  // of a stream
  Measured empty_{.name = "emptyRpc", .text = "empty RPC"};
  Measured single_row_{.name = "predict", .text = "Predict, 1 row"};
  Measured in_flight_empty_{.name = "emptyRpcInFlight"};
  Measured in_flight_{.name = "predictInFlight"};
  Measured stream_{.name = "streamPredict"};
  Measured learned_{.name = "streamUpdate", .text = "StreamUpdate, rows learned"};
  Measured while_learning_{.name = "predictWhileLearning",
                           .text = "Predict, 1 row, while learning"};
  uint64_t rows_learned_ = 0;
};

absl::Status BenchRun::ReadRows() {
  flags_.input.FitTo(model_.config);
  if (!flags_.update) {
    flags_.input.reader.target_required = false;
    flags_.input.reader.dimension = model_.resolved && model_.resolved->dimension != 0
                                        ? model_.resolved->dimension
                                        : model_.config.dimension;
  }
  absl::StatusOr<std::unique_ptr<RowReader>> reader = flags_.input.Open();
  if (!reader.ok()) return reader.status();
  size_t bytes = 0;
  SourceRow row;
  while (rows_.size() < kMostRows && bytes < kMostRowBytes) {
    absl::StatusOr<bool> more = (*reader)->Next(&row);
    if (!more.ok()) return more.status();
    if (!*more) break;
    bytes += EncodedBytes(row.row);
    rows_.push_back(std::move(row.row));
  }
  PrintNotes(reader->get());
  if (rows_.empty()) return absl::InvalidArgumentError("the input has no rows");
  source_ = absl::StrCat("the first ", WithCommas(rows_.size()), " of ", flags_.input.path);
  return absl::OkStatus();
}

absl::Status BenchRun::GenerateRows() {
  const size_t dimension = model_.resolved ? model_.resolved->dimension : model_.config.dimension;
  if (dimension == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "model \"", flags_.name,
        "\" has no number of inputs to generate rows for (its config names none, and it "
        "has met no dense row); give rows with --input"));
  }
  Normals normals(flags_.seed);
  rows_.resize(std::clamp<size_t>(kMostRowBytes / (dimension * sizeof(float)), 1, 1024));
  for (Row& row : rows_) {
    std::vector<float> values(dimension);
    for (float& value : values) value = static_cast<float>(normals.Next());
    row.features = DenseFeatures{std::move(values)};
  }
  source_ = "generated, each value from N(0, 1)";
  const auto first = absl::MakeConstSpan(rows_).first(1);
  if (!absl::IsInvalidArgument(clients_[0]->Predict(flags_.name, first).status())) {
    return absl::OkStatus();
  }
  // Kernels for counts and shares take no negative values.
  for (Row& row : rows_) {
    for (float& value : std::get<DenseFeatures>(row.features).values) value = std::abs(value);
  }
  source_ = "generated, each value the size of one from N(0, 1)";
  return clients_[0]->Predict(flags_.name, first).status();
}

absl::Status BenchRun::AddTargets() {
  if (model_.config.loss.name == "novelty") return absl::OkStatus();
  absl::StatusOr<PredictResult> result = clients_[0]->Predict(flags_.name, rows_);
  if (!result.ok()) return result.status();
  const bool populations =
      model_.config.loss.name == "density_ratio" || model_.config.loss.name == "relative_novelty";
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Prediction& prediction = result->predictions[i];
    if (populations) {
      rows_[i].target = i % 2 == 0 ? Population::kNumerator : Population::kDenominator;
    } else if (!prediction.values.empty()) {
      rows_[i].target = prediction.values;
    } else if (!prediction.label.empty()) {
      rows_[i].target = prediction.label;
    } else {
      rows_[i].target = prediction.value;
    }
  }
  return absl::OkStatus();
}

absl::Status BenchRun::GetRows() {
  const bool generated = flags_.input.path.empty();
  absl::Status status = generated ? GenerateRows() : ReadRows();
  if (status.ok() && flags_.update && generated) status = AddTargets();
  if (status.ok()) status = CheckRows(rows_, 0);
  if (!status.ok()) return status;
  for (size_t i = 0; i < std::min<size_t>(rows_.size(), 256); ++i) {
    v1::PredictRequest& request = single_.emplace_back();
    request.set_model(flags_.name);
    EncodeInstances(absl::MakeConstSpan(rows_).subspan(i, 1), &request);
  }
  // Rows in turn, so that a short input fills long requests.
  const size_t requests = std::clamp<size_t>(rows_.size() / flags_.rows, 1, 16);
  for (size_t i = 0, next = 0; i < requests; ++i) {
    std::vector<Row>& request = requests_.emplace_back();
    while (request.size() < flags_.rows) request.push_back(rows_[next++ % rows_.size()]);
  }
  return absl::OkStatus();
}

absl::Status BenchRun::Start() {
  for (size_t i = 0; i < flags_.connections; ++i) {
    absl::StatusOr<std::unique_ptr<Client>> client = globals_.Connect();
    if (!client.ok()) return client.status();
    clients_.push_back(*std::move(client));
    connections_.push_back(std::make_shared<Transport>(globals_.address, globals_.Options()));
    const absl::Status connected =
        connections_.back()->WaitConnected(globals_.Options().connect_timeout);
    if (!connected.ok()) return connected;
  }
  absl::StatusOr<ModelInfo> model = clients_[0]->GetModel(flags_.name);
  if (!model.ok()) return model.status();
  model_ = *std::move(model);
  return GetRows();
}

// Idle first, then learning; the repeats of what is compared are taken in turns.
absl::Status BenchRun::MeasureAll() {
  const absl::Duration slice = flags_.time / flags_.repeats;
  const RepeatedCall empty{.timeout = globals_.timeout};
  const RepeatedCall predict{.requests = &single_, .timeout = globals_.timeout};
  PredictOptions options;
  options.timeout = globals_.timeout;
  const auto add = [](Measured& to, const absl::StatusOr<Load>& load) {
    // A repeat that was cut short tells less than those before it.
    if (load.ok() && load->rows > 0 && (interrupts == 0 || to.empty())) to.Add(*load);
    if (!load.ok()) return load.status();
    return interrupts > 0 ? absl::CancelledError("interrupted") : absl::OkStatus();
  };
  Transport& first = *connections_[0];
  for (size_t i = 0; i < kWarmUpCalls && interrupts == 0; ++i) {
    for (const RepeatedCall& call : {empty, predict}) {
      const absl::StatusOr<Load> one = CallInTurn(first, call, absl::Milliseconds(1));
      if (!one.ok()) return one.status();
    }
  }
  absl::Status status;
  for (int i = 0; i < flags_.repeats && status.ok(); ++i) {
    status = add(empty_, CallInTurn(first, empty, slice));
    if (status.ok()) status = add(single_row_, CallInTurn(first, predict, slice));
  }
  for (int i = 0; i < flags_.repeats && status.ok(); ++i) {
    status = add(in_flight_empty_, CallSideBySide(connections_, empty, flags_.in_flight, slice));
    if (!status.ok()) break;
    status = add(in_flight_, CallSideBySide(connections_, predict, flags_.in_flight, slice));
  }
  for (int i = 0; i < flags_.repeats && status.ok(); ++i) {
    status = add(stream_, StreamPredictions(clients_, flags_.name, requests_, options, slice));
  }
  if (status.ok() && flags_.update) status = MeasureLearning(slice, predict);
  return status;
}

absl::Status BenchRun::MeasureLearning(absl::Duration slice, const RepeatedCall& predict) {
  for (int i = 0; i < flags_.repeats; ++i) {
    std::atomic<bool> stop{false};
    absl::StatusOr<Load> learned;
    std::thread learner([&] {
      learned = StreamUpdates(*clients_[0], flags_.name, requests_,
                              [&stop] { return stop || interrupts > 0; });
    });
    const absl::StatusOr<Load> latency = CallInTurn(*connections_[0], predict, slice);
    stop = true;
    learner.join();
    if (learned.ok()) rows_learned_ += learned->rows;
    if (!learned.ok()) return learned.status();
    if (!latency.ok()) return latency.status();
    if (interrupts == 0 || learned_.empty()) {
      if (learned->rows > 0) learned_.Add(*learned);
      if (latency->rows > 0) while_learning_.Add(*latency);
    }
    if (interrupts > 0) return absl::CancelledError("interrupted");
  }
  return absl::OkStatus();
}

void BenchRun::PrintHeader() const {
  std::cout
      << "# kernelstream bench " << flags_.name << "  address=" << globals_.address
      << "  build=" << kBuild << "  seed=" << flags_.seed << "\n# server: SIMD target "
      << (model_.simd_target.empty() ? "unknown" : model_.simd_target)
      << "\n# this machine: " << CpuName() << ", " << std::thread::hardware_concurrency()
      << " threads\n# model: " << StateLine(model_) << "\n# rows: " << source_ << "\n# median of "
      << flags_.repeats << " repeats of "
      << absl::FormatDuration(absl::Trunc(flags_.time / flags_.repeats, absl::Milliseconds(1)))
      << "; ± half of largest minus smallest, of p50 where there is one"
      << "\n# p99.9 of " << kFewestForP999
      << " calls a repeat or more; limit: the empty RPC's p50, with several in flight its rate. "
         "What the server\n# could evaluate or learn without calls is not known here: "
         "tests/bench/run.py --bars measures it\n"
      << absl::StrFormat("  %-32s %8s %8s %8s %12s   %-8s %s\n", "", "p50 ms", "p99 ms", "p99.9",
                         "per second", "±", "of limit")
      << std::flush;
}

void BenchRun::Print() const {
  const std::vector<const Measured*> all = {&empty_,  &single_row_, &in_flight_empty_, &in_flight_,
                                            &stream_, &learned_,    &while_learning_};
  if (globals_.json) {
    nlohmann::json json = {{"model", flags_.name},
                           {"cpu", CpuName()},
                           {"threads", std::thread::hardware_concurrency()},
                           {"serverSimdTarget", model_.simd_target},
                           {"build", kBuild},
                           {"seed", flags_.seed},
                           {"rows", source_},
                           {"connections", flags_.connections},
                           {"inFlight", flags_.in_flight},
                           {"rowsPerRequest", flags_.rows},
                           {"rowsLearned", rows_learned_}};
    for (const Measured* m : all) {
      if (!m->empty()) json[m->name] = Json(*m);
    }
    std::cout << json.dump(2) << "\n";
    return;
  }
  for (const Measured* m : all) std::cout << Line(*m);
  if (!single_row_.empty()) {
    std::cout << absl::StrFormat("p50 of Predict is %.2f times that of an empty RPC\n",
                                 Median(single_row_.p50) / Median(empty_.p50));
  }
  if (!in_flight_.empty()) {
    std::cout << absl::StrFormat("with %d in flight it answers %.0f %% as often\n",
                                 flags_.in_flight,
                                 100 * Median(in_flight_.rates) / Median(in_flight_empty_.rates));
  }
  if (!while_learning_.empty()) {
    std::cout << absl::StrFormat("p99 while learning is %.2f times the idle one\n",
                                 Median(while_learning_.p99) / Median(single_row_.p99));
  }
  if (flags_.update) {
    std::cout << "model " << flags_.name << " has learned " << WithCommas(rows_learned_)
              << " rows of this run, for good\n";
  }
}

int BenchRun::Run() {
  CatchInterrupts();
  if (absl::Status status = Start(); !status.ok()) return Fail(status);
  if (flags_.update) {
    PrintError(absl::StrCat("--update changes model ", flags_.name, ": it learns the rows, ",
                            source_, flags_.input.path.empty() ? ", with its own predictions" : "",
                            ", and stays so"));
  }
  if (!globals_.json) PrintHeader();
  const absl::Status status = MeasureAll();
  if (!empty_.empty()) Print();
  if (interrupts > 0) {
    PrintError("interrupted; measurements above are not complete");
    return kExitInterrupted;
  }
  return status.ok() ? kExitOk : Fail(status);
}

}  // namespace

void AddBench(CLI::App* app, Globals* globals) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* bench = AddCommand(
      app, "bench", "Measure latency and throughput of a model, beside those of an empty RPC");
  bench->add_option("NAME", flags->name, "Name of the model")->required();
  flags->input.AddTo(bench, /*input_required=*/false);
  bench
      ->add_option_function<double>(
          "--seconds", [flags](double seconds) { flags->time = absl::Seconds(seconds); },
          "Seconds for each measurement, all repeats together; default 3")
      ->check(CLI::Range(0.001, 3600.0));
  bench->add_option("--repeats", flags->repeats, "Repeats of each measurement; default 3")
      ->check(CLI::Range(1, 100));
  bench->add_option("--connections", flags->connections, "Connections to the server; default 1")
      ->check(CLI::Range(1, 256));
  bench->add_option("--in-flight", flags->in_flight, "Calls side by side; default 64")
      ->check(CLI::Range(1, 4096));
  bench->add_option("--rows", flags->rows, "Rows of a stream's request; default 256")
      ->check(CLI::Range(1, 65536));
  bench->add_option("--seed", flags->seed, "Of generated rows; default 42");
  bench->add_flag(
      "--update", flags->update,
      "Also how fast rows are learned, and Predict beside that. THIS CHANGES THE MODEL: "
      "it learns the rows of --input, or generated ones with its own predictions");
  bench->callback([globals, flags] {
    globals->run = [globals, flags] { return BenchRun(*globals, *flags).Run(); };
  });
}

}  // namespace kernelstream::client
