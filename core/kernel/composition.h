// What sums and products of kernels have in common.
#ifndef KERNELSTREAM_CORE_KERNEL_COMPOSITION_H_
#define KERNELSTREAM_CORE_KERNEL_COMPOSITION_H_

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {

// Immutable. Terms have bandwidths of their own, each the median of the term's own distance where
// it is not given; the bandwidth of the composition multiplies them all.
class CompositeKernel : public Kernel {
 public:
  // The terms have seen to the units.
  double Distance(Point x, Point y) const override { return 1; }
  bool is_bounded() const override {
    for (const KernelTerm& term : terms_) {
      if (!term.kernel->is_bounded()) return false;
    }
    return true;
  }
  bool takes_any_input() const override {
    for (const KernelTerm& term : terms_) {
      if (!term.kernel->takes_any_input()) return false;
    }
    return true;
  }
  absl::Status CheckInput(std::span<const float> values) const override {
    return ForEachTerm([&](const Kernel& term) { return term.CheckInput(values); });
  }
  absl::Status CheckDimension(size_t input_dim) const override {
    return ForEachTerm([&](const Kernel& term) { return term.CheckDimension(input_dim); });
  }

 protected:
  CompositeKernel(double bandwidth, std::vector<KernelTerm> terms)
      : Kernel(bandwidth), terms_(std::move(terms)) {}
  const std::vector<KernelTerm>& terms() const { return terms_; }
  // Of term m at bandwidth 1 of the composition.
  FeatureSpec TermFeatures(size_t m) const {
    FeatureSpec spec = terms_[m].kernel->features();
    spec.frequency_scale /= terms_[m].bandwidth;
    return spec;
  }

 private:
  template <typename Check>
  absl::Status ForEachTerm(Check check) const {
    for (size_t m = 0; m < terms_.size(); ++m) {
      const absl::Status status = check(*terms_[m].kernel);
      if (status.ok()) continue;
      return InvalidField(FieldPathOf(status),
                          absl::StrCat("kernel.terms[", m, "]: ", status.message()));
    }
    return absl::OkStatus();
  }

  const std::vector<KernelTerm> terms_;
};

inline constexpr ParameterDoc kTermBandwidthParameters[] = {
    {.name = "bandwidth",
     .doc = "multiplies the bandwidths of all terms; absent: bandwidth_scale. A term whose "
            "bandwidth is absent has its own, chosen from the warm-up rows",
     .min = 1e-3,
     .max = 1e3,
     .default_value = std::nullopt},
    kBandwidthScale,
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_KERNEL_COMPOSITION_H_
