// Latency of Predict beside that of an empty RPC of the same server, idle and while the model
// learns at full speed; the rates of StreamPredict and StreamUpdate beside those of evaluating and
// learning the same rows without a server, in turns with them; calls with many in flight, where
// rows of a large model are evaluated together. Everything in this one process, on loopback.
//   rpc_bench [seconds per measurement, default 3]
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
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

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
#include "tests/support/one_learner.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

namespace v1 = ::kernelstream::v1;
using bench::Median;
using bench::Spread;

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

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

void Check(const grpc::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.error_message().c_str());
  std::exit(1);
}

v1::SampleMatrix Matrix(uint32_t rows, uint64_t seed, bool with_targets, uint32_t dim = kDim) {
  Random random(seed);
  v1::SampleMatrix matrix;
  matrix.set_rows(rows);
  matrix.set_dimension(dim);
  std::vector<float> values(size_t{rows} * dim);
  for (float& value : values) value = static_cast<float>(random.Normal());
  matrix.set_values(values.data(), values.size() * sizeof(float));
  for (uint32_t i = 0; with_targets && i < rows; ++i) {
    matrix.add_targets(values[size_t{i} * dim] > 0 ? 1 : -1);
  }
  return matrix;
}

struct Latency {
  double p50 = 0, p99 = 0, p999 = 0;  // microseconds
  size_t calls = 0;
};

// times: microseconds, at least one.
Latency LatencyOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))];
  };
  return {at(0.5), at(0.99), at(0.999), times.size()};
}

// Calls in a row from one thread.
Latency Measure(double seconds, const std::function<void()>& call) {
  for (int i = 0; i < 100; ++i) call();
  std::vector<double> times;
  const auto start = Clock::now();
  while (Seconds(start) < seconds) {
    const auto begin = Clock::now();
    call();
    times.push_back(1e6 * Seconds(begin));
  }
  return LatencyOf(std::move(times));
}

void Print(const char* what, const Latency& latency, const Latency& empty) {
  std::printf(
      "%-44s p50 %7.0f us  p99 %7.0f us  p99.9 %7.0f us  calls %6zu  p50 / empty RPC %.2f\n", what,
      latency.p50, latency.p99, latency.p999, latency.calls, latency.p50 / empty.p50);
  std::fflush(stdout);
}

// Returns once the rows are in the published model.
void Update(v1::OnlineUpdateService::Stub& stub, const char* model, v1::SampleMatrix rows) {
  grpc::ClientContext context;
  v1::UpdateRequest request;
  request.set_model(model);
  request.set_ack(v1::ACK_LEVEL_APPLIED);
  *request.mutable_matrix() = std::move(rows);
  v1::UpdateResponse response;
  Check(stub.Update(&context, request, &response), "Update");
}

// Streams matrices until told to stop; returns rows acknowledged per second.
double Stream(v1::OnlineUpdateService::Stub& stub, const char* model, v1::AckLevel ack,
              uint64_t in_flight, const std::atomic<bool>& stop) {
  grpc::ClientContext context;
  auto stream = stub.StreamUpdate(&context);
  v1::StreamUpdateRequest request;
  request.mutable_open()->set_model(model);
  request.mutable_open()->set_ack(ack);
  stream->Write(request);
  v1::StreamUpdateResponse response;
  stream->Read(&response);
  request.Clear();
  *request.mutable_batch()->mutable_matrix() = Matrix(kMatrixRows, 5, true);
  const auto start = Clock::now();
  uint64_t sent = 0, acked = 0;
  while (!stop) {
    while (sent - acked < in_flight && stream->Write(request)) ++sent;
    if (!stream->Read(&response)) break;
    ++acked;
  }
  stream->WritesDone();
  while (stream->Read(&response)) ++acked;
  const double rate = static_cast<double>(acked * kMatrixRows) / Seconds(start);
  Check(stream->Finish(), "StreamUpdate");
  return rate;
}

double StreamFor(double seconds, v1::OnlineUpdateService::Stub& stub, const char* model,
                 v1::AckLevel ack, uint64_t in_flight) {
  std::atomic<bool> stop{false};
  std::thread timer([&] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop = true;
  });
  const double rate = Stream(stub, model, ack, in_flight, stop);
  timer.join();
  return rate;
}

// Rows answered per second.
double StreamPredictFor(double seconds, v1::PredictionService::Stub& stub) {
  constexpr uint64_t kInFlight = 8;
  v1::StreamPredictRequest request;
  request.set_model(kTwin);
  *request.mutable_matrix() = Matrix(kMatrixRows, 5, false);
  grpc::ClientContext context;
  auto stream = stub.StreamPredict(&context);
  v1::StreamPredictResponse response;
  const auto start = Clock::now();
  uint64_t sent = 0, answered = 0;
  while (Seconds(start) < seconds) {
    while (sent - answered < kInFlight && stream->Write(request)) ++sent;
    if (!stream->Read(&response)) break;
    ++answered;
  }
  stream->WritesDone();
  while (stream->Read(&response)) ++answered;
  const double rate = static_cast<double>(answered * kMatrixRows) / Seconds(start);
  Check(stream->Finish(), "StreamPredict");
  return rate;
}

// Calls answered per second, with so many in flight. start: begins a call, and calls back.
template <typename Response>
double Throughput(double seconds, size_t in_flight,
                  const std::function<void(grpc::ClientContext*, Response*,
                                           std::function<void(grpc::Status)>)>& start) {
  struct Slot {
    std::unique_ptr<grpc::ClientContext> context;
    Response response;
  };
  std::vector<Slot> slots(in_flight);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> answered{0};
  std::counting_semaphore<> ended{0};
  std::function<void(Slot&)> call = [&](Slot& slot) {
    slot.context = std::make_unique<grpc::ClientContext>();
    start(slot.context.get(), &slot.response, [&](const grpc::Status& status) {
      Check(status, "call");
      ++answered;
      if (stop) return ended.release();
      call(slot);
    });
  };
  const auto begin = Clock::now();
  for (Slot& slot : slots) call(slot);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double rate = static_cast<double>(answered) / Seconds(begin);
  stop = true;
  for (size_t i = 0; i < in_flight; ++i) ended.acquire();
  return rate;
}

// From sending a row to its acknowledgement that it is in the published model (and durable), one
// row a message, at an even pace.
Latency SentToPublished(double seconds, v1::OnlineUpdateService::Stub& stub,
                        double rows_per_second) {
  grpc::ClientContext context;
  auto stream = stub.StreamUpdate(&context);
  v1::StreamUpdateRequest request;
  request.mutable_open()->set_model(kPaced);
  request.mutable_open()->set_ack(v1::ACK_LEVEL_APPLIED);
  stream->Write(request);
  v1::StreamUpdateResponse response;
  stream->Read(&response);
  const auto rows = static_cast<size_t>(seconds * rows_per_second);
  std::vector<std::atomic<double>> sent(rows);  // microseconds since start
  const auto start = Clock::now();
  std::thread writer([&] {
    v1::StreamUpdateRequest row;
    *row.mutable_batch()->mutable_matrix() = Matrix(1, 5, true);
    for (size_t i = 0; i < rows; ++i) {
      std::this_thread::sleep_until(
          start + std::chrono::duration<double>(static_cast<double>(i) / rows_per_second));
      sent[i] = 1e6 * Seconds(start);
      stream->Write(row);
    }
    stream->WritesDone();
  });
  std::vector<double> times;
  while (stream->Read(&response)) {
    const double now = 1e6 * Seconds(start);
    while (times.size() + 1 < response.ack().next_producer_sequence()) {
      times.push_back(now - sent[times.size()]);
    }
  }
  writer.join();
  Check(stream->Finish(), "StreamUpdate");
  return LatencyOf(std::move(times));
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
    seconds_ = seconds, least_rows_ = least_rows, learned_ = 0, start_ = Clock::now();
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
    const auto start = Clock::now();
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
  Clock::time_point start_;
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
    Update(updates, kTwin, Matrix(kMatrixRows, 5, true));
  }
  std::vector<double> streamed, learned, predicted, one, all;
  for (int i = 0; i < kTurns; ++i) {
    one.push_back(twin->Evaluate(seconds / kTurns, 1));
    predicted.push_back(StreamPredictFor(seconds / kTurns, predictions));
    all.push_back(twin->Evaluate(seconds / kTurns, Cores()));
  }
  for (int i = 0; i < kTurns; ++i) {
    learned.push_back(twin->Learn(seconds / kTurns, 0));
    streamed.push_back(StreamFor(seconds / kTurns, updates, kTwin, v1::ACK_LEVEL_APPLIED, kAhead));
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
    return Throughput<grpc::health::v1::HealthCheckResponse>(
        seconds, in_flight, [&](auto* context, auto* response, auto done) {
          health.async()->Check(context, &nothing, response, std::move(done));
        });
  };
  const auto predict = [&](const char* model, uint32_t dim, size_t in_flight) {
    v1::PredictRequest request;
    request.set_model(model);
    *request.mutable_matrix() = Matrix(1, 3, false, dim);
    return Throughput<v1::PredictResponse>(
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
  std::vector<double> empties, p99s[2], ratios, rates;
  Latency idle, learning, beside;
  for (int i = 0; i < kRounds; ++i) {
    idle = Measure(part, predict);
    p99s[0].push_back(idle.p99);
    std::atomic<bool> stop{false};
    std::thread learner(
        [&] { rates.push_back(Stream(updates, kModel, v1::ACK_LEVEL_APPLIED, kAhead, stop)); });
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
    const Latency published = SentToPublished(seconds * 2 / 3, updates, kPacedRows);
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

int RunBench(double seconds) {
  std::printf("%s dim=%u features=%u seconds=%.0f\n", bench::MachineLine().c_str(), kDim, kFeatures,
              seconds);
  const std::string folder = std::filesystem::temp_directory_path() /
                             ("kernelstream_rpc_bench_" + std::to_string(::getpid()));
  server::ServerOptions options;
  options.data_dir = folder;
  options.listen = "127.0.0.1:0";
  options.metrics_listen = "";
  options.log_level = server::LogLevel::kError;
  auto server = server::Server::Start(options);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", std::string(server.status().message()).c_str());
    return 1;
  }
  const auto channel =
      grpc::CreateChannel((*server)->address(), grpc::InsecureChannelCredentials());
  v1::ModelService::Stub models(channel);
  v1::OnlineUpdateService::Stub updates(channel);
  v1::PredictionService::Stub predictions(channel);
  grpc::health::v1::Health::Stub health(channel);
  const std::vector<std::pair<const char*, v1::ModelConfig>> configs = {
      {kModel, Config()},
      {kTwin, support::OneLearner(kFeatures, kBandwidth)},
      {kWide, support::OneLearner(kWideFeatures, 28)},
      {kSmall, support::OneLearner(256, 1)},
      {kPaced, support::OneLearner(kFeatures, kBandwidth)}};
  for (const auto& [name, config] : configs) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::CreateModelRequest request;
    request.set_name(name);
    *request.mutable_config() = config;
    v1::CreateModelResponse response;
    Check(models.CreateModel(&context, request, &response), "CreateModel");
  }
  const std::vector<std::tuple<const char*, uint32_t, uint32_t>> first_rows = {
      {kModel, kDim, 2048}, {kWide, kWideDim, 192}, {kSmall, 2, 2048}, {kPaced, kDim, 2048}};
  for (const auto& [name, dim, rows] : first_rows) {
    Update(updates, name, Matrix(rows, 1, true, dim));
  }

  const auto empty_call = [&] {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    grpc::health::v1::HealthCheckResponse response;
    Check(health.Check(&context, request, &response), "Check");
  };
  const auto predict = [&](uint32_t rows) {
    v1::PredictRequest request;
    request.set_model(kModel);
    *request.mutable_matrix() = Matrix(rows, 3, false);
    return [&predictions, request] {
      grpc::ClientContext context;
      v1::PredictResponse response;
      Check(predictions.Predict(&context, request, &response), "Predict");
    };
  };

  const Latency empty = Measure(seconds / 2, empty_call);
  const Latency idle = Measure(seconds / 2, predict(1));
  Print("empty RPC (health check), idle", empty, empty);
  Print("Predict, 1 row, idle", idle, empty);
  Print("Predict, 256 rows, idle", Measure(seconds / 2, predict(256)), empty);
  // In turns, so that both meet the same machine.
  std::vector<double> ratios;
  for (int i = 0; i < 9; ++i) {
    const double beside = Measure(seconds / 9, empty_call).p50;
    ratios.push_back(Measure(seconds / 9, predict(1)).p50 / beside);
  }
  bench::Print({7, "Predict, 1 row, dim 123, 4096 features: p50", Median(ratios), Spread(ratios),
                "x an empty RPC", false, 1.1});

  CompareThroughput(seconds, channel);
  ComparePublishing(seconds, updates);
  CompareRates(seconds, updates, predictions);
  CompareLearning(seconds, updates, empty_call, predict(1));
  std::printf("%-44s %.0f rows/s, acknowledged DURABLE\n", "StreamUpdate alone",
              StreamFor(seconds, updates, kModel, v1::ACK_LEVEL_DURABLE, 16));
  (*server)->Stop();
  server->reset();  // the store removes old files until it is closed
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace kernelstream

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  if (!(seconds > 0)) {
    std::fprintf(stderr, "usage: rpc_bench [seconds per measurement]\n");
    return 2;
  }
  return kernelstream::RunBench(seconds);
}
