#include "server/app/server.h"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/feature/feature_map.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/grpcpp.h"
#include "server/app/listen.h"
#include "server/hosting/log_writer.h"
#include "server/hosting/model_registry.h"
#include "server/hosting/training_pool.h"
#include "server/service/health_service.h"
#include "server/service/model_service.h"
#include "server/service/prediction_service.h"
#include "server/service/update_service.h"
#include "server/service/wire_bytes.h"
#include "server/store/store.h"
#include "server/telemetry/metrics.h"

namespace kernelstream::server {
namespace {

constexpr int kDiskThreads = 2;
constexpr size_t kMaxQueuedDiskCalls = 256;
constexpr size_t kMaxQueuedPredictions = 1024;
// Calls that are still there after draining get this long before they are cancelled.
constexpr absl::Duration kLastCalls = absl::Seconds(1);
// Callers whose streams were ended get this long to hear it and to send no more. TCP drops the last
// words of a connection that is closed with requests unread: acknowledgements, and why it ended.
constexpr absl::Duration kLastWords = absl::Milliseconds(100);

constexpr int kMaxStreamsPerConnection = 1000;
constexpr int kKeepaliveMs = 60'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
// A client may ask "are you there" this often, also between calls.
constexpr int kLeastPingIntervalMs = 10'000;

int Cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void AddArguments(grpc::ServerBuilder& builder, uint64_t max_message_bytes) {
  builder.SetMaxReceiveMessageSize(TransportLimit(max_message_bytes));
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kLeastPingIntervalMs);
}

// Whole or not at all, so that whoever waits for the file never reads half an address.
absl::Status WritePortFile(const std::string& path, const std::string& address) {
  const std::string draft = absl::StrCat(path, ".new");
  std::FILE* file = std::fopen(draft.c_str(), "w");
  bool ok = file != nullptr && std::fputs(absl::StrCat(address, "\n").c_str(), file) >= 0;
  if (file != nullptr) ok = std::fclose(file) == 0 && ok;
  if (ok && std::rename(draft.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--port_file \"", path,
                   "\" cannot be written; check that its directory is there and writable"));
}

}  // namespace

// In the order of construction: each may use those before it.
struct Server::Parts {
  ServerOptions options;
  std::unique_ptr<Metrics> metrics = std::make_unique<Metrics>();
  std::unique_ptr<Store> store;
  std::unique_ptr<FeatureCacheBudget> feature_cache;
  std::unique_ptr<LogWriter> log;
  std::unique_ptr<TrainingPool> training;
  std::unique_ptr<ModelRegistry> registry;
  std::unique_ptr<WorkerPool> serving, disk;
  std::unique_ptr<PredictionGroups> groups;
  std::unique_ptr<HealthService> health;
  std::unique_ptr<ModelServiceImpl> models;
  std::unique_ptr<UpdateServiceImpl> updates;
  std::unique_ptr<PredictionServiceImpl> predictions;
  std::unique_ptr<grpc::Server> grpc;
  std::string address;
  int metrics_port = 0;
  bool stopped = false;

  absl::Status OpenModels();
  absl::Status Listen();
};

absl::Status Server::Parts::OpenModels() {
  auto opened = OpenRocksDbStore(options.data_dir);
  if (!opened.ok()) return opened.status();
  store = *std::move(opened);
  feature_cache =
      std::make_unique<FeatureCacheBudget>(static_cast<int64_t>(options.feature_cache_mib << 20));
  log = std::make_unique<LogWriter>(store.get(), Clock::System(), metrics.get());
  TrainingPool::Options pool;
  pool.threads = options.training_threads > 0 ? options.training_threads : Cores();
  training = std::make_unique<TrainingPool>(pool, Clock::System());
  HostingEnvironment environment;
  environment.store = store.get();
  environment.log = log.get();
  environment.pool = training.get();
  environment.clock = Clock::System();
  environment.metrics = metrics.get();
  environment.feature_cache = options.feature_cache_mib == 0 ? nullptr : feature_cache.get();
  registry = std::make_unique<ModelRegistry>(environment, options.hosting);
  return registry->LoadAll();
}

absl::Status Server::Parts::Listen() {
  const auto wanted = ParseHostAndPort("listen", options.listen);
  if (!wanted.ok()) return wanted.status();
  serving = std::make_unique<WorkerPool>(Cores(), kMaxQueuedPredictions);
  groups = std::make_unique<PredictionGroups>(serving.get(), Cores(), kMaxQueuedPredictions);
  disk = std::make_unique<WorkerPool>(kDiskThreads, kMaxQueuedDiskCalls);
  ServiceContext context;
  context.registry = registry.get();
  context.metrics = metrics.get();
  context.serving = serving.get();
  context.groups = options.group_predictions ? groups.get() : nullptr;
  context.disk = disk.get();
  context.max_message_bytes = options.max_message_mib << 20;
  context.max_pending_rows = options.hosting.max_pending_rows;
  health = std::make_unique<HealthService>(registry.get());
  models = std::make_unique<ModelServiceImpl>(context);
  updates = std::make_unique<UpdateServiceImpl>(context);
  predictions = std::make_unique<PredictionServiceImpl>(context);

  if (absl::Status free = CheckCanListen("listen", *wanted); !free.ok()) return free;
  if (!options.metrics_listen.empty()) {
    const auto metrics_wanted = ParseHostAndPort("metrics_listen", options.metrics_listen);
    if (!metrics_wanted.ok()) return metrics_wanted.status();
    const absl::Status free = CheckCanListen("metrics_listen", *metrics_wanted);
    if (!free.ok()) return free;
  }
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  AddArguments(builder, context.max_message_bytes);
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(health.get());
  builder.RegisterService(models.get());
  builder.RegisterService(updates.get());
  builder.RegisterService(predictions.get());
  grpc = builder.BuildAndStart();
  if (grpc == nullptr || port == 0) {
    if (absl::Status free = CheckCanListen("listen", *wanted); !free.ok()) return free;
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.listen, "; choose another --listen"));
  }
  address = JoinHostAndPort({wanted->host, port});
  if (!options.metrics_listen.empty()) {
    auto bound = metrics->Serve(options.metrics_listen);
    if (!bound.ok()) {
      return absl::Status(bound.status().code(),
                          absl::StrCat("--metrics_listen: ", bound.status().message()));
    }
    metrics_port = *bound;
  }
  if (options.port_file.empty()) return absl::OkStatus();
  return WritePortFile(options.port_file, address);
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
#ifdef NDEBUG
  // Debian's Abseil searches for lock cycles at every lock, of gRPC's too, which costs a call a
  // tenth of its time. Builds with assertions keep looking.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  QuietProtobuf();
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  std::unique_ptr<Server> server(new Server(std::move(parts)));
  Parts& p = *server->parts_;
  absl::Status status = p.OpenModels();
  if (status.ok()) {
    p.metrics->ObserveFeatureCache(
        [budget = p.feature_cache.get()] { return static_cast<double>(budget->used()); });
    status = p.Listen();
  }
  if (!status.ok()) return status;
  return server;
}

Server::~Server() { Stop(); }

const std::string& Server::address() const { return parts_->address; }
int Server::metrics_port() const { return parts_->metrics_port; }

void Server::Stop() {
  Parts& p = *parts_;
  if (std::exchange(p.stopped, true)) return;
  if (p.health != nullptr) p.health->BeginDrain();
  if (p.updates != nullptr) p.updates->BeginDrain();
  if (p.predictions != nullptr) p.predictions->BeginDrain();
  if (p.registry != nullptr) {
    if (p.grpc != nullptr) p.registry->Drain(p.options.shutdown_grace);
    p.registry->Stop();
  }
  if (p.grpc != nullptr && (p.updates->DrainedStreams() || p.predictions->DrainedStreams())) {
    absl::SleepFor(kLastWords);
  }
  if (p.grpc != nullptr) p.grpc->Shutdown(absl::ToChronoTime(absl::Now() + kLastCalls));
  if (p.disk != nullptr) p.disk->Shutdown();
  if (p.serving != nullptr) p.serving->Shutdown();
  if (p.log != nullptr) p.log->Shutdown();
  if (p.training != nullptr) p.training->Shutdown();
  p.metrics->Stop();
  p.grpc.reset();
}

}  // namespace kernelstream::server
