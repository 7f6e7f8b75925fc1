#include "client/src/predict_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/src/convert.h"
#include "client/src/encode.h"

namespace kernelstream::client {

// One call. Its state is guarded by the stream's mutex; it outlives OnDone.
class PredictStream::Impl::Connection final
    : public grpc::ClientBidiReactor<v1::StreamPredictRequest, v1::StreamPredictResponse> {
 public:
  explicit Connection(Impl* impl) : impl_(impl) {}

  void Start() {
    impl_->transport_->predictions().async()->StreamPredict(&context, this);
    AddHold();  // for writes that Send begins; released with the last read
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    absl::MutexLock lock(&impl_->mu_);
    if (!ok) {
      over = true;
      RemoveHold();
      return;
    }
    if (impl_->written_ == 0) {
      impl_->Fail(absl::InternalError(
          absl::StrCat("the server at ", impl_->transport_->address(),
                       " answered what it was not asked; check that it is a kernelstream server")));
      context.TryCancel();
    } else {
      impl_->unanswered_.pop_front();
      --impl_->written_;
      impl_->answers_.emplace_back().Swap(&response_);
      impl_->attempts_ = 0;
      impl_->backoff_.Reset();
    }
    StartRead(&response_);
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&impl_->mu_);
    writing = nullptr;
    if (ok) impl_->WriteNext();
  }

  void OnDone(const grpc::Status& status) override {
    absl::MutexLock lock(&impl_->mu_);
    end = status;
    ended = true;
  }

  grpc::ClientContext context;
  std::shared_ptr<const v1::StreamPredictRequest> writing;  // until it is written
  bool over = false;                                        // nothing can be written any more
  bool ended = false;
  grpc::Status end;

 private:
  Impl* const impl_;
  v1::StreamPredictResponse response_;
};

PredictStream::Impl::Impl(std::shared_ptr<Transport> transport, std::string model,
                          PredictOptions options)
    : transport_(std::move(transport)),
      model_(std::move(model)),
      options_(std::move(options)),
      timeout_(options_.timeout.value_or(transport_->options().call_timeout)),
      backoff_(transport_->options().backoff) {}

PredictStream::Impl::~Impl() {
  absl::MutexLock lock(&mu_);
  if (connection_ == nullptr) return;
  const auto written = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return connection_->over || connection_->writing == nullptr;
  };
  const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return connection_->ended; };
  const bool idle = unanswered_.empty() && failure_.ok() &&
                    mu_.AwaitWithTimeout(absl::Condition(&written), kEndTimeout);
  if (idle && !connection_->over) connection_->StartWritesDone();
  if (!idle || !mu_.AwaitWithTimeout(absl::Condition(&ended), kEndTimeout)) {
    connection_->context.TryCancel();
    mu_.Await(absl::Condition(&ended));
  }
}

absl::Status PredictStream::Impl::Open() {
  if (absl::Status status = transport_->WaitConnected(transport_->options().connect_timeout);
      !status.ok()) {
    return status;
  }
  absl::MutexLock lock(&mu_);
  Connect();
  return absl::OkStatus();
}

void PredictStream::Impl::Connect() {
  written_ = 0;
  connection_ = std::make_unique<Connection>(this);
  connection_->Start();
  WriteNext();
}

void PredictStream::Impl::WriteNext() {
  if (connection_->over || connection_->writing != nullptr || written_ == unanswered_.size()) {
    return;
  }
  connection_->writing = unanswered_[written_++];
  connection_->StartWrite(connection_->writing.get());
}

void PredictStream::Impl::Fail(const absl::Status& status) {
  if (failure_.ok()) failure_ = status;
}

void PredictStream::Impl::Reconnect() {
  const grpc::Status end = connection_->end;
  const absl::Status status =
      end.ok() ? absl::UnavailableError(
                     absl::StrCat("the server at ", transport_->address(), " ended the stream"))
               : transport_->FromGrpc(end, absl::InfiniteDuration());
  if (!Transport::StreamMayResume(end, status) ||
      ++attempts_ >= transport_->options().max_attempts) {
    return Fail(status);
  }
  const absl::Duration delay =
      std::max(backoff_.Next(), RetryDelay(status).value_or(absl::ZeroDuration()));
  reconnecting_ = true;
  const auto failed = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !failure_.ok(); };
  if (!transport_->options().wait) mu_.AwaitWithTimeout(absl::Condition(&failed), delay);
  mu_.Unlock();
  if (transport_->options().wait) transport_->options().wait(delay);
  const absl::Status connected =
      transport_->WaitConnected(transport_->options().connect_timeout, [this] {
        absl::MutexLock lock(&mu_);
        return !failure_.ok();
      });
  mu_.Lock();
  reconnecting_ = false;
  if (!connected.ok()) Fail(connected);
  if (failure_.ok()) Connect();
}

absl::Status PredictStream::Impl::WaitUntil(const std::function<bool()>& ready) {
  const absl::Time deadline = absl::Now() + timeout_;
  while (true) {
    const auto settled = [this, &ready]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return ready() || !failure_.ok() || (connection_->ended && !reconnecting_);
    };
    if (!mu_.AwaitWithDeadline(absl::Condition(&settled), deadline)) {
      Fail(absl::DeadlineExceededError(absl::StrCat(
          "no answer from ", transport_->address(), " within ", absl::FormatDuration(timeout_),
          "; try again with a longer timeout or fewer rows at a time")));
      connection_->context.TryCancel();
    }
    if (ready()) return absl::OkStatus();
    if (!failure_.ok()) return failure_;
    Reconnect();
  }
}

std::shared_ptr<v1::StreamPredictRequest> PredictStream::Impl::NewRequest() const {
  auto request = std::make_shared<v1::StreamPredictRequest>();
  request->set_model(model_);
  EncodeOptions(options_, request.get());
  return request;
}

absl::Status PredictStream::Impl::Send(std::shared_ptr<v1::StreamPredictRequest> request) {
  absl::MutexLock lock(&mu_);
  const size_t most = std::max<size_t>(1, options_.max_in_flight);
  const auto room = [this, most]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return failure_.ok() && unanswered_.size() < most;
  };
  if (absl::Status status = WaitUntil(room); !status.ok()) return status;
  unanswered_.push_back(std::move(request));
  WriteNext();
  return absl::OkStatus();
}

absl::StatusOr<PredictResult> PredictStream::Impl::Next() {
  v1::StreamPredictResponse answer;
  {
    absl::MutexLock lock(&mu_);
    if (answers_.empty() && unanswered_.empty()) {
      return failure_.ok() ? absl::FailedPreconditionError(
                                 "every request has been answered; send another one first")
                           : failure_;
    }
    const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !answers_.empty(); };
    if (absl::Status status = WaitUntil(ready); !status.ok()) return status;
    answer.Swap(&answers_.front());
    answers_.pop_front();
  }
  return FromProto(std::move(answer));
}

size_t PredictStream::Impl::pending() const {
  absl::MutexLock lock(&mu_);
  return unanswered_.size() + answers_.size();
}

size_t PredictStream::Impl::answered() const {
  absl::MutexLock lock(&mu_);
  return answers_.size();
}

void PredictStream::Impl::Cancel() {
  absl::MutexLock lock(&mu_);
  Fail(absl::CancelledError("the stream was cancelled"));
  connection_->context.TryCancel();
}

PredictStream::PredictStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PredictStream::~PredictStream() = default;

absl::Status PredictStream::Send(absl::Span<const Row> rows) {
  if (absl::Status status = CheckRows(rows, 0); !status.ok()) return status;
  auto request = impl_->NewRequest();
  EncodeInstances(rows, request.get());
  return impl_->Send(std::move(request));
}

absl::Status PredictStream::Send(const Matrix& matrix) {
  auto request = impl_->NewRequest();
  if (absl::Status status = EncodeMatrix(matrix, request->mutable_matrix()); !status.ok()) {
    return status;
  }
  return impl_->Send(std::move(request));
}

absl::StatusOr<PredictResult> PredictStream::Next() { return impl_->Next(); }
size_t PredictStream::pending() const { return impl_->pending(); }
size_t PredictStream::answered() const { return impl_->answered(); }
void PredictStream::Cancel() { impl_->Cancel(); }

}  // namespace kernelstream::client
