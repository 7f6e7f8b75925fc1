// Start, health, catalogue, drain, stop, start again.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "server/app/listen.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;

v1::UpdateRequest Rows(const std::string& model, uint64_t first, uint64_t count) {
  v1::UpdateRequest request;
  request.set_model(model);
  for (const v1::Sample& row : NumberedSamples(first, count)) *request.add_samples() = row;
  return request;
}

grpc::Status Check(Connection& connection, const std::string& service,
                   HealthCheckResponse* response) {
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service(service);
  return Health::NewStub(connection.channel)->Check(&context, request, response);
}

TEST(Health, AnswersForTheServerItsServicesAndEachModel) {
  InProcessServer server;
  server->Create("churn", SmallConfig("logistic"));
  HealthCheckResponse response;
  for (const char* service :
       {"", "kernelstream.v1.ModelService", "kernelstream.v1.OnlineUpdateService",
        "kernelstream.v1.PredictionService", "grpc.health.v1.Health", "model/churn"}) {
    ASSERT_TRUE(Check(*server.operator->(), service, &response).ok()) << service;
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING) << service;
  }
  for (const char* service : {"nothing", "model/", "model/other"}) {
    EXPECT_EQ(Check(*server.operator->(), service, &response).error_code(),
              grpc::StatusCode::NOT_FOUND);
  }
}

TEST(Health, WatchersAreToldWhenTheServerStops) {
  InProcessServer server;
  grpc::ClientContext context;
  auto stub = Health::NewStub(server->channel);
  auto reader = stub->Watch(&context, HealthCheckRequest());
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  std::thread stopper([&server] { server.server().Stop(); });
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_FALSE(reader->Finish().ok());
  stopper.join();
}

TEST(Health, WatchSeesAModelComeAndGo) {
  InProcessServer server;
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service("model/m");
  auto stub = Health::NewStub(server->channel);
  auto reader = stub->Watch(&context, request);
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  server->Create("m", SmallConfig("logistic"));
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  context.TryCancel();
  reader->Finish();
}

// A reflection request by its bytes: field 7 is list_services.
TEST(Reflection, ListsEveryService) {
  InProcessServer server;
  grpc::GenericStub stub(server->channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice slice(std::string("\x3a\x01*"));
  grpc::ByteBuffer response;
  grpc::Status status;
  auto call = stub.PrepareUnaryCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
      grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  ASSERT_TRUE(response.DumpToSingleSlice(&bytes).ok());
  const std::string text(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  for (const char* service : {"kernelstream.v1.ModelService", "kernelstream.v1.OnlineUpdateService",
                              "kernelstream.v1.PredictionService", "grpc.health.v1.Health"}) {
    EXPECT_THAT(text, HasSubstr(service));
  }
}

TEST(ModelService, CreatesOnceListsInPagesAndDeletes) {
  InProcessServer server;
  for (int i = 9; i >= 0; --i) server->Create(absl::StrCat("m", i), SmallConfig("square"));
  v1::CreateModelRequest create;
  create.set_name("m3");
  *create.mutable_config() = SmallConfig("square");
  v1::CreateModelResponse created;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(server->models->CreateModel(&context, create, &created).ok());
    EXPECT_FALSE(created.created());
    EXPECT_EQ(created.model().config().kernel().name(), "gaussian");
  }
  const grpc::Status taken = server->TryCreate("m3", SmallConfig("hinge"));
  EXPECT_EQ(taken.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  google::rpc::ResourceInfo resource;
  ASSERT_TRUE(FindDetail(DetailsOf(taken), &resource));
  EXPECT_EQ(resource.resource_name(), "m3");

  std::vector<std::string> names;
  v1::ListModelsRequest list;
  list.set_page_size(4);
  int pages = 0;
  do {
    grpc::ClientContext context;
    v1::ListModelsResponse page;
    ASSERT_TRUE(server->models->ListModels(&context, list, &page).ok());
    for (const v1::Model& model : page.models()) names.push_back(model.name());
    list.set_page_token(page.next_page_token());
    ++pages;
  } while (!list.page_token().empty());
  EXPECT_EQ(pages, 3);
  EXPECT_THAT(names,
              ::testing::ElementsAre("m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9"));
  for (const char* token : {"%%%", "garbage"}) {  // the second is base64, but of no name
    grpc::ClientContext context;
    v1::ListModelsResponse page;
    list.set_page_token(token);
    EXPECT_EQ(FieldOf(server->models->ListModels(&context, list, &page)), "page_token");
  }
  const std::string uid = server->Get("m3").uid();
  for (const auto code : {grpc::StatusCode::OK, grpc::StatusCode::NOT_FOUND}) {
    grpc::ClientContext context;
    v1::DeleteModelRequest request;
    request.set_name("m3");
    v1::DeleteModelResponse response;
    EXPECT_EQ(server->models->DeleteModel(&context, request, &response).error_code(), code);
  }
  server->Create("m3", SmallConfig("hinge"));
  EXPECT_NE(server->Get("m3").uid(), uid);
}

TEST(ModelService, TheLimitOfModelsNamesItsFlag) {
  server::HostingOptions hosting;
  hosting.max_models = 1;
  InProcessServer server(hosting);
  server->Create("a", SmallConfig("square"));
  const grpc::Status status = server->TryCreate("b", SmallConfig("square"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("--max_models"));
}

TEST(ModelService, TheCatalogueDocumentsItsParts) {
  InProcessServer server;
  grpc::ClientContext first, second, third;
  v1::ListKernelsResponse kernels;
  ASSERT_TRUE(server->models->ListKernels(&first, v1::ListKernelsRequest(), &kernels).ok());
  ASSERT_GE(kernels.kernels_size(), 2);
  for (const v1::ComponentInfo& kernel : kernels.kernels()) {
    EXPECT_FALSE(kernel.documentation().empty());
    ASSERT_GE(kernel.parameters_size(), 1);
    EXPECT_LT(kernel.parameters(0).min(), kernel.parameters(0).max());
  }
  v1::ListLossesResponse losses;
  ASSERT_TRUE(server->models->ListLosses(&second, v1::ListLossesRequest(), &losses).ok());
  EXPECT_GE(losses.losses_size(), 4);
  v1::ListSamplersResponse samplers;
  ASSERT_TRUE(server->models->ListSamplers(&third, v1::ListSamplersRequest(), &samplers).ok());
  for (const v1::ComponentInfo& sampler : samplers.samplers()) {
    EXPECT_FALSE(sampler.documentation().empty());
    EXPECT_THAT(sampler.kernels(), ::testing::Contains("gaussian")) << sampler.name();
  }
}

TEST(Lifecycle, ARestartKeepsTheModelBitForBitAndItGoesOnTheSame) {
  InProcessServer server;
  server->Create("restarted", SmallConfig("logistic"));
  server->Create("whole", SmallConfig("logistic"));
  v1::UpdateResponse response;
  ASSERT_TRUE(server->Update(Rows("restarted", 1, 200), &response).ok());
  server->WaitForSequence("restarted", 192);
  const v1::Model before = server->Get("restarted");
  server.Restart();
  server->WaitForSequence("restarted", 192);
  const v1::Model after = server->Get("restarted");
  EXPECT_EQ(after.state().fingerprint(), before.state().fingerprint());
  EXPECT_EQ(after.state().step(), before.state().step());
  EXPECT_EQ(after.uid(), before.uid());
  EXPECT_EQ(after.state().rows_pending(), 8u);
  ASSERT_TRUE(server->Update(Rows("restarted", 201, 120), &response).ok());
  ASSERT_TRUE(server->Update(Rows("whole", 1, 320), &response).ok());
  server->WaitForSequence("restarted", 320);
  server->WaitForSequence("whole", 320);
  EXPECT_EQ(server->Get("restarted").state().fingerprint(),
            server->Get("whole").state().fingerprint());
}

TEST(Lifecycle, DrainingAcknowledgesWhatWasTakenEndsStreamsAndRefusesTheRest) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  const v1::StreamUpdateRequest::Open open = OpenStream("m", "p");
  StreamSession stream(*server.operator->(), open);
  stream.Opened();
  v1::StreamUpdateRequest::Batch batch;
  for (const v1::Sample& row : NumberedSamples(1, 16)) *batch.add_samples() = row;
  uint64_t sent = 0;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(stream.Send(batch));
    sent += 16;
    ASSERT_TRUE(stream.ReadAck().has_value());
  }
  std::thread stopper([&server] { server.server().Stop(); });
  // Idle, and ended by the server all the same.
  EXPECT_FALSE(stream.ReadAck().has_value());
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  google::rpc::RetryInfo retry;
  EXPECT_TRUE(FindDetail(DetailsOf(status), &retry));
  stopper.join();
  server.Restart();
  StreamSession again(*server.operator->(), open);
  EXPECT_EQ(again.Opened().next_producer_sequence(), sent + 1);
  EXPECT_TRUE(again.Finish().ok());
}

TEST(Lifecycle, StreamsInFullFlowAreDrainedWithTruthfulAcks) {
  InProcessServer server;
  server->Create("m", SmallConfig("logistic"));
  const v1::StreamUpdateRequest::Open open = OpenStream("m", "p");
  StreamSession stream(*server.operator->(), open);
  stream.Opened();
  std::thread writer([&stream] {
    v1::StreamUpdateRequest::Batch batch;
    for (const v1::Sample& row : NumberedSamples(1, 16)) *batch.add_samples() = row;
    while (stream.Send(batch)) {
    }
  });
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(stream.ReadAck().has_value());
  absl::Duration stop_took;
  std::thread stopper([&server, &stop_took] { stop_took = server.TimeToStop(); });
  while (stream.ReadAck().has_value()) {
  }
  writer.join();
  stopper.join();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  // The server left the caller time to hear the last acknowledgements.
  EXPECT_GE(stop_took, absl::Milliseconds(100));
  const uint64_t acknowledged = stream.acks().back().next_producer_sequence();
  server.Restart();
  StreamSession again(*server.operator->(), open);
  EXPECT_GE(again.Opened().next_producer_sequence(), acknowledged);
  EXPECT_TRUE(again.Finish().ok());
}

TEST(Lifecycle, TwoServersCannotShareADataDirectoryNorAPort) {
  InProcessServer server;
  server::ServerOptions options = TestOptions(server.data_dir() + "/data");
  const auto same_directory = server::Server::Start(options);
  EXPECT_EQ(same_directory.status().code(), absl::StatusCode::kFailedPrecondition)
      << same_directory.status();
  EXPECT_THAT(std::string(same_directory.status().message()), HasSubstr("is in use by another"));

  TempDir other;
  options = TestOptions(other.path() + "/data");
  options.listen = server.address();
  const auto same_port = server::Server::Start(options);
  EXPECT_EQ(same_port.status().code(), absl::StatusCode::kUnavailable) << same_port.status();
  EXPECT_THAT(std::string(same_port.status().message()),
              HasSubstr(absl::StrCat("address in use: ", server.address())));
}

// Connections of the port in state TIME_WAIT, which is 06 in these tables.
int TimeWaitConnections(const std::string& table_path, int port) {
  std::ifstream table(table_path);
  std::string line;
  int count = 0;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string slot, local, remote, state;
    words >> slot >> local >> remote >> state;
    const std::vector<std::string> parts = absl::StrSplit(local, ':');
    if (parts.size() == 2 && state == "06" && std::stoi(parts[1], nullptr, 16) == port) ++count;
  }
  return count;
}

TEST(Lifecycle, StartsOnAPortThatIsInTimeWait) {
  InProcessServer server;
  const std::string address = server.address();
  const auto parsed = server::ParseHostAndPort("listen", address);
  ASSERT_TRUE(parsed.ok());
  // A plain connection that the server closes first: it sends a farewell to what is no gRPC.
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(parsed->port));
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&peer), sizeof(peer)), 0);
  ASSERT_GT(write(fd, "GET / HTTP/1.1\r\n\r\n", 18), 0);
  char buffer[4096];
  while (read(fd, buffer, sizeof(buffer)) > 0) {
  }
  close(fd);
  // gRPC's sockets may be of either kind.
  EXPECT_GT(TimeWaitConnections("/proc/net/tcp", parsed->port) +
                TimeWaitConnections("/proc/net/tcp6", parsed->port),
            0);
  server.options().listen = address;
  server.Restart();
  EXPECT_EQ(server.address(), address);
  server->Create("m", SmallConfig("square"));
}

TEST(Lifecycle, AddressesThatCannotBeListenedOnAreExplained) {
  TempDir dir;
  for (const char* listen :
       {"nonsense", "127.0.0.1:99999", "127.0.0.1:", ":1", "::1:50051", "a/b:1"}) {
    EXPECT_FALSE(server::ParseHostAndPort("listen", listen).ok()) << listen;
  }
  EXPECT_EQ(server::ParseHostAndPort("listen", "[::1]:5")->host, "::1");
  EXPECT_EQ(server::JoinHostAndPort({"::1", 5}), "[::1]:5");
  server::ServerOptions options = TestOptions(dir.path() + "/data");
  options.listen = "192.0.2.1:0";  // reserved for documentation: nobody's address
  const auto server = server::Server::Start(options);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("no address of this machine"));
}

TEST(Metrics, CountRpcsByMethodAndCode) {
  TempDir dir;
  server::ServerOptions options = TestOptions(dir.path() + "/data");
  options.metrics_listen = "127.0.0.1:0";
  auto server = server::Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  Connection connection((*server)->address());
  connection.Create("m", SmallConfig("square"));
  v1::UpdateRequest request;
  v1::UpdateResponse response;
  EXPECT_FALSE(connection.Update(request, &response).ok());

  const std::string text = ReadMetrics((*server)->metrics_port());
  EXPECT_THAT(text, HasSubstr("grpc_server_handled_total{"));
  bool found = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    found = found || (absl::StrContains(line, "grpc_server_handled_total") &&
                      absl::StrContains(line, "\"Update\"") &&
                      absl::StrContains(line, "INVALID_ARGUMENT") && absl::EndsWith(line, " 1"));
  }
  EXPECT_TRUE(found) << text;
}

}  // namespace
}  // namespace kernelstream::support
