// Parameters that several kernels share.
#ifndef KERNELSTREAM_CORE_KERNEL_PARAMETERS_H_
#define KERNELSTREAM_CORE_KERNEL_PARAMETERS_H_

#include "core/base/component.h"
#include "core/kernel/kernel.h"

namespace kernelstream {

inline constexpr ParameterDoc kBandwidth = {
    .name = "bandwidth",
    .doc =
        "width of the kernel, in units of the standardised inputs; absent: bandwidth_scale "
        "times the median distance "
        "between warm-up rows",
    .min = kSmallestBandwidth,
    .max = kLargestBandwidth,
    .default_value = std::nullopt};
// For kernels of inputs that have no distance.
inline constexpr ParameterDoc kInputUnit = {
    .name = "bandwidth",
    .doc =
        "unit of the inputs: they are divided by it; absent: bandwidth_scale times a median "
        "over warm-up rows, at which the kernel is of order 1",
    .min = kSmallestBandwidth,
    .max = kLargestBandwidth,
    .default_value = std::nullopt};
inline constexpr ParameterDoc kBandwidthScale = {
    .name = "bandwidth_scale",
    .doc =
        "multiplies the bandwidth that is chosen from the data; without effect where bandwidth "
        "is given",
    .min = 1e-3,
    .max = 1e3,
    .default_value = 1.0};

// For kernels of (x - x') / bandwidth without other parameters.
inline constexpr ParameterDoc kBandwidthParameters[] = {kBandwidth, kBandwidthScale};
// For kernels of (x / bandwidth, x' / bandwidth) without other parameters.
inline constexpr ParameterDoc kInputUnitParameters[] = {kInputUnit, kBandwidthScale};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_KERNEL_PARAMETERS_H_
