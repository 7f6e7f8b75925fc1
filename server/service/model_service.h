// Life of a named model, and the catalogue of its parts.
#ifndef KERNELSTREAM_SERVER_SERVICE_MODEL_SERVICE_H_
#define KERNELSTREAM_SERVER_SERVICE_MODEL_SERVICE_H_

#include "kernelstream/v1/model_service.grpc.pb.h"
#include "server/service/call.h"

namespace kernelstream::server {

namespace model_service_internal {
using V1 = v1::ModelService;
using Base = V1::WithRawCallbackMethod_CreateModel<V1::WithRawCallbackMethod_GetModel<
    V1::WithRawCallbackMethod_ListModels<V1::WithRawCallbackMethod_DeleteModel<
        V1::WithRawCallbackMethod_ListKernels<V1::WithRawCallbackMethod_ListLosses<
            V1::WithRawCallbackMethod_ListSamplers<V1::Service>>>>>>>;
}  // namespace model_service_internal

// Thread-safe. See model_service.proto. Stateless.
class ModelServiceImpl final : public model_service_internal::Base {
 public:
  explicit ModelServiceImpl(const ServiceContext& context);

  grpc::ServerUnaryReactor* CreateModel(grpc::CallbackServerContext* call,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* call,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* call,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DeleteModel(grpc::CallbackServerContext* call,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListKernels(grpc::CallbackServerContext* call,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListLosses(grpc::CallbackServerContext* call,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListSamplers(grpc::CallbackServerContext* call,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;

 private:
  const ServiceContext context_;
  RpcMetrics &create_, &get_, &list_, &delete_, &kernels_, &losses_, &samplers_;
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_MODEL_SERVICE_H_
