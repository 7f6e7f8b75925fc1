// Rows of a request, evaluated by a snapshot.
#ifndef KERNELSTREAM_SERVER_SERVICE_SCORING_H_
#define KERNELSTREAM_SERVER_SERVICE_SCORING_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/executor.h"
#include "core/model/snapshot.h"
#include "kernelstream/v1/prediction_service.pb.h"
#include "server/hosting/hosted_model.h"
#include "server/service/wire_rows.h"

namespace kernelstream::server {

// INVALID_ARGUMENT with the path in the message, for the first row that the model cannot evaluate.
// `list`: "samples" or "instances".
absl::Status CheckInputs(const HostedModel& model, const Snapshot& snapshot, const WireRows& rows,
                         absl::string_view list);

// Work too small to be worth another thread: about a millisecond at most. work_per_row: what comes
// on top of the scores, in multiply-adds.
bool IsSmall(const Snapshot& snapshot, const WireRows& rows, uint64_t work_per_row = 0);

// What a caller wants to be told.
struct OutputMask {
  bool score = false, label = false, probabilities = false, value = false;
  bool variance = false, interval = false;
  bool uncertainty() const { return variance || interval; }
};
// INVALID_ARGUMENT about outputs[i]: unknown, or not an output of a model with this loss.
absl::StatusOr<OutputMask> OutputsFromWire(const v1::PredictRequest& request,
                                           const VarianceConfig& variance,
                                           const Snapshot& snapshot);

void PredictRows(const Snapshot& snapshot, const WireRows& rows, const OutputMask& outputs,
                 Executor& executor, v1::PredictResponse* response);

// Thread-compatible. Sums over labelled rows. All means count each row with its weight.
class EvaluationSums {
 public:
  // `snapshot`: the same in all calls.
  void Add(const Snapshot& snapshot, const SampleBatch& rows, Executor& executor);
  void ToWire(const Snapshot& snapshot, v1::EvaluateResponse* response) const;
  uint64_t rows() const { return rows_; }

 private:
  uint64_t rows_ = 0;
  uint64_t unknown_labels_ = 0;
  double weight_ = 0;        // of all rows
  double known_weight_ = 0;  // of rows whose label the model knows
  double loss_ = 0, log_loss_ = 0, wrong_ = 0;
  double squared_ = 0, absolute_ = 0;
  double target_mean_ = 0, target_spread_ = 0;  // West 1979
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_SCORING_H_
