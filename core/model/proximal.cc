#include <memory>

#include "core/model/linear_solve.h"
#include "core/model/rules.h"

namespace kernelstream {
namespace {

constexpr ParameterDoc kProximalParameters[] = {
    {.name = "step_constant",
     .doc = "c: how much a batch's evidence is damped; smaller trusts each batch more",
     .min = 1e-6,
     .max = 1e6,
     .default_value = 1.0},
};

// Immutable. The implicit (proximal) step of a mini-batch on all features in use: with K the
// batch's empirical kernel matrix and h the loss's curvature at each row,
//   (K + (c m + nu b) diag(1 / (weight h))) v = l' / h,   coefficients -= features' v /
//   num_features,
// the minimiser of the batch's quadratic bound plus (c m / 2 b) |change|^2 + (nu / 2)
// |coefficients|^2. m is what k(x, x) usually is, so that c means the same for a kernel and a
// multiple of it. No step-size schedule; invariant to how rows are cut into batches, to first
// order.
class Proximal final : public UpdateRule {
 public:
  Proximal(double step_constant, double l2_penalty)
      : step_constant_(step_constant), l2_penalty_(l2_penalty) {}
  bool updates_all_features() const override { return true; }
  bool needs_gram() const override { return true; }

  StepOutput Step(const StepInput& input) const override {
    const size_t b = input.rows;
    const auto rows = static_cast<double>(b);
    const double ridge = step_constant_ * input.mean_diagonal + l2_penalty_ * rows;
    std::vector<double> system(input.gram.begin(), input.gram.end());
    std::vector<double> dual(input.derivative.begin(), input.derivative.end());
    for (size_t i = 0; i < b; ++i) {
      system[i * b + i] += ridge / (input.weights[i] * input.curvatures[i]);
      for (size_t k = 0; k < input.num_outputs; ++k) {
        dual[i * input.num_outputs + k] /= input.curvatures[i];
      }
    }
    SolvePositiveDefinite(b, input.num_outputs, system, dual);
    StepOutput out;
    out.decay = 1 - l2_penalty_ * rows / ridge;
    out.dual.resize(dual.size());
    const double factor = -1 / static_cast<double>(input.range_size);
    for (size_t i = 0; i < dual.size(); ++i) out.dual[i] = static_cast<float>(factor * dual[i]);
    return out;
  }

 private:
  double step_constant_, l2_penalty_;
};

}  // namespace

UpdateRuleEntry ProximalRule() {
  return {.doc = {.name = "proximal",
                  .doc = "batch-proximal step on all features in use; no schedule to choose",
                  .parameters = kProximalParameters},
          .default_l2_penalty = 0,
          .measure = nullptr,
          .make = [](const ParameterMap& parameters, double l2_penalty,
                     const Loss&) -> std::unique_ptr<const UpdateRule> {
            return std::make_unique<Proximal>(parameters.at("step_constant"), l2_penalty);
          }};
}

}  // namespace kernelstream
