#include <memory>

#include "core/base/portable_math.h"
#include "core/kernel/histogram.h"

namespace kernelstream {
namespace {

constexpr double kLog2 = 0x1.62e42fefa39efp-1;

// k_1(a, b) without the factor 1 / (2 log 2).
double HalfTerm(double a, double b) { return a == 0 ? 0 : a * PortableLog1p(b / a); }

// Immutable. Frequencies over log(x) have density sech(pi w) / (log(2) (1 + 4 w^2)) (Vedaldi &
// Zisserman 2012).
class JensenShannon final : public HistogramKernel {
 public:
  explicit JensenShannon(double bandwidth) : HistogramKernel("jensen_shannon", bandwidth) {}
  double Evaluate(Point x, Point y) const override {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) {
      sum += HalfTerm(x[j], y[j]) + HalfTerm(y[j], x[j]);
    }
    return sum / (2 * kLog2 * bandwidth());
  }
  FeatureSpec features() const override { return AdditiveFeatures(SpectralLaw::kJensenShannon); }
};

}  // namespace

KernelEntry JensenShannonKernel() {
  return {
      .doc =
          {.name = "jensen_shannon",
           .doc =
               "sum over coordinates of (x_j log2(1 + x'_j / x_j) + x'_j log2(1 + x_j / x'_j)) / "
               "(2 bandwidth), for counts or shares: one very smooth curve for each coordinate",
           .parameters = kInputUnitParameters,
           .source = "Vedaldi & Zisserman, PAMI 2012"},
      .inputs = kNonNegative,
      .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
        return std::make_unique<JensenShannon>(parameters.at("bandwidth"));
      }};
}

}  // namespace kernelstream
