// Calls and streams that benchmarks load a server with, and how long they take.
#ifndef KERNELSTREAM_TESTS_BENCH_RPC_LOAD_H_
#define KERNELSTREAM_TESTS_BENCH_RPC_LOAD_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "kernelstream/v1/online_update_service.grpc.pb.h"
#include "kernelstream/v1/prediction_service.grpc.pb.h"

namespace kernelstream::bench {

using SteadyClock = std::chrono::steady_clock;

double Seconds(SteadyClock::time_point since);

// Ends the program with the message, unless OK.
void Check(const grpc::Status& status, const char* what);

// Rows of independent standard normal inputs; targets: the sign of the first.
v1::SampleMatrix Matrix(uint32_t rows, uint64_t seed, bool with_targets, uint32_t dim);

struct Latency {
  double p50 = 0, p99 = 0, p999 = 0;  // microseconds
  size_t calls = 0;
};

// Calls in a row from one thread.
Latency Measure(double seconds, const std::function<void()>& call);

void Print(const char* what, const Latency& latency, const Latency& empty);

// Returns once the rows are in the published model.
void Update(v1::OnlineUpdateService::Stub& stub, const char* model, v1::SampleMatrix rows);

// What a stream sends, again and again.
struct StreamLoad {
  const char* model;
  v1::SampleMatrix matrix;
  uint64_t in_flight = 1;  // matrices
};

// Until told to stop. Rows acknowledged per second.
double Stream(v1::OnlineUpdateService::Stub& stub, const StreamLoad& load, v1::AckLevel ack,
              const std::atomic<bool>& stop);
double StreamFor(double seconds, v1::OnlineUpdateService::Stub& stub, const StreamLoad& load,
                 v1::AckLevel ack);
// Rows answered per second.
double StreamPredictFor(double seconds, v1::PredictionService::Stub& stub, const StreamLoad& load);

// From sending `row` to its acknowledgement that it is in the published model (and durable), one
// row a message, at an even pace.
Latency SentToPublished(double seconds, v1::OnlineUpdateService::Stub& stub, const char* model,
                        const v1::SampleMatrix& row, double rows_per_second);

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
  const auto begin = SteadyClock::now();
  for (Slot& slot : slots) call(slot);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double rate = static_cast<double>(answered) / Seconds(begin);
  stop = true;
  for (size_t i = 0; i < in_flight; ++i) ended.acquire();
  return rate;
}

}  // namespace kernelstream::bench

#endif  // KERNELSTREAM_TESTS_BENCH_RPC_LOAD_H_
