// The online-update stream.
#ifndef KERNELSTREAM_SERVER_SERVICE_UPDATE_STREAM_H_
#define KERNELSTREAM_SERVER_SERVICE_UPDATE_STREAM_H_

#include <memory>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/service/call.h"

namespace kernelstream::server {

class UpdateStream;

// Thread-safe. The streams that are open, so that they can be ended politely.
class UpdateStreamSet {
 public:
  void Add(const std::shared_ptr<UpdateStream>& stream);
  void Remove(const UpdateStream* stream);
  // Drains all streams, also those added later.
  void Drain();

 private:
  absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_map<const UpdateStream*, std::weak_ptr<UpdateStream>> streams_
      ABSL_GUARDED_BY(mutex_);
};

// Serves one StreamUpdate call. `metrics` and `streams` outlive it.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartUpdateStream(
    const ServiceContext& context, RpcMetrics& metrics, UpdateStreamSet* streams);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_UPDATE_STREAM_H_
