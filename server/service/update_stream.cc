#include "server/service/update_stream.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/field_error.h"
#include "kernelstream/v1/online_update_service.pb.h"
#include "server/service/append_wire.h"
#include "server/service/status_mapping.h"
#include "server/service/wire_bytes.h"
#include "server/service/wire_model.h"

namespace kernelstream::server {
namespace {

// Batches that are not acknowledged, or whose acks the caller has not read: the stream reads no
// further then.
constexpr size_t kMaxOutstandingBatches = 256;

// An idle stream keeps no memory of a message that was larger than this.
constexpr size_t kMaxKeptMessageBytes = 64 << 10;

}  // namespace

// Thread-safe. One message is handled at a time: read -> decoded -> room in the queue -> appended;
// then the next is read. Acks are written in the order of the batches, one at a time. Kept alive by
// gRPC until OnDone, and by every callback that may still come.
class UpdateStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                           public DrainableStream,
                           public std::enable_shared_from_this<UpdateStream> {
 public:
  UpdateStream(const ServiceContext& context, RpcMetrics& metrics, StreamSet* streams)
      : context_(context), streams_(streams), record_(metrics) {}

  void Start() {
    self_ = shared_from_this();
    streams_->Add(self_);
    absl::MutexLock lock(&mutex_);
    Pump();
  }

  void Drain() override {
    absl::MutexLock lock(&mutex_);
    if (!end_.has_value()) {
      end_ = ServerStopping(
          "rows that were acknowledged are kept. Connect again and resume from the number it "
          "names");
    }
    Pump();
  }

  void OnReadDone(bool ok) override {
    {
      absl::MutexLock lock(&mutex_);
      reading_ = false;
      if (!ok) {
        half_closed_ = true;
        Pump();
        return;
      }
      if (end_.has_value() || finished_) return;
      busy_ = true;
    }
    HandleMessage();
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
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
    const std::shared_ptr<UpdateStream> last = std::move(self_);
    QueueRoom::WaitId wait = 0;
    {
      absl::MutexLock lock(&mutex_);
      wait = wait_;
    }
    if (wait != 0) model_->CancelSpaceWait(wait);  // others stand behind it
  }

 private:
  struct Slot {
    uint64_t id = 0;
    std::optional<grpc::ByteBuffer> answer;  // absent: not dealt with yet
  };

  // Does whatever can be done now.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    if (cancelled_) {
      if (!writing_) FinishWith(absl::CancelledError("the caller cancelled the stream"));
      return;
    }
    if (!writing_ && !slots_.empty() && slots_.front().answer.has_value()) {
      writing_ = true;
      write_buffer_ = *std::move(slots_.front().answer);
      slots_.pop_front();
      StartWrite(&write_buffer_);
    }
    if (!writing_ && slots_.empty() && !appending_) {
      if (end_.has_value()) return FinishWith(*end_);
      if (half_closed_ && !busy_) return FinishWith(absl::OkStatus());
    }
    if (!reading_ && !busy_ && !half_closed_ && !end_.has_value() &&
        slots_.size() < kMaxOutstandingBatches) {
      reading_ = true;
      StartRead(&read_buffer_);
    }
  }

  void FinishWith(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_ = true;
    slots_.clear();
    const grpc::Status answer = ToGrpc(status);
    record_.Ended(answer.error_code());
    Finish(answer);
  }

  // The stream ends with this error, after the acks of earlier batches.
  void Fail(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    busy_ = false;
    if (!end_.has_value()) end_ = status;
    Pump();
  }

  // The rest runs while busy_, so for one message at a time; only what is guarded is shared with
  // callbacks.
  void HandleMessage() {
    bad_labels_.clear();
    absl::Status status =
        ParseMessage(read_buffer_, context_.max_message_bytes, &message_, &bad_labels_);
    message_bytes_ = read_buffer_.Length();
    read_buffer_.Clear();
    if (!status.ok()) return Fail(status);
    if (model_ == nullptr) return HandleOpen();
    if (message_.has_open()) {
      return Fail(InvalidField("open", "the stream is open already; open another one"));
    }
    if (!message_.has_batch())
      return Fail(InvalidField("batch", "the message is empty; send a batch"));
    AppendBatch(std::nullopt);
  }

  void HandleOpen() {
    if (!message_.has_open()) {
      return Fail(InvalidField("open", "the first message of a stream has to be open"));
    }
    const v1::StreamUpdateRequest::Open& open = message_.open();
    auto model = FindModel(context_, "open.model", open.model());
    if (!model.ok()) return Fail(model.status());
    const auto ack = AckFromWire("open.ack", open.ack());
    if (!ack.ok()) return Fail(ack.status());
    if (absl::Status s = CheckId("open.producer_id", open.producer_id()); !s.ok()) return Fail(s);
    if (!v1::BadSamplePolicy_IsValid(open.on_bad_sample())) {
      return Fail(
          InvalidField("open.on_bad_sample",
                       absl::StrCat("unknown value ", static_cast<int>(open.on_bad_sample()),
                                    "; known: 1 (reject sample), 2 (fail stream)")));
    }
    ack_ = *ack;
    producer_id_ = open.producer_id();
    fail_on_bad_row_ = open.on_bad_sample() == v1::BAD_SAMPLE_POLICY_FAIL_STREAM;
    model_ = *std::move(model);
    if (producer_id_.empty()) return Opened(ProducerPosition());
    model_->GetProducerPosition(
        producer_id_, [self = shared_from_this()](absl::StatusOr<ProducerPosition> position) {
          if (position.ok()) {
            self->Opened(*position);
          } else {
            self->Fail(position.status());
          }
        });
  }

  void Opened(const ProducerPosition& position) {
    next_number_ = position.next_producer_sequence;
    v1::StreamUpdateResponse response;
    response.mutable_opened()->set_next_producer_sequence(next_number_);
    response.mutable_opened()->set_max_message_bytes(context_.max_message_bytes);
    response.mutable_opened()->set_max_in_flight_rows(
        std::max<uint64_t>(1, context_.max_pending_rows / 4));
    absl::MutexLock lock(&mutex_);
    busy_ = false;
    slots_.push_back({.id = next_slot_++, .answer = SerializeMessage(response)});
    Pump();
  }

  absl::StatusOr<AppendRequest> BuildAppend(BatchShape& shape) {
    const v1::StreamUpdateRequest::Batch& batch = message_.batch();
    shape.prefix = "batch.";
    auto rows = DecodeSamples(batch.samples(), batch.has_matrix() ? &batch.matrix() : nullptr,
                              bad_labels_, context_.max_pending_rows);
    if (!rows.ok()) return shape.Locate(rows.status());
    const uint64_t first =
        batch.producer_sequence() == 0 ? next_number_ : batch.producer_sequence();
    if (producer_id_.empty() && first != next_number_) {
      return InvalidField("batch.producer_sequence",
                          absl::StrCat("it is ", first,
                                       "; without producer_id rows are numbered from 1, "
                                       "and this one is ",
                                       next_number_, ". Leave it out"));
    }
    if (first > UINT64_MAX - rows->count - 1) {
      return InvalidField("batch.producer_sequence",
                          absl::StrCat("it is ", first, "; no more rows can be numbered"));
    }
    AppendRequest append;
    append.ack = ack_;
    append.all_or_nothing = fail_on_bad_row_;
    append.producer_id = producer_id_;
    if (!producer_id_.empty()) {
      append.producer_sequence = first;
      append.next_producer_sequence = first + rows->count;
    }
    shape.first_number = first;
    FillAppend(*std::move(rows), shape, append);
    return append;
  }

  // Takes the batch in message_ into the queue, now or when there is room. granted: what was waited
  // for.
  void AppendBatch(std::optional<QueueRoom::Space> granted) {
    const auto let_go = [&] {
      if (granted.has_value()) model_->ReturnSpace(*granted);
    };
    {
      absl::MutexLock lock(&mutex_);
      wait_ = 0;
      if (finished_) return let_go();
    }
    BatchShape shape;
    auto append = BuildAppend(shape);
    if (!append.ok()) {
      let_go();
      return Fail(append.status());
    }
    append->waits_for_room = true;
    append->granted = granted;
    const QueueRoom::Space space = {append->rows.size(), append->rows.bytes()};
    const uint64_t next_number = shape.first_number + shape.rows.count;
    std::optional<uint64_t> reserved;
    {
      absl::MutexLock lock(&mutex_);
      if (!finished_) {
        appending_ = true;
        reserved = next_slot_++;
        slots_.push_back({.id = *reserved, .answer = std::nullopt});
      }
    }
    if (!reserved.has_value()) return let_go();
    const uint64_t id = *reserved;
    // A full queue says so before Append returns; what comes later is the batch's fate.
    struct Attempt {
      absl::Mutex mutex;
      bool returned ABSL_GUARDED_BY(mutex) = false;
      std::optional<absl::StatusOr<AppendResult>> early ABSL_GUARDED_BY(mutex);
    };
    auto attempt = std::make_shared<Attempt>();
    auto shared_shape = std::make_shared<const BatchShape>(std::move(shape));
    model_->Append(*std::move(append), [self = shared_from_this(), attempt, id,
                                        shared_shape](absl::StatusOr<AppendResult> result) {
      {
        absl::MutexLock lock(&attempt->mutex);
        if (!attempt->returned) {
          attempt->early = std::move(result);
          return;
        }
      }
      self->Appended(id, *shared_shape, result);
    });
    std::optional<absl::StatusOr<AppendResult>> early;
    {
      absl::MutexLock lock(&attempt->mutex);
      attempt->returned = true;
      early = std::move(attempt->early);
    }
    // With room granted it is the disk that is full.
    if (early.has_value() && absl::IsResourceExhausted(early->status()) && !granted.has_value()) {
      return WaitForRoom(id, space);
    }
    if (message_bytes_ > kMaxKeptMessageBytes) v1::StreamUpdateRequest().Swap(&message_);
    next_number_ = next_number;
    {
      absl::MutexLock lock(&mutex_);
      appending_ = false;
      busy_ = false;
      if (!early.has_value()) Pump();
    }
    if (early.has_value()) Appended(id, *shared_shape, *early);
  }

  void WaitForRoom(uint64_t id, QueueRoom::Space space) {
    {
      absl::MutexLock lock(&mutex_);
      appending_ = false;
      std::erase_if(slots_, [id](const Slot& slot) { return slot.id == id; });
      if (end_.has_value() || finished_) {
        busy_ = false;
        return Pump();
      }
      waiting_ = true;
    }
    const QueueRoom::WaitId wait = model_->WaitForSpace(
        space, [self = shared_from_this()](std::optional<QueueRoom::Space> granted) {
          {
            absl::MutexLock lock(&self->mutex_);
            self->waiting_ = false;
          }
          // Not on a training thread, which is what calls when rows were learned.
          if (!self->context_.serving->Submit([self, granted] { self->AppendBatch(granted); })) {
            self->AppendBatch(granted);
          }
        });
    bool over = false;
    {
      absl::MutexLock lock(&mutex_);
      if (!waiting_) return;  // called back already, and perhaps waiting for another batch
      wait_ = wait;
      over = finished_;
    }
    if (over) model_->CancelSpaceWait(wait);
  }

  void Appended(uint64_t id, const BatchShape& shape, const absl::StatusOr<AppendResult>& result) {
    const auto has_id = [id](const Slot& slot) { return slot.id == id; };
    const bool fails = result.ok() && result->refused && fail_on_bad_row_;
    if (!result.ok() || fails) {
      const absl::Status error =
          fails ? AllRefused(result->rejected, shape) : shape.Locate(result.status());
      absl::MutexLock lock(&mutex_);
      // Later batches are not acknowledged any more; a caller with a producer_id learns where to
      // resume.
      const auto slot = std::find_if(slots_.begin(), slots_.end(), has_id);
      slots_.erase(slot, slots_.end());
      if (!end_.has_value() || absl::IsUnavailable(*end_)) end_ = error;
      return Pump();
    }
    v1::StreamUpdateResponse response;
    v1::StreamUpdateResponse::Ack& ack = *response.mutable_ack();
    ack.set_next_producer_sequence(producer_id_.empty() ? shape.first_number + shape.rows.count
                                                        : result->next_producer_sequence);
    RejectedToWire(result->rejected, shape, ack.mutable_rejected());
    if (const Ref<Snapshot> snapshot = model_->snapshot()) {
      ack.set_step(snapshot->step());
      ack.set_num_features(snapshot->num_features());
      ValidationToWire(snapshot->validation(), ack.mutable_validation());
    }
    absl::MutexLock lock(&mutex_);
    last_sequence_ = std::max(last_sequence_, result->sequence);
    if (ack_ != AckLevel::kAccepted) ack.set_sequence(last_sequence_);
    const auto slot = std::find_if(slots_.begin(), slots_.end(), has_id);
    if (slot != slots_.end()) slot->answer = SerializeMessage(response);
    Pump();
  }

  const ServiceContext context_;
  StreamSet* const streams_;
  const CallRecord record_;
  std::shared_ptr<UpdateStream> self_;  // until OnDone

  // Of the message being handled, and what Open said.
  grpc::ByteBuffer read_buffer_;
  size_t message_bytes_ = 0;
  v1::StreamUpdateRequest message_;
  std::vector<uint64_t> bad_labels_;
  std::shared_ptr<HostedModel> model_;
  std::string producer_id_;
  AckLevel ack_ = AckLevel::kDurable;
  bool fail_on_bad_row_ = false;
  uint64_t next_number_ = 1;

  absl::Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;       // a message is being handled
  bool appending_ ABSL_GUARDED_BY(mutex_) = false;  // inside HostedModel::Append
  // For room in the queue; wait_ comes a little later.
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  QueueRoom::WaitId wait_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // what the stream will end with
  std::deque<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_slot_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::ByteBuffer write_buffer_ ABSL_GUARDED_BY(mutex_);
};

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartUpdateStream(
    const ServiceContext& context, RpcMetrics& metrics, StreamSet* streams) {
  auto stream = std::make_shared<UpdateStream>(context, metrics, streams);
  stream->Start();
  return stream.get();
}

}  // namespace kernelstream::server
