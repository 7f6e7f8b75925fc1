#include <algorithm>
#include <cmath>
#include <memory>

#include "core/model/rules.h"

namespace kernelstream {
namespace {

enum Schedule { kPractical = 0, kThetaOverStep = 1, kConstant = 2 };

Schedule ScheduleOf(const ParameterMap& parameters) {
  return static_cast<Schedule>(static_cast<int>(parameters.at("schedule")));
}

constexpr ParameterDoc kNewestBlockParameters[] = {
    {.name = "schedule",
     .doc = "step size at step t: 0 practical: 1 / (curvature of the loss sqrt((top_eigenvalue + "
            "1/r + 1/b)^2 + t / (noise_constant^2 b r))), with b rows and r new features a step; "
            "1 theta / t; 2 step_size",
     .min = 0,
     .max = 2,
     .default_value = 0.0,
     .integer = true},
    {.name = "theta",
     .doc = "numerator of schedule 1",
     .min = 1e-9,
     .max = 1e9,
     .default_value = 1.0},
    {.name = "step_size",
     .doc = "step size of schedule 2",
     .min = 1e-9,
     .max = 1e9,
     .default_value = 0.1},
    {.name = "noise_constant",
     .doc = "c of schedule 0: larger steps later; diverges above about 0.5 on small blocks",
     .min = 1e-3,
     .max = 1e3,
     .default_value = 0.25},
    {.name = "top_eigenvalue",
     .doc = "largest eigenvalue of the kernel operator, for schedule 0; absent: measured on the "
            "warm-up rows",
     .min = 1e-9,
     .max = 1e9,
     .default_value = std::nullopt},
};

// Rows that the eigenvalue is measured on.
constexpr size_t kEigenvalueRows = 256;
constexpr int kPowerIterations = 50;

// Largest eigenvalue of K / m over the first m warm-up rows, by power iteration (K is non-negative,
// so it converges from the vector of ones).
void MeasureTopEigenvalue(ConstMatrixView rows, const Kernel& kernel, ParameterMap& parameters) {
  if (parameters.contains("top_eigenvalue")) return;
  const size_t m = std::min(rows.rows, kEigenvalueRows);
  std::vector<std::vector<double>> x(m);
  for (size_t i = 0; i < m; ++i) x[i].assign(rows.row(i).begin(), rows.row(i).end());
  std::vector<double> k(m * m);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j <= i; ++j) k[i * m + j] = k[j * m + i] = kernel.Evaluate(x[i], x[j]);
  }
  std::vector<double> v(m, 1 / std::sqrt(static_cast<double>(m))), next(m);
  double eigenvalue = 1;
  for (int iteration = 0; iteration < kPowerIterations; ++iteration) {
    double norm = 0;
    for (size_t i = 0; i < m; ++i) {
      next[i] = 0;
      for (size_t j = 0; j < m; ++j) next[i] += k[i * m + j] * v[j];
      norm += next[i] * next[i];
    }
    eigenvalue = std::sqrt(norm);
    for (size_t i = 0; i < m; ++i) v[i] = next[i] / eigenvalue;
  }
  parameters["top_eigenvalue"] = eigenvalue / static_cast<double>(m);
}

// Immutable. Algorithm 1 of Dai et al. 2014 in mini-batch form: with b rows and r new features,
//   new coefficients = -(step_size / (b r)) sum_i l'_i feature(x_i),
//   old ones *= 1 - step_size nu.
// The theorems let theta nu be any positive integer, so the last factor is negative while
// t < theta nu. Other schedules never take back more than all of a coefficient.
class NewestBlock final : public UpdateRule {
 public:
  NewestBlock(const ParameterMap& parameters, double l2_penalty, double curvature)
      : parameters_(parameters), l2_penalty_(l2_penalty), curvature_(curvature) {}
  bool updates_all_features() const override { return false; }
  bool needs_gram() const override { return false; }

  StepOutput Step(const StepInput& input) const override {
    const double step_size = StepSize(input.update, input.rows, input.range_size);
    const double factor =
        -step_size / (static_cast<double>(input.rows) * static_cast<double>(input.range_size));
    StepOutput out;
    out.decay = 1 - step_size * l2_penalty_;
    if (ScheduleOf(parameters_) != kThetaOverStep) out.decay = std::max(0.0, out.decay);
    out.dual.resize(input.derivative.size());
    for (size_t i = 0; i < out.dual.size(); ++i) {
      out.dual[i] =
          static_cast<float>(factor * input.weights[i / input.num_outputs] * input.derivative[i]);
    }
    return out;
  }

  double StepSize(uint64_t update, size_t rows, uint64_t range_size) const override {
    const auto t = static_cast<double>(update);
    switch (ScheduleOf(parameters_)) {
      case kThetaOverStep:
        return parameters_.at("theta") / t;
      case kConstant:
        return parameters_.at("step_size");
      case kPractical:
        break;
    }
    const auto b = static_cast<double>(rows);
    const auto r = static_cast<double>(range_size);
    const double c = parameters_.at("noise_constant");
    const double first = parameters_.at("top_eigenvalue") + 1 / r + 1 / b;
    return 1 / (curvature_ * std::sqrt(first * first + t / (c * c * b * r)));
  }

 private:
  ParameterMap parameters_;
  double l2_penalty_, curvature_;
};

}  // namespace

UpdateRuleEntry NewestBlockRule() {
  return {
      .doc =
          {.name = "newest_block",
           .doc =
               "the paper's Algorithm 1: only the newest features get coefficients, old ones decay",
           .parameters = kNewestBlockParameters},
      .default_l2_penalty = 1e-6,
      .measure = &MeasureTopEigenvalue,
      .make = [](const ParameterMap& parameters, double l2_penalty,
                 const Loss& loss) -> std::unique_ptr<const UpdateRule> {
        return std::make_unique<NewestBlock>(parameters, l2_penalty, loss.curvature());
      }};
}

}  // namespace kernelstream
