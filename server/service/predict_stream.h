// The stream of predictions.
#ifndef KERNELSTREAM_SERVER_SERVICE_PREDICT_STREAM_H_
#define KERNELSTREAM_SERVER_SERVICE_PREDICT_STREAM_H_

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/service/call.h"
#include "server/service/stream_set.h"

namespace kernelstream::server {

// Serves one StreamPredict call. `metrics` and `streams` outlive it.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartPredictStream(
    const ServiceContext& context, RpcMetrics& metrics, StreamSet* streams,
    grpc::CallbackServerContext* call);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_PREDICT_STREAM_H_
