#include "tests/support/server_fixture.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"

extern char** environ;

namespace kernelstream::support {
namespace {

constexpr absl::Duration kCallDeadline = absl::Seconds(60);

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCallDeadline));
}

// SplitMix64 (Steele et al. 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// In [-1, 1).
float Uniform(uint64_t key) {
  return static_cast<float>(static_cast<double>(Mix(key) >> 40) / (1 << 23) - 1);
}

}  // namespace

TempDir::TempDir() {
  std::string pattern = absl::StrCat(testing::TempDir(), "/kernelstream.XXXXXX");
  const char* made = mkdtemp(pattern.data());
  if (made == nullptr) std::abort();
  path_ = made;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Connection::Connection(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  arguments.SetMaxReceiveMessageSize(-1);
  channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  models = v1::ModelService::NewStub(channel);
  updates = v1::OnlineUpdateService::NewStub(channel);
  predictions = v1::PredictionService::NewStub(channel);
}

void Connection::WaitUntilServing() {
  using grpc::health::v1::HealthCheckResponse;
  grpc::ClientContext context;
  SetDeadline(context);
  auto stub = grpc::health::v1::Health::NewStub(channel);
  auto reader = stub->Watch(&context, grpc::health::v1::HealthCheckRequest());
  HealthCheckResponse response;
  while (reader->Read(&response) && response.status() != HealthCheckResponse::SERVING) {
  }
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  context.TryCancel();
  reader->Finish();
}

grpc::Status Connection::TryCreate(const std::string& name, const v1::ModelConfig& config) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::CreateModelRequest request;
  request.set_name(name);
  *request.mutable_config() = config;
  v1::CreateModelResponse response;
  return models->CreateModel(&context, request, &response);
}

void Connection::Create(const std::string& name, const v1::ModelConfig& config) {
  const grpc::Status status = TryCreate(name, config);
  ASSERT_TRUE(status.ok()) << status.error_message();
}

v1::Model Connection::Get(const std::string& name) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetModelRequest request;
  request.set_name(name);
  v1::GetModelResponse response;
  const grpc::Status status = models->GetModel(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.model();
}

grpc::Status Connection::Update(const v1::UpdateRequest& request, v1::UpdateResponse* response) {
  grpc::ClientContext context;
  SetDeadline(context);
  return updates->Update(&context, request, response);
}

grpc::Status Connection::Predict(const v1::PredictRequest& request, v1::PredictResponse* response) {
  grpc::ClientContext context;
  SetDeadline(context);
  context.set_wait_for_ready(true);
  return predictions->Predict(&context, request, response);
}

void Connection::WaitForSequence(const std::string& model, uint64_t sequence) {
  v1::PredictRequest request;
  request.set_model(model);
  request.set_min_sequence(sequence);
  request.add_instances()->mutable_sparse();  // a row of zeros, of any width
  v1::PredictResponse response;
  const grpc::Status status = Predict(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
}

server::ServerOptions TestOptions(const std::string& data_dir) {
  server::ServerOptions options;
  options.data_dir = data_dir;
  options.listen = "127.0.0.1:0";
  options.metrics_listen = "";
  options.training_threads = 1;
  options.shutdown_grace = absl::Seconds(10);
  return options;
}

InProcessServer::InProcessServer(server::HostingOptions hosting, uint64_t max_message_mib)
    : options_(TestOptions(dir_.path() + "/data")) {
  options_.hosting = hosting;
  options_.max_message_mib = max_message_mib;
  Restart();
}

InProcessServer::~InProcessServer() { Stop(); }

absl::Duration InProcessServer::TimeToStop() {
  const absl::Time start = absl::Now();
  server_->Stop();
  return absl::Now() - start;
}

void InProcessServer::Stop() {
  if (server_ != nullptr) server_->Stop();
  server_.reset();
}

void InProcessServer::Restart() {
  Stop();
  auto server = server::Server::Start(options_);
  if (!server.ok()) {
    ADD_FAILURE() << server.status();
    std::abort();
  }
  server_ = *std::move(server);
  connection_ = std::make_unique<Connection>(server_->address());
  connection_->WaitUntilServing();
}

ServerProcess::ServerProcess(const std::string& data_dir, std::vector<std::string> flags,
                             std::vector<std::string> environment) {
  std::vector<std::string> words = {KERNELSTREAM_SERVER_BINARY};
  if (!data_dir.empty()) words.push_back(absl::StrCat("--data_dir=", data_dir));
  words.insert(words.end(), {"--listen=127.0.0.1:0", "--metrics_listen=", "--training_threads=1"});
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  for (std::string& variable : environment) envp.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) envp.push_back(*variable);
  envp.push_back(nullptr);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  const int error =
      posix_spawn(&pid_, KERNELSTREAM_SERVER_BINARY, &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) std::abort();
  pipe_ = ends[0];
  reader_ = std::thread([this] { ReadOutput(); });
}

ServerProcess::~ServerProcess() {
  if (!status_.has_value()) Kill();
  reader_.join();
  close(pipe_);
}

void ServerProcess::ReadOutput() {
  char buffer[4096];
  while (true) {
    const ssize_t got = read(pipe_, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    absl::MutexLock lock(&mutex_);
    if (got <= 0) {
      closed_ = true;
      return;
    }
    output_.append(buffer, static_cast<size_t>(got));
  }
}

std::string ServerProcess::WaitUntilListening() {
  const std::string kEvent = "event=listening address=";
  absl::MutexLock lock(&mutex_);
  const auto settled = [this, &kEvent]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    const size_t at = output_.find(kEvent);
    return closed_ || (at != std::string::npos && output_.find('\n', at) != std::string::npos);
  };
  mutex_.Await(absl::Condition(&settled));
  const size_t at = output_.find(kEvent);
  if (at == std::string::npos) return "";
  const size_t begin = at + kEvent.size();
  return output_.substr(begin, output_.find_first_of(" \n", begin) - begin);
}

void ServerProcess::Signal(int signal) { kill(pid_, signal); }

bool ServerProcess::Kill() {
  if (!status_.has_value()) Signal(SIGKILL);
  WaitForExit();
  return WIFSIGNALED(*status_) && WTERMSIG(*status_) == SIGKILL;
}

int ServerProcess::WaitForExit() {
  if (!status_.has_value()) {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = status;
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&closed_));
  }
  return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_);
}

std::string ServerProcess::output() const {
  absl::MutexLock lock(&mutex_);
  return output_;
}

std::string ReadMetrics(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(port));
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  constexpr char kGet[] = "GET /metrics HTTP/1.0\r\n\r\n";
  std::string text;
  char buffer[65536];
  if (connect(fd, reinterpret_cast<sockaddr*>(&peer), sizeof(peer)) == 0 &&
      write(fd, kGet, sizeof(kGet) - 1) > 0) {
    for (ssize_t got; (got = read(fd, buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
  }
  close(fd);
  return text;
}

v1::StreamUpdateRequest::Open OpenStream(const std::string& model, const std::string& producer,
                                         v1::AckLevel ack) {
  v1::StreamUpdateRequest::Open open;
  open.set_model(model);
  open.set_producer_id(producer);
  open.set_ack(ack);
  return open;
}

StreamSession::StreamSession(Connection& connection, const v1::StreamUpdateRequest::Open& open) {
  SetDeadline(context_);
  stream_ = connection.updates->StreamUpdate(&context_);
  v1::StreamUpdateRequest request;
  *request.mutable_open() = open;
  stream_->Write(request);
}

v1::StreamUpdateResponse::Opened StreamSession::Opened() {
  v1::StreamUpdateResponse response;
  EXPECT_TRUE(stream_->Read(&response));
  EXPECT_TRUE(response.has_opened());
  return response.opened();
}

bool StreamSession::Send(v1::StreamUpdateRequest::Batch batch) {
  v1::StreamUpdateRequest request;
  *request.mutable_batch() = std::move(batch);
  return stream_->Write(request);
}

std::optional<v1::StreamUpdateResponse::Ack> StreamSession::ReadAck() {
  v1::StreamUpdateResponse response;
  while (stream_->Read(&response)) {
    if (!response.has_ack()) continue;
    acks_.push_back(response.ack());
    return response.ack();
  }
  return std::nullopt;
}

void StreamSession::HalfClose() {
  if (!half_closed_) stream_->WritesDone();
  half_closed_ = true;
}

grpc::Status StreamSession::Finish() {
  HalfClose();
  while (ReadAck().has_value()) {
  }
  return stream_->Finish();
}

PredictSession::PredictSession(Connection& connection, absl::Duration timeout) {
  context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  stream_ = connection.predictions->StreamPredict(&context_);
}

std::optional<v1::StreamPredictResponse> PredictSession::Read() {
  v1::StreamPredictResponse response;
  if (!stream_->Read(&response)) return std::nullopt;
  ++answers_;
  return response;
}

void PredictSession::HalfClose() {
  if (!half_closed_) stream_->WritesDone();
  half_closed_ = true;
}

grpc::Status PredictSession::Finish() {
  HalfClose();
  while (Read().has_value()) {
  }
  return stream_->Finish();
}

v1::ModelConfig SmallConfig(const std::string& loss) {
  v1::ModelConfig config;
  config.mutable_loss()->set_name(loss);
  config.mutable_input()->set_dimension(2);
  config.set_batch_rows(16);
  config.set_warmup_rows(64);
  config.set_max_features(256);
  config.mutable_max_batch_delay()->set_seconds(3600);
  return config;
}

v1::Sample NumberedSample(uint64_t number) {
  const float x = Uniform(2 * number), y = Uniform(2 * number + 1);
  return DenseSample({x, y}, (x < 0) == (y < 0) ? 1 : 0);
}

std::vector<v1::Sample> NumberedSamples(uint64_t first, uint64_t count) {
  std::vector<v1::Sample> samples;
  for (uint64_t i = 0; i < count; ++i) samples.push_back(NumberedSample(first + i));
  return samples;
}

v1::Sample DenseSample(const std::vector<float>& values, double target) {
  v1::Sample sample;
  sample.mutable_features()->mutable_dense()->mutable_values()->Add(values.begin(), values.end());
  sample.set_value(target);
  return sample;
}

v1::SampleMatrix AsMatrix(const std::vector<v1::Sample>& rows, bool with_targets) {
  v1::SampleMatrix matrix;
  matrix.set_rows(static_cast<uint32_t>(rows.size()));
  for (const v1::Sample& row : rows) {
    const auto& values = row.features().dense().values();
    matrix.set_dimension(static_cast<uint32_t>(values.size()));
    matrix.mutable_values()->append(reinterpret_cast<const char*>(values.data()),
                                    static_cast<size_t>(values.size()) * sizeof(float));
    if (with_targets) matrix.add_targets(row.value());
  }
  return matrix;
}

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

std::string FieldOf(const google::rpc::Status& status) {
  google::rpc::BadRequest bad;
  if (!FindDetail(status, &bad) || bad.field_violations().empty()) return "";
  return bad.field_violations(0).field();
}

}  // namespace kernelstream::support
