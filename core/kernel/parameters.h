// Parameters that several kernels share.
#ifndef KERNELSTREAM_CORE_KERNEL_PARAMETERS_H_
#define KERNELSTREAM_CORE_KERNEL_PARAMETERS_H_

#include "core/base/component.h"
#include "core/kernel/kernel.h"

namespace kernelstream {

// For kernels of (x - x') / bandwidth.
inline constexpr ParameterDoc kBandwidthParameters[] = {
    {.name = "bandwidth",
     .doc = "width of the kernel, in units of the standardised inputs; absent: bandwidth_scale "
            "times the median distance "
            "between warm-up rows",
     .min = kSmallestBandwidth,
     .max = kLargestBandwidth,
     .default_value = std::nullopt},
    {.name = "bandwidth_scale",
     .doc = "multiplies the bandwidth that is chosen from the data; without effect where bandwidth "
            "is given",
     .min = 1e-3,
     .max = 1e3,
     .default_value = 1.0},
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_KERNEL_PARAMETERS_H_
