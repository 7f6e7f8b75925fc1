// Similarity of two inputs, as an exact function and as a law of random features.
#ifndef KERNELSTREAM_CORE_KERNEL_KERNEL_H_
#define KERNELSTREAM_CORE_KERNEL_KERNEL_H_

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/component.h"
#include "core/base/spectral_law.h"
#include "core/base/field_error.h"

namespace kernelstream {

// Range of bandwidths: their inverse times a clipped input stays far inside float32.
inline constexpr double kSmallestBandwidth = 1e-6;
inline constexpr double kLargestBandwidth = 1e9;

// Immutable. k(x, x') = E[phi(x) phi(x')] with phi(x) = sqrt(2) cos(frequency . x / bandwidth +
// phase), frequency ~ law, phase uniform on the circle (Rahimi & Recht 2007). k depends on (x - x')
// / bandwidth only.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Exact k(x, x'), float64, relative error <= 1e-12. x and y have the same size.
  virtual double Evaluate(std::span<const double> x, std::span<const double> y) const = 0;
  // The distance that the bandwidth is a unit of: the median trick takes its median over pairs of
  // rows.
  virtual double Distance(std::span<const double> x, std::span<const double> y) const = 0;
  // Law of one frequency coordinate at bandwidth 1.
  virtual SpectralLaw law() const = 0;
  double bandwidth() const { return bandwidth_; }
  // Input values the kernel is defined for. INVALID_ARGUMENT about "values[j]".
  virtual absl::Status CheckInput(std::span<const float> values) const { return absl::OkStatus(); }

 protected:
  explicit Kernel(double bandwidth) : bandwidth_(bandwidth) {}

 private:
  double bandwidth_;
};

struct KernelEntry {
  ComponentDoc doc;
  // parameters: complete, "bandwidth" included.
  std::unique_ptr<const Kernel> (*make)(const ParameterMap& parameters);
};

// All kernels, in the order of kernel_list.inc. Lives for ever.
std::span<const KernelEntry> KernelRegistry();
// INVALID_ARGUMENT: unknown name (known ones listed), unknown or bad parameter. Returns the
// parameters with their defaults; "bandwidth" stays absent if it is to be chosen from the data.
absl::StatusOr<ParameterMap> CompleteKernel(const ComponentConfig& config);
// config must be complete with a bandwidth.
absl::StatusOr<std::unique_ptr<const Kernel>> MakeKernel(const ComponentConfig& config);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_KERNEL_KERNEL_H_
