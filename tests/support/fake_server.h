// An in-process kernelstream server for client tests: the whole wire contract over a log in memory,
// with scripted failures. It learns nothing; predictions are sums of inputs.
#ifndef KERNELSTREAM_TESTS_SUPPORT_FAKE_SERVER_H_
#define KERNELSTREAM_TESTS_SUPPORT_FAKE_SERVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "kernelstream/v1/model_service.grpc.pb.h"
#include "kernelstream/v1/online_update_service.grpc.pb.h"
#include "kernelstream/v1/prediction_service.grpc.pb.h"

namespace kernelstream::support {

// Where a call can be made to fail.
enum class FaultPoint {
  // Any unary call, before anything happens.
  kCall,
  // Streams: Open was read, Opened is not sent.
  kBeforeOpened,
  // A batch was read and is not in the log.
  kBeforeLog,
  // The batch is in the log; ack or answer are not sent.
  kAfterLog,
  // Streams: the ack was sent.
  kAfterAck,
};

struct FakeServerOptions {
  uint64_t max_in_flight_rows = 1024;
  uint64_t max_message_bytes = uint64_t{4} << 20;
};

struct LoggedRow {
  std::string producer_id;
  uint64_t producer_sequence = 0;
  kernelstream::v1::Sample sample;
};

// Thread-safe. Listens on 127.0.0.1, on a port the system chooses and a restart keeps.
class FakeServer final : public kernelstream::v1::ModelService::Service,
                         public kernelstream::v1::OnlineUpdateService::Service,
                         public kernelstream::v1::PredictionService::Service {
 public:
  explicit FakeServer(FakeServerOptions options = {});
  ~FakeServer() override;

  std::string address() const;
  // As kill -9 does: connections are cut; what was logged stays.
  void Stop();
  void Start();

  // The call that comes to `point` after `skip` others have passed it fails there, once, with
  // `code`. OK ends a stream cleanly before its time.
  void Inject(FaultPoint point, int skip = 0,
              grpc::StatusCode code = grpc::StatusCode::UNAVAILABLE);
  // Faults that were not met yet.
  size_t faults_left() const;

  // Streams read a batch, log it, and wait with the ack until they are released.
  void HoldAcks(bool hold);

  // Adds a model without a call.
  void AddModel(const std::string& name, const std::string& loss = "logistic");
  std::vector<LoggedRow> Log(const std::string& model) const;
  // Waits until so many rows are in the log.
  void AwaitRows(const std::string& model, size_t rows) const;
  // Forgets the newest rows of the log, as a crash after ACCEPTED acks does.
  void LoseNewestRows(const std::string& model, size_t rows);
  // Sizes in rows of the batches read from streams.
  std::vector<size_t> batches() const;
  // How many of them were matrices.
  size_t matrix_batches() const;

  grpc::Status CreateModel(grpc::ServerContext*, const v1::CreateModelRequest*,
                           v1::CreateModelResponse*) override;
  grpc::Status GetModel(grpc::ServerContext*, const v1::GetModelRequest*,
                        v1::GetModelResponse*) override;
  grpc::Status ListModels(grpc::ServerContext*, const v1::ListModelsRequest*,
                          v1::ListModelsResponse*) override;
  grpc::Status DeleteModel(grpc::ServerContext*, const v1::DeleteModelRequest*,
                           v1::DeleteModelResponse*) override;
  grpc::Status ListKernels(grpc::ServerContext*, const v1::ListKernelsRequest*,
                           v1::ListKernelsResponse*) override;
  grpc::Status ListLosses(grpc::ServerContext*, const v1::ListLossesRequest*,
                          v1::ListLossesResponse*) override;
  grpc::Status ListSamplers(grpc::ServerContext*, const v1::ListSamplersRequest*,
                            v1::ListSamplersResponse*) override;
  grpc::Status Update(grpc::ServerContext*, const v1::UpdateRequest*, v1::UpdateResponse*) override;
  grpc::Status StreamUpdate(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::StreamUpdateResponse, v1::StreamUpdateRequest>*) override;
  grpc::Status Predict(grpc::ServerContext*, const v1::PredictRequest*,
                       v1::PredictResponse*) override;
  // Each answer is a point kAfterAck, each request kBeforeLog; matrices are answered by columns.
  grpc::Status StreamPredict(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::StreamPredictResponse, v1::StreamPredictRequest>*) override;
  grpc::Status Evaluate(grpc::ServerContext*, grpc::ServerReader<v1::EvaluateRequest>*,
                        v1::EvaluateResponse*) override;

 private:
  struct Fault {
    FaultPoint point;
    int skip;
    grpc::StatusCode code;
  };
  struct Entry {
    v1::ModelConfig config;
    std::vector<LoggedRow> log;
    std::map<std::string, uint64_t> next_sequence;
    std::map<std::string, v1::UpdateResponse> requests;
    uint32_t dimension = 0;
    uint64_t rejected = 0;
  };

  bool Hit(FaultPoint point, grpc::Status* status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Without a step or a fault.
  grpc::Status Answer(const v1::PredictRequest& request, v1::PredictResponse* response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  grpc::Status Find(const std::string& name, Entry** entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::Model Describe(const std::string& name, const Entry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Logs the rows from `first` on that are new and good; the others are reported.
  void Append(Entry& entry, const std::string& producer, uint64_t first,
              const std::vector<v1::Sample>& samples,
              google::protobuf::RepeatedPtrField<v1::RejectedSample>* rejected)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const FakeServerOptions options_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable absl::Mutex mu_;
  std::vector<Fault> faults_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Entry> models_ ABSL_GUARDED_BY(mu_);
  std::vector<size_t> batches_ ABSL_GUARDED_BY(mu_);
  size_t matrix_batches_ ABSL_GUARDED_BY(mu_) = 0;
  bool hold_acks_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace kernelstream::support

#endif  // KERNELSTREAM_TESTS_SUPPORT_FAKE_SERVER_H_
