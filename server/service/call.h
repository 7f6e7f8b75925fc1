// What all calls have in common.
#ifndef KERNELSTREAM_SERVER_SERVICE_CALL_H_
#define KERNELSTREAM_SERVER_SERVICE_CALL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/hosting/model_registry.h"
#include "server/service/prediction_groups.h"
#include "server/service/worker_pool.h"
#include "server/telemetry/metrics.h"

namespace kernelstream::server {

// What the services work with. Everything outlives the gRPC server.
struct ServiceContext {
  ModelRegistry* registry = nullptr;
  Metrics* metrics = nullptr;
  WorkerPool* serving = nullptr;       // large predictions
  PredictionGroups* groups = nullptr;  // on that pool; null: every request by itself
  WorkerPool* disk = nullptr;          // calls that wait for the disk
  uint64_t max_message_bytes = 0;
  uint64_t max_pending_rows = 0;  // HostingOptions
};

// Rows of a prediction or an evaluation that one message may hold.
inline constexpr uint64_t kMaxScoredRows = 1 << 20;

// Thread-compatible. Counts and times one call: begins when made, ends with Ended.
class CallRecord {
 public:
  explicit CallRecord(RpcMetrics& metrics);
  void Ended(grpc::StatusCode code) const;

 private:
  RpcMetrics* metrics_;
  absl::Time start_;
};

// Thread-compatible; movable into the callback that will answer. One unary call whose request is
// decoded by us. Exactly one of Ok and Error has to be called, from any thread.
class UnaryReply {
 public:
  UnaryReply(RpcMetrics& metrics, grpc::CallbackServerContext* call, grpc::ByteBuffer* response)
      : record_(metrics), reactor_(call->DefaultReactor()), response_(response) {}

  // What the handler returns to gRPC.
  grpc::ServerUnaryReactor* reactor() const { return reactor_; }
  void Ok(const google::protobuf::Message& response) const;
  void Error(const absl::Status& status) const;

 private:
  CallRecord record_;
  grpc::ServerUnaryReactor* reactor_;
  grpc::ByteBuffer* response_;
};

// The model, or NOT_FOUND with the names there are; INVALID_ARGUMENT about `field` if the name is
// empty.
absl::StatusOr<std::shared_ptr<HostedModel>> FindModel(const ServiceContext& context,
                                                       absl::string_view field,
                                                       const std::string& name);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_CALL_H_
