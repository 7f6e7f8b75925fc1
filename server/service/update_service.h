// Learning: labelled rows come in.
#ifndef KERNELSTREAM_SERVER_SERVICE_UPDATE_SERVICE_H_
#define KERNELSTREAM_SERVER_SERVICE_UPDATE_SERVICE_H_

#include "kernelstream/v1/online_update_service.grpc.pb.h"
#include "server/service/call.h"
#include "server/service/stream_set.h"

namespace kernelstream::server {

namespace update_service_internal {
using V1 = v1::OnlineUpdateService;
using Base = V1::WithRawCallbackMethod_Update<V1::WithRawCallbackMethod_StreamUpdate<V1::Service>>;
}  // namespace update_service_internal

// Thread-safe. See online_update_service.proto.
class UpdateServiceImpl final : public update_service_internal::Base {
 public:
  explicit UpdateServiceImpl(const ServiceContext& context);

  // Streams read no further, and end with UNAVAILABLE once everything they took in is acknowledged.
  // So do new ones.
  void BeginDrain() { streams_.Drain(); }
  // Whether a stream was ended by it.
  bool DrainedStreams() const { return streams_.drained_any(); }

  grpc::ServerUnaryReactor* Update(grpc::CallbackServerContext* call,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StreamUpdate(
      grpc::CallbackServerContext* call) override;

 private:
  const ServiceContext context_;
  RpcMetrics &update_, &stream_;
  StreamSet streams_;
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_UPDATE_SERVICE_H_
