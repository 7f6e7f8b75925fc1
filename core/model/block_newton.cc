#include <algorithm>
#include <memory>

#include "core/model/linear_solve.h"
#include "core/model/rules.h"

namespace kernelstream {
namespace {

constexpr ParameterDoc kBlockNewtonParameters[] = {
    {.name = "step_size",
     .doc = "how much of the block's Newton step is taken: 1 suits classification, 0.3 regression",
     .min = 1e-6,
     .max = 2,
     .default_value = 1.0},
    {.name = "ridge",
     .doc = "added to the block's covariance; 0.1 is safe for any block, smaller values pay (down "
            "to 1e-6) with mini-batches of 1024 rows and as many features, or more rows",
     .min = 1e-7,
     .max = 1e6,
     .default_value = 0.1},
};

// Immutable. The newest block of features, preconditioned by its own covariance (the solver that
// the authors of Dai et al. 2014 use in their experiments): with b rows, r new features Phi and
// G = weights l',
//   new coefficients = -step_size (Phi' Phi / (b r) + ridge I)^-1 Phi' G / (b r),   old ones
//   *= 1 - step_size nu;
// solved as Phi' (Phi Phi' / (b r) + ridge I)^-1 G, which is the same and takes a b x b system.
class BlockNewton final : public UpdateRule {
 public:
  BlockNewton(const ParameterMap& parameters, double l2_penalty)
      : step_size_(parameters.at("step_size")),
        ridge_(parameters.at("ridge")),
        l2_penalty_(l2_penalty) {}
  bool updates_all_features() const override { return false; }
  bool needs_gram() const override { return true; }

  StepOutput Step(const StepInput& input) const override {
    const size_t b = input.rows;
    const auto rows = static_cast<double>(b);
    std::vector<double> system(input.gram.begin(), input.gram.end());
    for (double& value : system) value /= rows;
    for (size_t i = 0; i < b; ++i) system[i * b + i] += ridge_;
    std::vector<double> dual(input.derivative.begin(), input.derivative.end());
    for (size_t i = 0; i < dual.size(); ++i) dual[i] *= input.weights[i / input.num_outputs];
    SolvePositiveDefinite(b, input.num_outputs, system, dual);
    StepOutput out;
    out.decay = std::max(0.0, 1 - step_size_ * l2_penalty_);
    out.dual.resize(dual.size());
    const double factor = -step_size_ / (rows * static_cast<double>(input.range_size));
    for (size_t i = 0; i < dual.size(); ++i) out.dual[i] = static_cast<float>(factor * dual[i]);
    return out;
  }

 private:
  double step_size_, ridge_, l2_penalty_;
};

}  // namespace

UpdateRuleEntry BlockNewtonRule() {
  return {.doc = {.name = "block_newton",
                  .doc = "the newest features get coefficients by a Newton step of their own, old "
                         "ones decay",
                  .parameters = kBlockNewtonParameters},
          .default_l2_penalty = 1e-6,
          .measure = nullptr,
          .make = [](const ParameterMap& parameters, double l2_penalty,
                     const Loss&) -> std::unique_ptr<const UpdateRule> {
            return std::make_unique<BlockNewton>(parameters, l2_penalty);
          }};
}

}  // namespace kernelstream
