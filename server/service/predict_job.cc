#include "server/service/predict_job.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/field_error.h"
#include "server/service/wire_bytes.h"
#include "server/service/wire_model.h"

namespace kernelstream::server {
namespace {

// A call that waits for min_sequence is answered so long before its deadline that the answer still
// arrives.
constexpr absl::Duration kDeadlineMargin = absl::Milliseconds(50);

// Longer requests are not even decoded on gRPC's threads.
constexpr size_t kShortRequestBytes = 64 << 10;

}  // namespace

absl::Status TooManyPredictions() {
  return absl::ResourceExhaustedError(
      "too many large predictions are waiting; this one was not begun. Try again");
}

template <typename Request, typename Response>
PredictJob<Request, Response>::PredictJob(const ServiceContext& context, absl::Time deadline,
                                          Done done)
    : context_(context),
      begin_(absl::Now()),
      deadline_(deadline),
      arena_(GrowingBlocks(first_block_, sizeof(first_block_))),
      request_(*google::protobuf::Arena::CreateMessage<Request>(&arena_)),
      done_(std::move(done)) {}

template <typename Request, typename Response>
void PredictJob<Request, Response>::Start(const grpc::ByteBuffer& bytes) {
  bytes_ = bytes;  // shares them
  if (bytes_.Length() <= kShortRequestBytes) return Decode(/*on_pool=*/false);
  OnPool(&PredictJob::Decode);
}

template <typename Request, typename Response>
void PredictJob<Request, Response>::Cancel() {
  EndWait();
  absl::MutexLock lock(&mutex_);
  done_ = nullptr;
}

template <typename Request, typename Response>
void PredictJob<Request, Response>::End(absl::StatusOr<grpc::ByteBuffer> answer) {
  Done done;
  {
    absl::MutexLock lock(&mutex_);
    std::swap(done, done_);
  }
  if (done) done(std::move(answer));
}

template <typename Request, typename Response>
void PredictJob<Request, Response>::OnPool(void (PredictJob::*part)(bool on_pool)) {
  if (!context_.serving->Submit([self = Self(), part] { (*self.*part)(true); })) {
    End(TooManyPredictions());
  }
}

template <typename Request, typename Response>
void PredictJob<Request, Response>::Decode(bool on_pool) {
  const absl::Status status = ParseMessage(bytes_, context_.max_message_bytes, &request_, nullptr);
  bytes_.Clear();
  if (!status.ok()) return End(status);
  auto model = FindModel(context_, "model", request_.model());
  if (!model.ok()) return End(model.status());
  model_ = *std::move(model);
  if (request_.min_sequence() == 0) return Evaluate(on_pool);
  const Ref<Snapshot> snapshot = model_->snapshot();
  if (snapshot && snapshot->sequence() >= request_.min_sequence()) return Evaluate(on_pool);
  WaitForSequence();
}

template <typename Request, typename Response>
void PredictJob<Request, Response>::WaitForSequence() {
  absl::Duration margin = kDeadlineMargin;
  if (deadline_ != absl::InfiniteFuture()) {
    margin = std::min(margin, (deadline_ - absl::Now()) / 10);
    absl::MutexLock lock(&mutex_);
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(absl::ToChronoTime(deadline_ - margin),
                [weak = std::weak_ptr<PredictJob>(Self())](bool expired) {
                  // Weak: the alarm keeps this callback, and the job keeps the alarm.
                  const std::shared_ptr<PredictJob> self = weak.lock();
                  if (expired && self != nullptr) self->Late();
                });
  }
  const HostedModel::WaitId id =
      model_->WaitForSequence(request_.min_sequence(), [self = Self()](const absl::Status& status) {
        if (!self->ClaimWait()) return;
        if (status.ok()) {
          self->Evaluate(/*on_pool=*/false);
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
template <typename Request, typename Response>
bool PredictJob<Request, Response>::ClaimWait() {
  absl::MutexLock lock(&mutex_);
  if (wait_over_) return false;
  wait_over_ = true;
  if (alarm_ != nullptr) alarm_->Cancel();
  return true;
}

template <typename Request, typename Response>
void PredictJob<Request, Response>::EndWait() {
  HostedModel::WaitId id = 0;
  {
    absl::MutexLock lock(&mutex_);
    wait_over_ = true;
    id = wait_id_;
    if (alarm_ != nullptr) alarm_->Cancel();
  }
  if (id != 0) model_->CancelWait(id);
}

template <typename Request, typename Response>
void PredictJob<Request, Response>::Late() {
  if (!ClaimWait()) return;
  EndWait();
  const Ref<Snapshot> snapshot = model_->snapshot();
  End(absl::DeadlineExceededError(absl::StrCat(
      "model \"", model_->name(), "\" has learned up to sequence ",
      snapshot ? snapshot->sequence() : 0, " of ", model_->logged_sequence(),
      " logged; min_sequence ", request_.min_sequence(),
      " was not reached within the deadline. Wait longer, or leave min_sequence out")));
}

template <typename Request, typename Response>
void PredictJob<Request, Response>::Evaluate(bool on_pool) {
  auto snapshot = model_->ServingSnapshot();
  if (!snapshot.ok()) return End(snapshot.status());
  snapshot_ = *std::move(snapshot);
  const auto outputs = OutputsFromWire(request_.outputs(), model_->config().variance, *snapshot_);
  if (!outputs.ok()) return End(outputs.status());
  outputs_ = *outputs;
  auto rows = DecodeInstances(request_.instances(),
                              request_.has_matrix() ? &request_.matrix() : nullptr, kMaxScoredRows);
  if (!rows.ok()) return End(rows.status());
  rows_ = *std::move(rows);
  // Solving for a variance takes about features^2 / 2 multiply-adds.
  const uint64_t features = model_->config().variance.features;
  const uint64_t work_per_row = outputs_.uncertainty() ? features * features / 2 : 0;
  const bool small = IsSmall(*snapshot_, rows_, work_per_row);
  if (!small && context_.groups != nullptr && rows_.rows.size() <= PredictionGroups::kMostRows &&
      !outputs_.uncertainty() && !snapshot_->IsWide(rows_.rows)) {
    return Join();
  }
  if (small || on_pool) return Answer(on_pool);
  OnPool(&PredictJob::Answer);
}

template <typename Request, typename Response>
void PredictJob<Request, Response>::Join() {
  if (!Ready()) return;
  if (!context_.groups->Score(model_.get(), snapshot_, &rows_.rows, Self())) {
    End(TooManyPredictions());
  }
}

template <typename Request, typename Response>
bool PredictJob<Request, Response>::Wanted() {
  absl::MutexLock lock(&mutex_);
  return done_ != nullptr;
}

template <typename Request, typename Response>
void PredictJob<Request, Response>::Scored(const GroupedScores& group) {
  const bool newer = group.snapshot.get() != snapshot_.get();
  snapshot_ = group.snapshot;
  // A newer one may know the dimension.
  if (newer ? Ready() : Wanted()) Write(group.scores, *context_.serving, absl::Now() - group.share);
}

template <typename Request, typename Response>
bool PredictJob<Request, Response>::Ready() {
  if (absl::Status s = CheckInputs(*model_, *snapshot_, rows_, "instances"); !s.ok()) {
    End(std::move(s));
    return false;
  }
  return Wanted();
}

template <typename Request, typename Response>
void PredictJob<Request, Response>::Answer(bool on_pool) {
  if (!Ready()) return;
  const absl::Time begun = absl::Now();
  InlineExecutor alone;
  Executor& executor = on_pool ? static_cast<Executor&>(*context_.serving) : alone;
  std::vector<double> scores(rows_.rows.size() * snapshot_->num_outputs());
  snapshot_->Score(rows_.rows, executor, scores.data());
  Write(scores, executor, begun);
}

template <typename Request, typename Response>
void PredictJob<Request, Response>::Write(std::span<const double> scores, Executor& executor,
                                          absl::Time begun) {
  const std::vector<RowUncertainty> uncertainty =
      UncertaintyOf(*snapshot_, rows_.rows, outputs_, executor);
  const auto bad = FirstOverflow(scores, snapshot_->num_outputs(), uncertainty);
  if (bad.has_value()) return End(Overflow(*model_, rows_, "instances", *bad));
  Response& response = *google::protobuf::Arena::CreateMessage<Response>(&arena_);
  PredictionsToWire(*snapshot_, rows_, scores, uncertainty, outputs_, &response);
  response.set_model_uid(UidText(model_->uid()));
  model_->metrics().Predicted(rows_.count, begun - begin_, absl::Now() - begun);
  End(SerializeMessage(response));
}

template class PredictJob<v1::PredictRequest, v1::PredictResponse>;
template class PredictJob<v1::StreamPredictRequest, v1::StreamPredictResponse>;

}  // namespace kernelstream::server
