// A server with many models: the memory of one, beside that of its coefficients, and how soon a
// restarted server has loaded them all.
//   fleet_bench [models that are restarted, default 1000]
#include <grpcpp/grpcpp.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "kernelstream/v1/model_service.grpc.pb.h"
#include "kernelstream/v1/online_update_service.grpc.pb.h"
#include "server/app/server.h"
#include "tests/bench/bars.h"
#include "tests/bench/machine_limits.h"
#include "tests/support/one_learner.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

namespace v1 = ::kernelstream::v1;

constexpr uint32_t kDim = 8;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Check(const grpc::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.error_message().c_str());
  std::exit(1);
}

// Resident, with what the allocator holds back returned first.
double MemoryBytes() {
  malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

struct Fleet {
  explicit Fleet(const server::ServerOptions& options) {
    auto started = server::Server::Start(options);
    if (!started.ok()) {
      std::fprintf(stderr, "%s\n", std::string(started.status().message()).c_str());
      std::exit(1);
    }
    server = *std::move(started);
    const auto channel = grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials());
    models = v1::ModelService::NewStub(channel);
    updates = v1::OnlineUpdateService::NewStub(channel);
    health = grpc::health::v1::Health::NewStub(channel);
  }

  void CreateAndLearn(const std::string& name, const v1::ModelConfig& config, uint32_t rows) {
    grpc::ClientContext creating;
    creating.set_wait_for_ready(true);
    v1::CreateModelRequest create;
    create.set_name(name);
    *create.mutable_config() = config;
    v1::CreateModelResponse created;
    Check(models->CreateModel(&creating, create, &created), "CreateModel");
    Random random(std::hash<std::string>()(name));
    v1::UpdateRequest update;
    update.set_model(name);
    update.set_ack(v1::ACK_LEVEL_APPLIED);
    v1::SampleMatrix& matrix = *update.mutable_matrix();
    matrix.set_rows(rows);
    matrix.set_dimension(kDim);
    std::vector<float> values(size_t{rows} * kDim);
    for (float& value : values) value = static_cast<float>(random.Normal());
    matrix.set_values(values.data(), values.size() * sizeof(float));
    for (uint32_t i = 0; i < rows; ++i) matrix.add_targets(values[size_t{i} * kDim] > 0 ? 1 : -1);
    grpc::ClientContext updating;
    v1::UpdateResponse updated;
    Check(updates->Update(&updating, update, &updated), "Update");
  }

  v1::Model Get(const std::string& name) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_name(name);
    v1::GetModelResponse response;
    Check(models->GetModel(&context, request, &response), "GetModel");
    return response.model();
  }

  // Once all models are loaded.
  bool IsServing() {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    grpc::health::v1::HealthCheckResponse response;
    Check(health->Check(&context, {}, &response), "Check");
    return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
  }

  std::unique_ptr<server::Server> server;
  std::unique_ptr<v1::ModelService::Stub> models;
  std::unique_ptr<v1::OnlineUpdateService::Stub> updates;
  std::unique_ptr<grpc::health::v1::Health::Stub> health;
};

v1::ModelConfig Defaults() {
  v1::ModelConfig config;
  config.mutable_loss()->set_name("logistic");
  return config;
}

// models: so many that the store's memory for what it has not written to files yet, which all share
// and which is 0 to 8 MiB, does not matter.
void MeasureMemory(const char* what, const v1::ModelConfig& config, uint32_t rows, int models,
                   Fleet& fleet) {
  // The first ones make what all share: scratch of threads, pools of the store.
  const std::string prefix = absl::StrCat("memory-", rows, "-", config.max_features(), "-");
  for (int i = 0; i < 4; ++i) fleet.CreateAndLearn(absl::StrCat(prefix, "first", i), config, rows);
  const double before = MemoryBytes();
  for (int i = 0; i < models; ++i) {
    fleet.CreateAndLearn(absl::StrCat(prefix, i), config, rows);
  }
  const double bytes = (MemoryBytes() - before) / models;
  const v1::Model model = fleet.Get(absl::StrCat(prefix, 0));
  const auto features = static_cast<double>(model.state().num_features());
  const double learners = std::max(1, model.state().resolved().candidates_size());
  const double bar = 8.5 * features * learners + 262144;
  std::printf(
      "%-34s %8.0f KiB a model: %.0f features x %.0f learners, %u rows; 8.5 bytes for each and 256 "
      "KiB: %.0f KiB; taken / that %.2f\n",
      what, bytes / 1024, features, learners, rows, bar / 1024, bytes / bar);
  std::fflush(stdout);
  bench::Print({13, absl::StrCat("memory of one more model, ", what, ", ", rows, " rows"),
                bytes / bar, 0, "x 8.5 bytes per coefficient and learner and 256 KiB", false, 1});
}

int RunBench(int count) {
  std::printf("%s\n", bench::MachineLine().c_str());
  const std::string folder = std::filesystem::temp_directory_path() /
                             ("kernelstream_fleet_bench_" + std::to_string(::getpid()));
  server::ServerOptions options;
  options.data_dir = folder;
  options.listen = "127.0.0.1:0";
  options.metrics_listen = "";
  options.log_level = server::LogLevel::kError;
  options.feature_cache_mib = 0;
  {
    Fleet fleet(options);
    MeasureMemory("one learner, no replay", support::OneLearner(8192, 1), 4096, 200, fleet);
    MeasureMemory("nothing but the loss", Defaults(), 4096, 40, fleet);
    MeasureMemory("nothing but the loss", Defaults(), 20000, 30, fleet);
    fleet.server->Stop();
  }
  std::filesystem::remove_all(folder);
  {
    Fleet fleet(options);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
      fleet.CreateAndLearn(absl::StrCat("m", i), support::OneLearner(256, 1), 64);
    }
    std::printf("%d small models created, 64 rows learned by each: %.1f s\n", count,
                SecondsSince(start));
    fleet.server->Stop();
  }
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    Fleet fleet(options);
    while (!fleet.IsServing()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    times.push_back(SecondsSince(start));
    fleet.server->Stop();
  }
  std::sort(times.begin(), times.end());
  std::printf("restart -> all %d models answer: median %.2f s, %.2f to %.2f (5 times)\n", count,
              times[2], times.front(), times.back());
  bench::Print({13, absl::StrCat("restart with ", count, " small models"), times[2],
                bench::Spread(times), "s", false, 2});
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace kernelstream

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 1000;
  if (count < 1 || count > 1000) {
    std::fprintf(stderr, "usage: fleet_bench [models that are restarted, 1 to 1000]\n");
    return 2;
  }
  return kernelstream::RunBench(count);
}
