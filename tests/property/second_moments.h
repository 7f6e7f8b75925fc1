// Second moments of products of random features, in closed form.
#ifndef KERNELSTREAM_TESTS_PROPERTY_SECOND_MOMENTS_H_
#define KERNELSTREAM_TESTS_PROPERTY_SECOND_MOMENTS_H_

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <vector>

#include "core/base/component.h"
#include "core/kernel/kernel.h"

namespace kernelstream {

using Row = std::vector<double>;

// Immutable; borrows its arguments. E[(phi(x) phi(x'))^2] of one feature phi of a kernel that is no
// composition.
class LeafMoment {
 public:
  LeafMoment(const Kernel& kernel, const FeatureSpec& spec, const Row& x, const Row& y)
      : kernel_(kernel), spec_(spec), x_(x), y_(y), scale_(1 / kernel.bandwidth()) {
    a_ = Scaled(x), b_ = Scaled(y);
  }

  // nullopt for a sketch, whose features are sums over all ways to hash.
  std::optional<double> Second() const {
    switch (spec_.form) {
      case FeatureForm::kCosine:
        return 1 + Doubled() / 2;
      case FeatureForm::kCosineExponential:
        return spec_.radial == RadialLaw::kNone ? Exponential() : Geometric();
      case FeatureForm::kExponential:
        return kernel_.Evaluate(Times(x_, 2), Times(y_, 2));
      case FeatureForm::kLinear:
        return spec_.transform == InputTransform::kAdditive ? Additive() : Hellinger();
      case FeatureForm::kRectifiedPower:
        return Rectified();
      case FeatureForm::kProduct:
        return std::pow(Signed(spec_.shift), static_cast<double>(spec_.degree));
      case FeatureForm::kRandomProduct:
        return Series();
      case FeatureForm::kSketch:
        break;
    }
    return std::nullopt;
  }

  // k(2 D) of a kernel of D = x - x', or of the difference of the logarithms.
  double Doubled() const {
    Row twice(x_.size());
    for (size_t j = 0; j < x_.size(); ++j) {
      if (spec_.transform == InputTransform::kLog) {
        const double ratio = (x_[j] + spec_.shift) / (y_[j] + spec_.shift);
        twice[j] = spec_.shift * (ratio * ratio - 1);
      } else {
        twice[j] = 2 * (x_[j] - y_[j]);
      }
    }
    return kernel_.Evaluate(twice, Row(x_.size(), 0.0));
  }

 private:
  static Row Times(const Row& x, double factor) {
    Row scaled = x;
    for (double& v : scaled) v *= factor;
    return scaled;
  }
  // In units of the bandwidth, shortened where the kernel does.
  Row Scaled(const Row& x) const {
    Row scaled = Times(x, scale_);
    if (spec_.transform != InputTransform::kBall) return scaled;
    const double length = std::sqrt(Inner(scaled, scaled)), most = std::sqrt(spec_.shift);
    return length > most ? Times(scaled, most / length) : scaled;
  }
  static double Inner(const Row& a, const Row& b) {
    double sum = 0;
    for (size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
    return sum;
  }
  double DistanceSquare() const { return Inner(a_, a_) + Inner(b_, b_) - 2 * Inner(a_, b_); }

  double Exponential() const {
    return std::exp(Inner(a_, a_) + Inner(b_, b_)) * (1 + std::exp(-2 * DistanceSquare()) / 2);
  }
  // The same with an exponential v in the exponents.
  double Geometric() const {
    const double rate = 1 - spec_.shift;
    const double left = rate + 2 * spec_.shift - Inner(a_, a_) - Inner(b_, b_);
    return (1 / left + 0.5 / (left + 2 * DistanceSquare())) / rate;
  }
  // E[(w . a)^2 (w . b)^2] with signs w, of one more coordinate sqrt(offset).
  double Signed(double offset) const {
    double fourth = offset * offset;
    for (size_t j = 0; j < a_.size(); ++j) fourth += a_[j] * a_[j] * b_[j] * b_[j];
    const double inner = Inner(a_, b_) + offset;
    return (Inner(a_, a_) + offset) * (Inner(b_, b_) + offset) + 2 * inner * inner - 2 * fourth;
  }
  double Series() const {
    double sum = 0, total = 0;
    for (size_t n = spec_.series.size(); n-- > 0;) {
      sum = sum * Signed(0) + spec_.series[n];
      total += spec_.series[n];
    }
    return total * sum;
  }
  double Hellinger() const {
    double x_sum = 0, y_sum = 0, k = 0, products = 0;
    for (size_t j = 0; j < a_.size(); ++j) {
      x_sum += a_[j], y_sum += b_[j];
      k += std::sqrt(a_[j] * b_[j]), products += a_[j] * b_[j];
    }
    return x_sum * y_sum + 2 * k * k - 2 * products;
  }
  // Signs times cosines and sines of v log(x_j), one v for all j: given v that of signs, and the
  // mean over v of the products of cosines is the kernel K of one coordinate at sums and
  // differences of logarithms.
  double Additive() const {
    const auto mean = [&](double l) {
      return kernel_.Evaluate(Row{std::exp(l)}, Row{1}) / std::exp(l / 2) / scale_;
    };
    double x_sum = 0, y_sum = 0, square = 0, fourth = 0;
    for (size_t j = 0; j < x_.size(); ++j) {
      x_sum += a_[j], y_sum += b_[j];
      if (a_[j] * b_[j] == 0) continue;
      const double l = std::log(x_[j] / y_[j]), both = std::log(x_[j]) + std::log(y_[j]);
      fourth += a_[j] * b_[j] * (0.5 + mean(2 * l) / 4 + mean(2 * both) / 4);
      for (size_t m = 0; m < x_.size(); ++m) {
        if (a_[m] * b_[m] == 0) continue;
        const double other = std::log(x_[m] / y_[m]);
        square +=
            std::sqrt(a_[j] * b_[j] * a_[m] * b_[m]) * (mean(l - other) + mean(l + other)) / 2;
      }
    }
    return x_sum * y_sum + 2 * square - 2 * fourth;
  }
  // 4 E[(w . a)^2n (w . b)^2n] over w at less than a right angle to both: a radius times an angle.
  double Rectified() const {
    const double a = std::sqrt(Inner(a_, a_)), b = std::sqrt(Inner(b_, b_));
    if (a * b == 0) return 0;
    const double angle = std::acos(std::clamp(Inner(a_, b_) / (a * b), -1.0, 1.0));
    const double power = 2 * static_cast<double>(spec_.degree);
    constexpr int kSteps = 4000;
    const double width = std::numbers::pi - angle, step = width / kSteps;
    double integral = 0;
    for (int i = 0; i < kSteps; ++i) {
      const double at = angle - std::numbers::pi / 2 + (i + 0.5) * step;
      integral += std::pow(std::cos(at) * std::cos(at - angle), power) * step;
    }
    const double radius = std::pow(2, power) * std::tgamma(power + 1);
    return 4 * std::pow(a * b, power) * radius * integral / (2 * std::numbers::pi);
  }

  const Kernel& kernel_;
  const FeatureSpec& spec_;
  const Row& x_;
  const Row& y_;
  const double scale_;
  Row a_, b_;
};

// The same of the features of a kernel that is complete, compositions included; of pairs, where
// the kernel is a function of differences, of the mean of the two products. nullopt where no closed
// form is known.
inline std::optional<double> SecondMoment(const ComponentConfig& config, bool pairs, const Row& x,
                                          const Row& y) {
  const std::unique_ptr<const Kernel> kernel = *MakeKernel(config);
  const FeatureSpec spec = kernel->features();
  if (spec.is_shift_invariant()) {
    const double amplitude = spec.amplitude_square();
    const double doubled = LeafMoment(*kernel, spec, x, y).Doubled();
    return amplitude * (pairs ? (amplitude + doubled) / 2 : amplitude + doubled / 2);
  }
  if (config.terms.empty()) {
    const auto second = LeafMoment(*kernel, spec, x, y).Second();
    return pairs && second.has_value() ? *second - 0.5 : second;
  }
  if (pairs) return std::nullopt;
  const bool is_sum = spec.composition == Composition::kSum;
  // Cosines of the inputs together have one cosine of the sum of their frequencies.
  double product = 1, sum = 0, amplitude = 1, doubled = 1;
  bool has_cosines = false;
  for (const ComponentTerm& term : config.terms) {
    ComponentConfig component = term.component;
    component.parameters["bandwidth"] *= config.parameters.at("bandwidth");
    const std::unique_ptr<const Kernel> part = *MakeKernel(component);
    const FeatureSpec part_spec = part->features();
    if (!is_sum && part_spec.is_shift_invariant()) {
      has_cosines = true;
      amplitude *= part_spec.amplitude_square();
      doubled *= LeafMoment(*part, part_spec, x, y).Doubled();
      continue;
    }
    const auto second = SecondMoment(component, false, x, y);
    if (!second.has_value()) return std::nullopt;
    product *= *second;
    sum += term.weight / part_spec.amplitude_square() * *second;
  }
  if (is_sum) return spec.amplitude_square() * sum;
  return has_cosines ? product * amplitude * (amplitude + doubled / 2) : product;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_PROPERTY_SECOND_MOMENTS_H_
