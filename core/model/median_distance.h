// The median trick.
#ifndef KERNELSTREAM_CORE_MODEL_MEDIAN_DISTANCE_H_
#define KERNELSTREAM_CORE_MODEL_MEDIAN_DISTANCE_H_

#include <span>

#include "core/base/matrix_view.h"
#include "core/kernel/kernel.h"

namespace kernelstream {

// Median of the kernel's distance over pairs of the first (at most 256) rows, equal rows left out;
// 1 if all rows are equal. weights: of these rows and maybe more, > 0; a pair counts by the product
// of its two; empty or all equal: alike.
double MedianDistance(ConstMatrixView rows, const Kernel& kernel,
                      std::span<const double> weights = {});

// Chooses what `config` leaves to the data, the bandwidths of its terms included: each is its own
// bandwidth_scale times its own median distance. config must be complete otherwise. rows: as the
// kernel will see them, at least one. weights: those of the distances.
void ChooseKernel(ConstMatrixView rows, ComponentConfig& config,
                  std::span<const double> weights = {});

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_MEDIAN_DISTANCE_H_
