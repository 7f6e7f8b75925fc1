// What a person should know: from the state alone, so that a restart warns of the same.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/model/learned_metric.h"
#include "core/model/trainer_impl.h"

namespace kernelstream {
namespace {

// Row losses a served model shows before a report is old news.
constexpr uint64_t kDriftNewsRows = 16384;
// Fewer rows may well be alike by chance.
constexpr uint64_t kFewestAlikeRows = 256;
// Mean and deviation of recent targets together, in scales: then at least a tenth is pulled in.
constexpr double kFarTargets = 10;

}  // namespace

std::vector<ModelWarning> Trainer::Impl::Warnings(const Impl& shown) const {
  std::vector<ModelWarning> warnings;
  const auto warn = [&](WarningKind kind, std::string text) {
    if (!text.empty()) warnings.push_back({.kind = kind, .text = std::move(text)});
  };
  if (state_.drift.reports > 0 &&
      state_.rows_learned - state_.drift.last_report_row < kDriftNewsRows) {
    warn(WarningKind::kDrift,
         absl::StrCat("the model's errors rose suddenly after row ", state_.drift.last_report_row,
                      ": what the rows show has changed, or bad rows came in, or rows come sorted "
                      "by an input or their target. If sorted, shuffle them, or create the model "
                      "with replay and order ORDERED (--replay-order ordered)"));
  }
  if (state_.drift.ordered) {
    warn(WarningKind::kOrdered,
         "rows arrive sorted by label, so the model forgets the labels it does not see: shuffle "
         "them, or create the model with replay and order ORDERED");
  }
  warn(WarningKind::kDiverged, DivergedText());
  warn(WarningKind::kNoMetric, NoMetricText());
  if (!state_.warm || state_.learned_since_warm + state_.waiting.size() < kFewestAlikeRows) {
    return warnings;
  }
  warn(WarningKind::kOneLabel, shown.OneLabelText());
  warn(WarningKind::kConstantTarget, shown.ConstantTargetText());
  warn(WarningKind::kFarTargets, shown.FarTargetsText());
  warn(WarningKind::kConstantInputs, ConstantInputsText());
  return warnings;
}

std::string Trainer::Impl::ConstantInputsText() const {
  if (!state_.constant_inputs) return "";
  const bool given = !config_.input_scales.empty();
  return absl::StrCat("every input column was constant in the first ", config_.warmup_rows, " rows",
                      given ? " (once scaled by input.scales and clipped at +-8)" : "",
                      ", so nothing could be learned from them, and ",
                      given ? "the bandwidth was" : "scales and bandwidth were",
                      " chosen blindly: check how rows are made",
                      given ? ", and input.offsets and input.scales," : ",",
                      " then delete the model and create it again");
}

std::string Trainer::Impl::DivergedText() const {
  if (!state_.warm) return "";
  const CandidateState& served = state_.candidates[ServedChoice().candidate];
  if (served.divergences == 0) return "";
  const bool by_kernel = !kernel_->is_bounded();
  return absl::StrCat(
      "the served learner's scores grew without bound and it was set back to nothing ",
      served.divergences, served.divergences == 1 ? " time: " : " times: ",
      by_kernel
          ? absl::StrCat("kernel \"", config_.kernel.name, "\" at bandwidth ", served.bandwidth,
                         " is too large for these inputs; create the "
                         "model with a larger bandwidth, or without one")
          : absl::StrCat("update rule \"", config_.update_rule.name,
                         "\" takes steps that are too large; create the model with smaller "
                         "ones, or with the default rule"));
}

std::string Trainer::Impl::NoMetricText() const {
  const bool full = config_.input_metric == InputMetric::kFull;
  if (state_.input_dim <= WidestInputsOf(config_.input_metric)) return "";
  return absl::StrCat("the rows have ", state_.input_dim, " inputs, and input_metric ",
                      full ? "FULL" : "DIAGONAL", " is learned of at most ",
                      WidestInputsOf(config_.input_metric),
                      ", so no metric is learned and all inputs count alike: create the model ",
                      full && state_.input_dim <= kMaxDiagonalMetricDim
                          ? "with DIAGONAL (--input-metric diagonal), or without input_metric"
                          : "without input_metric");
}

std::string Trainer::Impl::OneLabelText() const {
  if (loss_->task() == Task::kDensityRatio) {
    const auto& [denominator, numerator] = state_.population_weights;
    if ((denominator > 0) == (numerator > 0)) return "";
    return absl::StrCat("all rows so far are of the population ",
                        numerator > 0 ? "NUMERATOR" : "DENOMINATOR",
                        ", so there is nothing to compare it with: send rows of the other one too");
  }
  // Rows by label, of all rows.
  const std::vector<double>& rows = state_.drift.label_weights;
  const double total = std::accumulate(rows.begin(), rows.end(), 0.0);
  const auto most = std::max_element(rows.begin(), rows.end());
  if (total < kFewestAlikeRows || *most < total) return "";
  const auto index = static_cast<size_t>(most - rows.begin());
  const std::string label = index < state_.labels.size() ? state_.labels[index] : "";
  return absl::StrCat("all ", total, " rows so far have the label \"", label,
                      "\", so there is nothing to tell it from: send rows of other labels too, "
                      "check where the label is taken from, or create a model with the loss "
                      "novelty if there is no other label");
}

std::string Trainer::Impl::FarTargetsText() const {
  const MetricSums& sums = state_.metrics.recent;
  if (loss_->task() != Task::kRegression || state_.metrics.total.rows < kFewestAlikeRows) return "";
  for (size_t k = 0; k < std::min<size_t>(state_.num_outputs, sums.target_spread.size()); ++k) {
    const double deviation = std::sqrt(sums.target_spread[k] / sums.known_weight);
    if (!(std::abs(sums.target_mean[k]) + deviation > kFarTargets)) continue;
    return absl::StrCat(
        "recent targets", state_.num_outputs > 1 ? absl::StrCat(" at place ", k + 1) : "",
        " are far from target_offset, ", state_.target_offsets[k], ", in target_scale, ",
        state_.target_scales[k],
        ": those more than 30 scales away are learned, and counted "
        "as errors, as if they were 30 away. Check their unit, or create the model again ",
        config_.target_scales.empty() ? "for such targets"
                                      : "with other target_offsets and target_scales, "
                                        "or without");
  }
  return "";
}

std::string Trainer::Impl::ConstantTargetText() const {
  const MetricSums& sums = state_.metrics.total;
  if (loss_->task() != Task::kRegression || sums.rows < kFewestAlikeRows) return "";
  for (size_t k = 0; k < std::min<size_t>(state_.num_outputs, sums.target_spread.size()); ++k) {
    if (sums.target_spread[k] > 0) continue;
    if (std::abs(sums.target_mean[k]) > kFarTargets) continue;  // far away, and pulled in
    const double value = state_.target_offsets[k] + state_.target_scales[k] * sums.target_mean[k];
    return absl::StrCat("all ", sums.rows, " rows so far have the same target, ", value,
                        state_.num_outputs > 1 ? absl::StrCat(", at place ", k + 1) : "",
                        ", so there is nothing to learn but this number: check where the target "
                        "is taken from");
  }
  return "";
}

}  // namespace kernelstream
