#include "client/cli/bench_load.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/cli/globals.h"

namespace kernelstream::client {
namespace {

using EmptyRequest = grpc::health::v1::HealthCheckRequest;
using EmptyResponse = grpc::health::v1::HealthCheckResponse;

// Neighbouring buckets differ by this factor; the first begins at a microsecond.
constexpr double kBucketGrowth = 1.01;
constexpr absl::Duration kFirstBucket = absl::Microseconds(1);
// How often waits look for Ctrl-C.
constexpr absl::Duration kLook = absl::Milliseconds(100);
// Of rows on their way to be learned.
constexpr size_t kLeastWindowRows = 512;
// How long the last rows may take to be learned.
constexpr absl::Duration kLastAcks = absl::Minutes(1);

bool Over(absl::Time end) { return interrupts > 0 || absl::Now() >= end; }

// Thread-safe. Calls side by side: each begins the next when it ends.
class SideBySide {
 public:
  SideBySide(const std::vector<std::shared_ptr<Transport>>& connections, const RepeatedCall& call,
             size_t in_flight, absl::Time end)
      : call_(call), end_(end), lanes_(in_flight) {
    for (size_t i = 0; i < in_flight; ++i) {
      lanes_[i].transport = connections[i % connections.size()].get();
    }
  }

  absl::StatusOr<Load> Run() {
    const absl::Time start = absl::Now();
    {
      absl::MutexLock lock(&mu_);
      running_ = lanes_.size();
    }
    for (Lane& lane : lanes_) Begin(&lane);
    absl::MutexLock lock(&mu_);
    const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return running_ == 0; };
    mu_.Await(absl::Condition(&idle));
    load_.elapsed = absl::Now() - start;
    if (!status_.ok()) return status_;
    return load_;
  }

 private:
  // One call at a time.
  struct Lane {
    Transport* transport = nullptr;
    std::unique_ptr<grpc::ClientContext> context, last;  // of the call before, which may be ending
    absl::Time begin;
    v1::PredictResponse prediction;
    EmptyRequest empty_request;
    EmptyResponse empty;
  };

  void Begin(Lane* lane) {
    lane->last = std::move(lane->context);
    lane->context = std::make_unique<grpc::ClientContext>();
    lane->begin = absl::Now();
    lane->context->set_deadline(absl::ToChronoTime(lane->begin + call_.timeout));
    const auto done = [this, lane](const grpc::Status& status) { Ended(lane, status); };
    if (call_.requests == nullptr) {
      lane->transport->health().async()->Check(lane->context.get(), &lane->empty_request,
                                               &lane->empty, done);
      return;
    }
    size_t next = 0;
    {
      absl::MutexLock lock(&mu_);
      next = next_request_++ % call_.requests->size();
    }
    lane->transport->predictions().async()->Predict(lane->context.get(), &(*call_.requests)[next],
                                                    &lane->prediction, done);
  }

  void Ended(Lane* lane, const grpc::Status& grpc_status) {
    const absl::Time now = absl::Now();
    const absl::Status status = lane->transport->FromGrpc(grpc_status, call_.timeout);
    {
      absl::MutexLock lock(&mu_);
      if (status.ok()) {
        load_.latencies.Add(now - lane->begin);
        load_.rows += 1;
      } else if (status_.ok()) {
        status_ = status;
      }
      if (!status_.ok() || Over(end_)) {
        --running_;
        return;
      }
    }
    Begin(lane);
  }

  const RepeatedCall call_;
  const absl::Time end_;
  std::vector<Lane> lanes_;
  absl::Mutex mu_;
  size_t running_ ABSL_GUARDED_BY(mu_) = 0;
  size_t next_request_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  Load load_ ABSL_GUARDED_BY(mu_);
};

absl::StatusOr<Load> StreamFrom(Client* client, const std::string& model,
                                const std::vector<std::vector<Row>>& requests,
                                const PredictOptions& options, absl::Time end) {
  absl::StatusOr<std::unique_ptr<PredictStream>> stream = client->OpenPredictStream(model, options);
  if (!stream.ok()) return stream.status();
  Load load;
  const auto take = [&]() -> absl::Status {
    absl::StatusOr<PredictResult> result = (*stream)->Next();
    if (result.ok()) load.rows += result->predictions.size();
    return result.status();
  };
  const absl::Time start = absl::Now();
  for (size_t i = 0; !Over(end); ++i) {
    if (absl::Status s = (*stream)->Send(requests[i % requests.size()]); !s.ok()) return s;
    while ((*stream)->pending() >= options.max_in_flight) {
      if (absl::Status s = take(); !s.ok()) return s;
    }
  }
  while ((*stream)->pending() > 0) {
    if (absl::Status s = take(); !s.ok()) return s;
  }
  load.elapsed = absl::Now() - start;
  return load;
}

}  // namespace

void Latencies::Add(absl::Duration latency) {
  const double ratio = std::max(1.0, absl::FDivDuration(latency, kFirstBucket));
  const auto bucket = static_cast<size_t>(std::log(ratio) / std::log(kBucketGrowth));
  ++counts_[std::min(bucket, kBuckets - 1)];
  ++count_;
}

absl::Duration Latencies::Quantile(double share) const {
  const double wanted = share * static_cast<double>(count_);
  uint64_t below = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    below += counts_[i];
    if (below > 0 && static_cast<double>(below) >= wanted) {
      return kFirstBucket * std::pow(kBucketGrowth, static_cast<double>(i) + 0.5);
    }
  }
  return absl::ZeroDuration();
}

absl::StatusOr<Load> CallInTurn(Transport& transport, const RepeatedCall& call,
                                absl::Duration duration) {
  Load load;
  const absl::Time start = absl::Now();
  do {
    grpc::ClientContext context;
    const absl::Time begin = absl::Now();
    context.set_deadline(absl::ToChronoTime(begin + call.timeout));
    grpc::Status status;
    if (call.requests == nullptr) {
      EmptyResponse response;
      status = transport.health().Check(&context, EmptyRequest(), &response);
    } else {
      v1::PredictResponse response;
      status = transport.predictions().Predict(
          &context, (*call.requests)[load.rows % call.requests->size()], &response);
    }
    if (!status.ok()) return transport.FromGrpc(status, call.timeout);
    load.latencies.Add(absl::Now() - begin);
    load.rows += 1;
  } while (!Over(start + duration));
  load.elapsed = absl::Now() - start;
  return load;
}

absl::StatusOr<Load> CallSideBySide(const std::vector<std::shared_ptr<Transport>>& connections,
                                    const RepeatedCall& call, size_t in_flight,
                                    absl::Duration duration) {
  return SideBySide(connections, call, in_flight, absl::Now() + duration).Run();
}

absl::StatusOr<Load> StreamPredictions(const std::vector<std::unique_ptr<Client>>& clients,
                                       const std::string& model,
                                       const std::vector<std::vector<Row>>& requests,
                                       const PredictOptions& options, absl::Duration duration) {
  const absl::Time end = absl::Now() + duration;
  std::vector<absl::StatusOr<Load>> loads(clients.size(), Load());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < clients.size(); ++i) {
    threads.emplace_back(
        [&, i] { loads[i] = StreamFrom(clients[i].get(), model, requests, options, end); });
  }
  for (std::thread& thread : threads) thread.join();
  Load sum;
  for (const absl::StatusOr<Load>& load : loads) {
    if (!load.ok()) return load.status();
    sum.rows += load->rows;
    sum.elapsed = std::max(sum.elapsed, load->elapsed);
  }
  return sum;
}

absl::StatusOr<Load> StreamUpdates(Client& client, const std::string& model,
                                   const std::vector<std::vector<Row>>& requests,
                                   const std::function<bool()>& stop) {
  StreamOptions options;
  options.ack = AckLevel::kApplied;
  // Enough to keep the learner busy, and soon learned once they are the last ones.
  options.max_in_flight_rows = std::max(kLeastWindowRows, 2 * requests[0].size());
  absl::StatusOr<std::unique_ptr<UpdateStream>> stream = client.OpenUpdateStream(model, options);
  if (!stream.ok()) return stream.status();
  Load load;
  const absl::Time start = absl::Now();
  for (size_t i = 0; !stop();) {
    absl::Span<const Row> rest = requests[i++ % requests.size()];
    while (!rest.empty() && !stop()) {
      absl::StatusOr<size_t> taken = (*stream)->TrySend(rest, kLook);
      if (!taken.ok()) return taken.status();
      rest.remove_prefix(*taken);
    }
  }
  const UpdateSummary summary = (*stream)->Close(kLastAcks);
  load.elapsed = absl::Now() - start;
  if (!summary.status.ok()) return summary.status;
  if (summary.rows_accepted == 0 && !summary.rejected.empty()) return summary.rejected[0].status;
  load.rows = summary.rows_accepted;
  return load;
}

}  // namespace kernelstream::client
