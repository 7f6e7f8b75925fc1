#include "server/service/prediction_service.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/field_error.h"
#include "google/protobuf/arena.h"
#include "server/service/predict_job.h"
#include "server/service/predict_stream.h"
#include "server/service/scoring.h"
#include "server/service/status_mapping.h"
#include "server/service/wire_bytes.h"
#include "server/service/wire_model.h"

namespace kernelstream::server {
namespace {

constexpr char kPredictionService[] = "kernelstream.v1.PredictionService";

// Thread-safe. A call that ends once, whoever comes first: answer, error or cancellation. Reactor:
// the gRPC reactor it is.
template <typename Reactor>
class EndsOnce : public Reactor {
 protected:
  EndsOnce(RpcMetrics& metrics, grpc::ByteBuffer* response)
      : record_(metrics), response_(response) {}

  void End(absl::StatusOr<grpc::ByteBuffer> answer) { EndOn(*this, std::move(answer)); }
  // The same through another reactor of the call.
  template <typename Other>
  void EndOn(Other& reactor, absl::StatusOr<grpc::ByteBuffer> answer) {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
    if (answer.ok()) response_->Swap(&*answer);
    const grpc::Status status = answer.ok() ? grpc::Status::OK : ToGrpc(answer.status());
    record_.Ended(status.error_code());
    reactor.Finish(status);
  }

  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;

 private:
  const CallRecord record_;
  grpc::ByteBuffer* const response_;
};

// Thread-safe. One Predict call. Kept alive by gRPC until OnDone, and by its job.
class PredictCall final : public EndsOnce<grpc::ServerUnaryReactor>,
                          public std::enable_shared_from_this<PredictCall> {
 public:
  PredictCall(RpcMetrics& metrics, grpc::ByteBuffer* response) : EndsOnce(metrics, response) {}

  // What the handler returns to gRPC. What is answered before that, which small requests are, goes
  // through the call's default reactor: gRPC ends it at once, where this one would wait for a
  // thread.
  grpc::ServerUnaryReactor* Start(const ServiceContext& context, absl::Time deadline,
                                  const grpc::ByteBuffer& bytes,
                                  grpc::CallbackServerContext& call) {
    self_ = shared_from_this();
    job_ = std::make_shared<PredictJob<v1::PredictRequest, v1::PredictResponse>>(
        context, deadline, [self = self_](absl::StatusOr<grpc::ByteBuffer> answer) {
          self->Answered(std::move(answer));
        });
    job_->Start(bytes);
    std::optional<absl::StatusOr<grpc::ByteBuffer>> early;
    {
      absl::MutexLock lock(&mutex_);
      started_ = true;
      if (!early_.has_value()) return this;
      early = std::move(early_);
    }
    const std::shared_ptr<PredictCall> last = std::move(self_);
    grpc::ServerUnaryReactor* const reactor = call.DefaultReactor();
    EndOn(*reactor, *std::move(early));
    return reactor;
  }

  void OnCancel() override {
    job_->Cancel();
    End(absl::CancelledError("the caller cancelled the call"));
  }

  void OnDone() override { const std::shared_ptr<PredictCall> last = std::move(self_); }

 private:
  void Answered(absl::StatusOr<grpc::ByteBuffer> answer) {
    {
      absl::MutexLock lock(&mutex_);
      if (!started_) {
        early_ = std::move(answer);
        return;
      }
    }
    End(std::move(answer));
  }

  std::shared_ptr<PredictCall> self_;  // until OnDone
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  // What came before that.
  std::optional<absl::StatusOr<grpc::ByteBuffer>> early_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<PredictJob<v1::PredictRequest, v1::PredictResponse>> job_;
};

// Thread-safe. One Evaluate call: reads a message, scores it, reads the next.
class EvaluateCall final : public EndsOnce<grpc::ServerReadReactor<grpc::ByteBuffer>>,
                           public std::enable_shared_from_this<EvaluateCall> {
 public:
  EvaluateCall(const ServiceContext& context, RpcMetrics& metrics, grpc::ByteBuffer* response)
      : EndsOnce(metrics, response), context_(context) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&buffer_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Complete();
    google::protobuf::Arena arena(GrowingBlocks());  // few blocks for the messages of many rows
    auto& request = *google::protobuf::Arena::CreateMessage<v1::EvaluateRequest>(&arena);
    std::vector<uint64_t> bad_labels;
    absl::Status status = ParseMessage(buffer_, context_.max_message_bytes, &request, &bad_labels);
    buffer_.Clear();
    if (status.ok() && model_ == nullptr) {
      status = FirstMessage(request);
      // The first message may hold the name only.
      if (status.ok() && request.samples().empty() && !request.has_matrix()) return ReadNext();
    } else if (status.ok() && !request.model().empty() && request.model() != model_->name()) {
      status =
          InvalidField("model", absl::StrCat("it changed from \"", model_->name(), "\" to \"",
                                             request.model(), "\"; evaluate one model per call"));
    }
    if (!status.ok()) return End(status);
    auto rows = DecodeSamples(request.samples(), request.has_matrix() ? &request.matrix() : nullptr,
                              bad_labels, kMaxScoredRows);
    if (!rows.ok()) return End(rows.status());
    rows_ = *std::move(rows);
    if (IsSmall(*snapshot_, rows_)) {
      InlineExecutor executor;
      return Score(executor);
    }
    if (!context_.serving->Submit(
            [self = shared_from_this()] { self->Score(*self->context_.serving); })) {
      End(TooManyPredictions());
    }
  }

  void OnCancel() override { End(absl::CancelledError("the caller cancelled the call")); }
  void OnDone() override { const std::shared_ptr<EvaluateCall> last = std::move(self_); }

 private:
  absl::Status FirstMessage(const v1::EvaluateRequest& request) {
    auto model = FindModel(context_, "model", request.model());
    if (!model.ok()) return model.status();
    auto snapshot = (*model)->ServingSnapshot();
    if (!snapshot.ok()) return snapshot.status();
    model_ = *std::move(model);
    snapshot_ = *std::move(snapshot);
    evaluator_ = Evaluator(model_->config().variance.coverage);
    return absl::OkStatus();
  }

  absl::Status CheckTargets() const {
    const bool regression = model_->rules().task() == Task::kRegression;
    const auto targets = regression ? static_cast<uint32_t>(snapshot_->num_outputs()) : uint32_t{0};
    for (size_t i = 0; i < rows_.rows.size(); ++i) {
      // No limit on how far a target is from the others: nothing is learned from it.
      const absl::Status status = model_->rules().CheckTarget(model_->name(), rows_.rows.target(i),
                                                              rows_.rows.weight(i), targets, {});
      if (!status.ok()) {
        return InvalidField(rows_.Path("samples", rows_.places[i], FieldPathOf(status)),
                            status.message());
      }
    }
    return absl::OkStatus();
  }

  void Score(Executor& executor) {
    absl::Status status = CheckInputs(*model_, *snapshot_, rows_, "samples");
    if (status.ok()) status = CheckTargets();
    if (status.ok()) {
      const auto bad = evaluator_.Add(*snapshot_, rows_.rows, executor);
      if (bad.has_value()) status = Overflow(*model_, rows_, "samples", *bad);
    }
    if (!status.ok()) {
      return End(
          InvalidField(FieldPathOf(status), absl::StrCat(status.message(), ". ", evaluator_.rows(),
                                                         " rows of earlier messages were good")));
    }
    rows_ = WireRows();
    ReadNext();
  }

  void ReadNext() {
    absl::MutexLock lock(&mutex_);
    if (!ended_) StartRead(&buffer_);
  }

  void Complete() {
    if (evaluator_.rows() == 0) {
      return End(InvalidField("samples", "there are no rows; send at least one labelled row"));
    }
    v1::EvaluateResponse response;
    EvaluationToWire(*snapshot_, evaluator_, &response);
    response.set_model_uid(UidText(model_->uid()));
    End(SerializeMessage(response));
  }

  const ServiceContext context_;
  std::shared_ptr<EvaluateCall> self_;  // until OnDone

  // One thread at a time: between a read's end and the next read.
  grpc::ByteBuffer buffer_;
  std::shared_ptr<HostedModel> model_;
  Ref<Snapshot> snapshot_;
  WireRows rows_;
  Evaluator evaluator_;
};

}  // namespace

PredictionServiceImpl::PredictionServiceImpl(const ServiceContext& context)
    : context_(context),
      predict_(context.metrics->ForRpc(kPredictionService, "Predict")),
      stream_(context.metrics->ForRpc(kPredictionService, "StreamPredict")),
      evaluate_(context.metrics->ForRpc(kPredictionService, "Evaluate")) {}

grpc::ServerUnaryReactor* PredictionServiceImpl::Predict(grpc::CallbackServerContext* call,
                                                         const grpc::ByteBuffer* request,
                                                         grpc::ByteBuffer* response) {
  return std::make_shared<PredictCall>(predict_, response)
      ->Start(context_, absl::FromChrono(call->deadline()), *request, *call);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* PredictionServiceImpl::StreamPredict(
    grpc::CallbackServerContext* call) {
  return StartPredictStream(context_, stream_, &streams_, call);
}

grpc::ServerReadReactor<grpc::ByteBuffer>* PredictionServiceImpl::Evaluate(
    grpc::CallbackServerContext*, grpc::ByteBuffer* response) {
  auto evaluate = std::make_shared<EvaluateCall>(context_, evaluate_, response);
  evaluate->Start();
  return evaluate.get();
}

}  // namespace kernelstream::server
