#include "client/src/transport.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace kernelstream::client {
namespace {

constexpr absl::Duration kStopPollInterval = absl::Milliseconds(250);

void FillRandom(void* data, size_t size) {
  auto* bytes = static_cast<unsigned char*>(data);
  for (size_t done = 0; done < size;) {
    const ssize_t got = getrandom(bytes + done, size - done, 0);
    if (got > 0) done += static_cast<size_t>(got);
  }
}

grpc::ChannelArguments ChannelArgs() {
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(-1);
  // A restarted server is found again soon; the calls themselves back off.
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A peer that vanished without closing the connection is noticed while rows wait for their ack.
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  // Channels of one process to one address do not share a connection, so neither do their faults.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return args;
}

}  // namespace

Backoff::Backoff(const BackoffOptions& options) : options_(options), next_(options.initial) {
  FillRandom(&jitter_state_, sizeof(jitter_state_));
}

absl::Duration Backoff::Next() {
  const absl::Duration base = std::min(next_, options_.max);
  next_ = std::min(options_.max, next_ * options_.multiplier);
  jitter_state_ = jitter_state_ * 6364136223846793005u + 1442695040888963407u;
  return base * (1.0 - 0.2 * static_cast<double>(jitter_state_ >> 40) / (1 << 24));
}

std::string RandomId() {
  std::string bytes(16, '\0');
  FillRandom(bytes.data(), bytes.size());
  return absl::BytesToHexString(bytes);
}

std::optional<absl::Duration> RetryDelay(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kErrorDetailsUrl);
  google::rpc::Status details;
  if (!payload.has_value() || !details.ParseFromString(std::string(*payload))) return std::nullopt;
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::RetryInfo info;
    if (detail.Is<google::rpc::RetryInfo>() && detail.UnpackTo(&info)) {
      return std::clamp(absl::Seconds(info.retry_delay().seconds()) +
                            absl::Nanoseconds(info.retry_delay().nanos()),
                        absl::ZeroDuration(), absl::Minutes(1));
    }
  }
  return std::nullopt;
}

Transport::Transport(std::string address, ConnectOptions options)
    : address_(std::move(address)), options_(std::move(options)) {
  channel_ = grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), ChannelArgs());
  models_ = v1::ModelService::NewStub(channel_);
  updates_ = v1::OnlineUpdateService::NewStub(channel_);
  predictions_ = v1::PredictionService::NewStub(channel_);
  health_ = grpc::health::v1::Health::NewStub(channel_);
}

absl::Status Transport::WaitConnected(absl::Duration timeout, const std::function<bool()>& stop) {
  const absl::Time deadline = absl::Now() + timeout;
  do {
    const absl::Time slice = std::min(deadline, absl::Now() + kStopPollInterval);
    if (channel_->WaitForConnected(absl::ToChronoTime(slice))) return absl::OkStatus();
    if (stop && stop()) return absl::CancelledError("cancelled while connecting");
  } while (absl::Now() < deadline);
  return absl::UnavailableError(absl::StrCat(
      "no kernelstream server answers at ", address_, " (waited ",
      absl::FormatDuration(absl::Trunc(timeout, absl::Milliseconds(1))),
      "); check that kernelstream-server runs there, listens on that port, and can be reached from "
      "here"));
}

absl::Status Transport::FromGrpc(const grpc::Status& status, absl::Duration timeout) const {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const bool from_server = !status.error_details().empty();
  std::string message = status.error_message();
  if (!from_server && code == absl::StatusCode::kUnavailable) {
    message = absl::StrCat("the server at ", address_, " cannot be reached (", message,
                           "); check that it runs and that the address is right");
  } else if (!from_server && code == absl::StatusCode::kUnimplemented) {
    message =
        absl::StrCat("what answers at ", address_, " does not know this call (", message,
                     "); check that it is a kernelstream server and not older than this client");
  } else if (!from_server && code == absl::StatusCode::kDeadlineExceeded &&
             timeout != absl::InfiniteDuration()) {
    message = absl::StrCat("no answer from ", address_, " within ", absl::FormatDuration(timeout),
                           "; try again with a longer timeout");
  }
  absl::Status result(code, message);
  if (from_server) result.SetPayload(kErrorDetailsUrl, absl::Cord(status.error_details()));
  return result;
}

absl::Status Transport::Call(std::optional<absl::Duration> timeout, RetryOn retry_on,
                             const std::function<grpc::Status(grpc::ClientContext*)>& attempt,
                             int* attempts) {
  const absl::Duration limit = timeout.value_or(options_.call_timeout);
  const absl::Time deadline = absl::Now() + limit;
  Backoff backoff(options_.backoff);
  for (int made = 0;;) {
    if (absl::Status status =
            WaitConnected(std::min(options_.connect_timeout, deadline - absl::Now()));
        !status.ok()) {
      return status;
    }
    grpc::ClientContext context;
    if (deadline != absl::InfiniteFuture()) context.set_deadline(absl::ToChronoTime(deadline));
    const absl::Status status = FromGrpc(attempt(&context), limit);
    ++made;
    if (attempts != nullptr) *attempts = made;
    if (status.ok()) return status;
    const std::optional<absl::Duration> asked = RetryDelay(status);
    const bool again = absl::IsUnavailable(status) || (retry_on == RetryOn::kUnavailableOrFull &&
                                                       absl::IsResourceExhausted(status) && asked);
    if (!again || made >= options_.max_attempts) return status;
    const absl::Duration delay = std::max(backoff.Next(), asked.value_or(absl::ZeroDuration()));
    if (absl::Now() + delay >= deadline) return status;
    options_.wait ? options_.wait(delay) : absl::SleepFor(delay);
  }
}

bool Transport::StreamMayResume(const grpc::Status& status, const absl::Status& converted) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:  // The server ended the stream while it was still in use.
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::ABORTED:
      return true;
    // What gRPC itself makes of a connection that is cut in mid-stream.
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
      return status.error_details().empty() &&
             (absl::StrContains(status.error_message(), "RST_STREAM") ||
              absl::StrContains(status.error_message(), "Stream removed") ||
              absl::StrContains(status.error_message(), "Socket closed") ||
              absl::StrContains(status.error_message(), "Connection reset"));
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return RetryDelay(converted).has_value();
    default:
      return false;
  }
}

}  // namespace kernelstream::client
