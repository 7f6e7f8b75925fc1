#include "server/service/prediction_service.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/field_error.h"
#include "grpcpp/alarm.h"
#include "server/service/append_wire.h"
#include "server/service/scoring.h"
#include "server/service/status_mapping.h"
#include "server/service/wire_bytes.h"
#include "server/service/wire_model.h"

namespace kernelstream::server {
namespace {

constexpr char kService[] = "kernelstream.v1.PredictionService";

// A call that waits for min_sequence is answered so long before its deadline that the answer still
// arrives.
constexpr absl::Duration kDeadlineMargin = absl::Milliseconds(50);

absl::Status TooManyPredictions() {
  return absl::ResourceExhaustedError(
      "too many large predictions are waiting; this one was not begun. Try again");
}

// Thread-safe. A call that ends once, whoever comes first: answer, error or cancellation. Reactor:
// the gRPC reactor it is.
template <typename Reactor>
class EndsOnce : public Reactor {
 protected:
  EndsOnce(RpcMetrics& metrics, grpc::ByteBuffer* response)
      : record_(metrics), response_(response) {}

  void EndWith(const google::protobuf::Message& response) {
    grpc::ByteBuffer bytes = SerializeMessage(response);
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
    *response_ = std::move(bytes);
    record_.Ended(grpc::StatusCode::OK);
    this->Finish(grpc::Status::OK);
  }

  void End(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
    const grpc::Status answer = ToGrpc(status);
    record_.Ended(answer.error_code());
    this->Finish(answer);
  }

  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;

 private:
  const CallRecord record_;
  grpc::ByteBuffer* const response_;
};

// Thread-safe. One Predict call. Kept alive by gRPC until OnDone, and by every callback that may
// still come.
class PredictCall final : public EndsOnce<grpc::ServerUnaryReactor>,
                          public std::enable_shared_from_this<PredictCall> {
 public:
  PredictCall(const ServiceContext& context, RpcMetrics& metrics, grpc::CallbackServerContext* call,
              grpc::ByteBuffer* response)
      : EndsOnce(metrics, response),
        context_(context),
        begin_(absl::Now()),
        deadline_(absl::FromChrono(call->deadline())) {}

  void Start(const grpc::ByteBuffer& bytes) {
    self_ = shared_from_this();
    if (absl::Status s = ParseMessage(bytes, context_.max_message_bytes, &request_, nullptr);
        !s.ok()) {
      return End(s);
    }
    auto model = FindModel(context_, "model", request_.model());
    if (!model.ok()) return End(model.status());
    model_ = *std::move(model);
    if (request_.min_sequence() == 0) return Evaluate();
    const Ref<Snapshot> snapshot = model_->snapshot();
    if (snapshot && snapshot->sequence() >= request_.min_sequence()) return Evaluate();
    WaitForSequence();
  }

  void OnCancel() override {
    EndWait();
    End(absl::CancelledError("the caller cancelled the call"));
  }

  void OnDone() override { const std::shared_ptr<PredictCall> last = std::move(self_); }

 private:
  void WaitForSequence() {
    absl::Duration margin = kDeadlineMargin;
    if (deadline_ != absl::InfiniteFuture()) {
      margin = std::min(margin, (deadline_ - absl::Now()) / 10);
      absl::MutexLock lock(&mutex_);
      alarm_ = std::make_unique<grpc::Alarm>();
      alarm_->Set(absl::ToChronoTime(deadline_ - margin), [weak = weak_from_this()](bool expired) {
        // Weak: the alarm keeps this callback, and the call keeps the alarm.
        const std::shared_ptr<PredictCall> self = weak.lock();
        if (expired && self != nullptr) self->Late();
      });
    }
    const HostedModel::WaitId id = model_->WaitForSequence(
        request_.min_sequence(), [self = shared_from_this()](const absl::Status& status) {
          if (!self->ClaimWait()) return;
          if (status.ok()) {
            self->Evaluate();
          } else {
            self->End(status);
          }
        });
    bool over = false;
    {
      absl::MutexLock lock(&mutex_);
      wait_id_ = id;
      over = wait_over_;
    }
    if (over && id != 0) model_->CancelWait(id);
  }

  // True for whoever ends the wait.
  bool ClaimWait() {
    absl::MutexLock lock(&mutex_);
    if (wait_over_) return false;
    wait_over_ = true;
    if (alarm_ != nullptr) alarm_->Cancel();
    return true;
  }

  void EndWait() {
    HostedModel::WaitId id = 0;
    {
      absl::MutexLock lock(&mutex_);
      wait_over_ = true;
      id = wait_id_;
      if (alarm_ != nullptr) alarm_->Cancel();
    }
    if (id != 0) model_->CancelWait(id);
  }

  void Late() {
    if (!ClaimWait()) return;
    EndWait();
    const Ref<Snapshot> snapshot = model_->snapshot();
    End(absl::DeadlineExceededError(absl::StrCat(
        "model \"", model_->name(), "\" has learned up to sequence ",
        snapshot ? snapshot->sequence() : 0, " of ", model_->logged_sequence(),
        " logged; min_sequence ", request_.min_sequence(),
        " was not reached within the deadline. Wait longer, or leave min_sequence out")));
  }

  void Evaluate() {
    auto snapshot = model_->ServingSnapshot();
    if (!snapshot.ok()) return End(snapshot.status());
    snapshot_ = *std::move(snapshot);
    const auto outputs = OutputsFromWire(request_, model_->config().variance, *snapshot_);
    if (!outputs.ok()) return End(outputs.status());
    outputs_ = *outputs;
    auto rows = DecodeInstances(
        request_.instances(), request_.has_matrix() ? &request_.matrix() : nullptr, kMaxScoredRows);
    if (!rows.ok()) return End(rows.status());
    rows_ = *std::move(rows);
    // Solving for a variance takes about features^2 / 2 multiply-adds.
    const uint64_t features = model_->config().variance.features;
    const uint64_t work_per_row = outputs_.uncertainty() ? features * features / 2 : 0;
    if (IsSmall(*snapshot_, rows_, work_per_row)) {
      InlineExecutor executor;
      return Answer(executor);
    }
    if (!context_.serving->Submit(
            [self = shared_from_this()] { self->Answer(*self->context_.serving); })) {
      End(TooManyPredictions());
    }
  }

  void Answer(Executor& executor) {
    if (absl::Status s = CheckInputs(*model_, *snapshot_, rows_, "instances"); !s.ok()) {
      return End(s);
    }
    {
      absl::MutexLock lock(&mutex_);
      if (ended_) return;
    }
    const absl::Time computing = absl::Now();
    v1::PredictResponse response;
    PredictRows(*snapshot_, rows_, outputs_, executor, &response);
    response.set_model_uid(UidText(model_->uid()));
    model_->metrics().Predicted(rows_.count, computing - begin_, absl::Now() - computing);
    EndWith(response);
  }

  const ServiceContext context_;
  const absl::Time begin_;
  const absl::Time deadline_;
  std::shared_ptr<PredictCall> self_;  // until OnDone

  // One thread at a time.
  v1::PredictRequest request_;
  std::shared_ptr<HostedModel> model_;
  Ref<Snapshot> snapshot_;
  OutputMask outputs_;
  WireRows rows_;

  bool wait_over_ ABSL_GUARDED_BY(mutex_) = false;
  HostedModel::WaitId wait_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
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
    v1::EvaluateRequest request;
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
    if (!status.ok()) {
      return End(
          InvalidField(FieldPathOf(status), absl::StrCat(status.message(), ". ", evaluator_.rows(),
                                                         " rows of earlier messages were good")));
    }
    evaluator_.Add(*snapshot_, rows_.rows, executor);
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
    EndWith(response);
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
      predict_(context.metrics->ForRpc(kService, "Predict")),
      evaluate_(context.metrics->ForRpc(kService, "Evaluate")) {}

grpc::ServerUnaryReactor* PredictionServiceImpl::Predict(grpc::CallbackServerContext* call,
                                                         const grpc::ByteBuffer* request,
                                                         grpc::ByteBuffer* response) {
  auto predict = std::make_shared<PredictCall>(context_, predict_, call, response);
  predict->Start(*request);
  return predict.get();
}

grpc::ServerReadReactor<grpc::ByteBuffer>* PredictionServiceImpl::Evaluate(
    grpc::CallbackServerContext*, grpc::ByteBuffer* response) {
  auto evaluate = std::make_shared<EvaluateCall>(context_, evaluate_, response);
  evaluate->Start();
  return evaluate.get();
}

}  // namespace kernelstream::server
