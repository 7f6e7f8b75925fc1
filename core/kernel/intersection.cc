#include <algorithm>
#include <memory>

#include "core/kernel/histogram.h"

namespace kernelstream {
namespace {

// Immutable. Frequencies over log(x) are Cauchy of width 1/2 (Vedaldi & Zisserman 2012).
class Intersection final : public HistogramKernel {
 public:
  explicit Intersection(double bandwidth) : HistogramKernel("intersection", bandwidth) {}
  double Evaluate(Point x, Point y) const override {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) {
      sum += std::min(x[j], y[j]);
    }
    return sum / bandwidth();
  }
  FeatureSpec features() const override { return AdditiveFeatures(SpectralLaw::kCauchy); }
};

}  // namespace

KernelEntry IntersectionKernel() {
  return {.doc = {.name = "intersection",
                  .doc = "sum over coordinates of min(x_j, x'_j) / bandwidth, for counts or "
                         "shares: one rough curve for each coordinate",
                  .parameters = kInputUnitParameters,
                  .source = "Vedaldi & Zisserman, PAMI 2012"},
          .inputs = kNonNegative,
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
            return std::make_unique<Intersection>(parameters.at("bandwidth"));
          }};
}

}  // namespace kernelstream
