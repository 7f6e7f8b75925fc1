// The median trick.
#ifndef KERNELSTREAM_CORE_MODEL_MEDIAN_DISTANCE_H_
#define KERNELSTREAM_CORE_MODEL_MEDIAN_DISTANCE_H_

#include "core/base/matrix_view.h"
#include "core/kernel/kernel.h"

namespace kernelstream {

// Median of the kernel's distance over pairs of the first (at most 256) rows, equal rows left out;
// 1 if all rows are equal.
double MedianDistance(ConstMatrixView rows, const Kernel& kernel);

// Chooses what `config` leaves to the data, the bandwidths of its terms included: each is its own
// bandwidth_scale times its own median distance. config must be complete otherwise. rows: as the
// kernel will see them, at least one.
void ChooseKernel(ConstMatrixView rows, ComponentConfig& config);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_MEDIAN_DISTANCE_H_
