// Load for `kernelstream bench`: calls one after the other, calls side by side, streams.
#ifndef KERNELSTREAM_CLIENT_CLI_BENCH_LOAD_H_
#define KERNELSTREAM_CLIENT_CLI_BENCH_LOAD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/transport.h"

namespace kernelstream::client {

// Thread-compatible. How often calls took how long, within 1 %, in a fixed amount of memory.
class Latencies {
 public:
  void Add(absl::Duration latency);
  // The latency that `share` of the calls stayed below; 0 if there were none.
  absl::Duration Quantile(double share) const;
  uint64_t count() const { return count_; }

 private:
  static constexpr size_t kBuckets = 2100;  // up to 20 minutes
  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
};

// What one repeat measured.
struct Load {
  Latencies latencies;
  uint64_t rows = 0;
  absl::Duration elapsed;
  double rate(uint64_t n) const { return static_cast<double>(n) / absl::ToDoubleSeconds(elapsed); }
};

// A call that is repeated: Predict with one of the requests after the other, or without requests
// an empty RPC, which is a health check.
struct RepeatedCall {
  const std::vector<v1::PredictRequest>* requests = nullptr;  // borrowed
  // Of each call.
  absl::Duration timeout;
};

// All end with the first error, after `duration`, or soon after Ctrl-C.

// One after the other, from this thread; at least one.
absl::StatusOr<Load> CallInTurn(Transport& transport, const RepeatedCall& call,
                                absl::Duration duration);
// `in_flight` side by side, spread over the connections.
absl::StatusOr<Load> CallSideBySide(const std::vector<std::shared_ptr<Transport>>& connections,
                                    const RepeatedCall& call, size_t in_flight,
                                    absl::Duration duration);
// One stream of predictions per client, each with options.max_in_flight requests under way; they
// are taken in turn from `requests`.
absl::StatusOr<Load> StreamPredictions(const std::vector<std::unique_ptr<Client>>& clients,
                                       const std::string& model,
                                       const std::vector<std::vector<Row>>& requests,
                                       const PredictOptions& options, absl::Duration duration);
// Sends the rows of `requests` in turn to be learned until `stop` returns true, then waits until
// they are; rows: learned.
absl::StatusOr<Load> StreamUpdates(Client& client, const std::string& model,
                                   const std::vector<std::vector<Row>>& requests,
                                   const std::function<bool()>& stop);

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_CLI_BENCH_LOAD_H_
