// One request for predictions.
#ifndef KERNELSTREAM_SERVER_SERVICE_PREDICT_JOB_H_
#define KERNELSTREAM_SERVER_SERVICE_PREDICT_JOB_H_

#include <memory>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/model/snapshot.h"
#include "google/protobuf/arena.h"
#include "grpcpp/alarm.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernelstream/v1/prediction_service.pb.h"
#include "server/hosting/hosted_model.h"
#include "server/service/call.h"
#include "server/service/prediction_groups.h"
#include "server/service/scoring.h"
#include "server/service/wire_rows.h"

namespace kernelstream::server {

// More work for the serving pool than it has room for.
absl::Status TooManyPredictions();

// Thread-safe. One request, from its bytes to the bytes of its answer. Small ones are dealt with on
// the thread that starts them, others on the serving pool. Waits for nothing but a min_sequence,
// and then without a thread. Request and Response are those of Predict or StreamPredict. Kept alive
// by the callbacks that may still come.
template <typename Request, typename Response>
class PredictJob final : public GroupedRequest,
                         public std::enable_shared_from_this<PredictJob<Request, Response>> {
 public:
  // The encoded Response, or a status of prediction_service.proto.
  using Done = absl::AnyInvocable<void(absl::StatusOr<grpc::ByteBuffer>)>;

  // deadline: of the call; a wait for min_sequence ends a little before it. `done` is called once,
  // on any thread, perhaps before Start returns.
  PredictJob(const ServiceContext& context, absl::Time deadline, Done done);
  void Start(const grpc::ByteBuffer& bytes);
  // `done` is not called from here on, unless that has begun.
  void Cancel();

 private:
  std::shared_ptr<PredictJob> Self() { return this->shared_from_this(); }
  void End(absl::StatusOr<grpc::ByteBuffer> answer);
  // Ends the job if there is no room.
  void OnPool(void (PredictJob::*part)(bool on_pool));
  void Decode(bool on_pool);
  void WaitForSequence();
  bool ClaimWait();
  void EndWait();
  void Late();
  void Evaluate(bool on_pool);
  // Evaluates the rows with those of other requests.
  void Join();
  bool Wanted() override;
  void Scored(const GroupedScores& group) override;
  void Answer(bool on_pool);
  // The rows can be evaluated, and somebody waits for them.
  bool Ready();
  // scores: [rows][outputs]. begun: when evaluation began, as far as it was for this request.
  void Write(std::span<const double> scores, Executor& executor, absl::Time begun);

  const ServiceContext context_;
  const absl::Time begin_, deadline_;

  // One thread at a time.
  grpc::ByteBuffer bytes_;
  // Request and answer. The first block is part of the job: small calls allocate nothing for them.
  alignas(8) char first_block_[2048];
  google::protobuf::Arena arena_;
  Request& request_;
  std::shared_ptr<HostedModel> model_;
  Ref<Snapshot> snapshot_;
  OutputMask outputs_;
  WireRows rows_;

  absl::Mutex mutex_;
  Done done_ ABSL_GUARDED_BY(mutex_);  // null once called or cancelled
  bool wait_over_ ABSL_GUARDED_BY(mutex_) = false;
  HostedModel::WaitId wait_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

extern template class PredictJob<v1::PredictRequest, v1::PredictResponse>;
extern template class PredictJob<v1::StreamPredictRequest, v1::StreamPredictResponse>;

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_PREDICT_JOB_H_
