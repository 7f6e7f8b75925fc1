// The kernelstream client library: create online kernel machines, stream labelled rows into them,
// ask for predictions, evaluate them. The one header to include; it needs Abseil and nothing else.
//
// Every call returns the server's own message in an absl::Status, or says which address could not
// be reached. A status from the server carries the serialised google.rpc.Status with its details as
// the payload kErrorDetailsUrl. What the fields of models and configs mean, with unit, range and
// default, is written once, in proto/kernelstream/v1/*.proto; a value left as constructed here is
// absent there.
#ifndef KERNELSTREAM_CLIENT_INCLUDE_KERNELSTREAM_CLIENT_H_
#define KERNELSTREAM_CLIENT_INCLUDE_KERNELSTREAM_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernelstream/model.h"

namespace kernelstream::client {

inline constexpr absl::string_view kErrorDetailsUrl = "type.googleapis.com/google.rpc.Status";

// ---- Predictions

enum class PredictionOutput {
  kScore = 1,
  kLabel,
  kProbabilities,
  kValue,
  kVariance,
  kPredictionInterval
};

struct ClassProbability {
  std::string label;
  double value = 0;
};

struct Interval {
  double low = 0;
  double high = 0;
};

struct Prediction {
  // Before the link: one value, or one per label.
  std::vector<double> scores;
  // Classification.
  std::string label;
  std::vector<ClassProbability> probabilities;
  // Regression, in target units. Novelty: score - threshold, below 0 for novel rows. Density
  // ratios: the score.
  double value = 0;
  // Regression with several targets: all of them.
  std::vector<double> values;
  // Of the function, without the noise of targets, target units squared.
  std::optional<double> variance;
  // Holds the target with the configured coverage; target units.
  std::optional<Interval> interval;
};

struct PredictOptions {
  // Empty: score, and label or value.
  std::vector<PredictionOutput> outputs;
  // Wait until the row at this log position is learned. 0: do not wait.
  uint64_t min_sequence = 0;
  // Of a stream: longest wait for an answer. Absent: ConnectOptions::call_timeout.
  std::optional<absl::Duration> timeout;
  // Streams: most requests sent and not answered; Send waits while there are as many.
  size_t max_in_flight = 8;
};

struct PredictResult {
  // One per row, in order, all from the model at `step`.
  std::vector<Prediction> predictions;
  uint64_t step = 0;
  uint64_t sequence = 0;
  uint64_t num_features = 0;
  std::string model_uid;
};

// Thread-safe. Pipelined Predict, for many rows: the next requests travel while earlier ones are
// evaluated. If the connection breaks, requests without an answer are sent again, as Predict is.
class PredictStream {
 public:
  ~PredictStream();
  PredictStream(const PredictStream&) = delete;
  PredictStream& operator=(const PredictStream&) = delete;

  // One request: its rows are answered together. A failed stream returns why.
  absl::Status Send(absl::Span<const Row> rows);
  absl::Status Send(const Matrix& matrix);
  // The next answer, in the order of the requests; waits for it. An error is about the oldest
  // request without an answer and ends the stream. FailedPrecondition: there is no such request.
  absl::StatusOr<PredictResult> Next();
  // Requests whose answers were not taken, and answers that Next gives at once (kept in memory).
  size_t pending() const;
  size_t answered() const;
  void Cancel();

 private:
  friend class Client;
  struct Impl;
  explicit PredictStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct EvaluateResult {
  // As Metrics::values.
  std::map<std::string, double> metrics;
  // Classification with at most 1000 labels.
  std::vector<ClassMetrics> classes;
  uint64_t rows = 0;
  uint64_t step = 0;
  uint64_t sequence = 0;
  uint64_t num_features = 0;
  std::string model_uid;
};

// ---- Updates

// When rows count as acknowledged: in memory; on disk; in the published model (and on disk).
enum class AckLevel { kAccepted = 1, kDurable, kApplied };

// A row the server refused. It was not learned; its neighbours were.
struct RejectedRow {
  // UpdateStream, producers: the row's number, from 1. Otherwise the position in the call, from 0.
  uint64_t row = 0;
  absl::Status status;
};

struct UpdateOptions {
  // Identifies the call, so that a repetition is learned once. Empty: a random one.
  std::string request_id;
  // Instead of request_id: rows are numbered from producer_sequence (1 or more) on.
  std::string producer_id;
  uint64_t producer_sequence = 0;
  AckLevel ack = AckLevel::kDurable;
  // Absent: ConnectOptions::call_timeout.
  std::optional<absl::Duration> timeout;
};

struct UpdateResult {
  uint64_t sequence = 0;
  uint64_t step = 0;
  uint64_t rows_accepted = 0;
  std::vector<RejectedRow> rejected;
  uint64_t next_producer_sequence = 0;
  bool duplicate = false;
};

// Waits between attempts: initial, then times multiplier, up to max, each up to a fifth shorter.
struct BackoffOptions {
  absl::Duration initial = absl::Milliseconds(100);
  absl::Duration max = absl::Seconds(5);
  double multiplier = 2;
};

// Rows up to here are dealt with.
struct StreamAck {
  // All rows with a smaller number are acknowledged or refused.
  uint64_t next_row = 0;
  uint64_t sequence = 0;
  uint64_t step = 0;
  uint64_t num_features = 0;
  std::vector<RejectedRow> rejected;
  std::optional<ValidationMetrics> validation;
  // Learned from the server on reconnecting: the acks themselves were lost with the connection.
  bool recovered = false;
};

struct StreamOptions {
  // Identifies the sender over all its streams, so that it can resume. Empty: a random one, which
  // still makes reconnects of this stream learn every row once.
  std::string producer_id;
  AckLevel ack = AckLevel::kDurable;
  // End the stream at the first refused row instead of going on with the others.
  bool fail_on_bad_row = false;
  // Most rows sent and not yet acknowledged, kept in memory. 0: as many as the server allows.
  uint64_t max_in_flight_rows = 0;
  BackoffOptions backoff;
  // How long an outage is bridged by reconnecting before the stream fails.
  absl::Duration give_up_after = absl::Minutes(5);
  // Called after every ack, on a thread of the library, in order. It may call progress(), nothing
  // else of the stream.
  std::function<void(const StreamAck&)> on_ack;
  // Called when a connection was lost, before the wait: why, and how long until the next attempt.
  // As on_ack.
  std::function<void(const absl::Status&, absl::Duration)> on_reconnect;
  // Waits between attempts; null: real time, cut short by Cancel().
  std::function<void(absl::Duration)> wait;
};

struct StreamProgress {
  uint64_t rows_sent = 0;
  uint64_t rows_acknowledged = 0;
  uint64_t rows_rejected = 0;
  uint64_t sequence = 0;
  uint64_t step = 0;
  uint64_t num_features = 0;
  std::optional<ValidationMetrics> validation;
  uint64_t reconnects = 0;
};

struct UpdateSummary {
  // OK: every row sent was acknowledged or refused.
  absl::Status status;
  std::string producer_id;
  // Number of the first row not acknowledged: where to resume.
  uint64_t next_row = 0;
  uint64_t rows_sent = 0;
  uint64_t rows_accepted = 0;
  uint64_t rows_rejected = 0;
  // Part of rows_accepted: dealt with by the server while the connection broke. If any of them was
  // refused, the refusal was lost with the connection.
  uint64_t rows_recovered = 0;
  // The first 1000; on_ack sees all.
  std::vector<RejectedRow> rejected;
  uint64_t sequence = 0;
  uint64_t step = 0;
  uint64_t num_features = 0;
  std::optional<ValidationMetrics> validation;
  uint64_t reconnects = 0;
};

// Thread-safe. A stream of labelled rows into one model that outlives connections and servers: it
// keeps every row until it is acknowledged, reconnects with exponential back-off, asks where the
// server is, and sends the rest. With DURABLE or APPLIED acks each row is learned exactly once,
// also across kill -9 of the server. Rows are numbered in the order of the calls to Send, from
// next_row() on. Dense rows of one dimension and kind of target travel as one matrix. Destroying
// the stream without Close() abandons what is not acknowledged.
class UpdateStream {
 public:
  ~UpdateStream();
  UpdateStream(const UpdateStream&) = delete;
  UpdateStream& operator=(const UpdateStream&) = delete;

  // Number of the next row to be sent. Above 1 on a new stream: those before are logged; skip them.
  uint64_t next_row() const;
  const std::string& producer_id() const;

  // Takes rows into the window; waits while it is full. A failed stream returns why (also later
  // calls do); InvalidArgument names a row that cannot travel or is over the server's message size,
  // and takes no row of this call.
  absl::Status Send(absl::Span<const Row> rows);
  // The same, but waits at most `timeout` and returns how many rows were taken, from the front.
  absl::StatusOr<size_t> TrySend(absl::Span<const Row> rows, absl::Duration timeout);

  // Waits until every row sent is acknowledged or refused. DeadlineExceeded says how many are not;
  // the stream goes on.
  absl::Status Flush(absl::Duration timeout = absl::InfiniteDuration());

  StreamProgress progress() const;

  // Flushes, ends the stream and sums up; status tells if all went well. Later calls: the same.
  UpdateSummary Close(absl::Duration timeout = absl::InfiniteDuration());

  // Ends the stream without waiting for acks; blocked calls return Cancelled.
  void Cancel();

 private:
  friend class Client;
  struct Impl;
  explicit UpdateStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// ---- Client

struct ConnectOptions {
  // How long to wait for the server to be reachable, at first and before each attempt of a call.
  absl::Duration connect_timeout = absl::Seconds(10);
  // Deadline of a call with its retries, unless its options say otherwise. Not for update streams.
  absl::Duration call_timeout = absl::Seconds(60);
  // Attempts of a unary call that meets UNAVAILABLE (or, for Update, a full queue).
  int max_attempts = 6;
  BackoffOptions backoff;
  // Waits between attempts; null: real time.
  std::function<void(absl::Duration)> wait;
};

// Hands out the next rows to evaluate; none at the end.
using RowSource = std::function<absl::StatusOr<std::vector<Row>>()>;

// Thread-safe. One connection to one server, shared by all calls and streams, which may outlive the
// Client. Calls are repeated on UNAVAILABLE with back-off; repeated updates are learned once.
class Client {
 public:
  // address: host:port. Unavailable, with what to check, if nothing answers there in
  // connect_timeout.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& address,
                                                         ConnectOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  absl::StatusOr<CreatedModel> CreateModel(const std::string& name, const ModelConfig& config);
  absl::StatusOr<ModelInfo> GetModel(const std::string& name);
  // All models, by name.
  absl::StatusOr<std::vector<ModelInfo>> ListModels();
  absl::Status DeleteModel(const std::string& name);
  absl::StatusOr<std::vector<ComponentInfo>> ListKernels();
  absl::StatusOr<std::vector<ComponentInfo>> ListLosses();
  absl::StatusOr<std::vector<ComponentInfo>> ListSamplers();
  // OK if the server says that it is SERVING: all models, or `model` if it is not empty.
  // Unavailable if it is not (loading, draining). NotFound: no such model. Asked once.
  absl::Status CheckHealth(const std::string& model = "");

  // One batch, acknowledged. For more than a few thousand rows, use a stream.
  absl::StatusOr<UpdateResult> Update(const std::string& model, absl::Span<const Row> rows,
                                      const UpdateOptions& options = {});

  // Opens the stream and waits until the server has said where it is.
  absl::StatusOr<std::unique_ptr<UpdateStream>> OpenUpdateStream(const std::string& model,
                                                                 StreamOptions options = {});

  absl::StatusOr<PredictResult> Predict(const std::string& model, absl::Span<const Row> rows,
                                        const PredictOptions& options = {});
  absl::StatusOr<PredictResult> Predict(const std::string& model, const Matrix& matrix,
                                        const PredictOptions& options = {});

  absl::StatusOr<std::unique_ptr<PredictStream>> OpenPredictStream(
      const std::string& model, const PredictOptions& options = {});

  // Nothing is learned; all rows are scored by one version of the model. Not repeated on failure.
  // timeout: of the whole call.
  absl::StatusOr<EvaluateResult> Evaluate(const std::string& model, const RowSource& source,
                                          absl::Duration timeout = absl::InfiniteDuration());
  absl::StatusOr<EvaluateResult> Evaluate(const std::string& model, absl::Span<const Row> rows);

 private:
  struct Impl;
  explicit Client(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_INCLUDE_KERNELSTREAM_CLIENT_H_
