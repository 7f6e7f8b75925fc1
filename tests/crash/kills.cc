#include "tests/crash/kills.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/src/encode.h"
#include "google/protobuf/util/message_differencer.h"

namespace kernelstream::support {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr uint64_t kPredictedRows = 64;
// A kill comes up to this long after the server was started (it may not listen yet), after rows
// were acknowledged, or after it was asked to end.
constexpr int kMaxStartupMicros = 60'000;
constexpr int kMaxServingMicros = 10'000;
constexpr int kMaxEndingMicros = 30'000;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

std::string ProducerOf(const Subject& subject) { return absl::StrCat(subject.name, "-producer"); }

std::vector<client::Row> RowsOf(const Subject& subject, uint64_t first, uint64_t count) {
  std::vector<client::Row> rows;
  for (uint64_t i = 0; i < count; ++i) rows.push_back(subject.row(first + i));
  return rows;
}

// Sends a subject's rows in pieces of random size, through all kills. Thread-safe.
class Sender {
 public:
  Sender(client::Client& client, const Subject& subject, uint64_t rows, uint64_t seed)
      : subject_(subject), rows_(rows), random_(seed) {
    client::StreamOptions options;
    options.producer_id = ProducerOf(subject);
    options.max_in_flight_rows = 256;
    options.backoff = {.initial = absl::Milliseconds(2), .max = absl::Milliseconds(20)};
    options.on_ack = [this](const client::StreamAck& ack) {
      absl::MutexLock lock(&mutex_);
      EXPECT_GE(ack.next_row, acknowledged_);
      acknowledged_ = ack.next_row;
    };
    auto stream = client.OpenUpdateStream(subject.name, options);
    EXPECT_TRUE(stream.ok()) << stream.status();
    stream_ = *std::move(stream);
    thread_ = std::thread([this] { Run(); });
  }

  // Number of the first row that is not acknowledged.
  uint64_t acknowledged() const {
    absl::MutexLock lock(&mutex_);
    return acknowledged_;
  }

  // Returns once rows beyond number `row`, and more than on entry, are acknowledged, or all are.
  void WaitForProgress(uint64_t row) const {
    absl::MutexLock lock(&mutex_);
    const uint64_t wanted = std::min(rows_, std::max(row, acknowledged_));
    const auto moved = [this, wanted]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return acknowledged_ > wanted; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&moved), absl::Seconds(60)))
        << subject_.name << ": no row was acknowledged for a minute";
  }

  client::UpdateSummary Finish() {
    thread_.join();
    return stream_->Close(absl::Minutes(2));
  }

 private:
  void Run() {
    for (uint64_t next = 1; next <= rows_;) {
      const uint64_t count = std::min<uint64_t>(1 + random_() % 40, rows_ - next + 1);
      const absl::Status status = stream_->Send(RowsOf(subject_, next, count));
      if (!status.ok()) {
        ADD_FAILURE() << subject_.name << ": " << status;
        return;
      }
      next += count;
    }
  }

  const Subject& subject_;
  const uint64_t rows_;
  std::mt19937_64 random_;  // the thread's
  std::unique_ptr<client::UpdateStream> stream_;
  std::thread thread_;
  mutable absl::Mutex mutex_;
  uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 1;
};

// Where the server says the subject's producer is.
uint64_t ProducerPosition(Connection& connection, const Subject& subject) {
  v1::StreamUpdateRequest::Open open;
  open.set_model(subject.name);
  open.set_producer_id(ProducerOf(subject));
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

// The subject's model once it has learned all rows.
Outcome OutcomeOf(Connection& connection, const Subject& subject, uint64_t rows) {
  v1::PredictRequest request;
  request.set_model(subject.name);
  request.set_min_sequence(rows);
  for (uint64_t i = 1; i <= kPredictedRows; ++i) {
    client::EncodeFeatures(subject.row(rows + i).features, request.add_instances());
  }
  request.mutable_outputs()->Add(subject.outputs.begin(), subject.outputs.end());
  Outcome outcome;
  const grpc::Status status = connection.Predict(request, &outcome.predictions);
  EXPECT_TRUE(status.ok()) << status.error_message();
  outcome.state = connection.Get(subject.name).state();
  // Of this server's life, and of this server.
  outcome.state.clear_rows_rejected();
  outcome.predictions.clear_model_uid();
  return outcome;
}

// What models started from, by the lines that servers wrote.
struct Recoveries {
  uint64_t from_checkpoint = 0, from_log_alone = 0;

  void Count(const std::string& output) {
    for (const absl::string_view line : absl::StrSplit(output, '\n')) {
      if (!absl::StrContains(line, "event=recovered")) continue;
      ++(absl::StrContains(line, "checkpoint_step=0 ") ? from_log_alone : from_checkpoint);
    }
  }
};

// Servers that SIGKILL ended, as their wait status says.
struct Kills {
  uint64_t all = 0, while_starting = 0, while_ending = 0;
};

class Killer {
 public:
  Killer(const std::vector<Subject>& subjects, const KillPlan& plan)
      : subjects_(subjects), plan_(plan), random_(plan.seed) {
    server_ = std::make_unique<ServerProcess>(data());
    address_ = server_->WaitUntilListening();
    EXPECT_FALSE(address_.empty()) << server_->output();
    Connection connection(address_);
    for (const Subject& subject : subjects_) connection.Create(subject.name, subject.config);
  }

  std::vector<Outcome> Run() {
    auto client = client::Client::Connect(address_);
    EXPECT_TRUE(client.ok()) << client.status();
    for (size_t i = 0; i < subjects_.size(); ++i) {
      senders_.push_back(
          std::make_unique<Sender>(**client, subjects_[i], plan_.rows, plan_.seed + 1 + i));
    }
    std::vector<uint64_t> rows;
    for (uint64_t i = 0; i < plan_.kills; ++i) rows.push_back(random_() % plan_.rows);
    std::sort(rows.begin(), rows.end());
    for (uint64_t stop = 0; kills_.all < plan_.kills && !testing::Test::HasFailure(); ++stop) {
      StopAndStart(stop, rows[kills_.all]);
    }
    EXPECT_EQ(kills_.all, plan_.kills);
    WaitUntilListening();
    Finish();
    std::vector<Outcome> outcomes = ReadOutcomes();
    EndAndStart();
    const std::vector<Outcome> restarted = ReadOutcomes();
    for (size_t i = 0; i < outcomes.size(); ++i) ExpectEqual(restarted[i], outcomes[i]);
    server_->Signal(SIGTERM);
    EXPECT_EQ(server_->WaitForExit(), 0) << server_->output();
    recoveries_.Count(server_->output());
    EXPECT_GT(recoveries_.from_checkpoint, 0u);
    EXPECT_GT(recoveries_.from_log_alone, 0u);
    std::printf(
        "ended by SIGKILL %lu times (%lu while starting, %lu after SIGTERM), ended by itself %lu "
        "times; rows=%lu, models loaded from a checkpoint %lu times, from the log alone %lu "
        "times\n",
        kills_.all, kills_.while_starting, kills_.while_ending, ended_by_itself_, plan_.rows,
        recoveries_.from_checkpoint, recoveries_.from_log_alone);
    return outcomes;
  }

 private:
  std::string data() const { return dir_.path() + "/data"; }

  void SleepUpTo(int micros) {
    absl::SleepFor(absl::Microseconds(static_cast<int64_t>(random_() % micros)));
  }

  void WaitUntilListening() {
    EXPECT_EQ(server_->WaitUntilListening(), address_) << server_->output();
  }

  void Start() {
    recoveries_.Count(server_->output());
    server_ = std::make_unique<ServerProcess>(
        data(), std::vector<std::string>{absl::StrCat("--listen=", address_)});
  }

  void EndAndStart() {
    server_->Signal(SIGTERM);
    EXPECT_EQ(server_->WaitForExit(), 0) << server_->output();
    Start();
    WaitUntilListening();
  }

  // About when row `row` is acknowledged: a clean stop, or a kill that may come too late if SIGTERM
  // came before it.
  void StopAndStart(uint64_t stop, uint64_t row) {
    const bool clean = stop % 8 == 7, while_ending = stop % 8 == 3;
    const bool while_starting = !clean && random_() % 4 == 0;
    if (!while_starting) {
      WaitUntilListening();
      senders_[clean ? 0 : stop % senders_.size()]->WaitForProgress(row);
    }
    if (!clean) SleepUpTo(while_starting ? kMaxStartupMicros : kMaxServingMicros);
    if (clean || while_ending) server_->Signal(SIGTERM);
    if (while_ending) SleepUpTo(kMaxEndingMicros);
    std::vector<uint64_t> acknowledged;
    for (const auto& sender : senders_) acknowledged.push_back(sender->acknowledged());
    if (!clean && server_->Kill()) {
      ++kills_.all;
      kills_.while_starting += while_starting ? 1 : 0;
      kills_.while_ending += while_ending ? 1 : 0;
    } else {
      ++ended_by_itself_;
      const int status = server_->WaitForExit();
      // SIGTERM comes before there is a handler, or ends a server well.
      EXPECT_TRUE(status == 0 || (while_starting && status == 128 + SIGTERM)) << server_->output();
      EXPECT_TRUE(clean || while_ending) << "ended without a signal\n" << server_->output();
    }
    Start();
    if (stop % 4 == 1 || clean) ExpectKept(acknowledged);
  }

  // Rows below these numbers are in the server's log.
  void ExpectKept(const std::vector<uint64_t>& acknowledged) {
    WaitUntilListening();
    Connection connection(address_);
    for (size_t i = 0; i < subjects_.size(); ++i) {
      EXPECT_GE(ProducerPosition(connection, subjects_[i]), acknowledged[i])
          << subjects_[i].name << ": acknowledged rows were lost";
    }
  }

  void Finish() {
    Connection connection(address_);
    for (size_t i = 0; i < subjects_.size(); ++i) {
      SCOPED_TRACE(subjects_[i].name);
      const client::UpdateSummary summary = senders_[i]->Finish();
      EXPECT_TRUE(summary.status.ok()) << summary.status;
      EXPECT_EQ(summary.rows_rejected, 0u);
      EXPECT_EQ(summary.next_row, plan_.rows + 1);
      EXPECT_EQ(ProducerPosition(connection, subjects_[i]), plan_.rows + 1);
    }
  }

  std::vector<Outcome> ReadOutcomes() {
    Connection connection(address_);
    connection.WaitUntilServing();
    std::vector<Outcome> outcomes;
    for (const Subject& subject : subjects_) {
      SCOPED_TRACE(subject.name);
      outcomes.push_back(OutcomeOf(connection, subject, plan_.rows));
      EXPECT_EQ(outcomes.back().state.sequence(), plan_.rows);
      EXPECT_EQ(outcomes.back().state.rows_learned(), plan_.rows);
    }
    return outcomes;
  }

  const std::vector<Subject>& subjects_;
  const KillPlan plan_;
  std::mt19937_64 random_;
  TempDir dir_;
  std::unique_ptr<ServerProcess> server_;
  std::string address_;
  std::vector<std::unique_ptr<Sender>> senders_;
  Kills kills_;
  uint64_t ended_by_itself_ = 0;
  Recoveries recoveries_;
};

}  // namespace

client::Row NumberedRow(uint64_t number) {
  const v1::Sample sample = NumberedSample(number);
  const auto& values = sample.features().dense().values();
  client::Row row;
  row.features = client::DenseFeatures{{values.begin(), values.end()}};
  row.target = sample.value();
  return row;
}

std::vector<Outcome> StreamThroughKills(const std::vector<Subject>& subjects,
                                        const KillPlan& plan) {
  return Killer(subjects, plan).Run();
}

std::vector<Outcome> StreamUndisturbed(const std::vector<Subject>& subjects, uint64_t rows) {
  InProcessServer server;
  auto client = client::Client::Connect(server.address());
  EXPECT_TRUE(client.ok()) << client.status();
  std::vector<Outcome> outcomes;
  for (const Subject& subject : subjects) {
    SCOPED_TRACE(subject.name);
    server->Create(subject.name, subject.config);
    auto stream = (*client)->OpenUpdateStream(subject.name);
    EXPECT_TRUE(stream.ok()) << stream.status();
    for (uint64_t first = 1; first <= rows; first += 1024) {
      const uint64_t count = std::min<uint64_t>(1024, rows - first + 1);
      EXPECT_TRUE((*stream)->Send(RowsOf(subject, first, count)).ok());
    }
    EXPECT_TRUE((*stream)->Close().status.ok());
    outcomes.push_back(OutcomeOf(*server.operator->(), subject, rows));
    EXPECT_EQ(outcomes.back().state.rows_learned(), rows);
  }
  return outcomes;
}

void ExpectEqual(const Outcome& outcome, const Outcome& expected) {
  MessageDifferencer differencer;
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  EXPECT_TRUE(differencer.Compare(expected.state, outcome.state)) << differences;
  EXPECT_TRUE(differencer.Compare(expected.predictions, outcome.predictions)) << differences;
}

void KillTest::SetUp() {
  kills_ = FromEnvironment("KERNELSTREAM_KILLS", 20);
  seed_ = FromEnvironment("KERNELSTREAM_SEED", std::random_device()());
  std::printf("KERNELSTREAM_KILLS=%lu KERNELSTREAM_SEED=%lu\n", kills_, seed_);
}

}  // namespace kernelstream::support
