// The gRPC health protocol, telling the truth.
#ifndef KERNELSTREAM_SERVER_SERVICE_HEALTH_SERVICE_H_
#define KERNELSTREAM_SERVER_SERVICE_HEALTH_SERVICE_H_

#include <atomic>
#include <string>

#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/support/server_callback.h"
#include "server/hosting/model_registry.h"

namespace kernelstream::server {

// Thread-safe. SERVING:
//   "" and each service   all models have been loaded (or are known to be damaged), and the server
//   is not draining "model/NAME"          the model can answer predictions, and the server is not
//   draining
// Asked for anew every time, so it cannot be stale. Watch looks four times a second.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  explicit HealthService(const ModelRegistry* registry) : registry_(registry) {}

  // From now on NOT_SERVING; watchers are told, then their streams end.
  void BeginDrain() { draining_.store(true); }

  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;
  // SERVICE_UNKNOWN: no such service or model.
  Status StatusOf(const std::string& service) const;
  bool draining() const { return draining_.load(); }

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* call,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* call,
      const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  const ModelRegistry* const registry_;
  std::atomic<bool> draining_{false};
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_HEALTH_SERVICE_H_
