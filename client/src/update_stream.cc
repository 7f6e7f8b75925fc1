#include "client/src/update_stream.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/src/convert.h"
#include "client/src/encode.h"

namespace kernelstream::client {
namespace {

constexpr size_t kMostReportedRejections = 1000;
// Envelope of a batch: tags, lengths, producer sequence.
constexpr uint64_t kEnvelopeBytes = 256;
constexpr uint64_t kDefaultMessageBytes = uint64_t{4} << 20;
constexpr uint64_t kDefaultWindowRows = 8192;
// How long one attempt to connect waits before it counts as failed and the next wait begins.
constexpr absl::Duration kAttemptTimeout = absl::Seconds(5);

StreamOptions WithProducerId(StreamOptions options) {
  if (options.producer_id.empty()) options.producer_id = RandomId();
  return options;
}

}  // namespace

UpdateStream::Impl::Impl(std::shared_ptr<Transport> transport, std::string model,
                         StreamOptions options)
    : transport_(std::move(transport)),
      model_(std::move(model)),
      options_(WithProducerId(std::move(options))) {}

UpdateStream::Impl::~Impl() {
  Cancel();
  if (runner_.joinable()) runner_.join();
}

absl::Status UpdateStream::Impl::Open() {
  runner_ = std::thread([this] { Run(); });
  absl::MutexLock lock(&mu_);
  auto settled = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return opened_ || done_; };
  mu_.Await(absl::Condition(&settled));
  return opened_ ? absl::OkStatus() : status_;
}

void UpdateStream::Impl::Run() {
  Backoff backoff(options_.backoff);
  absl::Time outage_start = absl::InfiniteFuture();
  while (true) {
    grpc::Status grpc_status;
    absl::Status status = RunConnection(&grpc_status);
    const absl::Time now = absl::Now();
    absl::Duration delay;
    {
      absl::MutexLock lock(&mu_);
      connected_ = false;
      if (progressed_) {
        backoff.Reset();
        outage_start = absl::InfiniteFuture();
      }
      progressed_ = false;
      outage_start = std::min(outage_start, now);
      const absl::Duration patience =
          opened_ ? options_.give_up_after
                  : std::min(options_.give_up_after, transport_->options().connect_timeout);
      bool finished = false;
      if (cancelled_) {
        status_ = absl::CancelledError("the stream was cancelled");
        finished = true;
      } else if (closing_ && pending_.empty()) {
        status_ = absl::OkStatus();
        finished = true;
      } else if (!Transport::StreamMayResume(grpc_status, status)) {
        status_ = status;
        finished = true;
      } else if (now - outage_start >= patience) {
        status_ = NotAcknowledged(
            absl::StrCat("gave up after ",
                         absl::FormatDuration(absl::Trunc(now - outage_start, absl::Seconds(1))),
                         " of reconnecting: ", status.message()));
        finished = true;
      }
      if (finished) {
        done_ = true;
        return;
      }
      if (opened_) ++summary_.reconnects;
      delay = std::max(backoff.Next(), RetryDelay(status).value_or(absl::ZeroDuration()));
    }
    if (options_.on_reconnect) options_.on_reconnect(status, delay);
    Wait(delay);
  }
}

void UpdateStream::Impl::Wait(absl::Duration delay) {
  if (options_.wait) {
    options_.wait(delay);
    return;
  }
  absl::MutexLock lock(&mu_);
  auto stop = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return cancelled_ || (closing_ && pending_.empty());
  };
  mu_.AwaitWithTimeout(absl::Condition(&stop), delay);
}

absl::Status UpdateStream::Impl::RunConnection(grpc::Status* grpc_status) {
  if (absl::Status status = transport_->WaitConnected(
          std::min({kAttemptTimeout, transport_->options().connect_timeout,
                    std::max(options_.give_up_after, absl::Milliseconds(100))}),
          [this] {
            absl::MutexLock lock(&mu_);
            return cancelled_;
          });
      !status.ok()) {
    *grpc_status = grpc::Status(grpc::StatusCode::UNAVAILABLE, std::string(status.message()));
    return status;
  }
  grpc::ClientContext context;
  {
    absl::MutexLock lock(&mu_);
    if (cancelled_) return absl::CancelledError();
    context_ = &context;
    written_ = 0;
  }
  std::unique_ptr<Stream> stream = transport_->updates().StreamUpdate(&context);
  const absl::Status own_status = Converse(stream.get(), &context);
  if (!own_status.ok()) context.TryCancel();
  *grpc_status = stream->Finish();
  {
    absl::MutexLock lock(&mu_);
    context_ = nullptr;
  }
  if (!own_status.ok()) {
    *grpc_status = grpc::Status(static_cast<grpc::StatusCode>(own_status.code()), "");
    return own_status;
  }
  if (grpc_status->ok()) {
    return absl::UnavailableError(
        absl::StrCat("the server at ", transport_->address(), " ended the stream"));
  }
  return transport_->FromGrpc(*grpc_status, absl::InfiniteDuration());
}

absl::Status UpdateStream::Impl::Converse(Stream* stream, grpc::ClientContext* context) {
  v1::StreamUpdateRequest open;
  open.mutable_open()->set_model(model_);
  open.mutable_open()->set_producer_id(options_.producer_id);
  open.mutable_open()->set_ack(ToProto(options_.ack));
  open.mutable_open()->set_on_bad_sample(options_.fail_on_bad_row
                                             ? v1::BAD_SAMPLE_POLICY_FAIL_STREAM
                                             : v1::BAD_SAMPLE_POLICY_REJECT_SAMPLE);
  v1::StreamUpdateResponse response;
  if (!stream->Write(open) || !stream->Read(&response)) return absl::OkStatus();
  if (!response.has_opened()) {
    return absl::InternalError(absl::StrCat("the server at ", transport_->address(),
                                            " did not answer Open first; check its version"));
  }
  if (absl::Status status = OnOpened(response.opened()); !status.ok()) return status;
  std::thread writer([this, stream] { WriteLoop(stream); });
  absl::Status status;
  while (status.ok() && stream->Read(&response)) {
    if (response.has_ack()) status = OnAck(response.ack());
  }
  {
    absl::MutexLock lock(&mu_);
    connected_ = false;
  }
  if (!status.ok()) context->TryCancel();
  writer.join();
  return status;
}

void UpdateStream::Impl::WriteLoop(Stream* stream) {
  while (true) {
    std::shared_ptr<const v1::StreamUpdateRequest> request;
    {
      absl::MutexLock lock(&mu_);
      auto work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
        return !connected_ || written_ < pending_.size() || (closing_ && pending_.empty());
      };
      mu_.Await(absl::Condition(&work));
      if (!connected_) return;
      if (written_ == pending_.size()) break;
      request = pending_[written_++].request;
    }
    // False: the connection broke; the reader notices too and the batch stays in the window.
    if (!stream->Write(*request)) return;
  }
  stream->WritesDone();
}

absl::Status UpdateStream::Impl::OnOpened(const v1::StreamUpdateResponse::Opened& opened) {
  StreamAck ack;
  bool first = false;
  {
    absl::MutexLock lock(&mu_);
    const uint64_t next = std::max<uint64_t>(opened.next_producer_sequence(), 1);
    max_message_bytes_ =
        opened.max_message_bytes() != 0 ? opened.max_message_bytes() : kDefaultMessageBytes;
    window_ = opened.max_in_flight_rows() != 0 ? opened.max_in_flight_rows() : kDefaultWindowRows;
    if (options_.max_in_flight_rows != 0) window_ = std::min(window_, options_.max_in_flight_rows);
    first = !opened_;
    if (first) {
      next_row_ = acknowledged_ = next;
    } else if (next < acknowledged_) {
      return absl::DataLossError(absl::StrCat(
          "model \"", model_, "\" expects row ", next, " of producer \"", options_.producer_id,
          "\", but rows below ", acknowledged_, " were acknowledged",
          options_.ack == AckLevel::kAccepted ? " in memory only and lost when the server stopped; "
                                                "send them again, with DURABLE acks"
                                              : "; the model was deleted and created again, or its "
                                                "data directory replaced; send the "
                                                "rows again from there"));
    } else if (next > next_row_) {
      return absl::FailedPreconditionError(
          absl::StrCat("model \"", model_, "\" expects row ", next, " of producer \"",
                       options_.producer_id, "\", but only rows below ", next_row_,
                       " were sent here; another sender uses this producer id; give each its own"));
    } else if (options_.ack != AckLevel::kApplied && next > acknowledged_) {
      // Logged, and only the acks were lost. For APPLIED acks the rows are sent again instead: the
      // server knows them and answers when they are learned.
      const uint64_t rows = Acknowledge(next);
      summary_.rows_recovered += rows;
      progressed_ = true;
      ack.recovered = true;
      ack.next_row = next;
      ack.sequence = summary_.sequence;
      ack.step = summary_.step;
      ack.num_features = summary_.num_features;
      ack.validation = summary_.validation;
    }
    opened_ = true;
    connected_ = true;
    if (pending_.empty()) progressed_ = true;
  }
  if (ack.recovered && options_.on_ack) options_.on_ack(ack);
  return absl::OkStatus();
}

uint64_t UpdateStream::Impl::Acknowledge(uint64_t next_row) {
  uint64_t rows = 0;
  while (!pending_.empty() && pending_.front().first_row < next_row) {
    Batch& front = pending_.front();
    const uint64_t known = std::min(front.rows, next_row - front.first_row);
    rows += known;
    if (known == front.rows) {
      pending_.pop_front();
      if (written_ > 0) --written_;
      continue;
    }
    auto rest = std::make_shared<v1::StreamUpdateRequest>(*front.request);
    DropRows(known, rest->mutable_batch());
    rest->mutable_batch()->set_producer_sequence(next_row);
    front = {.first_row = next_row, .rows = front.rows - known, .request = std::move(rest)};
  }
  in_flight_rows_ -= rows;
  acknowledged_ = std::max(acknowledged_, next_row);
  return rows;
}

absl::Status UpdateStream::Impl::OnAck(const v1::StreamUpdateResponse::Ack& message) {
  StreamAck ack;
  ack.next_row = message.next_producer_sequence();
  ack.sequence = message.sequence();
  ack.step = message.step();
  ack.num_features = message.num_features();
  if (message.has_validation()) ack.validation = FromProto(message.validation());
  for (const v1::RejectedSample& rejected : message.rejected()) {
    ack.rejected.push_back(FromProto(rejected));
  }
  {
    absl::MutexLock lock(&mu_);
    if (ack.next_row > next_row_) {
      return absl::InternalError(absl::StrCat(
          "the server at ", transport_->address(), " acknowledged rows below ", ack.next_row,
          ", but only rows below ", next_row_,
          " were sent; check that nothing else uses producer \"", options_.producer_id, "\""));
    }
    Acknowledge(ack.next_row);
    progressed_ = true;
    summary_.sequence = std::max(summary_.sequence, ack.sequence);
    summary_.step = std::max(summary_.step, ack.step);
    summary_.num_features = std::max(summary_.num_features, ack.num_features);
    if (ack.validation) summary_.validation = ack.validation;
    summary_.rows_rejected += ack.rejected.size();
    const size_t kept = std::min(
        ack.rejected.size(),
        kMostReportedRejections - std::min(kMostReportedRejections, summary_.rejected.size()));
    std::copy_n(ack.rejected.begin(), kept, std::back_inserter(summary_.rejected));
  }
  if (options_.on_ack) options_.on_ack(ack);
  return absl::OkStatus();
}

absl::StatusOr<size_t> UpdateStream::Impl::NextChunk(absl::Span<const Row> rows, uint64_t number,
                                                     uint64_t room,
                                                     uint64_t max_message_bytes) const {
  size_t count = 0;
  for (uint64_t bytes = kEnvelopeBytes; count < rows.size() && count < room; ++count) {
    bytes += EncodedBytes(rows[count]);
    if (bytes <= max_message_bytes) continue;
    if (count > 0) break;
    return absl::InvalidArgumentError(
        absl::StrCat("row ", number, " takes about ", bytes, " bytes; the server at ",
                     transport_->address(), " takes messages of up to ", max_message_bytes,
                     "; send fewer values per row or raise the server's --max_message_mib"));
  }
  return count;
}

absl::StatusOr<size_t> UpdateStream::Impl::TrySend(absl::Span<const Row> rows,
                                                   absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  absl::MutexLock send_lock(&send_mu_);
  uint64_t number = 0;
  uint64_t max_message_bytes = 0;
  {
    absl::MutexLock lock(&mu_);
    number = next_row_;
    max_message_bytes = max_message_bytes_;
  }
  if (absl::Status status = CheckRows(rows, number); !status.ok()) {
    return status;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    absl::StatusOr<size_t> fits = NextChunk(rows.subspan(i, 1), number + i, 1, max_message_bytes);
    if (!fits.ok()) return fits.status();
  }
  size_t taken = 0;
  while (taken < rows.size()) {
    uint64_t room = 0;
    {
      absl::MutexLock lock(&mu_);
      // A quarter of the window at a time: acks of small batches do not make ever smaller ones.
      const uint64_t wanted =
          std::min<uint64_t>(rows.size() - taken, std::max<uint64_t>(1, window_ / 4));
      auto ready = [this, wanted]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
        return done_ || closing_ || cancelled_ || in_flight_rows_ + wanted <= window_;
      };
      mu_.AwaitWithDeadline(absl::Condition(&ready), deadline);
      if (cancelled_) return absl::CancelledError("the stream was cancelled");
      if (done_) return status_;
      if (closing_) {
        return absl::FailedPreconditionError("the stream is closed; open another one");
      }
      room = window_ > in_flight_rows_ ? window_ - in_flight_rows_ : 0;
      if (room == 0) return taken;
      max_message_bytes = max_message_bytes_;
      number = next_row_;
    }
    absl::StatusOr<size_t> count = NextChunk(rows.subspan(taken), number, room, max_message_bytes);
    if (!count.ok()) return count.status();
    auto request = std::make_shared<v1::StreamUpdateRequest>();
    request->mutable_batch()->set_producer_sequence(number);
    EncodeRows(rows.subspan(taken, *count), request->mutable_batch());
    absl::MutexLock lock(&mu_);
    pending_.push_back({.first_row = number, .rows = *count, .request = std::move(request)});
    in_flight_rows_ += *count;
    next_row_ += *count;
    summary_.rows_sent += *count;
    taken += *count;
  }
  return taken;
}

absl::Status UpdateStream::Impl::NotAcknowledged(absl::string_view why) const {
  return absl::Status(absl::StatusCode::kUnavailable,
                      absl::StrCat(why, "; ", in_flight_rows_, " rows from number ", acknowledged_,
                                   " on are not acknowledged; resume producer \"",
                                   options_.producer_id, "\" to send them"));
}

absl::Status UpdateStream::Impl::Flush(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  auto flushed = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return done_ || pending_.empty(); };
  if (!mu_.AwaitWithTimeout(absl::Condition(&flushed), timeout)) {
    return absl::DeadlineExceededError(
        absl::StrCat(in_flight_rows_, " rows from number ", acknowledged_,
                     " on are not acknowledged after ", absl::FormatDuration(timeout),
                     "; wait longer, or resume producer \"", options_.producer_id, "\" later"));
  }
  return pending_.empty() && !cancelled_ ? absl::OkStatus() : status_;
}

UpdateSummary UpdateStream::Impl::Close(absl::Duration timeout) {
  {
    absl::MutexLock lock(&mu_);
    if (closed_) return summary_;
    closing_ = true;
  }
  const absl::Status flushed = Flush(timeout);
  absl::MutexLock lock(&mu_);
  if (closed_) return summary_;
  // Rows that are not acknowledged in time are abandoned; acknowledged ones only wait for a polite
  // end.
  auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return done_; };
  if (!flushed.ok() || !mu_.AwaitWithTimeout(absl::Condition(&ended), kEndTimeout)) {
    cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
    mu_.Await(absl::Condition(&ended));
  }
  closed_ = true;
  summary_.status = flushed;
  summary_.producer_id = options_.producer_id;
  summary_.next_row = acknowledged_;
  summary_.rows_accepted = summary_.rows_sent - in_flight_rows_ - summary_.rows_rejected;
  return summary_;
}

void UpdateStream::Impl::Cancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  if (context_ != nullptr) context_->TryCancel();
}

StreamProgress UpdateStream::Impl::progress() const {
  absl::MutexLock lock(&mu_);
  return {.rows_sent = summary_.rows_sent,
          .rows_acknowledged = summary_.rows_sent - in_flight_rows_,
          .rows_rejected = summary_.rows_rejected,
          .sequence = summary_.sequence,
          .step = summary_.step,
          .num_features = summary_.num_features,
          .validation = summary_.validation,
          .reconnects = summary_.reconnects};
}

uint64_t UpdateStream::Impl::next_row() const {
  absl::MutexLock lock(&mu_);
  return next_row_;
}

UpdateStream::UpdateStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
UpdateStream::~UpdateStream() = default;

uint64_t UpdateStream::next_row() const { return impl_->next_row(); }
const std::string& UpdateStream::producer_id() const { return impl_->producer_id(); }

absl::Status UpdateStream::Send(absl::Span<const Row> rows) {
  return impl_->TrySend(rows, absl::InfiniteDuration()).status();
}

absl::StatusOr<size_t> UpdateStream::TrySend(absl::Span<const Row> rows, absl::Duration timeout) {
  return impl_->TrySend(rows, timeout);
}

absl::Status UpdateStream::Flush(absl::Duration timeout) { return impl_->Flush(timeout); }
StreamProgress UpdateStream::progress() const { return impl_->progress(); }
UpdateSummary UpdateStream::Close(absl::Duration timeout) { return impl_->Close(timeout); }
void UpdateStream::Cancel() { impl_->Cancel(); }

}  // namespace kernelstream::client
