// Rows of the wire -> SampleBatch.
#ifndef KERNELSTREAM_SERVER_SERVICE_WIRE_ROWS_H_
#define KERNELSTREAM_SERVER_SERVICE_WIRE_ROWS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/sample_batch.h"
#include "kernelstream/v1/sample.pb.h"
#include "server/hosting/append.h"

namespace kernelstream::server {

// Rows of one message.
struct WireRows {
  SampleBatch rows;
  // Place in the message of each of `rows`, increasing.
  std::vector<uint64_t> places;
  // Rows that are not in `rows`, by place; the field path is relative to the row, as core writes
  // it.
  std::vector<RejectedRow> rejected;
  // Of named rows with numbers below 0, by place: the name of the smallest, which is the one that a
  // kernel may refuse; shortened.
  std::vector<std::pair<uint64_t, std::string>> smallest_numbers;
  uint64_t count = 0;  // rows in the message
  bool matrix = false;
  uint32_t dimension = 0;         // of the matrix
  uint32_t target_dimension = 0;  // of the matrix

  // Where a field of a row stands in the message. `row_path`: relative to the row, as core writes
  // it
  // ("features.dense.values[7]", "value", "vector.values[2]", "label", "population", "weight").
  // `list`: "samples" or "instances".
  std::string Path(absl::string_view list, uint64_t place, absl::string_view row_path) const;
};

// All three: INVALID_ARGUMENT (paths "samples", "matrix.values", ...) if exactly one of list and
// matrix is not there, there are no rows or more than max_rows, or sizes do not fit together.
// Nothing is allocated before the sizes are checked. `matrix` may be null. bad_labels: places from
// ParseMessage.
using SampleList = google::protobuf::RepeatedPtrField<v1::Sample>;
absl::StatusOr<WireRows> DecodeSamples(const SampleList& samples, const v1::SampleMatrix* matrix,
                                       const std::vector<uint64_t>& bad_labels, uint64_t max_rows);

// The rows of a matrix are those of the message, which has to outlive them.
using InstanceList = google::protobuf::RepeatedPtrField<v1::Features>;
absl::StatusOr<WireRows> DecodeInstances(const InstanceList& instances,
                                         const v1::SampleMatrix* matrix, uint64_t max_rows);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_WIRE_ROWS_H_
