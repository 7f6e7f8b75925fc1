// The channel, what its errors mean to a person, and repetition with back-off.
#ifndef KERNELSTREAM_CLIENT_SRC_TRANSPORT_H_
#define KERNELSTREAM_CLIENT_SRC_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/include/kernelstream/client.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "kernelstream/v1/model_service.grpc.pb.h"
#include "kernelstream/v1/online_update_service.grpc.pb.h"
#include "kernelstream/v1/prediction_service.grpc.pb.h"

namespace kernelstream::client {

// Thread-compatible. The waits of BackoffOptions, one after the other.
class Backoff {
 public:
  explicit Backoff(const BackoffOptions& options);
  absl::Duration Next();
  void Reset() { next_ = options_.initial; }

 private:
  BackoffOptions options_;
  absl::Duration next_;
  uint64_t jitter_state_;
};

// 32 hexadecimal digits from the operating system's random numbers.
std::string RandomId();

// RetryInfo of a status that came from the server.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

// How long a server may take to end a stream in which everything is answered.
inline constexpr absl::Duration kEndTimeout = absl::Seconds(5);

enum class RetryOn {
  kUnavailable,
  // Also RESOURCE_EXHAUSTED with RetryInfo: a full queue.
  kUnavailableOrFull,
};

// Thread-safe. The connection to one server and its stubs.
class Transport {
 public:
  Transport(std::string address, ConnectOptions options);

  const std::string& address() const { return address_; }
  const ConnectOptions& options() const { return options_; }

  // Unavailable, with what to check, if there is no connection after `timeout`. Cancelled soon
  // after stop() is true.
  absl::Status WaitConnected(absl::Duration timeout, const std::function<bool()>& stop = nullptr);

  // Calls `attempt` with a fresh context until it succeeds, fails for good, or time or attempts are
  // used up. *attempts is the number of calls made; may be null.
  absl::Status Call(std::optional<absl::Duration> timeout, RetryOn retry_on,
                    const std::function<grpc::Status(grpc::ClientContext*)>& attempt,
                    int* attempts = nullptr);

  // In the words of client.h. `timeout` is named if the deadline passed.
  absl::Status FromGrpc(const grpc::Status& status, absl::Duration timeout) const;

  // True if the connection broke or the server asks to come back; `status` is the outcome of an
  // update stream.
  static bool StreamMayResume(const grpc::Status& status, const absl::Status& converted);

  v1::ModelService::Stub& models() { return *models_; }
  v1::OnlineUpdateService::Stub& updates() { return *updates_; }
  v1::PredictionService::Stub& predictions() { return *predictions_; }
  grpc::health::v1::Health::Stub& health() { return *health_; }

 private:
  const std::string address_;
  const ConnectOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ModelService::Stub> models_;
  std::unique_ptr<v1::OnlineUpdateService::Stub> updates_;
  std::unique_ptr<v1::PredictionService::Stub> predictions_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_TRANSPORT_H_
