// The server under kill -9, at random moments, while rows stream in with DURABLE acks.
//
// KERNELSTREAM_KILLS: kills per test, 20 by default. KERNELSTREAM_SEED: of the moments; printed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/include/kernelstream/client.h"
#include "gtest/gtest.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

constexpr char kModel[] = "m";
constexpr char kProducer[] = "producer";
constexpr uint64_t kBatchRows = 16;
// A kill comes up to this long after the server was started (it may not listen yet), or after rows
// began to flow again.
constexpr int kMaxStartupMicros = 60'000;
constexpr int kMaxServingMicros = 100'000;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

client::Row RowOf(uint64_t number) {
  const v1::Sample sample = NumberedSample(number);
  const auto& values = sample.features().dense().values();
  client::Row row;
  row.features = client::DenseFeatures{{values.begin(), values.end()}};
  row.target = sample.value();
  return row;
}

std::vector<client::Row> RowsOf(uint64_t first, uint64_t count) {
  std::vector<client::Row> rows;
  for (uint64_t i = 0; i < count; ++i) rows.push_back(RowOf(first + i));
  return rows;
}

// Sends rows 1, 2, ... in pieces of random size until told to end, through all kills. Thread-safe.
class Sender {
 public:
  Sender(client::Client& client, uint64_t seed) : random_(seed) {
    client::StreamOptions options;
    options.producer_id = kProducer;
    options.max_in_flight_rows = 256;
    options.backoff = {.initial = absl::Milliseconds(2), .max = absl::Milliseconds(20)};
    options.on_ack = [this](const client::StreamAck& ack) {
      absl::MutexLock lock(&mutex_);
      EXPECT_GE(ack.next_row, acknowledged_);
      acknowledged_ = ack.next_row;
    };
    auto stream = client.OpenUpdateStream(kModel, options);
    EXPECT_TRUE(stream.ok()) << stream.status();
    stream_ = *std::move(stream);
    thread_ = std::thread([this] { Run(); });
  }

  // Number of the first row that is not acknowledged.
  uint64_t acknowledged() const {
    absl::MutexLock lock(&mutex_);
    return acknowledged_;
  }

  // Returns once rows from number `known` on are acknowledged.
  void WaitForProgress(uint64_t known) const {
    absl::MutexLock lock(&mutex_);
    const auto moved = [this, known]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return acknowledged_ > known; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&moved), absl::Seconds(60)))
        << "no row was acknowledged for a minute";
  }

  // Completes the last mini-batch. The number of rows sent.
  uint64_t Finish(client::UpdateSummary* summary) {
    {
      absl::MutexLock lock(&mutex_);
      ending_ = true;
    }
    thread_.join();
    *summary = stream_->Close(absl::Minutes(2));
    return next_ - 1;
  }

 private:
  void Run() {
    while (true) {
      {
        absl::MutexLock lock(&mutex_);
        if (ending_ && (next_ - 1) % kBatchRows == 0) return;
      }
      uint64_t count = 1 + random_() % 40;
      {
        absl::MutexLock lock(&mutex_);
        if (ending_) count = kBatchRows - (next_ - 1) % kBatchRows;
      }
      const absl::Status status = stream_->Send(RowsOf(next_, count));
      if (!status.ok()) {
        ADD_FAILURE() << status;
        return;
      }
      next_ += count;
    }
  }

  std::mt19937_64 random_;
  std::unique_ptr<client::UpdateStream> stream_;
  std::thread thread_;
  uint64_t next_ = 1;  // the thread's
  mutable absl::Mutex mutex_;
  uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 1;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

// Where the server says the producer is.
uint64_t ProducerPosition(const std::string& address) {
  Connection connection(address);
  v1::StreamUpdateRequest::Open open;
  open.set_model(kModel);
  open.set_producer_id(kProducer);
  while (true) {  // UNAVAILABLE until the model is loaded
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    auto stream = connection.updates->StreamUpdate(&context);
    v1::StreamUpdateRequest request;
    *request.mutable_open() = open;
    stream->Write(request);
    v1::StreamUpdateResponse response;
    const bool opened = stream->Read(&response);
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    if (opened) return response.opened().next_producer_sequence();
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) {
      ADD_FAILURE() << status.error_message();
      return 0;
    }
  }
}

struct Outcome {
  uint64_t rows = 0;
  v1::ModelState state;
};

// A server is killed again and again while rows stream in.
Outcome StreamThroughKills(const v1::ModelConfig& config, uint64_t kills, uint64_t seed) {
  TempDir dir;
  std::mt19937_64 random(seed);
  const std::string data = dir.path() + "/data";
  auto server = std::make_unique<ServerProcess>(data);
  const std::string address = server->WaitUntilListening();
  EXPECT_FALSE(address.empty()) << server->output();
  Connection(address).Create(kModel, config);
  auto client = client::Client::Connect(address);
  EXPECT_TRUE(client.ok()) << client.status();
  Sender sender(**client, seed + 1);
  uint64_t killed_at_start = 0;
  for (uint64_t kill = 0; kill < kills; ++kill) {
    const bool while_starting = random() % 4 == 0;
    if (!while_starting) {
      EXPECT_EQ(server->WaitUntilListening(), address) << server->output();
      sender.WaitForProgress(sender.acknowledged());
    }
    absl::SleepFor(absl::Microseconds(
        static_cast<int64_t>(random() % (while_starting ? kMaxStartupMicros : kMaxServingMicros))));
    const uint64_t acknowledged = sender.acknowledged();
    server->Kill();
    killed_at_start += while_starting ? 1 : 0;
    server = std::make_unique<ServerProcess>(
        data, std::vector<std::string>{absl::StrCat("--listen=", address)});
    if (kill % 8 == 7) {
      EXPECT_EQ(server->WaitUntilListening(), address) << server->output();
      EXPECT_GE(ProducerPosition(address), acknowledged) << "acknowledged rows were lost";
    }
  }
  EXPECT_EQ(server->WaitUntilListening(), address) << server->output();
  client::UpdateSummary summary;
  Outcome outcome;
  outcome.rows = sender.Finish(&summary);
  EXPECT_TRUE(summary.status.ok()) << summary.status;
  EXPECT_EQ(summary.rows_rejected, 0u);
  EXPECT_EQ(summary.next_row, outcome.rows + 1);
  EXPECT_EQ(ProducerPosition(address), outcome.rows + 1);
  Connection connection(address);
  connection.WaitForSequence(kModel, outcome.rows);
  outcome.state = connection.Get(kModel).state();
  std::printf("kills=%lu (%lu while starting) reconnects=%lu rows=%lu\n", kills, killed_at_start,
              summary.reconnects, outcome.rows);
  server->Signal(SIGTERM);
  EXPECT_EQ(server->WaitForExit(), 0) << server->output();
  return outcome;
}

v1::ModelState Undisturbed(const v1::ModelConfig& config, uint64_t rows) {
  InProcessServer server;
  server->Create(kModel, config);
  auto client = client::Client::Connect(server.address());
  EXPECT_TRUE(client.ok()) << client.status();
  auto stream = (*client)->OpenUpdateStream(kModel);
  EXPECT_TRUE(stream.ok()) << stream.status();
  for (uint64_t first = 1; first <= rows; first += 1024) {
    const uint64_t count = std::min<uint64_t>(1024, rows - first + 1);
    EXPECT_TRUE((*stream)->Send(RowsOf(first, count)).ok());
  }
  EXPECT_TRUE((*stream)->Close().status.ok());
  server->WaitForSequence(kModel, rows);
  return server->Get(kModel).state();
}

class KillTest : public testing::Test {
 protected:
  void SetUp() override {
    std::printf("KERNELSTREAM_KILLS=%lu KERNELSTREAM_SEED=%lu\n", kills_, seed_);
  }
  const uint64_t kills_ = FromEnvironment("KERNELSTREAM_KILLS", 20);
  const uint64_t seed_ = FromEnvironment("KERNELSTREAM_SEED", std::random_device()());
};

// Only full mini-batches are cut, so the model is a function of the rows alone.
TEST_F(KillTest, NoAcknowledgedRowIsLostNoneIsLearnedTwiceAndTheModelIsTheUndisturbedOne) {
  const v1::ModelConfig config = SmallConfig("logistic");
  const Outcome outcome = StreamThroughKills(config, kills_, seed_);
  EXPECT_EQ(outcome.state.sequence(), outcome.rows);
  EXPECT_EQ(outcome.state.rows_learned(), outcome.rows);
  const v1::ModelState undisturbed = Undisturbed(config, outcome.rows);
  EXPECT_EQ(undisturbed.rows_learned(), outcome.rows);
  EXPECT_EQ(outcome.state.step(), undisturbed.step());
  EXPECT_EQ(outcome.state.fingerprint(), undisturbed.fingerprint());
}

// Cuts come by time too and are log records of their own: each row is still learned once.
TEST_F(KillTest, TimedCutsLoseAndDoubleNothingEither) {
  v1::ModelConfig config = SmallConfig("logistic");
  config.mutable_max_batch_delay()->set_seconds(0);
  config.mutable_max_batch_delay()->set_nanos(2'000'000);
  const Outcome outcome = StreamThroughKills(config, kills_, seed_);
  EXPECT_EQ(outcome.state.sequence(), outcome.rows);
  EXPECT_EQ(outcome.state.rows_learned(), outcome.rows);
}

}  // namespace
}  // namespace kernelstream::support
