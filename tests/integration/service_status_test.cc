// What every kind of error looks like on the wire.
#include "server/service/status_mapping.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::server {
namespace {

using support::DetailsOf;
using support::FindDetail;

struct Case {
  absl::Status status;
  grpc::StatusCode code;
  const char* reason;
  bool retry = false;
  const char* field = "";
  const char* model = "";
};

std::vector<Case> Cases() {
  return {
      {InvalidField("config.kernel.name", "unknown"), grpc::StatusCode::INVALID_ARGUMENT,
       "INVALID_REQUEST", false, "config.kernel.name"},
      {absl::InvalidArgumentError("bad"), grpc::StatusCode::INVALID_ARGUMENT, "INVALID_REQUEST"},
      {WithModel(absl::NotFoundError("no model"), "churn"), grpc::StatusCode::NOT_FOUND,
       "MODEL_NOT_FOUND", false, "", "churn"},
      {WithModel(absl::AlreadyExistsError("taken"), "churn"), grpc::StatusCode::ALREADY_EXISTS,
       "MODEL_EXISTS", false, "", "churn"},
      {absl::FailedPreconditionError("frozen"), grpc::StatusCode::FAILED_PRECONDITION,
       "WRONG_STATE"},
      {absl::ResourceExhaustedError("full"), grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL",
       true},
      {WithReason(absl::ResourceExhaustedError("large"), kMessageTooLarge),
       grpc::StatusCode::RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE"},
      {WithReason(absl::ResourceExhaustedError("many"), kModelLimit),
       grpc::StatusCode::RESOURCE_EXHAUSTED, "MODEL_LIMIT"},
      {absl::DataLossError("damaged"), grpc::StatusCode::DATA_LOSS, "DAMAGED_STATE"},
      {absl::UnavailableError("loading"), grpc::StatusCode::UNAVAILABLE, "NOT_READY", true},
      {WithReason(absl::UnavailableError("stopping"), kDraining), grpc::StatusCode::UNAVAILABLE,
       "DRAINING", true},
      {absl::DeadlineExceededError("late"), grpc::StatusCode::DEADLINE_EXCEEDED, "NOT_IN_TIME"},
      {absl::CancelledError("gone"), grpc::StatusCode::CANCELLED, "CANCELLED"},
      {absl::UnauthenticatedError("who"), grpc::StatusCode::UNAUTHENTICATED, "NO_CREDENTIAL"},
      {absl::PermissionDeniedError("no"), grpc::StatusCode::PERMISSION_DENIED, "NOT_ALLOWED"},
      {absl::UnimplementedError("no"), grpc::StatusCode::UNIMPLEMENTED, "UNIMPLEMENTED"},
      {absl::OutOfRangeError("far"), grpc::StatusCode::OUT_OF_RANGE, "OUT_OF_RANGE"},
      {absl::AbortedError("race"), grpc::StatusCode::ABORTED, "ABORTED"},
      {absl::InternalError("bug"), grpc::StatusCode::INTERNAL, "INTERNAL_ERROR"},
      {absl::UnknownError("what"), grpc::StatusCode::UNKNOWN, "INTERNAL_ERROR"},
  };
}

TEST(StatusMapping, EveryCodeCarriesItsReasonAndDetails) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.status.ToString());
    const grpc::Status status = ToGrpc(one.status);
    EXPECT_EQ(status.error_code(), one.code);
    const google::rpc::Status details = DetailsOf(status);
    EXPECT_EQ(details.code(), one.code);
    EXPECT_EQ(details.message(), status.error_message());
    google::rpc::ErrorInfo info;
    ASSERT_TRUE(FindDetail(details, &info));
    EXPECT_EQ(info.domain(), "kernelstream");
    EXPECT_EQ(info.reason(), one.reason);
    google::rpc::RetryInfo retry;
    EXPECT_EQ(FindDetail(details, &retry), one.retry);
    EXPECT_EQ(support::FieldOf(details), one.field);
    google::rpc::ResourceInfo resource;
    EXPECT_EQ(FindDetail(details, &resource), *one.model != '\0');
    EXPECT_EQ(resource.resource_name(), one.model);
  }
}

TEST(StatusMapping, OkHasNoDetails) {
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).error_details().empty());
}

TEST(StatusMapping, MessageBeginsWithThePathAndTheViolationDoesNot) {
  const grpc::Status status = ToGrpc(InvalidField("samples[3].value", "it is NaN"));
  EXPECT_EQ(status.error_message(), "samples[3].value: it is NaN");
  google::rpc::BadRequest bad;
  ASSERT_TRUE(FindDetail(DetailsOf(status), &bad));
  EXPECT_EQ(bad.field_violations(0).description(), "it is NaN");
}

TEST(StatusMapping, LongTextFitsTheTrailersAndIsCutBetweenCharacters) {
  std::string text;
  while (text.size() < 100000) text += "\xc3\xa9";  // two bytes each
  const absl::Status error = WithModel(InvalidField(text, text), text);
  const grpc::Status status = ToGrpc(error);
  // The message with every byte escaped as %XX, the details in base64.
  EXPECT_LE(3 * status.error_message().size() + status.error_details().size() * 4 / 3, 8000u);
  EXPECT_TRUE(DetailsOf(status).message().size() > 500);
  const std::string message = status.error_message();
  EXPECT_EQ(message.substr(message.size() - 3), "...");
}

}  // namespace
}  // namespace kernelstream::server
