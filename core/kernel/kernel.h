// Similarity of two inputs, as an exact function and as a law of random features.
#ifndef KERNELSTREAM_CORE_KERNEL_KERNEL_H_
#define KERNELSTREAM_CORE_KERNEL_KERNEL_H_

#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/component.h"
#include "core/base/feature_spec.h"
#include "core/base/field_error.h"
#include "core/base/matrix_view.h"

namespace kernelstream {

// Range of bandwidths: their inverse times a clipped input stays far inside float32.
inline constexpr double kSmallestBandwidth = 1e-6;
inline constexpr double kLargestBandwidth = 1e9;

// Immutable. k(x, x') = E[phi(x) phi(x')] with phi a random feature as features() describes it
// (Dai et al. 2014, table 1, with the constants corrected). Every kernel has a bandwidth, the unit
// that inputs are measured in: k depends on x / bandwidth and x' / bandwidth only (kernels of
// log(x + offset): on the logarithms over the bandwidth).
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Exact k(x, x'), float64, relative error <= 1e-12 unless the kernel's file says otherwise. x and
  // y have the same size and lie in the kernel's domain.
  virtual double Evaluate(std::span<const double> x, std::span<const double> y) const = 0;
  // The length that the bandwidth is a unit of: the bandwidth chosen from data is its median over
  // pairs of rows, so that k is neither flat nor spiked, and of order 1.
  virtual double Distance(std::span<const double> x, std::span<const double> y) const = 0;
  virtual FeatureSpec features() const = 0;
  // True if k(x, x') = exp(-|x - x'|^2 / (2 bandwidth^2)): a matrix of it is quickly made.
  virtual bool is_gaussian() const { return false; }
  // True if another bandwidth multiplies k by a constant: one bandwidth is as good as any other.
  virtual bool is_homogeneous() const { return false; }
  // False if k(x, x) grows with x without bound.
  virtual bool is_bounded() const { return true; }
  // False if inputs have a zero with a meaning (counts, shares): they must not be shifted.
  virtual bool takes_any_input() const { return true; }
  // Input values the kernel is defined for. INVALID_ARGUMENT about "values[j]".
  virtual absl::Status CheckInput(std::span<const float> values) const { return absl::OkStatus(); }
  // Numbers of inputs the kernel is defined for. 0: not known before the rows have come; where that
  // is refused, the caller adds what to set to the message. INVALID_ARGUMENT about "".
  virtual absl::Status CheckDimension(size_t input_dim) const { return absl::OkStatus(); }
  double bandwidth() const { return bandwidth_; }

 protected:
  explicit Kernel(double bandwidth) : bandwidth_(bandwidth) {}

 private:
  double bandwidth_;
};

// Most terms of a sum or product, and how deep they may be nested.
inline constexpr size_t kMaxKernelTerms = 8;
inline constexpr size_t kMaxKernelDepth = 3;

// One kernel that a sum or product is made of.
struct KernelTerm {
  double weight = 1;
  // Made at its own bandwidth times that of the composition.
  std::unique_ptr<const Kernel> kernel;
  double bandwidth = 1;  // its own
};

struct KernelEntry {
  ComponentDoc doc;
  // What CheckInput lets pass, in words; "any" where takes_any_input(), unless terms decide.
  absl::string_view inputs = "any";
  // parameters: "bandwidth" included; others without a default may be absent. Null where
  // doc.takes_terms.
  std::unique_ptr<const Kernel> (*make)(const ParameterMap& parameters) = nullptr;
  // Adds the parameters other than "bandwidth" that are absent, as a pure function of rows
  // (as they come, at least one). Null if all have defaults.
  void (*choose)(ConstMatrixView rows, ParameterMap& parameters) = nullptr;
  // Where doc.takes_terms: a composition of 1 to kMaxKernelTerms terms.
  std::unique_ptr<const Kernel> (*compose)(double bandwidth,
                                           std::vector<KernelTerm> terms) = nullptr;
  // Whether terms may have weights other than 1.
  bool takes_weights = false;
  // What only new models are asked, of complete parameters: INVALID_ARGUMENT about
  // "kernel.parameters[...]" where they make no kernel or have no effect. Null if all do.
  absl::Status (*check_new)(const ParameterMap& parameters) = nullptr;
};

// All kernels, in the order of kernel_list.inc. Lives for ever.
std::span<const KernelEntry> KernelRegistry();
// Null if there is none of this name.
const KernelEntry* FindKernel(absl::string_view name);
// INVALID_ARGUMENT: unknown name (known ones listed), unknown or bad parameter, bad terms. Returns
// the config with defaults; what is to be chosen from the data ("bandwidth") stays absent.
absl::StatusOr<ComponentConfig> CompleteKernel(const ComponentConfig& config);
// INVALID_ARGUMENT where a parameter of a complete config, or of a term of it, differs from its
// default without effect, or where no kernel comes of them. For new models: those that were stored
// before this was asked keep what they have.
absl::Status CheckNewKernel(const ComponentConfig& config);
// Adds the parameters other than "bandwidth" that are to be chosen from the data, of the kernel
// itself and not of its terms. config must be complete otherwise. rows: [rows, dim], at least one
// row.
void ChooseKernelParameters(ConstMatrixView rows, ComponentConfig& config);
// config must be complete with a bandwidth, its terms too. What else is to be chosen from the data
// may be absent: such a kernel serves for CheckInput and for what does not depend on it.
absl::StatusOr<std::unique_ptr<const Kernel>> MakeKernel(const ComponentConfig& config);
// The same with bandwidth 1 where config or one of its terms has none yet.
absl::StatusOr<std::unique_ptr<const Kernel>> MakeUnitKernel(const ComponentConfig& config);
// Names of the kernels whose features, with default parameters, are accepted; of sums and products
// with gaussian terms.
std::vector<absl::string_view> KernelsWith(
    absl::FunctionRef<bool(const FeatureSpec& features)> accepts);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_KERNEL_KERNEL_H_
