// Rows of a request, evaluated by a snapshot.
#ifndef KERNELSTREAM_SERVER_SERVICE_SCORING_H_
#define KERNELSTREAM_SERVER_SERVICE_SCORING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/executor.h"
#include "core/model/evaluator.h"
#include "core/model/snapshot.h"
#include "google/protobuf/repeated_field.h"
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
absl::StatusOr<OutputMask> OutputsFromWire(const google::protobuf::RepeatedField<int>& outputs,
                                           const VarianceConfig& variance,
                                           const Snapshot& snapshot);

// Of each row, or nothing if it is not asked for or not known.
std::vector<RowUncertainty> UncertaintyOf(const Snapshot& snapshot, const SampleBatch& rows,
                                          const OutputMask& outputs, Executor& executor);
// The first row with a score or, if all have finite scores, an uncertainty that is not finite.
// scores: [rows][width]; uncertainty: one for each row, or empty.
std::optional<size_t> FirstOverflow(std::span<const double> scores, size_t width,
                                    const std::vector<RowUncertainty>& uncertainty);
// INVALID_ARGUMENT about the row at this index of rows.rows, whose score is not finite.
absl::Status Overflow(const HostedModel& model, const WireRows& rows, absl::string_view list,
                      size_t row);

// Everything of the answer but the model's uid. The answer to a matrix of a stream has columns.
// scores and uncertainty as in FirstOverflow, all finite.
void PredictionsToWire(const Snapshot& snapshot, const WireRows& rows,
                       std::span<const double> scores,
                       const std::vector<RowUncertainty>& uncertainty, const OutputMask& outputs,
                       v1::PredictResponse* response);
void PredictionsToWire(const Snapshot& snapshot, const WireRows& rows,
                       std::span<const double> scores,
                       const std::vector<RowUncertainty>& uncertainty, const OutputMask& outputs,
                       v1::StreamPredictResponse* response);

// Everything of the answer but the model's uid.
void EvaluationToWire(const Snapshot& snapshot, const Evaluator& evaluator,
                      v1::EvaluateResponse* response);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_SCORING_H_
