// UpdateStream against a server that fails at every point: no row lost, none doubled, order kept.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/include/kernelstream/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_server.h"

namespace kernelstream::client {
namespace {

using support::FakeServer;
using support::FaultPoint;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;

ConnectOptions NoWaiting() {
  ConnectOptions options;
  options.wait = [](absl::Duration) {};
  return options;
}

StreamOptions Eager() {
  StreamOptions options;
  options.wait = [](absl::Duration) {};
  return options;
}

// Row i carries i as its only value and target.
std::vector<Row> Rows(uint64_t first, uint64_t count) {
  std::vector<Row> rows;
  for (uint64_t i = first; i < first + count; ++i) {
    Row& row = rows.emplace_back();
    row.features = DenseFeatures{{static_cast<float>(i)}};
    row.target = static_cast<double>(i);
  }
  return rows;
}

// The log holds rows 1 to count, each once, in order.
void ExpectLogged(const FakeServer& server, uint64_t count) {
  const std::vector<support::LoggedRow> log = server.Log("m");
  ASSERT_EQ(log.size(), count);
  for (uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(log[i].producer_sequence, i + 1);
    ASSERT_EQ(log[i].sample.value(), static_cast<double>(i + 1));
    ASSERT_EQ(log[i].sample.features().dense().values(0), static_cast<float>(i + 1));
  }
}

class UpdateStreamTest : public ::testing::Test {
 protected:
  void Start(support::FakeServerOptions options = {}) {
    server_ = std::make_unique<FakeServer>(options);
    server_->AddModel("m");
    client_ = Client::Connect(server_->address(), NoWaiting()).value();
  }

  std::unique_ptr<FakeServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(UpdateStreamTest, SendsEveryRowOnceInOrder) {
  Start();
  auto stream = client_->OpenUpdateStream("m").value();
  EXPECT_EQ(stream->next_row(), 1u);
  ASSERT_TRUE(stream->Send(Rows(1, 100)).ok());
  ASSERT_TRUE(stream->Send(Rows(101, 1)).ok());
  ASSERT_TRUE(stream->Flush().ok());
  EXPECT_EQ(stream->progress().rows_acknowledged, 101u);
  const UpdateSummary summary = stream->Close();
  EXPECT_TRUE(summary.status.ok()) << summary.status;
  EXPECT_EQ(summary.rows_sent, 101u);
  EXPECT_EQ(summary.rows_accepted, 101u);
  EXPECT_EQ(summary.rows_rejected, 0u);
  EXPECT_EQ(summary.next_row, 102u);
  EXPECT_EQ(summary.sequence, 101u);
  EXPECT_EQ(summary.reconnects, 0u);
  ASSERT_TRUE(summary.validation.has_value());
  EXPECT_EQ(summary.validation->recent_loss, 0.25);
  ExpectLogged(*server_, 101);
}

struct FaultCase {
  FaultPoint point;
  AckLevel ack;
  grpc::StatusCode code;
};

class UpdateStreamFaultTest : public ::testing::TestWithParam<FaultCase> {};

// One fault at a time, at every batch of the stream.
TEST_P(UpdateStreamFaultTest, LosesAndDoublesNoRow) {
  constexpr int kBatches = 6;
  constexpr int kRowsPerBatch = 7;
  const FaultCase& param = GetParam();
  const int places = param.point == FaultPoint::kBeforeOpened ? 1 : kBatches;
  for (int place = 0; place < places; ++place) {
    SCOPED_TRACE(absl::StrCat("fault at batch ", place));
    FakeServer server;
    server.AddModel("m");
    server.Inject(param.point, place, param.code);
    auto client = Client::Connect(server.address(), NoWaiting()).value();
    StreamOptions options = Eager();
    options.ack = param.ack;
    std::vector<uint64_t> acks;
    options.on_ack = [&acks](const StreamAck& ack) { acks.push_back(ack.next_row); };
    auto opened = client->OpenUpdateStream("m", options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    UpdateStream& stream = **opened;
    for (int batch = 0; batch < kBatches; ++batch) {
      ASSERT_TRUE(stream.Send(Rows(1 + batch * kRowsPerBatch, kRowsPerBatch)).ok());
      // One batch at a time, so that the fault is met at the same row in every run.
      ASSERT_TRUE(stream.Flush().ok());
    }
    const UpdateSummary summary = stream.Close();
    EXPECT_TRUE(summary.status.ok()) << summary.status;
    EXPECT_EQ(summary.rows_accepted, static_cast<uint64_t>(kBatches * kRowsPerBatch));
    EXPECT_EQ(server.faults_left(), 0u);
    EXPECT_TRUE(std::is_sorted(acks.begin(), acks.end()));
    EXPECT_EQ(acks.back(), 1u + kBatches * kRowsPerBatch);
    ExpectLogged(server, kBatches * kRowsPerBatch);
  }
}

INSTANTIATE_TEST_SUITE_P(
    EveryPoint, UpdateStreamFaultTest,
    ::testing::Values(FaultCase{FaultPoint::kBeforeOpened, AckLevel::kDurable, grpc::UNAVAILABLE},
                      FaultCase{FaultPoint::kBeforeLog, AckLevel::kDurable, grpc::UNAVAILABLE},
                      FaultCase{FaultPoint::kAfterLog, AckLevel::kDurable, grpc::UNAVAILABLE},
                      FaultCase{FaultPoint::kAfterAck, AckLevel::kDurable, grpc::UNAVAILABLE},
                      FaultCase{FaultPoint::kBeforeLog, AckLevel::kApplied, grpc::UNAVAILABLE},
                      FaultCase{FaultPoint::kAfterLog, AckLevel::kApplied, grpc::UNAVAILABLE},
                      FaultCase{FaultPoint::kBeforeLog, AckLevel::kAccepted, grpc::UNAVAILABLE},
                      FaultCase{FaultPoint::kBeforeLog, AckLevel::kDurable, grpc::OK},
                      FaultCase{FaultPoint::kAfterLog, AckLevel::kDurable, grpc::CANCELLED}));

TEST_F(UpdateStreamTest, SurvivesManyFaultsInARow) {
  Start();
  for (int i = 0; i < 20; ++i) {
    server_->Inject(i % 2 == 0 ? FaultPoint::kAfterLog : FaultPoint::kBeforeLog, i % 3);
    server_->Inject(FaultPoint::kBeforeOpened);
  }
  auto stream = client_->OpenUpdateStream("m", Eager()).value();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(stream->Send(Rows(1 + 5 * i, 5)).ok());
  const UpdateSummary summary = stream->Close();
  EXPECT_TRUE(summary.status.ok()) << summary.status;
  EXPECT_GT(summary.reconnects, 0u);
  ExpectLogged(*server_, 1000);
}

TEST_F(UpdateStreamTest, GoesOnWhenTheServerIsKilledAndStartedAgain) {
  Start();
  auto stream = client_->OpenUpdateStream("m", Eager()).value();
  std::atomic<bool> sent = false;
  std::thread sender([&] {
    for (int i = 0; i < 400; ++i) EXPECT_TRUE(stream->Send(Rows(1 + 10 * i, 10)).ok());
    sent = true;
  });
  for (int i = 0; i < 5; ++i) {
    server_->Stop();
    server_->Start();
  }
  sender.join();
  EXPECT_TRUE(sent);
  const UpdateSummary summary = stream->Close();
  EXPECT_TRUE(summary.status.ok()) << summary.status;
  ExpectLogged(*server_, 4000);
}

TEST_F(UpdateStreamTest, ResumesANamedProducerWhereItLeftOff) {
  Start();
  StreamOptions options = Eager();
  options.producer_id = "file-1";
  {
    auto stream = client_->OpenUpdateStream("m", options).value();
    ASSERT_TRUE(stream->Send(Rows(1, 30)).ok());
    EXPECT_TRUE(stream->Close().status.ok());
  }
  auto stream = client_->OpenUpdateStream("m", options).value();
  EXPECT_EQ(stream->next_row(), 31u);
  ASSERT_TRUE(stream->Send(Rows(31, 10)).ok());
  EXPECT_EQ(stream->Close().next_row, 41u);
  ExpectLogged(*server_, 40);
}

TEST_F(UpdateStreamTest, TakesNoMoreThanTheWindow) {
  Start({.max_in_flight_rows = 10});
  auto stream = client_->OpenUpdateStream("m", Eager()).value();
  server_->HoldAcks(true);
  EXPECT_EQ(stream->TrySend(Rows(1, 100), absl::ZeroDuration()).value(), 10u);
  EXPECT_EQ(stream->TrySend(Rows(11, 1), absl::ZeroDuration()).value(), 0u);
  const absl::Status flushed = stream->Flush(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsDeadlineExceeded(flushed));
  EXPECT_THAT(std::string(flushed.message()), HasSubstr("10 rows from number 1"));
  server_->HoldAcks(false);
  ASSERT_TRUE(stream->Send(Rows(11, 90)).ok());
  EXPECT_TRUE(stream->Close().status.ok());
  ExpectLogged(*server_, 100);
  EXPECT_THAT(server_->batches(), Each(Le(10u)));
}

TEST_F(UpdateStreamTest, OwnWindowMayBeSmallerThanTheServers) {
  Start();
  StreamOptions options = Eager();
  options.max_in_flight_rows = 3;
  auto stream = client_->OpenUpdateStream("m", options).value();
  server_->HoldAcks(true);
  EXPECT_EQ(stream->TrySend(Rows(1, 5), absl::ZeroDuration()).value(), 3u);
  server_->HoldAcks(false);
  EXPECT_TRUE(stream->Close().status.ok());
}

TEST_F(UpdateStreamTest, SplitsWhatTheServerWouldNotTakeInOneMessage) {
  Start({.max_message_bytes = 4096});
  auto stream = client_->OpenUpdateStream("m", Eager()).value();
  std::vector<Row> rows = Rows(1, 100);
  for (Row& row : rows) row.features = DenseFeatures{std::vector<float>(100, 1.0f)};
  ASSERT_TRUE(stream->Send(rows).ok());
  EXPECT_TRUE(stream->Close().status.ok());
  EXPECT_EQ(server_->Log("m").size(), 100u);
  EXPECT_THAT(server_->batches(), Each(Le(10u)));
}

TEST_F(UpdateStreamTest, RowOverTheMessageLimitIsNamedAndNothingIsSent) {
  Start({.max_message_bytes = 4096});
  auto stream = client_->OpenUpdateStream("m", Eager()).value();
  std::vector<Row> rows = Rows(1, 2);
  rows[1].features = DenseFeatures{std::vector<float>(2000, 1.0f)};
  const absl::Status status = stream->Send(rows);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("row 2"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("4096"));
  EXPECT_EQ(stream->next_row(), 1u);
  ASSERT_TRUE(stream->Send(Rows(1, 2)).ok());
  EXPECT_TRUE(stream->Close().status.ok());
  ExpectLogged(*server_, 2);
}

TEST_F(UpdateStreamTest, DenseRowsTravelAsMatrixOthersAsSamples) {
  Start();
  auto stream = client_->OpenUpdateStream("m", Eager()).value();
  ASSERT_TRUE(stream->Send(Rows(1, 4)).ok());
  ASSERT_TRUE(stream->Flush().ok());
  EXPECT_EQ(server_->matrix_batches(), 1u);
  std::vector<Row> rows = Rows(5, 3);
  rows[0].weight = 2.0;
  rows[1].target = std::string("yes");
  rows[2].features = SparseFeatures{{3}, {0.5f}};
  ASSERT_TRUE(stream->Send(rows).ok());
  EXPECT_TRUE(stream->Close().status.ok());
  EXPECT_EQ(server_->matrix_batches(), 1u);
  const auto log = server_->Log("m");
  ASSERT_EQ(log.size(), 7u);
  EXPECT_EQ(log[4].sample.weight(), 2.0);
  EXPECT_EQ(log[5].sample.label(), "yes");
  EXPECT_EQ(log[6].sample.features().sparse().indices(0), 3u);
}

TEST_F(UpdateStreamTest, ReportsRefusedRowsByNumber) {
  Start();
  StreamOptions options = Eager();
  std::vector<uint64_t> refused;
  options.on_ack = [&refused](const StreamAck& ack) {
    for (const RejectedRow& row : ack.rejected) refused.push_back(row.row);
  };
  auto stream = client_->OpenUpdateStream("m", options).value();
  std::vector<Row> rows = Rows(1, 10);
  rows[2].features = DenseFeatures{{1e38f}};
  rows[7].features = DenseFeatures{{1, 2}};
  ASSERT_TRUE(stream->Send(rows).ok());
  const UpdateSummary summary = stream->Close();
  EXPECT_TRUE(summary.status.ok());
  EXPECT_EQ(summary.rows_rejected, 2u);
  EXPECT_EQ(summary.rows_accepted, 8u);
  EXPECT_THAT(refused, ElementsAre(3u, 8u));
  ASSERT_EQ(summary.rejected.size(), 2u);
  EXPECT_TRUE(absl::IsInvalidArgument(summary.rejected[1].status));
  EXPECT_THAT(std::string(summary.rejected[1].status.message()), HasSubstr("takes 1 values"));
}

TEST_F(UpdateStreamTest, RowThatCannotTravelIsNamed) {
  Start();
  auto stream = client_->OpenUpdateStream("m", Eager()).value();
  ASSERT_TRUE(stream->Send(Rows(1, 2)).ok());
  std::vector<Row> rows = Rows(3, 2);
  rows[1].target = "\xff";
  const absl::Status status = stream->Send(rows);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the label of row 4 is not UTF-8"));
}

TEST_F(UpdateStreamTest, RowsLostAfterAcceptedAcksAreReported) {
  Start();
  StreamOptions options = Eager();
  options.ack = AckLevel::kAccepted;
  auto stream = client_->OpenUpdateStream("m", options).value();
  ASSERT_TRUE(stream->Send(Rows(1, 10)).ok());
  ASSERT_TRUE(stream->Flush().ok());
  server_->Stop();
  server_->LoseNewestRows("m", 4);
  server_->Start();
  const absl::Status status = stream->Send(Rows(11, 2000));
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("expects row 7"));
}

TEST_F(UpdateStreamTest, AnotherSenderUnderTheSameNameIsNoticed) {
  Start();
  StreamOptions options = Eager();
  options.producer_id = "shared";
  auto first = client_->OpenUpdateStream("m", options).value();
  ASSERT_TRUE(first->Send(Rows(1, 5)).ok());
  ASSERT_TRUE(first->Flush().ok());
  auto second = client_->OpenUpdateStream("m", options).value();
  ASSERT_TRUE(second->Send(Rows(6, 5)).ok());
  EXPECT_TRUE(second->Close().status.ok());
  server_->Stop();
  server_->Start();
  ASSERT_TRUE(first->Send(Rows(6, 1)).ok());
  const absl::Status status = first->Close().status;
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("another sender"));
}

TEST_F(UpdateStreamTest, UnknownModelFailsAtOnceWithTheServersWords) {
  Start();
  const auto stream = client_->OpenUpdateStream("nothing", Eager());
  EXPECT_TRUE(absl::IsNotFound(stream.status()));
  EXPECT_THAT(std::string(stream.status().message()), HasSubstr("existing: m"));
}

TEST_F(UpdateStreamTest, GivesUpAndSaysWhereToResume) {
  Start();
  StreamOptions options = Eager();
  options.give_up_after = absl::ZeroDuration();
  options.producer_id = "p";
  auto stream = client_->OpenUpdateStream("m", options).value();
  ASSERT_TRUE(stream->Send(Rows(1, 10)).ok());
  ASSERT_TRUE(stream->Flush().ok());
  server_->Inject(FaultPoint::kBeforeLog);
  ASSERT_TRUE(stream->Send(Rows(11, 5)).ok());
  const UpdateSummary summary = stream->Close();
  EXPECT_TRUE(absl::IsUnavailable(summary.status)) << summary.status;
  EXPECT_THAT(std::string(summary.status.message()), HasSubstr("5 rows from number 11"));
  EXPECT_EQ(summary.next_row, 11u);
  EXPECT_EQ(summary.rows_accepted, 10u);
}

TEST_F(UpdateStreamTest, WaitsLongerBetweenAttemptsThatFail) {
  Start();
  StreamOptions options;
  options.backoff = {.initial = absl::Seconds(1), .max = absl::Seconds(4), .multiplier = 2};
  std::vector<absl::Duration> waits;
  options.wait = [&waits](absl::Duration wait) { waits.push_back(wait); };
  for (int i = 0; i < 5; ++i) server_->Inject(FaultPoint::kBeforeOpened);
  auto stream = client_->OpenUpdateStream("m", options).value();
  EXPECT_TRUE(stream->Close().status.ok());
  ASSERT_EQ(waits.size(), 5u);
  const double nominal[] = {1, 2, 4, 4, 4};
  for (int i = 0; i < 5; ++i) {
    EXPECT_LE(absl::ToDoubleSeconds(waits[i]), nominal[i]);
    EXPECT_GE(absl::ToDoubleSeconds(waits[i]), 0.8 * nominal[i]);
  }
}

TEST_F(UpdateStreamTest, CancelFreesABlockedSender) {
  Start({.max_in_flight_rows = 4});
  auto stream = client_->OpenUpdateStream("m", Eager()).value();
  server_->HoldAcks(true);
  ASSERT_EQ(stream->TrySend(Rows(1, 4), absl::ZeroDuration()).value(), 4u);
  absl::Status blocked;
  std::thread sender([&] { blocked = stream->Send(Rows(5, 4)); });
  stream->Cancel();
  sender.join();
  EXPECT_TRUE(absl::IsCancelled(blocked)) << blocked;
  server_->HoldAcks(false);
}

}  // namespace
}  // namespace kernelstream::client
