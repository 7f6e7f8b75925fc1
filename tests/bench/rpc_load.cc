#include "tests/bench/rpc_load.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/support/random.h"

namespace kernelstream::bench {
namespace {

// times: microseconds, at least one.
Latency LatencyOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))];
  };
  return {at(0.5), at(0.99), at(0.999), times.size()};
}

}  // namespace

double Seconds(SteadyClock::time_point since) {
  return std::chrono::duration<double>(SteadyClock::now() - since).count();
}

void Check(const grpc::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.error_message().c_str());
  std::exit(1);
}

v1::SampleMatrix Matrix(uint32_t rows, uint64_t seed, bool with_targets, uint32_t dim) {
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
// Calls in a row from one thread.
Latency Measure(double seconds, const std::function<void()>& call) {
  for (int i = 0; i < 100; ++i) call();
  std::vector<double> times;
  const auto start = SteadyClock::now();
  while (Seconds(start) < seconds) {
    const auto begin = SteadyClock::now();
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

double Stream(v1::OnlineUpdateService::Stub& stub, const StreamLoad& load, v1::AckLevel ack,
              const std::atomic<bool>& stop) {
  grpc::ClientContext context;
  auto stream = stub.StreamUpdate(&context);
  v1::StreamUpdateRequest request;
  request.mutable_open()->set_model(load.model);
  request.mutable_open()->set_ack(ack);
  stream->Write(request);
  v1::StreamUpdateResponse response;
  stream->Read(&response);
  request.Clear();
  *request.mutable_batch()->mutable_matrix() = load.matrix;
  const auto start = SteadyClock::now();
  uint64_t sent = 0, acked = 0;
  while (!stop) {
    while (sent - acked < load.in_flight && stream->Write(request)) ++sent;
    if (!stream->Read(&response)) break;
    ++acked;
  }
  stream->WritesDone();
  while (stream->Read(&response)) ++acked;
  const double rate = static_cast<double>(acked * load.matrix.rows()) / Seconds(start);
  Check(stream->Finish(), "StreamUpdate");
  return rate;
}

double StreamFor(double seconds, v1::OnlineUpdateService::Stub& stub, const StreamLoad& load,
                 v1::AckLevel ack) {
  std::atomic<bool> stop{false};
  std::thread timer([&] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop = true;
  });
  const double rate = Stream(stub, load, ack, stop);
  timer.join();
  return rate;
}

// Rows answered per second.
double StreamPredictFor(double seconds, v1::PredictionService::Stub& stub, const StreamLoad& load) {
  v1::StreamPredictRequest request;
  request.set_model(load.model);
  *request.mutable_matrix() = load.matrix;
  grpc::ClientContext context;
  auto stream = stub.StreamPredict(&context);
  v1::StreamPredictResponse response;
  const auto start = SteadyClock::now();
  uint64_t sent = 0, answered = 0;
  while (Seconds(start) < seconds) {
    while (sent - answered < load.in_flight && stream->Write(request)) ++sent;
    if (!stream->Read(&response)) break;
    ++answered;
  }
  stream->WritesDone();
  while (stream->Read(&response)) ++answered;
  const double rate = static_cast<double>(answered * load.matrix.rows()) / Seconds(start);
  Check(stream->Finish(), "StreamPredict");
  return rate;
}

Latency SentToPublished(double seconds, v1::OnlineUpdateService::Stub& stub, const char* model,
                        const v1::SampleMatrix& row, double rows_per_second) {
  grpc::ClientContext context;
  auto stream = stub.StreamUpdate(&context);
  v1::StreamUpdateRequest request;
  request.mutable_open()->set_model(model);
  request.mutable_open()->set_ack(v1::ACK_LEVEL_APPLIED);
  stream->Write(request);
  v1::StreamUpdateResponse response;
  stream->Read(&response);
  const auto rows = static_cast<size_t>(seconds * rows_per_second);
  std::vector<std::atomic<double>> sent(rows);  // microseconds since start
  const auto start = SteadyClock::now();
  std::thread writer([&] {
    v1::StreamUpdateRequest message;
    *message.mutable_batch()->mutable_matrix() = row;
    for (size_t i = 0; i < rows; ++i) {
      std::this_thread::sleep_until(
          start + std::chrono::duration<double>(static_cast<double>(i) / rows_per_second));
      sent[i] = 1e6 * Seconds(start);
      stream->Write(message);
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

}  // namespace kernelstream::bench
