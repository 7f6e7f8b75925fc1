// Rows without their zeros, as features take them.
#ifndef KERNELSTREAM_CORE_MODEL_SPARSE_INPUTS_H_
#define KERNELSTREAM_CORE_MODEL_SPARSE_INPUTS_H_

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/feature_spec.h"
#include "core/base/inputs_view.h"
#include "core/model/sample_batch.h"

namespace kernelstream {

// Hashed inputs. Rows row(0) ... row(count - 1) without their zeros, clipped as InputScaling clips
// inputs that are used as they come. Value j of a dense row is at coordinate j.
SparseRows MakeSparseRows(size_t count, absl::FunctionRef<RowView(size_t)> row);

// The rows of x without their zeros, if that is worth it: few of the values are not 0. Else false,
// and `rows` has no meaning. Finite values.
bool TakeNonZeros(ConstMatrixView x, SparseRows& rows);
// Rows for features of `spec`: x itself, or in `memory` without their zeros where these features
// can be made so and it is worth it.
InputsView WithoutZeros(InputsView x, const FeatureSpec& spec, SparseRows& memory);

// Rows as a matrix of the coordinates that occur in them, in increasing order.
struct CompactRows {
  std::vector<float> values;
  ConstMatrixView x;  // [rows, coordinates], at least one coordinate
};
// Of the first half, quarter ... of the rows if all of them take more than max_values values.
CompactRows MakeCompactRows(const SampleBatch& rows, size_t max_values);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_SPARSE_INPUTS_H_
