// What the server counts and times: every metric there is, by name.
#ifndef KERNELSTREAM_SERVER_TELEMETRY_METRICS_H_
#define KERNELSTREAM_SERVER_TELEMETRY_METRICS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace kernelstream::server {

namespace metric_names {
// Per model (label `model`).
inline constexpr char kRowsAccepted[] = "kernelstream_rows_accepted_total";
inline constexpr char kRowsRejected[] = "kernelstream_rows_rejected_total";
inline constexpr char kRowsLearned[] = "kernelstream_rows_learned_total";
inline constexpr char kSteps[] = "kernelstream_steps_total";
inline constexpr char kPendingRows[] = "kernelstream_pending_rows";
inline constexpr char kModelPhase[] = "kernelstream_model_phase";
inline constexpr char kStepSeconds[] = "kernelstream_step_seconds";
inline constexpr char kPublishSeconds[] = "kernelstream_publish_seconds";
inline constexpr char kCheckpointSeconds[] = "kernelstream_checkpoint_seconds";
inline constexpr char kCheckpointFailures[] = "kernelstream_checkpoint_failures_total";
inline constexpr char kDriftReports[] = "kernelstream_drift_reports_total";
inline constexpr char kPredictQueueSeconds[] = "kernelstream_predict_queue_seconds";
inline constexpr char kPredictComputeSeconds[] = "kernelstream_predict_compute_seconds";
inline constexpr char kPredictRows[] = "kernelstream_predict_rows_total";
// Of the process.
inline constexpr char kCommitSeconds[] = "kernelstream_log_commit_seconds";
inline constexpr char kCommitAppends[] = "kernelstream_log_commit_appends";
inline constexpr char kCommitFailures[] = "kernelstream_log_commit_failures_total";
inline constexpr char kFeatureCacheBytes[] = "kernelstream_feature_cache_bytes";
// Per RPC (labels `grpc_service`, `grpc_method`; `grpc_code` where it is known).
inline constexpr char kRpcStarted[] = "grpc_server_started_total";
inline constexpr char kRpcHandled[] = "grpc_server_handled_total";
inline constexpr char kRpcSeconds[] = "grpc_server_handling_seconds";
}  // namespace metric_names

// Value of kernelstream_model_phase.
enum class PhaseMetric { kLoading = 0, kWarmingUp = 1, kLearning = 2, kFrozen = 3, kFailed = 4 };

// Thread-safe. The series of one model. They disappear with the last reference.
class ModelMetrics {
 public:
  virtual ~ModelMetrics() = default;
  virtual void RowsAccepted(uint64_t rows) = 0;
  virtual void RowsRejected(uint64_t rows) = 0;
  // One step that learned `rows`.
  virtual void Learned(uint64_t rows, uint64_t steps, absl::Duration took) = 0;
  virtual void PendingRows(uint64_t rows) = 0;
  virtual void Phase(PhaseMetric phase) = 0;
  virtual void Published(absl::Duration took) = 0;
  virtual void CheckpointWritten(absl::Duration took) = 0;
  virtual void CheckpointFailed() = 0;
  // Reports of drift.
  virtual void Drifted(uint64_t reports) = 0;
  // One answered request: time before its evaluation began, and time of the evaluation.
  virtual void Predicted(uint64_t rows, absl::Duration queued, absl::Duration computed) = 0;
};

// Thread-safe. The series of one RPC. Takes no lock.
class RpcMetrics {
 public:
  virtual ~RpcMetrics() = default;
  virtual void Started() = 0;
  // `took`: from its start to its status.
  virtual void Handled(absl::StatusCode code, absl::Duration took) = 0;
};

// Thread-safe. Owns all series. Outlives every ModelMetrics and the HTTP listener.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Series of the model of that name; shared while an earlier reference lives.
  std::shared_ptr<ModelMetrics> ForModel(const std::string& name);

  void Committed(absl::Duration took, uint64_t appends);
  void CommitFailed();
  // `bytes` is asked whenever the metrics are read; it must stay callable until Stop.
  void ObserveFeatureCache(std::function<double()> bytes);

  // Series of one RPC ("kernelstream.v1.PredictionService", "Predict"). Lives as long as this;
  // takes a lock, so look it up once.
  RpcMetrics& ForRpc(absl::string_view service, absl::string_view method);

  // Serves Prometheus text at http://ADDRESS/metrics ("127.0.0.1:0", "[::]:9464"). The port that
  // was bound. INVALID_ARGUMENT: not an address. UNAVAILABLE: the port is taken or may not be used.
  // Call at most once.
  absl::StatusOr<int> Serve(const std::string& address);
  // Ends the listener. Idempotent.
  void Stop();
  // The text that is served.
  std::string Text() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_TELEMETRY_METRICS_H_
