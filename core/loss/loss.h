// What is learned: a loss of the score, its derivative, which targets it takes, and how a score is
// read.
#ifndef KERNELSTREAM_CORE_LOSS_LOSS_H_
#define KERNELSTREAM_CORE_LOSS_LOSS_H_

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/component.h"

namespace kernelstream {

// kRegression: targets are numbers; they are standardised before the loss sees them, and `value` is
// given back in target units. Several targets per row are as many scores, each with a loss of its
// own. kBinary: two labels; the loss sees -1 or +1. kMulticlass: labels; the loss sees the label's
// index. kNovelty: rows have no target; the loss sees the threshold below which a row is novel.
// kDensityRatio: rows are of one of two populations; the loss sees +1 for the numerator and -1 for
// the denominator.
enum class Task { kRegression, kBinary, kMulticlass, kNovelty, kDensityRatio };

// Targets are labels.
constexpr bool HasLabels(Task task) { return task == Task::kBinary || task == Task::kMulticlass; }

// kNovelty: where one set of coefficients draws the line, and what its next step is chosen from.
struct NoveltyThreshold {
  double value = 0;   // rows that score below it are novel
  double spread = 0;  // mean |score - value| of recent rows
  double near = 1;    // share of recent rows within half a spread of the value
  double rows = 0;    // weight of the rows seen
};

// Immutable. l(score, target) of one row; convex in the scores. Scores: one, or one per label
// (kMulticlass). Source: table of losses of Dai et al. 2014, corrected.
class Loss {
 public:
  virtual ~Loss() = default;
  virtual Task task() const = 0;
  // scores finite. Finite for |score| <= 1e150.
  virtual double Value(std::span<const double> scores, double target) const = 0;
  // d loss / d scores, same length as scores. At kinks the subgradient that is named in the
  // registry.
  virtual void Derivative(std::span<const double> scores, double target,
                          std::span<double> out) const = 0;
  // h: an upper bound of the second derivative (largest eigenvalue) that the proximal step uses as
  // curvature; 1 for kinks. Where there is none for all scores: its value at score 0.
  virtual double curvature() const = 0;
  // The curvature to use for a row with these scores, > 0.
  virtual double CurvatureAt(std::span<const double> scores, double target) const {
    return curvature();
  }
  // INVALID_ARGUMENT about field "value": not a target of this loss. target as in Value, regression
  // in raw units.
  virtual absl::Status CheckTarget(double target) const = 0;
  // How badly a row fits: what a drift of the stream is told by, so at least 0 (but for kNovelty,
  // where drift is not looked for). The loss, unless that has either sign.
  virtual double Misfit(std::span<const double> scores, double target) const {
    return Value(scores, target);
  }
  // Regression: the level in (0, 1) if the loss is that quantile's, so that its value is the
  // pinball loss; else 0.
  virtual double quantile_level() const { return 0; }
  // Regression: a target far away pulls no harder than one that is near, so it must not decide what
  // counts as far either.
  virtual bool is_robust() const { return false; }
  // True if Probabilities is meaningful.
  virtual bool has_probabilities() const { return false; }
  // scores -> probabilities of the labels (kBinary: of the negative and the positive label), adding
  // up to 1.
  virtual void Probabilities(std::span<const double> scores, std::span<double> out) const {}
  // The l2_penalty of a model that does not name one is at least this.
  virtual double least_l2_penalty() const { return 0; }
  // kNovelty: the threshold after a mini-batch with these scores (made before its step) and
  // weights > 0, at least one.
  virtual NoveltyThreshold NextThreshold(const NoveltyThreshold& threshold,
                                         std::span<const double> scores,
                                         std::span<const double> weights) const {
    return threshold;
  }
  // The constant score of least total loss over weighted targets (at least one), |score| <= 10.
  // `out`: one score per output.
  void BestConstant(std::span<const double> targets, std::span<const double> weights,
                    std::span<double> out) const;
};

struct LossEntry {
  ComponentDoc doc;
  // parameters: complete (CompleteParameters).
  std::unique_ptr<const Loss> (*make)(const ParameterMap& parameters);
};

// All losses, in the order of loss_list.inc. Lives for ever.
std::span<const LossEntry> LossRegistry();
// INVALID_ARGUMENT: unknown name (known ones listed), unknown or bad parameter. config gets its
// defaults.
absl::StatusOr<std::unique_ptr<const Loss>> MakeLoss(ComponentConfig& config);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_LOSS_LOSS_H_
