// What the kernels of counts and shares that are sums over coordinates have in common.
#ifndef KERNELSTREAM_CORE_KERNEL_HISTOGRAM_H_
#define KERNELSTREAM_CORE_KERNEL_HISTOGRAM_H_

#include <span>

#include "core/kernel/arithmetic.h"
#include "core/kernel/domain.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {

// Immutable.
class HistogramKernel : public Kernel {
 public:
  double Distance(Point x, Point y) const override { return CommonSum(x, y); }
  bool is_homogeneous() const override { return true; }
  bool is_bounded() const override { return false; }
  bool takes_any_input() const override { return false; }
  absl::Status CheckInput(std::span<const float> values) const override {
    return CheckNonNegative(name_, values);
  }

 protected:
  HistogramKernel(absl::string_view name, double bandwidth) : Kernel(bandwidth), name_(name) {}

 private:
  absl::string_view name_;
};

// Of a kernel whose frequencies over log(x) have law `law` (Vedaldi & Zisserman 2012).
inline FeatureSpec AdditiveFeatures(SpectralLaw law) {
  return {.form = FeatureForm::kLinear,
          .law = SpectralLaw::kRademacher,
          .transform = InputTransform::kAdditive,
          .additive_law = law};
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_KERNEL_HISTOGRAM_H_
