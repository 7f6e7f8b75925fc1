// Predictions, from published snapshots.
#ifndef KERNELSTREAM_SERVER_SERVICE_PREDICTION_SERVICE_H_
#define KERNELSTREAM_SERVER_SERVICE_PREDICTION_SERVICE_H_

#include "kernelstream/v1/prediction_service.grpc.pb.h"
#include "server/service/call.h"
#include "server/service/stream_set.h"

namespace kernelstream::server {

namespace prediction_service_internal {
using V1 = v1::PredictionService;
using Base = V1::WithRawCallbackMethod_Predict<
    V1::WithRawCallbackMethod_StreamPredict<V1::WithRawCallbackMethod_Evaluate<V1::Service>>>;
}  // namespace prediction_service_internal

// Thread-safe. See prediction_service.proto. Small requests are evaluated on gRPC's threads, large
// ones on the serving pool. No request waits for learning, except for a min_sequence it asks for,
// and then without a thread.
class PredictionServiceImpl final : public prediction_service_internal::Base {
 public:
  explicit PredictionServiceImpl(const ServiceContext& context);

  // StreamPredict calls read no further, and end with UNAVAILABLE once everything they took in is
  // answered. So do new ones.
  void BeginDrain() { streams_.Drain(); }
  // Whether a stream was ended by it.
  bool DrainedStreams() const { return streams_.drained_any(); }

  grpc::ServerUnaryReactor* Predict(grpc::CallbackServerContext* call,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StreamPredict(
      grpc::CallbackServerContext* call) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* Evaluate(grpc::CallbackServerContext* call,
                                                      grpc::ByteBuffer* response) override;

 private:
  const ServiceContext context_;
  RpcMetrics &predict_, &stream_, &evaluate_;
  StreamSet streams_;
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_PREDICTION_SERVICE_H_
