// Rows to wire messages: one SampleMatrix where that is possible, Samples otherwise.
#ifndef KERNELSTREAM_CLIENT_SRC_ENCODE_H_
#define KERNELSTREAM_CLIENT_SRC_ENCODE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/include/kernelstream/client.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "kernelstream/v1/prediction_service.pb.h"
#include "kernelstream/v1/sample.pb.h"

namespace kernelstream::client {

// What a row must be before it can travel: as many indices as values, labels in UTF-8.
// InvalidArgument names first_number + position. Ranges, dimensions and which target a model takes
// are the server's to judge.
absl::Status CheckRows(absl::Span<const Row> rows, uint64_t first_number);

// Not below the bytes the row takes in a message.
size_t EncodedBytes(const Row& row);

// True if the rows are dense, of one dimension, at least 1.
bool FeaturesFitMatrix(absl::Span<const Row> rows);
// True if they also are unweighted, and have one kind of target, as many
// each.
bool FitMatrix(absl::Span<const Row> rows);

// Rows that passed CheckRows; FitMatrix (FeaturesFitMatrix without targets) for the first.
void EncodeMatrix(absl::Span<const Row> rows, bool with_targets, v1::SampleMatrix* matrix);
void EncodeSamples(absl::Span<const Row> rows,
                   google::protobuf::RepeatedPtrField<v1::Sample>* samples);
void EncodeFeatures(const Features& features, v1::Features* message);

// For any message with `samples` and `matrix`.
template <typename Message>
void EncodeRows(absl::Span<const Row> rows, Message* message) {
  if (FitMatrix(rows)) {
    EncodeMatrix(rows, /*with_targets=*/true, message->mutable_matrix());
  } else {
    EncodeSamples(rows, message->mutable_samples());
  }
}

// For any message with `outputs` and `min_sequence`.
template <typename Message>
void EncodeOptions(const PredictOptions& options, Message* message) {
  for (const PredictionOutput output : options.outputs) {
    message->add_outputs(static_cast<v1::PredictionOutput>(output));
  }
  message->set_min_sequence(options.min_sequence);
}

// A matrix to predict. InvalidArgument if its sizes do not fit together.
absl::Status EncodeMatrix(const Matrix& from, v1::SampleMatrix* matrix);

// For any message with `instances` and `matrix`: rows that passed CheckRows, without their targets
// and weights.
template <typename Message>
void EncodeInstances(absl::Span<const Row> rows, Message* message) {
  if (FeaturesFitMatrix(rows)) {
    EncodeMatrix(rows, /*with_targets=*/false, message->mutable_matrix());
  } else {
    for (const Row& row : rows) EncodeFeatures(row.features, message->add_instances());
  }
}

// Little-endian float32 as the wire wants them.
void AppendFloats(absl::Span<const float> values, std::string* bytes);

// Removes the first `count` rows of a message with `samples` and `matrix`; at least one must stay.
template <typename Message>
void DropRows(size_t count, Message* message) {
  if (message->has_matrix()) {
    v1::SampleMatrix& matrix = *message->mutable_matrix();
    matrix.set_rows(static_cast<uint32_t>(matrix.rows() - count));
    matrix.mutable_values()->erase(0, count * matrix.dimension() * sizeof(float));
    if (!matrix.targets().empty()) {
      const size_t targets = count * std::max(1u, matrix.target_dimension());
      matrix.mutable_targets()->erase(matrix.targets().begin(), matrix.targets().begin() + targets);
    }
    if (!matrix.populations().empty()) {
      matrix.mutable_populations()->erase(matrix.populations().begin(),
                                          matrix.populations().begin() + count);
    }
    if (!matrix.labels().empty()) {
      matrix.mutable_labels()->DeleteSubrange(0, static_cast<int>(count));
    }
  } else {
    message->mutable_samples()->DeleteSubrange(0, static_cast<int>(count));
  }
}

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_ENCODE_H_
