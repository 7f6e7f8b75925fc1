#include <cmath>
#include <memory>

#include "core/base/portable_math.h"
#include "core/loss/loss.h"
#include "core/loss/target_checks.h"

namespace kernelstream {
namespace {

// 1 / (1 + exp(-t)) without overflow and with full relative accuracy in both tails.
double Sigmoid(double t) {
  const double e = PortableExp(-std::abs(t));
  return t >= 0 ? 1 / (1 + e) : e / (1 + e);
}

// Immutable.
class Logistic final : public Loss {
 public:
  Task task() const override { return Task::kBinary; }
  double Value(std::span<const double> scores, double target) const override {
    return PortableSoftplus(-target * scores[0]);
  }
  void Derivative(std::span<const double> scores, double target,
                  std::span<double> out) const override {
    out[0] = -target * Sigmoid(-target * scores[0]);
  }
  double curvature() const override { return 0.25; }
  absl::Status CheckTarget(double target) const override {
    return CheckBinaryTarget("logistic", target);
  }
  bool has_probabilities() const override { return true; }
  void Probabilities(std::span<const double> scores, std::span<double> out) const override {
    out[0] = Sigmoid(-scores[0]);
    out[1] = Sigmoid(scores[0]);
  }
};

}  // namespace

LossEntry LogisticLoss() {
  return {.doc = {.name = "logistic",
                  .doc = "log(1 + exp(-y score)), y = -1 or +1: two labels, with probabilities: "
                         "P(positive) = "
                         "1 / (1 + exp(-score))",
                  .parameters = {}},
          .make = [](const ParameterMap&) -> std::unique_ptr<const Loss> {
            return std::make_unique<Logistic>();
          }};
}

}  // namespace kernelstream
