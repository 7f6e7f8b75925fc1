#include <cmath>
#include <memory>

#include "core/base/portable_math.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {
namespace {

constexpr ParameterDoc kPolynomialParameters[] = {
    {.name = "degree",
     .doc = "power",
     .min = 1,
     .max = kMaxFactors,
     .default_value = 2.0,
     .integer = true},
    {.name = "offset",
     .doc = "added to the inner product: weight of the lower powers",
     .min = 0,
     .max = 1e6,
     .default_value = 1.0},
    {.name = "sketch",
     .doc =
         "1: 16 features at a time are a sketch of all products of inputs, with less variance "
         "the higher the degree; 0: each is a product of projections; absent: 1 from degree 4 on",
     .min = 0,
     .max = 1,
     .default_value = std::nullopt,
     .integer = true},
    kInputUnit,
    kBandwidthScale,
};

constexpr double kFirstSketchedDegree = 4;

// Immutable. A feature is the product of `degree` Rademacher projections of [x / bandwidth;
// sqrt(offset)] (Kar & Karnick 2012), whose relative variance at x = x' reaches 3^degree - 1, or
// one of the 16 numbers of a TensorSketch of it (Pham & Pagh 2013): core/feature/README.md has both
// variances.
class Polynomial final : public Kernel {
 public:
  Polynomial(size_t degree, double offset, bool sketch, double bandwidth)
      : Kernel(bandwidth), degree_(degree), offset_(offset), sketch_(sketch) {}
  double Evaluate(Point x, Point y) const override {
    const double base = InnerProduct(x, y) / (bandwidth() * bandwidth()) + offset_;
    double power = 1;
    for (size_t i = 0; i < degree_; ++i) power *= base;
    return power;
  }
  double Distance(Point x, Point y) const override { return CommonLength(x, y); }
  FeatureSpec features() const override {
    return {.form = sketch_ ? FeatureForm::kSketch : FeatureForm::kProduct,
            .law = SpectralLaw::kRademacher,
            .shift = offset_,
            .degree = degree_};
  }
  bool is_homogeneous() const override { return offset_ == 0; }
  bool is_bounded() const override { return false; }

 private:
  size_t degree_;
  double offset_;
  bool sketch_;
};

}  // namespace

KernelEntry PolynomialKernel() {
  return {.doc = {.name = "polynomial",
                  .doc = "(<x, x'> / bandwidth^2 + offset)^degree: interactions of up to `degree` "
                         "inputs",
                  .parameters = kPolynomialParameters,
                  .source = "Kar & Karnick, AISTATS 2012; sketches: Pham & Pagh, KDD 2013"},
          .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
            // Models that were stored before there were sketches have products.
            const auto sketch = parameters.find("sketch");
            return std::make_unique<Polynomial>(
                static_cast<size_t>(parameters.at("degree")), parameters.at("offset"),
                sketch != parameters.end() && sketch->second == 1, parameters.at("bandwidth"));
          },
          .choose =
              [](ConstMatrixView, ParameterMap& parameters) {
                const bool sketch = parameters.at("degree") >= kFirstSketchedDegree;
                parameters.try_emplace("sketch", sketch ? 1.0 : 0.0);
              }};
}

}  // namespace kernelstream
