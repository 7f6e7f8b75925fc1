#include "server/service/predict_stream.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kernelstream/v1/prediction_service.pb.h"
#include "server/service/predict_job.h"
#include "server/service/status_mapping.h"

namespace kernelstream::server {
namespace {

// Requests that were read and whose answers are not written: enough to keep the cores of a stream
// busy while messages travel.
constexpr size_t kMaxInFlight = 8;
// With more bytes of requests and answers than this, the stream reads no further.
constexpr uint64_t kMaxHeldBytes = uint64_t{8} << 20;

}  // namespace

// Thread-safe. Requests are dealt with side by side and answered in their order, one at a time. The
// first failure, in that order, ends the stream. Kept alive by gRPC until OnDone, and by the
// callbacks of its jobs.
class PredictStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                            public DrainableStream,
                            public std::enable_shared_from_this<PredictStream> {
 public:
  PredictStream(const ServiceContext& context, RpcMetrics& metrics, StreamSet* streams,
                absl::Time deadline)
      : context_(context), streams_(streams), record_(metrics), deadline_(deadline) {}

  void Start() {
    self_ = shared_from_this();
    streams_->Add(self_);
    absl::MutexLock lock(&mutex_);
    Pump();
  }

  void Drain() override {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    Pump();
  }

  void OnReadDone(bool ok) override {
    grpc::ByteBuffer request;
    std::shared_ptr<Job> job;
    {
      absl::MutexLock lock(&mutex_);
      reading_ = false;
      if (!ok) half_closed_ = true;
      if (ok && !finished_ && !failed_) {
        request.Swap(&read_buffer_);
        const uint64_t id = next_slot_++;
        job = std::make_shared<Job>(
            context_, deadline_,
            [self = shared_from_this(), id](absl::StatusOr<grpc::ByteBuffer> answer) {
              self->Answered(id, std::move(answer));
            });
        slots_.push_back({.id = id, .job = job, .bytes = request.Length(), .answer = std::nullopt});
        held_bytes_ += request.Length();
      }
      Pump();
    }
    if (job != nullptr) job->Start(request);
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    held_bytes_ -= write_buffer_.Length();
    write_buffer_.Clear();
    if (!ok) cancelled_ = true;  // nobody is there to read
    Pump();
  }

  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    Pump();
  }

  void OnDone() override {
    streams_->Remove(this);
    const std::shared_ptr<PredictStream> last = std::move(self_);
  }

 private:
  using Job = PredictJob<v1::StreamPredictRequest, v1::StreamPredictResponse>;
  struct Slot {
    uint64_t id = 0;
    std::shared_ptr<Job> job;
    uint64_t bytes = 0;  // of the request, then of the answer
    std::optional<absl::StatusOr<grpc::ByteBuffer>> answer;
  };

  void Answered(uint64_t id, absl::StatusOr<grpc::ByteBuffer> answer) {
    absl::MutexLock lock(&mutex_);
    for (Slot& slot : slots_) {
      if (slot.id != id) continue;
      held_bytes_ -= slot.bytes;
      slot.bytes = answer.ok() ? answer->Length() : 0;
      held_bytes_ += slot.bytes;
      failed_ = failed_ || !answer.ok();
      slot.answer = std::move(answer);
    }
    Pump();
  }

  // Does whatever can be done now.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    if (cancelled_) {
      if (!writing_) FinishWith(absl::CancelledError("the caller cancelled the stream"));
      return;
    }
    if (!writing_ && !slots_.empty() && slots_.front().answer.has_value()) {
      absl::StatusOr<grpc::ByteBuffer>& answer = *slots_.front().answer;
      if (!answer.ok()) return FinishWith(answer.status());
      writing_ = true;
      write_buffer_.Swap(&*answer);
      slots_.pop_front();
      StartWrite(&write_buffer_);
    }
    if (!writing_ && slots_.empty()) {
      if (draining_) {
        return FinishWith(
            ServerStopping("what it had read is answered. Connect again and send the rest"));
      }
      if (half_closed_) return FinishWith(absl::OkStatus());
    }
    if (!reading_ && !half_closed_ && !draining_ && !failed_ && HasRoom()) {
      reading_ = true;
      StartRead(&read_buffer_);
    }
  }

  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t in_flight = slots_.size() + (writing_ ? 1 : 0);
    return in_flight == 0 || (in_flight < kMaxInFlight && held_bytes_ <= kMaxHeldBytes);
  }

  void FinishWith(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_ = true;
    const grpc::Status answer = ToGrpc(status);
    // Jobs hold the stream, so they go before gRPC may let go of it.
    for (const Slot& slot : slots_) slot.job->Cancel();
    slots_.clear();
    record_.Ended(answer.error_code());
    Finish(answer);
  }

  const ServiceContext context_;
  StreamSet* const streams_;
  const CallRecord record_;
  const absl::Time deadline_;
  std::shared_ptr<PredictStream> self_;  // until OnDone

  absl::Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;  // a slot holds an error
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Slot> slots_ ABSL_GUARDED_BY(mutex_);  // in the order of the requests
  uint64_t next_slot_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::ByteBuffer read_buffer_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer write_buffer_ ABSL_GUARDED_BY(mutex_);
};

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartPredictStream(
    const ServiceContext& context, RpcMetrics& metrics, StreamSet* streams,
    grpc::CallbackServerContext* call) {
  auto stream = std::make_shared<PredictStream>(context, metrics, streams,
                                                absl::FromChrono(call->deadline()));
  stream->Start();
  return stream.get();
}

}  // namespace kernelstream::server
