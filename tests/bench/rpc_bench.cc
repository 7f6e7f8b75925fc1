// Latency of Predict beside that of an empty RPC of the same server, idle and while the model
// learns at full speed, and the rate at which a stream is learned. Everything in this one process,
// on loopback.
//   rpc_bench [seconds per measurement, default 3]
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "kernelstream/v1/model_service.grpc.pb.h"
#include "kernelstream/v1/online_update_service.grpc.pb.h"
#include "kernelstream/v1/prediction_service.grpc.pb.h"
#include "server/app/server.h"
#include "tests/bench/machine_limits.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

namespace v1 = ::kernelstream::v1;

constexpr uint32_t kDim = 123, kFeatures = 4096, kMatrixRows = 256;
constexpr char kModel[] = "bench";

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

void Check(const grpc::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.error_message().c_str());
  std::exit(1);
}

v1::SampleMatrix Matrix(uint32_t rows, uint64_t seed, bool with_targets) {
  Random random(seed);
  v1::SampleMatrix matrix;
  matrix.set_rows(rows);
  matrix.set_dimension(kDim);
  std::vector<float> values(size_t{rows} * kDim);
  for (float& value : values) value = static_cast<float>(random.Normal());
  matrix.set_values(values.data(), values.size() * sizeof(float));
  for (uint32_t i = 0; with_targets && i < rows; ++i) {
    matrix.add_targets(values[size_t{i} * kDim] > 0 ? 1 : -1);
  }
  return matrix;
}

struct Latency {
  double p50 = 0, p99 = 0, p999 = 0;  // microseconds
  size_t calls = 0;
};

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
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))];
  };
  return {at(0.5), at(0.99), at(0.999), times.size()};
}

void Print(const char* what, const Latency& latency, const Latency& empty) {
  std::printf(
      "%-44s p50 %7.0f us  p99 %7.0f us  p99.9 %7.0f us  calls %6zu  p50 / empty RPC %.2f\n", what,
      latency.p50, latency.p99, latency.p999, latency.calls, latency.p50 / empty.p50);
  std::fflush(stdout);
}

// Streams matrices until told to stop; returns rows acknowledged per second.
double Stream(v1::OnlineUpdateService::Stub& stub, std::atomic<bool>& stop, uint64_t in_flight) {
  grpc::ClientContext context;
  auto stream = stub.StreamUpdate(&context);
  v1::StreamUpdateRequest request;
  request.mutable_open()->set_model(kModel);
  request.mutable_open()->set_ack(v1::ACK_LEVEL_DURABLE);
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
  {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::CreateModelRequest request;
    request.set_name(kModel);
    request.mutable_config()->mutable_loss()->set_name("logistic");
    request.mutable_config()->set_max_features(kFeatures);
    request.mutable_config()->set_block_features(kFeatures);
    v1::CreateModelResponse response;
    Check(models.CreateModel(&context, request, &response), "CreateModel");
  }
  {
    grpc::ClientContext context;
    v1::UpdateRequest request;
    request.set_model(kModel);
    request.set_ack(v1::ACK_LEVEL_APPLIED);
    *request.mutable_matrix() = Matrix(2048, 1, true);
    v1::UpdateResponse response;
    Check(updates.Update(&context, request, &response), "Update");
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

  const Latency empty = Measure(seconds, empty_call);
  Print("empty RPC (health check), idle", empty, empty);
  Print("Predict, 1 row, idle", Measure(seconds, predict(1)), empty);
  Print("Predict, 256 rows, idle", Measure(seconds, predict(256)), empty);

  std::atomic<bool> stop{false};
  double rate = 0;
  std::thread learner([&] { rate = Stream(updates, stop, 16); });
  Print("empty RPC, while learning at full speed", Measure(seconds, empty_call), empty);
  Print("Predict, 1 row, while learning at full speed", Measure(seconds, predict(1)), empty);
  stop = true;
  learner.join();
  std::printf("%-44s %.0f rows/s, acknowledged DURABLE, beside the two measurements above\n",
              "StreamUpdate", rate);

  stop = false;
  std::thread timer([&] {
    std::this_thread::sleep_for(std::chrono::duration<double>(2 * seconds));
    stop = true;
  });
  rate = Stream(updates, stop, 16);
  timer.join();
  std::printf("%-44s %.0f rows/s, acknowledged DURABLE\n", "StreamUpdate alone", rate);
  (*server)->Stop();
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
