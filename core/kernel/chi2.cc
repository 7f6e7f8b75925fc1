#include <memory>

#include "core/kernel/histogram.h"

namespace kernelstream {
namespace {

// Immutable. Frequencies over log(x) have density sech(pi w) (Vedaldi & Zisserman 2012).
class Chi2 final : public HistogramKernel {
 public:
  explicit Chi2(double bandwidth) : HistogramKernel("chi2", bandwidth) {}
  double Evaluate(Point x, Point y) const override {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) {
      const double total = x[j] + y[j];
      if (total > 0) sum += 2 * x[j] * y[j] / total;
    }
    return sum / bandwidth();
  }
  FeatureSpec features() const override { return AdditiveFeatures(SpectralLaw::kSech); }
};

}  // namespace

KernelEntry Chi2Kernel() {
  return {.doc = {.name = "chi2",
                  .doc = "sum over coordinates of 2 x_j x'_j / (x_j + x'_j) / bandwidth, for "
                         "counts or shares: one smooth curve for each coordinate",
                  .parameters = kInputUnitParameters,
                  .source = "Vedaldi & Zisserman, PAMI 2012"},
          .inputs = kNonNegative,
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
            return std::make_unique<Chi2>(parameters.at("bandwidth"));
          }};
}

}  // namespace kernelstream
