// How coefficients move.
#ifndef KERNELSTREAM_CORE_MODEL_UPDATE_RULE_H_
#define KERNELSTREAM_CORE_MODEL_UPDATE_RULE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/component.h"
#include "core/base/matrix_view.h"
#include "core/kernel/kernel.h"
#include "core/loss/loss.h"

namespace kernelstream {

// A mini-batch as an update rule sees it, all computed with the coefficients before the step.
struct StepInput {
  uint64_t update = 1;  // t, from 1
  size_t rows = 0;      // b
  size_t num_outputs = 1;
  uint64_t range_size = 0;  // features that the rule's range covers
  // l'(f_t(x_i), y_i), [rows][num_outputs], without sample weights.
  std::span<const double> derivative;
  std::span<const double> curvatures;  // h of each row near its scores, [rows], > 0
  std::span<const double> weights;     // of the samples, [rows], > 0
  // What k(x, x) is usually: k(0) of kernels of x - x', else its mean over the batch. > 0.
  double mean_diagonal = 1;
  // gram[i * rows + j] = mean over the range's features of feature(i) feature(j). Only where
  // needs_gram().
  std::span<const double> gram;
};

// coefficients *= decay, for all; then, in the range: coefficients(f, k) += sum_i dual[i][k]
// feature_f(x_i).
struct StepOutput {
  double decay = 1;
  std::vector<float> dual;  // [rows][num_outputs]
};

// Immutable.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // True: the range is all features in use, new ones included. False: the newest block only, whose
  // features the scores do not contain yet.
  virtual bool updates_all_features() const = 0;
  virtual bool needs_gram() const = 0;
  virtual StepOutput Step(const StepInput& input) const = 0;
  // Of rules of the newest block: the step size of other sums that grow by as many features at a
  // time, at their t-th step (t = update, from 1). 1 where the rule has no schedule.
  virtual double StepSize(uint64_t /*update*/, size_t /*rows*/, uint64_t /*range_size*/) const {
    return 1;
  }
};

struct UpdateRuleEntry {
  ComponentDoc doc;
  double default_l2_penalty;
  // Adds what has to be measured on the standardised warm-up rows [rows, input_dim]. May be null.
  void (*measure)(ConstMatrixView rows, const Kernel& kernel, ParameterMap& parameters);
  std::unique_ptr<const UpdateRule> (*make)(const ParameterMap& parameters, double l2_penalty,
                                            const Loss& loss);
};

// proximal, newest_block and block_newton. Lives for ever.
std::span<const UpdateRuleEntry> UpdateRuleRegistry();
// nullptr: unknown.
const UpdateRuleEntry* FindUpdateRule(absl::string_view name);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_UPDATE_RULE_H_
