// The median trick.
#ifndef KERNELSTREAM_CORE_MODEL_MEDIAN_DISTANCE_H_
#define KERNELSTREAM_CORE_MODEL_MEDIAN_DISTANCE_H_

#include "core/base/matrix_view.h"
#include "core/kernel/kernel.h"

namespace kernelstream {

// Median of the kernel's distance over pairs of the first (at most 256) rows, equal rows left out;
// 1 if all rows are equal.
double MedianDistance(ConstMatrixView rows, const Kernel& kernel);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_MEDIAN_DISTANCE_H_
