#ifndef KERNELSTREAM_CLIENT_SRC_PREDICT_STREAM_H_
#define KERNELSTREAM_CLIENT_SRC_PREDICT_STREAM_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/include/kernelstream/client.h"
#include "client/src/transport.h"
#include "kernelstream/v1/prediction_service.pb.h"

namespace kernelstream::client {

// Thread-safe. The requests without an answer, and one connection at a time under them. Messages
// move on gRPC's threads; a broken connection is replaced by whoever waits in Send or Next, and the
// new one starts again at the oldest request without an answer.
struct PredictStream::Impl {
  Impl(std::shared_ptr<Transport> transport, std::string model, PredictOptions options);
  ~Impl();

  absl::Status Open();
  absl::Status Send(std::shared_ptr<v1::StreamPredictRequest> request);
  absl::StatusOr<PredictResult> Next();
  std::shared_ptr<v1::StreamPredictRequest> NewRequest() const;
  size_t pending() const;
  size_t answered() const;
  void Cancel();

 private:
  class Connection;

  // Waits until `ready` (which may look at what mu_ guards), bridging outages. A failure is the
  // stream's, for good.
  absl::Status WaitUntil(const std::function<bool()>& ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Connect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // After the end of a connection. Releases mu_ while it waits.
  void Reconnect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fail(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<Transport> transport_;
  const std::string model_;
  const PredictOptions options_;
  const absl::Duration timeout_;

  mutable absl::Mutex mu_;
  std::deque<std::shared_ptr<const v1::StreamPredictRequest>> unanswered_ ABSL_GUARDED_BY(mu_);
  size_t written_ ABSL_GUARDED_BY(mu_) = 0;  // of unanswered_, on this connection
  std::deque<v1::StreamPredictResponse> answers_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Connection> connection_ ABSL_GUARDED_BY(mu_);
  bool reconnecting_ ABSL_GUARDED_BY(mu_) = false;
  int attempts_ ABSL_GUARDED_BY(mu_) = 0;  // connections in a row without an answer
  Backoff backoff_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_PREDICT_STREAM_H_
