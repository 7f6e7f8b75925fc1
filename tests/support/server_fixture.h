// A whole server for tests: in this process, or as a process that can be killed.
#ifndef KERNELSTREAM_TESTS_SUPPORT_SERVER_FIXTURE_H_
#define KERNELSTREAM_TESTS_SUPPORT_SERVER_FIXTURE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/grpcpp.h"
#include "kernelstream/v1/model_service.grpc.pb.h"
#include "kernelstream/v1/online_update_service.grpc.pb.h"
#include "kernelstream/v1/prediction_service.grpc.pb.h"
#include "server/app/server.h"

namespace kernelstream::support {

// A new directory under the test's temporary directory, removed with its contents at the end.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A connection to a server, with its stubs. Does not share a connection with others.
struct Connection {
  explicit Connection(const std::string& address);
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::ModelService::Stub> models;
  std::unique_ptr<v1::OnlineUpdateService::Stub> updates;
  std::unique_ptr<v1::PredictionService::Stub> predictions;

  // Until health says so: all models are loaded.
  void WaitUntilServing();
  // Calls with a deadline that only a broken server misses. Fail the test where they must succeed.
  grpc::Status TryCreate(const std::string& name, const v1::ModelConfig& config);
  void Create(const std::string& name, const v1::ModelConfig& config);
  v1::Model Get(const std::string& name);
  grpc::Status Update(const v1::UpdateRequest& request, v1::UpdateResponse* response);
  grpc::Status Predict(const v1::PredictRequest& request, v1::PredictResponse* response);
  // Waits until the row at `sequence` is in the published model.
  void WaitForSequence(const std::string& model, uint64_t sequence);
};

// 127.0.0.1, port 0, no metrics listener, one training thread.
server::ServerOptions TestOptions(const std::string& data_dir);

// A server in this process, serving. Its data survives Restart.
class InProcessServer {
 public:
  explicit InProcessServer(server::HostingOptions hosting = {}, uint64_t max_message_mib = 16);
  ~InProcessServer();
  void Stop();
  void Restart();
  const std::string& address() const { return server_->address(); }
  const std::string& data_dir() const { return dir_.path(); }
  // A connection made at the last start.
  Connection* operator->() { return connection_.get(); }
  server::ServerOptions& options() { return options_; }
  server::Server& server() { return *server_; }
  // How long server().Stop() takes.
  absl::Duration TimeToStop();

 private:
  TempDir dir_;
  server::ServerOptions options_;
  std::unique_ptr<server::Server> server_;
  std::unique_ptr<Connection> connection_;
};

// Thread-compatible. kernelstream-server as a process of its own; killed at the end if it still
// runs.
class ServerProcess {
 public:
  // `flags` come after --data_dir, --listen=127.0.0.1:0 and --metrics_listen=, and win over them.
  explicit ServerProcess(const std::string& data_dir, std::vector<std::string> flags = {},
                         std::vector<std::string> environment = {});
  ~ServerProcess();

  // The address once it listens; empty if it ended instead.
  std::string WaitUntilListening();
  bool Kill();  // with SIGKILL; false if something else had ended it before
  void Signal(int signal);
  int WaitForExit();  // its exit status, or 128 + signal
  // What it has written to standard output and error.
  std::string output() const;
  pid_t pid() const { return pid_; }

 private:
  void ReadOutput();

  pid_t pid_ = -1;
  int pipe_ = -1;
  std::optional<int> status_;  // of waitpid
  std::thread reader_;
  mutable absl::Mutex mutex_;
  std::string output_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// What Prometheus would read at that port of 127.0.0.1; empty if nobody answers.
std::string ReadMetrics(int port);

// The first message of a StreamUpdate call.
v1::StreamUpdateRequest::Open OpenStream(const std::string& model, const std::string& producer = "",
                                         v1::AckLevel ack = v1::ACK_LEVEL_UNSPECIFIED);

// One StreamUpdate call with its messages one by one.
class StreamSession {
 public:
  StreamSession(Connection& connection, const v1::StreamUpdateRequest::Open& open);
  // The answer to Open; fails the test if there is none.
  v1::StreamUpdateResponse::Opened Opened();
  bool Send(v1::StreamUpdateRequest::Batch batch);
  bool SendRaw(const v1::StreamUpdateRequest& request) { return stream_->Write(request); }
  std::optional<v1::StreamUpdateResponse::Ack> ReadAck();
  // Half-closes and reads the rest.
  grpc::Status Finish();
  void HalfClose();
  void Cancel() { context_.TryCancel(); }
  const std::vector<v1::StreamUpdateResponse::Ack>& acks() const { return acks_; }

 private:
  grpc::ClientContext context_;
  bool half_closed_ = false;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamUpdateRequest, v1::StreamUpdateResponse>>
      stream_;
  std::vector<v1::StreamUpdateResponse::Ack> acks_;
};

// One StreamPredict call with its messages one by one.
class PredictSession {
 public:
  explicit PredictSession(Connection& connection, absl::Duration timeout = absl::Minutes(2));
  bool Send(const v1::StreamPredictRequest& request) { return stream_->Write(request); }
  std::optional<v1::StreamPredictResponse> Read();
  void HalfClose();
  // Half-closes and reads the rest.
  grpc::Status Finish();
  void Cancel() { context_.TryCancel(); }
  // Those read by Finish too.
  size_t answers() const { return answers_; }

 private:
  grpc::ClientContext context_;
  bool half_closed_ = false;
  size_t answers_ = 0;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamPredictRequest, v1::StreamPredictResponse>>
      stream_;
};

// Small models that learn fast: two inputs, batches of 16 rows, 64 rows of warm-up, only full
// batches are cut.
v1::ModelConfig SmallConfig(const std::string& loss);
// Row `number` of an endless sequence that is the same everywhere: two inputs; target: class 0 or 1
// by their signs.
v1::Sample NumberedSample(uint64_t number);
std::vector<v1::Sample> NumberedSamples(uint64_t first, uint64_t count);
v1::Sample DenseSample(const std::vector<float>& values, double target);
// Dense rows of one dimension with number targets; `with_targets` says if these are in it.
v1::SampleMatrix AsMatrix(const std::vector<v1::Sample>& rows, bool with_targets);

google::rpc::Status DetailsOf(const grpc::Status& status);
// The detail of that type; a default one, and a test failure, if there is none.
template <typename Detail>
bool FindDetail(const google::rpc::Status& status, Detail* detail) {
  for (const google::protobuf::Any& any : status.details()) {
    if (any.Is<Detail>()) return any.UnpackTo(detail);
  }
  return false;
}
// Field of the first violation; empty if there is none.
std::string FieldOf(const google::rpc::Status& status);
inline std::string FieldOf(const grpc::Status& status) { return FieldOf(DetailsOf(status)); }

}  // namespace kernelstream::support

#endif  // KERNELSTREAM_TESTS_SUPPORT_SERVER_FIXTURE_H_
