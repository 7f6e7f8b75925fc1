#include "server/service/health_service.h"

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/alarm.h"
#include "server/service/status_mapping.h"

namespace kernelstream::server {
namespace {

using grpc::health::v1::HealthCheckResponse;

constexpr std::array<absl::string_view, 5> kServices = {
    "", "kernelstream.v1.ModelService", "kernelstream.v1.OnlineUpdateService",
    "kernelstream.v1.PredictionService", "grpc.health.v1.Health"};
constexpr absl::Duration kWatchInterval = absl::Milliseconds(250);

// Thread-safe. One Watch call. Kept alive by gRPC until OnDone.
class Watcher final : public grpc::ServerWriteReactor<HealthCheckResponse>,
                      public std::enable_shared_from_this<Watcher> {
 public:
  Watcher(const HealthService* health, std::string service)
      : health_(health), service_(std::move(service)) {}

  void Start() {
    self_ = shared_from_this();
    Look();
  }

  void OnWriteDone(bool ok) override {
    {
      absl::MutexLock lock(&mutex_);
      writing_ = false;
      if (!ok) cancelled_ = true;
    }
    Look();
  }

  void OnCancel() override {
    {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
    }
    Look();
  }

  void OnDone() override { const std::shared_ptr<Watcher> last = std::move(self_); }

 private:
  void Look() {
    absl::MutexLock lock(&mutex_);
    if (finished_ || writing_) return;
    if (cancelled_) return FinishWith(absl::CancelledError("the caller cancelled the stream"));
    const bool draining = health_->draining();
    const HealthService::Status status = health_->StatusOf(service_);
    if (last_ != status) {
      last_ = status;
      response_.set_status(status);
      writing_ = true;
      StartWrite(&response_);
      return;
    }
    if (draining) return FinishWith(absl::UnavailableError("the server is stopping"));
    alarm_ = std::make_unique<grpc::Alarm>();
    // Weak: the alarm keeps this callback, and the call keeps the alarm.
    alarm_->Set(absl::ToChronoTime(absl::Now() + kWatchInterval),
                [weak = weak_from_this()](bool expired) {
                  const std::shared_ptr<Watcher> self = weak.lock();
                  if (expired && self != nullptr) self->Look();
                });
  }

  void FinishWith(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_ = true;
    if (alarm_ != nullptr) alarm_->Cancel();
    Finish(ToGrpc(status));
  }

  const HealthService* const health_;
  const std::string service_;
  std::shared_ptr<Watcher> self_;  // until OnDone
  absl::Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<HealthService::Status> last_ ABSL_GUARDED_BY(mutex_);
  HealthCheckResponse response_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

HealthService::Status HealthService::StatusOf(const std::string& service) const {
  const bool draining = draining_.load();
  for (const absl::string_view known : kServices) {
    if (service == known) {
      return !draining && registry_->AllLoaded() ? HealthCheckResponse::SERVING
                                                 : HealthCheckResponse::NOT_SERVING;
    }
  }
  absl::string_view name = service;
  if (!absl::ConsumePrefix(&name, "model/")) return HealthCheckResponse::SERVICE_UNKNOWN;
  const auto model = registry_->Get(name);
  if (!model.ok()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return !draining && (*model)->ServingSnapshot().ok() ? HealthCheckResponse::SERVING
                                                       : HealthCheckResponse::NOT_SERVING;
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* call,
                                               const grpc::health::v1::HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  const Status status = StatusOf(request->service());
  if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
    reactor->Finish(ToGrpc(absl::NotFoundError(
        absl::StrCat("there is no service \"", request->service(),
                     "\"; known: \"\", the services that reflection lists, and model/NAME"))));
    return reactor;
  }
  response->set_status(status);
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext*, const grpc::health::v1::HealthCheckRequest* request) {
  auto watcher = std::make_shared<Watcher>(this, request->service());
  watcher->Start();
  return watcher.get();
}

}  // namespace kernelstream::server
