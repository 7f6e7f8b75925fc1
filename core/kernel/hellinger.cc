#include <cmath>
#include <memory>

#include "core/kernel/histogram.h"

namespace kernelstream {
namespace {

// Immutable. Features are Rademacher projections of sqrt(x). The d numbers sqrt(x_j / bandwidth)
// themselves would be exact, but a feature must be one of an endless row of equals: learning grows
// the number of features, and D > d of these lose nothing.
class Hellinger final : public HistogramKernel {
 public:
  explicit Hellinger(double bandwidth) : HistogramKernel("hellinger", bandwidth) {}
  double Evaluate(Point x, Point y) const override {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) {
      sum += std::sqrt(x[j] * y[j]);
    }
    return sum / bandwidth();
  }
  FeatureSpec features() const override {
    return {.form = FeatureForm::kLinear,
            .law = SpectralLaw::kRademacher,
            .transform = InputTransform::kSquareRoot};
  }
};

}  // namespace

KernelEntry HellingerKernel() {
  return {.doc = {.name = "hellinger",
                  .doc = "sum over coordinates of sqrt(x_j x'_j) / bandwidth: a linear function of "
                         "the square roots of counts or shares",
                  .parameters = kInputUnitParameters,
                  .source = "Vedaldi & Zisserman, PAMI 2012"},
          .inputs = kNonNegative,
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
            return std::make_unique<Hellinger>(parameters.at("bandwidth"));
          }};
}

}  // namespace kernelstream
