// Latency of Predict beside that of an empty RPC of the same server, idle and while the model
// learns at full speed; the rates of StreamPredict and StreamUpdate beside those of evaluating and
// learning the same rows without a server, in turns with them; calls with many in flight, where
// rows of a large model are evaluated together. Everything in this one process, on loopback.
//   rpc_bench [seconds per measurement, default 3] [part ...]
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/trainer.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "kernelstream/v1/model_service.grpc.pb.h"
#include "kernelstream/v1/online_update_service.grpc.pb.h"
#include "kernelstream/v1/prediction_service.grpc.pb.h"
#include "server/app/server.h"
#include "server/hosting/training_pool.h"
#include "server/service/wire_model.h"
#include "tests/bench/bars.h"
#include "tests/bench/machine_limits.h"
#include "tests/bench/rpc_load.h"
#include "tests/support/one_learner.h"

namespace kernelstream {
namespace {

namespace v1 = ::kernelstream::v1;
using bench::Check;
using bench::Latency;
using bench::Measure;
using bench::Median;
using bench::Print;
using bench::Seconds;
using bench::Spread;
using bench::SteadyClock;

constexpr uint32_t kDim = 123, kFeatures = 4096, kMatrixRows = 256;
constexpr char kModel[] = "bench", kTwin[] = "twin", kWide[] = "wide", kSmall[] = "small",
               kPaced[] = "paced";
// Of the model whose frequencies are far larger than any cache.
constexpr uint32_t kWideDim = 784, kWideFeatures = 65536;

// Rows of the paced stream per second, and how long its rows may wait for a full mini-batch.
constexpr double kPacedRows = 2000, kDefaultDelayMs = 20;

// About the median distance of the rows.
constexpr double kBandwidth = 11;

// What is compared is measured in turns, so that both meet the same machine.
constexpr int kRounds = 3;

// Matrices of 256 rows on their way while it is measured how much is learned, or beside learning.
constexpr uint64_t kAhead = 4;
// As many rows as a server with default options asks a stream to keep on their way.
constexpr uint64_t kUpdateAhead = 64;
// Of a stream of predictions.
constexpr uint64_t kPredictAhead = 8;

v1::SampleMatrix Matrix(uint32_t rows, uint64_t seed, bool with_targets, uint32_t dim = kDim) {
  return bench::Matrix(rows, seed, with_targets, dim);
}

unsigned Cores() { return std::max(1u, std::thread::hardware_concurrency()); }

v1::ModelConfig Config() {
  v1::ModelConfig config;
  config.mutable_loss()->set_name("logistic");
  config.set_max_features(kFeatures);
  config.set_block_features(kFeatures);
  return config;
}

// The same model without a server, fed as the server feeds it: on a training pool of its own. One
// learner, as a race's rate differs by how it is decided.
class Twin final : public server::Runnable, public std::enable_shared_from_this<Twin> {
 public:
  Twin() : pool_({.threads = static_cast<int>(Cores())}, server::Clock::System()) {
    config_ = *server::ConfigFromWire(support::OneLearner(kFeatures, kBandwidth));
    const v1::SampleMatrix matrix = Matrix(kMatrixRows, 5, true);
    for (uint32_t i = 0; i < kMatrixRows; ++i) {
      std::memcpy(rows_.AddDense(kDim), matrix.values().data() + i * kDim * sizeof(float),
                  kDim * sizeof(float));
      rows_.SetTarget(matrix.targets(static_cast<int>(i)));
    }
    if (!CompleteConfig(config_).ok()) std::abort();
    trainer_ = *Trainer::Create(config_, {&pool_, &budget_});
  }

  absl::Time RunSlice() override {
    if (Seconds(start_) >= seconds_ && learned_ >= least_rows_) {
      done_.release();
      return absl::InfiniteFuture();
    }
    const uint32_t count = std::min<uint32_t>(config_.batch_rows, kMatrixRows);
    const size_t first = sequence_ % (kMatrixRows / count * count);
    sequence_ += count;
    learned_ += count;
    trainer_->Step(rows_, first, count, sequence_);
    return absl::InfinitePast();
  }

  // Learns for so long, and so many rows at least. Rows per second.
  double Learn(double seconds, uint64_t least_rows) {
    seconds_ = seconds, least_rows_ = least_rows, learned_ = 0, start_ = SteadyClock::now();
    pool_.Schedule(shared_from_this());
    done_.acquire();
    const double rate = static_cast<double>(learned_) / Seconds(start_);
    pool_.Remove(this);
    return rate;
  }

  // Evaluates its rows on so many threads. Rows per second.
  double Evaluate(double seconds, unsigned threads) {
    const Ref<Snapshot> snapshot = trainer_->MakeSnapshot();
    std::atomic<uint64_t> evaluated{0};
    const auto start = SteadyClock::now();
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        InlineExecutor executor;
        std::vector<double> scores(kMatrixRows);
        while (Seconds(start) < seconds) {
          snapshot->Score(rows_, executor, scores.data());
          evaluated += kMatrixRows;
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    return static_cast<double>(evaluated) / Seconds(start);
  }

 private:
  FeatureCacheBudget budget_{int64_t{1} << 30};
  server::TrainingPool pool_;
  ModelConfig config_;
  SampleBatch rows_;
  std::unique_ptr<Trainer> trainer_;
  uint64_t sequence_ = 0, learned_ = 0, least_rows_ = 0;
  double seconds_ = 0;
  SteadyClock::time_point start_;
  std::binary_semaphore done_{0};
};

// Returns the shares, in percent of the limits, turn by turn.
std::vector<double> PrintRates(const char* what, const std::vector<double>& rates,
                               const char* beside, const std::vector<double>& limits) {
  std::vector<double> shares;
  for (size_t i = 0; i < rates.size(); ++i) shares.push_back(100 * rates[i] / limits[i]);
  std::printf(
      "%-20s %8.0f rows/s +-%.0f %%   %-34s %8.0f rows/s +-%.0f %%   share %.0f %% +-%.0f %%\n",
      what, Median(rates), Spread(rates), beside, Median(limits), Spread(limits), Median(shares),
      Spread(shares));
  std::fflush(stdout);
  return shares;
}

// Each measured in turns with what it is compared with. First evaluation: until then both models
// have learned the same rows.
void CompareRates(double seconds, v1::OnlineUpdateService::Stub& updates,
                  v1::PredictionService::Stub& predictions) {
  constexpr int kTurns = 5;
  constexpr uint64_t kFirstRows = 16384;
  const auto twin = std::make_shared<Twin>();
  twin->Learn(0, kFirstRows);
  for (uint64_t rows = 0; rows < kFirstRows; rows += kMatrixRows) {
    bench::Update(updates, kTwin, Matrix(kMatrixRows, 5, true));
  }
  const bench::StreamLoad labelled{kTwin, Matrix(kMatrixRows, 5, true), kAhead};
  const bench::StreamLoad unlabelled{kTwin, Matrix(kMatrixRows, 5, false), kPredictAhead};
  std::vector<double> streamed, learned, predicted, one, all;
  for (int i = 0; i < kTurns; ++i) {
    one.push_back(twin->Evaluate(seconds / kTurns, 1));
    predicted.push_back(bench::StreamPredictFor(seconds / kTurns, predictions, unlabelled));
    all.push_back(twin->Evaluate(seconds / kTurns, Cores()));
  }
  for (int i = 0; i < kTurns; ++i) {
    learned.push_back(twin->Learn(seconds / kTurns, 0));
    streamed.push_back(
        bench::StreamFor(seconds / kTurns, updates, labelled, v1::ACK_LEVEL_APPLIED));
  }
  const std::vector<double> update =
      PrintRates("StreamUpdate, APPLIED", streamed, "trainer without a server", learned);
  PrintRates("StreamPredict, 256", predicted, "evaluation, 1 thread", one);
  const std::vector<double> predict =
      PrintRates("StreamPredict, 256", predicted, "evaluation, a thread for each core", all);
  bench::Print({9, "StreamPredict, matrices of 256 rows", Median(predict), Spread(predict),
                "% of evaluating them on as many cores", true, 85});
  bench::Print({9, "StreamUpdate, APPLIED, one learner", Median(update), Spread(update),
                "% of the trainer without a server", true, 85});
}

// Returns the ratios, turn by turn.
std::vector<double> PrintThroughput(const char* what, size_t in_flight,
                                    const std::vector<double>& rates, const char* beside,
                                    const std::vector<double>& others) {
  std::vector<double> ratios;
  for (size_t i = 0; i < rates.size(); ++i) ratios.push_back(rates[i] / others[i]);
  std::printf("%-36s %3zu in flight %8.0f calls/s   %s %8.0f calls/s   ratio %.2f +-%.0f %%\n",
              what, in_flight, Median(rates), beside, Median(others), Median(ratios),
              Spread(ratios));
  std::fflush(stdout);
  return ratios;
}

void CompareThroughput(double seconds, const std::shared_ptr<grpc::Channel>& channel) {
  constexpr size_t kInFlight = 64;
  v1::PredictionService::Stub predictions(channel);
  grpc::health::v1::Health::Stub health(channel);
  const grpc::health::v1::HealthCheckRequest nothing;
  seconds /= 4;
  const auto empty = [&](size_t in_flight) {
    return bench::Throughput<grpc::health::v1::HealthCheckResponse>(
        seconds, in_flight, [&](auto* context, auto* response, auto done) {
          health.async()->Check(context, &nothing, response, std::move(done));
        });
  };
  const auto predict = [&](const char* model, uint32_t dim, size_t in_flight) {
    v1::PredictRequest request;
    request.set_model(model);
    *request.mutable_matrix() = Matrix(1, 3, false, dim);
    return bench::Throughput<v1::PredictResponse>(
        seconds, in_flight, [&](auto* context, auto* response, auto done) {
          predictions.async()->Predict(context, &request, response, std::move(done));
        });
  };
  std::vector<double> small_shares;
  for (const size_t in_flight : {size_t{1}, kInFlight}) {
    std::vector<double> nothing_done, medium, small;
    for (int i = 0; i < kRounds; ++i) {
      nothing_done.push_back(empty(in_flight));
      medium.push_back(predict(kModel, kDim, in_flight));
      small.push_back(predict(kSmall, 2, in_flight));
    }
    PrintThroughput("Predict, 1 row, dim 123, 4096", in_flight, medium, "empty RPC", nothing_done);
    small_shares =
        PrintThroughput("Predict, 1 row, dim 2, 256", in_flight, small, "empty RPC", nothing_done);
  }
  bench::Print({10, "unary Predict, dim 2, 256 features, 64 in flight", 100 * Median(small_shares),
                Spread(small_shares), "% of the empty RPC's rate", true, 85});
  std::vector<double> alone, together;
  for (int i = 0; i < kRounds; ++i) {
    alone.push_back(predict(kWide, kWideDim, 1));
    together.push_back(predict(kWide, kWideDim, kInFlight));
  }
  const std::vector<double> times =
      PrintThroughput("Predict, 1 row, dim 784, 65536", kInFlight, together, "one by one", alone);
  bench::Print({10, "Predict, dim 784, 65536 features, 64 in flight", Median(times), Spread(times),
                "x one by one", true, 6});
}

// Predict and the empty RPC while the server is idle and while kModel learns at full speed: the
// stream keeps the learner busy, but no queue that would last into the next idle turn.
void CompareLearning(double seconds, v1::OnlineUpdateService::Stub& updates,
                     const std::function<void()>& empty, const std::function<void()>& predict) {
  const double part = seconds * 2 / 3;
  const bench::StreamLoad load{kModel, Matrix(kMatrixRows, 5, true), kAhead};
  std::vector<double> empties, p99s[2], ratios, rates;
  Latency idle, learning, beside;
  for (int i = 0; i < kRounds; ++i) {
    idle = Measure(part, predict);
    p99s[0].push_back(idle.p99);
    std::atomic<bool> stop{false};
    std::thread learner(
        [&] { rates.push_back(bench::Stream(updates, load, v1::ACK_LEVEL_APPLIED, stop)); });
    beside = Measure(part / 2, empty);
    empties.push_back(beside.p99);
    learning = Measure(part, predict);
    p99s[1].push_back(learning.p99);
    stop = true;
    learner.join();
    ratios.push_back(p99s[1].back() / p99s[0].back());
  }
  std::printf(
      "p99 in %d turns: Predict, 1 row, idle %.0f us +-%.0f %%   while learning at full speed %.0f "
      "us +-%.0f %%   the empty RPC meanwhile %.0f us +-%.0f %%\n",
      kRounds, Median(p99s[0]), Spread(p99s[0]), Median(p99s[1]), Spread(p99s[1]), Median(empties),
      Spread(empties));
  Print("Predict, 1 row, idle, the last turn", idle, beside);
  Print("Predict, 1 row, while learning, the last turn", learning, beside);
  std::printf("%-44s %.0f rows/s, acknowledged APPLIED, beside the measurements above\n",
              "StreamUpdate", Median(rates));
  bench::Print({8, "Predict, 1 row, while learning at full speed: p99", Median(ratios),
                Spread(ratios), "x idle", false, 1.5});
}

void ComparePublishing(double seconds, v1::OnlineUpdateService::Stub& updates) {
  std::vector<double> p50s, p99s;
  for (int i = 0; i < kRounds; ++i) {
    const Latency published =
        bench::SentToPublished(seconds * 2 / 3, updates, kPaced, Matrix(1, 5, true), kPacedRows);
    p50s.push_back(published.p50 / 1e3);
    p99s.push_back(published.p99 / 1e3);
  }
  std::printf(
      "row sent -> durable and in the published model, %.0f rows/s one by one, max_batch_delay "
      "%.0f ms: p50 %.1f ms +-%.0f %%  p99 %.1f ms +-%.0f %%\n",
      kPacedRows, kDefaultDelayMs, Median(p50s), Spread(p50s), Median(p99s), Spread(p99s));
  bench::Print({11, "row sent -> durable and in the published model, 2000 rows/s: p50",
                Median(p50s) - kDefaultDelayMs, Spread(p50s), "ms beyond max_batch_delay", false,
                3});
}

// A server, and how to call it.
struct Served {
  std::unique_ptr<server::Server> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::ModelService::Stub> models;
  std::unique_ptr<v1::OnlineUpdateService::Stub> updates;
  std::unique_ptr<v1::PredictionService::Stub> predictions;
  std::unique_ptr<grpc::health::v1::Health::Stub> health;
};

Served Serve(const std::string& folder, bool group_predictions) {
  server::ServerOptions options;
  options.data_dir = folder;
  options.listen = "127.0.0.1:0";
  options.metrics_listen = "";
  options.log_level = server::LogLevel::kError;
  options.group_predictions = group_predictions;
  auto server = server::Server::Start(options);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", std::string(server.status().message()).c_str());
    std::exit(1);
  }
  Served served;
  served.server = *std::move(server);
  served.channel =
      grpc::CreateChannel(served.server->address(), grpc::InsecureChannelCredentials());
  served.models = v1::ModelService::NewStub(served.channel);
  served.updates = v1::OnlineUpdateService::NewStub(served.channel);
  served.predictions = v1::PredictionService::NewStub(served.channel);
  served.health = grpc::health::v1::Health::NewStub(served.channel);
  return served;
}

// With so many rows learned.
void CreateModel(const Served& served, const std::string& name, const v1::ModelConfig& config,
                 uint32_t dim, uint32_t rows) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  v1::CreateModelRequest request;
  request.set_name(name);
  *request.mutable_config() = config;
  v1::CreateModelResponse response;
  Check(served.models->CreateModel(&context, request, &response), "CreateModel");
  if (rows > 0) bench::Update(*served.updates, name.c_str(), Matrix(rows, 1, true, dim));
}

std::function<void()> EmptyCall(const Served& served) {
  return [&served] {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    grpc::health::v1::HealthCheckResponse response;
    Check(served.health->Check(&context, request, &response), "Check");
  };
}

std::function<void()> PredictCall(const Served& served, const std::string& model, uint32_t rows,
                                  uint32_t dim = kDim) {
  v1::PredictRequest request;
  request.set_model(model);
  *request.mutable_matrix() = Matrix(rows, 3, false, dim);
  return [&served, request] {
    grpc::ClientContext context;
    v1::PredictResponse response;
    Check(served.predictions->Predict(&context, request, &response), "Predict");
  };
}

void CompareLatency(double seconds, const Served& served) {
  const std::function<void()> empty_call = EmptyCall(served), one = PredictCall(served, kModel, 1);
  const Latency empty = Measure(seconds / 2, empty_call);
  Print("empty RPC (health check), idle", empty, empty);
  Print("Predict, 1 row, idle", Measure(seconds / 2, one), empty);
  Print("Predict, 256 rows, idle", Measure(seconds / 2, PredictCall(served, kModel, 256)), empty);
  // In turns, so that both meet the same machine.
  std::vector<double> ratios;
  for (int i = 0; i < 9; ++i) {
    const double beside = Measure(seconds / 9, empty_call).p50;
    ratios.push_back(Measure(seconds / 9, one).p50 / beside);
  }
  bench::Print({7, "Predict, 1 row, dim 123, 4096 features: p50", Median(ratios), Spread(ratios),
                "x an empty RPC", false, 1.1});
}

// Which part of a call is evaluation: models of several sizes, beside the empty RPC and the same
// row evaluated without a server, with its frequencies in the caches and after other memory was
// read.
void CompareSizes(double seconds, const Served& served) {
  constexpr size_t kOtherFloats = size_t{2} << 20;  // 8 MiB
  const std::vector<float> other(kOtherFloats, 1);
  const std::function<void()> empty_call = EmptyCall(served);
  SampleBatch rows;
  const v1::SampleMatrix matrix = Matrix(2048, 1, true);
  for (uint32_t i = 0; i < matrix.rows(); ++i) {
    std::memcpy(rows.AddDense(kDim), matrix.values().data() + i * kDim * sizeof(float),
                kDim * sizeof(float));
    rows.SetTarget(matrix.targets(static_cast<int>(i)));
  }
  SampleBatch row;
  row.AppendRow(rows, 0);
  InlineExecutor executor;
  for (const uint32_t features : {256, 1024, 2048, 4096, 8192}) {
    const std::string name = absl::StrCat("sized_", features);
    const v1::ModelConfig wire = support::OneLearner(features, kBandwidth);
    CreateModel(served, name, wire, kDim, 2048);
    const std::function<void()> call = PredictCall(served, name, 1);
    FeatureCacheBudget budget(int64_t{1} << 30);
    ModelConfig config = *server::ConfigFromWire(wire);
    if (!CompleteConfig(config).ok()) std::abort();
    const auto trainer = *Trainer::Create(config, {&executor, &budget});
    for (uint64_t i = 0; i < rows.size(); i += config.batch_rows) {
      trainer->Step(rows, i, std::min<size_t>(config.batch_rows, rows.size() - i), i + 1);
    }
    const Ref<Snapshot> snapshot = trainer->MakeSnapshot();
    double score = 0, sum = 0;
    const auto evaluate = [&] { snapshot->Score(row, executor, &score); };
    std::vector<double> beyond, calls;
    for (int i = 0; i < kRounds; ++i) {
      const double beside = Measure(seconds / 6, empty_call).p50;
      calls.push_back(Measure(seconds / 6, call).p50);
      beyond.push_back(calls.back() - beside);
    }
    const double hot = Measure(seconds / 12, evaluate).p50;
    std::vector<double> cold;
    for (const auto begin = SteadyClock::now(); cold.empty() || Seconds(begin) < seconds / 6;) {
      for (size_t i = 0; i < kOtherFloats; i += 16) sum += other[i];
      const auto start = SteadyClock::now();
      evaluate();
      cold.push_back(1e6 * Seconds(start));
    }
    std::printf(
        "Predict, 1 row, dim %u, %5u features: p50 %4.0f us, %3.0f us +-%.0f %% beyond the empty "
        "RPC; evaluation %.1f us, after reading 8 MiB %.1f us%s\n",
        kDim, features, Median(calls), Median(beyond), Spread(beyond), hot, Median(cold),
        sum > 0 ? "" : " ");
    std::fflush(stdout);
  }
}

// What grouping costs a request that nobody else's could be grouped with: the same model of two
// servers, one of which evaluates each request by itself.
void CompareGrouping(double seconds, const Served& grouping, const std::string& folder) {
  const Served alone = Serve(folder, /*group_predictions=*/false);
  CreateModel(alone, kWide, support::OneLearner(kWideFeatures, 28), kWideDim, 192);
  std::vector<double> with, without, ratios;
  const std::function<void()> grouped = PredictCall(grouping, kWide, 1, kWideDim);
  const std::function<void()> direct = PredictCall(alone, kWide, 1, kWideDim);
  for (int i = 0; i < 9; ++i) {
    with.push_back(Measure(seconds / 9, grouped).p50);
    without.push_back(Measure(seconds / 9, direct).p50);
    ratios.push_back(with.back() / without.back());
  }
  std::printf(
      "Predict, 1 row, dim 784, 65536, alone: p50 with grouping %.0f us +-%.0f %%   without %.0f "
      "us "
      "+-%.0f %%   ratio %.3f +-%.1f %%\n",
      Median(with), Spread(with), Median(without), Spread(without), Median(ratios), Spread(ratios));
  std::fflush(stdout);
  alone.server->Stop();
}

int RunBench(double seconds, const std::vector<std::string>& parts) {
  const auto named = [&](const char* part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  const auto wanted = [&](const char* part) { return parts.empty() || named(part); };
  std::printf("%s dim=%u features=%u seconds=%.0f\n", bench::MachineLine().c_str(), kDim, kFeatures,
              seconds);
  const std::string folder =
      std::filesystem::temp_directory_path() / absl::StrCat("kernelstream_rpc_bench_", ::getpid());
  {
    const Served served = Serve(absl::StrCat(folder, "/server"), /*group_predictions=*/true);
    CreateModel(served, kModel, Config(), kDim, 2048);
    CreateModel(served, kTwin, support::OneLearner(kFeatures, kBandwidth), kDim, 0);
    CreateModel(served, kWide, support::OneLearner(kWideFeatures, 28), kWideDim, 192);
    CreateModel(served, kSmall, support::OneLearner(256, 1), 2, 2048);
    CreateModel(served, kPaced, support::OneLearner(kFeatures, kBandwidth), kDim, 2048);

    if (wanted("latency")) CompareLatency(seconds, served);
    if (wanted("sizes")) CompareSizes(seconds, served);
    if (wanted("throughput")) CompareThroughput(seconds, served.channel);
    if (wanted("grouping")) CompareGrouping(seconds, served, absl::StrCat(folder, "/alone"));
    if (wanted("publishing")) ComparePublishing(seconds, *served.updates);
    if (wanted("rates")) CompareRates(seconds, *served.updates, *served.predictions);
    if (named("stream")) {  // for a profile of nothing else
      for (const uint64_t ahead : {kAhead, uint64_t{16}, kUpdateAhead}) {
        std::printf(
            "StreamUpdate, APPLIED, %2.0f matrices ahead: %.0f rows/s\n",
            static_cast<double>(ahead),
            bench::StreamFor(seconds, *served.updates, {kTwin, Matrix(kMatrixRows, 5, true), ahead},
                             v1::ACK_LEVEL_APPLIED));
        std::fflush(stdout);
      }
    }
    if (wanted("learning")) {
      CompareLearning(seconds, *served.updates, EmptyCall(served), PredictCall(served, kModel, 1));
      std::printf(
          "%-44s %.0f rows/s, acknowledged DURABLE\n", "StreamUpdate alone",
          bench::StreamFor(seconds, *served.updates, {kModel, Matrix(kMatrixRows, 5, true), 16},
                           v1::ACK_LEVEL_DURABLE));
    }
    served.server->Stop();
  }  // the store removes old files until it is closed
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace kernelstream

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  if (!(seconds > 0)) {
    std::fprintf(stderr,
                 "usage: rpc_bench [seconds per measurement] [latency|sizes|throughput|grouping|"
                 "publishing|rates|learning|stream ...]\n");
    return 2;
  }
  return kernelstream::RunBench(seconds,
                                std::vector<std::string>(argv + std::min(argc, 2), argv + argc));
}
