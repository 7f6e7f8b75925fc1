#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"

#include "core/base/portable_math.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {
namespace {

enum Function { kExp = 0, kGeometric = 1, kSeries = 2 };

constexpr ParameterDoc Coefficient(absl::string_view name, double default_value) {
  return {.name = name,
          .doc = "coefficient of that power; used where function is 2",
          .min = 0,
          .max = 1e6,
          .default_value = default_value};
}

constexpr ParameterDoc kDotProductParameters[] = {
    {.name = "function",
     .doc =
         "f of the inner product: 0 exp(t); 1 geometric, 1 / (1 - t); 2 series, a0 + a1 t + ... + "
         "a8 t^8",
     .min = 0,
     .max = 2,
     .default_value = 0.0,
     .integer = true},
    {.name = "radius",
     .doc = "rows longer than radius times bandwidth are shortened to that length; used where "
            "function is 1, which has a pole at length 1",
     .min = 0.1,
     .max = 0.999,
     .default_value = 0.9},
    Coefficient("a0", 1),
    Coefficient("a1", 1),
    Coefficient("a2", 1),
    Coefficient("a3", 0),
    Coefficient("a4", 0),
    Coefficient("a5", 0),
    Coefficient("a6", 0),
    Coefficient("a7", 0),
    Coefficient("a8", 0),
    kInputUnit,
    kBandwidthScale,
};

// Immutable. Features, with z = x / bandwidth:
//   exp        sqrt(2) cos(w . z + b) exp(|z|^2 / 2), w normal: far less variance than products of
//              projections.
//   geometric  1 / (1 - t) = E[exp(v t)], v exponential; with v drawn at rate 1 - radius^2 instead:
//              sqrt(2) cos(sqrt(v) w . z + b) exp(v (|z|^2 - radius^2) / 2) / sqrt(1 - radius^2),
//              at most sqrt(2 / (1 - radius^2)).
//   series     sqrt(f(1)) times a product of N Rademacher projections of z, P[N = n] = a_n / f(1)
//              (Kar & Karnick 2012, with the law of N matched to the series: at most sqrt(f(1)) for
//              |z|_1 <= 1).
class DotProduct final : public Kernel {
 public:
  DotProduct(Function function, double radius, const std::array<double, kMaxFactors + 1>& series,
             double bandwidth)
      : Kernel(bandwidth), function_(function), radius_(radius), series_(series) {}
  double Evaluate(Point x, Point y) const override {
    const double t = InnerProduct(x, y) / (bandwidth() * bandwidth());
    if (function_ == kExp) return PortableExp(t);
    if (function_ == kGeometric) return 1 / (1 - t * (Shortening(x) * Shortening(y)));
    double value = 0;
    for (size_t n = kMaxFactors + 1; n > 0; --n) value = value * t + series_[n - 1];
    return value;
  }
  // Twice the length where it must stay below the bandwidth.
  double Distance(Point x, Point y) const override {
    return CommonLength(x, y) * (function_ == kGeometric ? 2 : 1);
  }
  bool is_bounded() const override { return function_ == kGeometric; }
  FeatureSpec features() const override {
    if (function_ == kExp) return {.form = FeatureForm::kCosineExponential};
    if (function_ == kGeometric) {
      return {.form = FeatureForm::kCosineExponential,
              .transform = InputTransform::kBall,
              .radial = RadialLaw::kExponential,
              .shift = radius_ * radius_};
    }
    return {
        .form = FeatureForm::kRandomProduct, .law = SpectralLaw::kRademacher, .series = series_};
  }

 private:
  double Shortening(Point x) const {
    return std::min(1.0, radius_ * bandwidth() / std::max(Length(x), 1e-300));
  }

  Function function_;
  double radius_;
  std::array<double, kMaxFactors + 1> series_;
};

std::array<double, kMaxFactors + 1> SeriesOf(const ParameterMap& parameters) {
  std::array<double, kMaxFactors + 1> series = {};
  for (size_t n = 0; n <= kMaxFactors; ++n) series[n] = parameters.at(absl::StrCat("a", n));
  return series;
}

Function FunctionOf(const ParameterMap& parameters) {
  return static_cast<Function>(static_cast<int>(parameters.at("function")));
}

// Each function has parameters of its own.
absl::Status CheckUse(const ParameterMap& parameters) {
  const Function function = FunctionOf(parameters);
  for (const ParameterDoc& parameter : kDotProductParameters) {
    const bool is_radius = parameter.name == "radius";
    if (!is_radius && parameter.name[0] != 'a') continue;
    const Function user = is_radius ? kGeometric : kSeries;
    const double value = parameters.at(std::string(parameter.name));
    if (user == function || value == *parameter.default_value) continue;
    return InvalidField(
        absl::StrCat("kernel.parameters[", parameter.name, "]"),
        absl::StrCat("kernel \"dot_product\": ", parameter.name, " is ", value,
                     ", but function is ", static_cast<int>(function),
                     ", which does not use it; function ", static_cast<int>(user),
                     is_radius ? ", the geometric series," : ", the series of given coefficients,",
                     " does. Set function to ", static_cast<int>(user), ", or leave ",
                     parameter.name, " out"));
  }
  const auto series = SeriesOf(parameters);
  if (function == kSeries && std::ranges::count(series, 0.0) == std::ssize(series)) {
    return InvalidField("kernel.parameters[a0]",
                        "kernel \"dot_product\": function is 2 and a0 to a8 are all 0, a kernel "
                        "that is 0 everywhere; expected at least one above 0");
  }
  return absl::OkStatus();
}

}  // namespace

KernelEntry DotProductKernel() {
  return {
      .doc = {.name = "dot_product",
              .doc = "f(<x, x'> / bandwidth^2) with f an exponential, a geometric series or given "
                     "coefficients: interactions of all orders",
              .parameters = kDotProductParameters,
              .source = "Kar & Karnick, AISTATS 2012"},
      .make = [](const ParameterMap& parameters) -> std::unique_ptr<const Kernel> {
        return std::make_unique<DotProduct>(FunctionOf(parameters), parameters.at("radius"),
                                            SeriesOf(parameters), parameters.at("bandwidth"));
      },
      .check_new = &CheckUse};
}

}  // namespace kernelstream
