// What every registered kernel promises, its random features included.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "core/feature/feature_map.h"
#include "core/feature/random_feature_map.h"
#include "core/feature/sampler.h"
#include "core/kernel/kernel.h"
#include "tests/property/second_moments.h"
#include "tests/support/compositions.h"
#include "tests/support/kernel_settings.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

constexpr uint64_t kSeed = 2014;
constexpr size_t kPairs = 12;
constexpr double kBandwidth = 1.7;
// Bound on |mean - k| in standard errors: one of 10^5 honest comparisons would break it.
constexpr double kStandardErrors = 4.5;

// KERNELSTREAM_LONG_TEST: ten times as many features.
uint64_t NumFeatures() {
  return std::getenv("KERNELSTREAM_LONG_TEST") != nullptr ? 1 << 20 : 1 << 17;
}

// Gives the whole a bandwidth of its own, and its terms where they have none.
void SetBandwidths(ComponentConfig& config) {
  config.parameters.try_emplace("bandwidth", kBandwidth);
  for (ComponentTerm& term : config.terms) SetBandwidths(term.component);
}

// Complete for inputs of `dim` coordinates.
ComponentConfig Complete(const ComponentConfig& config, size_t dim) {
  auto complete = CompleteKernel(config);
  EXPECT_TRUE(complete.ok()) << config.name << complete.status();
  const std::vector<float> row(dim);
  ChooseKernelParameters({row.data(), 1, dim}, *complete);
  return *complete;
}

// A kernel of the registry with one setting of its parameters.
struct Setting {
  std::string name;
  ComponentConfig config;
  std::unique_ptr<const Kernel> kernel;
};

// What to try of a parameter: all of a few whole numbers, the first and the last of many; of other
// numbers one apart from the default.
std::vector<double> Values(const ParameterDoc& parameter) {
  if (!parameter.integer) return {std::min(parameter.max, std::max(parameter.min, 0.3))};
  constexpr double kFew = 8;
  std::vector<double> values;
  for (double value = parameter.min; value <= parameter.max; value += 1) {
    const bool listed = parameter.max - parameter.min <= kFew || value < parameter.min + 3;
    if (listed || value == parameter.max) values.push_back(value);
  }
  return values;
}

// Of inputs of `dim` coordinates: those that tests share, then each parameter by itself.
std::vector<Setting> Settings(const KernelEntry& entry, size_t dim) {
  const std::string name(entry.doc.name);
  std::vector<ComponentConfig> configs = FeatureSettings(name);
  for (const ParameterDoc& parameter : entry.doc.parameters) {
    if (parameter.name == "bandwidth" || parameter.name == "bandwidth_scale") continue;
    // A series needs its function: it is in the shared list.
    if (name == "dot_product" && parameter.name != "function" && parameter.name != "radius") {
      continue;
    }
    if (name == "convolution" && parameter.name != "patch") continue;  // belong to the dimension
    for (const double value : Values(parameter)) {
      ParameterMap map = {{std::string(parameter.name), value}};
      if (parameter.name == "radius") map["function"] = 1;
      configs.push_back({name, map});
    }
  }
  std::vector<Setting> settings;
  std::set<std::string> known;
  for (ComponentConfig& config : configs) {
    SetBandwidths(config);
    config = Complete(config, dim);
    const std::string text = SettingText(config);
    if (!known.insert(text).second) continue;
    auto kernel = MakeKernel(config);
    EXPECT_TRUE(kernel.ok()) << text << kernel.status();
    settings.push_back({text, config, *std::move(kernel)});
  }
  return settings;
}

// One way to draw the features of a kernel.
struct Variant {
  std::string name;
  FeatureSpec spec;
  bool widens = true;  // features do not change with the number of inputs
};

std::vector<Variant> Variants(const Setting& setting) {
  std::vector<Variant> variants;
  for (const SamplerEntry& sampler : SamplerRegistry()) {
    Variant variant = {absl::StrCat(setting.name, " ", sampler.doc.name),
                       setting.kernel->features()};
    if (!SamplerApplies(sampler, variant.spec)) continue;
    variant.spec = Sampled(variant.spec, sampler);
    variant.widens = !sampler.fixes_dimension;
    variants.push_back(variant);
    if (!variant.spec.takes_pairs()) continue;
    variant.name += " in pairs";
    variant.spec.pairs = true;
    variants.push_back(variant);
  }
  return variants;
}

// For inputs of `dim` coordinates.
template <class Check>
void ForEachVariant(size_t dim, Check check) {
  for (const KernelEntry& entry : KernelRegistry()) {
    for (const Setting& setting : Settings(entry, dim)) {
      for (const Variant& variant : Variants(setting)) check(setting, variant);
    }
  }
}

std::vector<double> Widened(const float* x, size_t n) { return {x, x + n}; }

// Pairs of rows of the kernel's domain, at all distances that matter; zeros among them.
std::vector<float> Pairs(const Kernel& kernel, size_t dim) {
  Random random(kSeed);
  std::vector<float> x(2 * kPairs * dim);
  for (size_t p = 0; p < kPairs; ++p) {
    const double distance = 0.25 * static_cast<double>(p) * kBandwidth / std::sqrt(double(dim));
    for (size_t j = 0; j < dim; ++j) {
      float& a = x[2 * p * dim + j];
      float& b = x[(2 * p + 1) * dim + j];
      a = static_cast<float>(random.Normal());
      b = static_cast<float>(a + distance * random.Normal());
      if (p % 4 == 3 && j == 1) a = 0;
      if (kernel.takes_any_input()) continue;
      a = a * a, b = b * b;
    }
  }
  return x;
}

TEST(EveryKernel, IsSymmetricPositiveOnTheDiagonalAndObeysCauchySchwarz) {
  for (const KernelEntry& entry : KernelRegistry()) {
    constexpr size_t kDim = 5;
    for (const Setting& setting : Settings(entry, kDim)) {
      const std::vector<float> rows = Pairs(*setting.kernel, kDim);
      for (size_t p = 0; p < kPairs; ++p) {
        const auto x = Widened(&rows[2 * p * kDim], kDim);
        const auto y = Widened(&rows[(2 * p + 1) * kDim], kDim);
        const double k = setting.kernel->Evaluate(x, y);
        EXPECT_EQ(k, setting.kernel->Evaluate(y, x)) << setting.name;
        const double xx = setting.kernel->Evaluate(x, x), yy = setting.kernel->Evaluate(y, y);
        EXPECT_GT(xx, 0) << setting.name;
        EXPECT_LE(k * k, xx * yy * (1 + 1e-12)) << setting.name;
        EXPECT_GE(setting.kernel->Distance(x, y), 0) << setting.name;
        const FeatureSpec spec = setting.kernel->features();
        if (spec.is_shift_invariant()) {
          EXPECT_NEAR(xx, spec.amplitude_square(), 1e-15 * xx) << setting.name;
        }
      }
    }
  }
}

TEST(EveryKernel, MeasuresInputsInUnitsOfItsBandwidth) {
  for (const KernelEntry& entry : KernelRegistry()) {
    const auto at = [&](double bandwidth) {
      ComponentConfig config = Named(entry.doc.name);
      if (entry.doc.takes_terms) config = Compositions(entry.doc.name)[0];
      config.parameters["bandwidth"] = bandwidth;
      return *MakeKernel(Complete(config, 3));
    };
    const auto one = at(1), two = at(2);
    if (one->features().transform == InputTransform::kLog) continue;
    std::vector<double> ratios;
    for (const double size : {0.4, 0.7, 1.1}) {
      const std::vector<double> x = {size, 0.2, 0.9}, y = {0.3, 0.6, 0};
      std::vector<double> x2 = x, y2 = y;
      for (double& v : x2) v *= 2;
      for (double& v : y2) v *= 2;
      EXPECT_NEAR(two->Evaluate(x2, y2) / one->Evaluate(x, y), 1, 1e-12) << entry.doc.name;
      ratios.push_back(two->Evaluate(x, y) / one->Evaluate(x, y));
    }
    const bool constant =
        std::abs(ratios[1] / ratios[0] - 1) < 1e-12 && std::abs(ratios[2] / ratios[0] - 1) < 1e-12;
    EXPECT_EQ(constant, one->is_homogeneous()) << entry.doc.name;
  }
}

TEST(EveryKernel, RefusesValuesOutsideItsDomainAndNamesThem) {
  for (const KernelEntry& entry : KernelRegistry()) {
    for (const Setting& setting : Settings(entry, 3)) {
      const float inside[] = {0.0f, 3.5f, 1e-20f}, outside[] = {1.0f, -2.5f};
      EXPECT_TRUE(setting.kernel->CheckInput(inside).ok()) << setting.name;
      const absl::Status status = setting.kernel->CheckInput(outside);
      EXPECT_EQ(status.ok(), setting.kernel->takes_any_input()) << setting.name;
      const bool terms_decide = entry.doc.takes_terms;
      EXPECT_TRUE(terms_decide || status.ok() == (entry.inputs == "any")) << setting.name;
      if (status.ok()) continue;
      EXPECT_EQ(FieldPathOf(status), "values[1]") << setting.name;
      EXPECT_TRUE(absl::StrContains(status.message(), "-2.5")) << status;
      EXPECT_TRUE(absl::StrContains(status.message(),
                                    entry.doc.takes_terms ? "kernel.terms[" : entry.doc.name))
          << status;
    }
  }
}

// Features that may depend on each other: two blocks.
constexpr size_t kPanelsPerGroup = 2 * kPanelsPerBlock;

// A mean and its standard error, from the scatter of groups that may depend on each other inside.
class GroupedMean {
 public:
  void Add(double group) { ++groups_, sum_ += group, squares_ += group * group; }
  double mean() const { return sum_ / groups_; }
  double error() const {
    return std::sqrt(std::max(0.0, squares_ / groups_ - mean() * mean()) / groups_);
  }

 private:
  double groups_ = 0, sum_ = 0, squares_ = 0;
};

// Of the products of features of pairs of rows, one for each pair; in feature pairs, of the mean of
// the two products.
struct ProductMoments {
  std::vector<GroupedMean> first, second;
};

ProductMoments MomentsOf(const FeatureSpec& spec, const std::vector<float>& x, size_t dim,
                         uint64_t num_features) {
  constexpr size_t kRows = 2 * kPairs;
  const auto map = MakeFeatureMap(spec, kSeed, dim, num_features, nullptr);
  std::vector<float> features(kPanelsPerGroup * kRows * kPanelWidth);
  ProductMoments moments = {std::vector<GroupedMean>(kPairs), std::vector<GroupedMean>(kPairs)};
  const size_t waves = spec.waves();
  const double products = static_cast<double>(kPanelsPerGroup * kPanelWidth / waves);
  for (uint64_t panel = 0; panel < num_features / kPanelWidth; panel += kPanelsPerGroup) {
    map->Features(ConstMatrixView(x.data(), kRows, dim), static_cast<float>(1 / kBandwidth), panel,
                  kPanelsPerGroup, features.data());
    for (size_t p = 0; p < kPairs; ++p) {
      double sum = 0, squares = 0;
      for (size_t i = 0; i < kPanelsPerGroup; i += waves) {
        for (size_t lane = 0; lane < kPanelWidth; ++lane) {
          double product = 0;
          for (size_t wave = 0; wave < waves; ++wave) {
            const float* a = features.data() + ((i + wave) * kRows + 2 * p) * kPanelWidth + lane;
            product += double{a[0]} * a[kPanelWidth] / static_cast<double>(waves);
          }
          sum += product;
          squares += product * product;
        }
      }
      moments.first[p].Add(sum / products);
      moments.second[p].Add(squares / products);
    }
  }
  return moments;
}

// E[feature(x) feature(x')] = k(x, x'), and the second moment of the products where it has a closed
// form: whatever the sampler, for each feature by itself has the law of its kernel.
TEST(EveryKernel, FeaturesAreUnbiasedAndTheirSecondMomentsAreTheClosedForms) {
  constexpr size_t kDim = 4;
  size_t closed = 0, close = 0;
  ForEachVariant(kDim, [&](const Setting& setting, const Variant& variant) {
    const std::vector<float> x = Pairs(*setting.kernel, kDim);
    const ProductMoments moments = MomentsOf(variant.spec, x, kDim, NumFeatures());
    for (size_t p = 0; p < kPairs; ++p) {
      const auto a = Widened(&x[2 * p * kDim], kDim);
      const auto b = Widened(&x[(2 * p + 1) * kDim], kDim);
      const double expected = setting.kernel->Evaluate(a, b);
      const GroupedMean& first = moments.first[p];
      EXPECT_LE(std::abs(first.mean() - expected),
                kStandardErrors * first.error() + 2e-6 * (1 + std::abs(expected)))
          << variant.name << " pair " << p << " mean " << first.mean() << " k " << expected
          << " error " << first.error() << " seed " << kSeed;
      const auto square = SecondMoment(setting.config, variant.spec.pairs, a, b);
      if (!square.has_value()) continue;
      const GroupedMean& second = moments.second[p];
      ++closed;
      if (second.error() < 0.03 * *square) ++close;
      EXPECT_LE(std::abs(second.mean() - *square),
                kStandardErrors * second.error() + 1e-5 * (1 + *square))
          << variant.name << " pair " << p << " second moment " << second.mean() << " not "
          << *square << " error " << second.error() << " seed " << kSeed;
    }
  });
  std::printf("%zu second moments, %zu to 3 %%\n", closed, close);
  EXPECT_GT(close, closed * 9 / 10);
}

// What core/kernel/arc_cosine.cc says of the variance at x = x'.
TEST(ArcCosine, HasTheRelativeVariancesStated) {
  const Row x = {0.3, -1.2, 0.5};
  const double stated[] = {1, 5, 22 + 1.0 / 3, 91.4};
  for (size_t order = 0; order < std::size(stated); ++order) {
    const ComponentConfig config = Complete(
        {"arc_cosine", {{"order", static_cast<double>(order)}, {"bandwidth", kBandwidth}}}, 3);
    const double k = (*MakeKernel(config))->Evaluate(x, x);
    EXPECT_NEAR(*SecondMoment(config, false, x, x) / (k * k) - 1, stated[order], 1e-4) << order;
  }
}

// Sums of features, not single ones, have less: within a panel they make up for each other.
TEST(Polynomial, SketchesHaveLessVarianceThanProducts) {
  constexpr size_t kDim = 6;
  const std::vector<std::pair<double, double>> bounds = {
      {2, 0.9}, {3, 0.8}, {4, 0.65}, {5, 0.6}, {8, 0.5}};
  for (const auto& [degree, most] : bounds) {
    double squares[2] = {};
    for (const double sketch : {0, 1}) {
      ComponentConfig config = Leaf("polynomial", kBandwidth);
      config.parameters["degree"] = degree;
      config.parameters["sketch"] = sketch;
      const auto kernel = MakeKernel(Complete(config, kDim));
      const std::vector<float> x = Pairs(**kernel, kDim);
      const FeatureSpec spec = (*kernel)->features();
      for (const GroupedMean& mean : MomentsOf(spec, x, kDim, NumFeatures()).first) {
        squares[sketch == 1] += mean.error() * mean.error();
      }
    }
    EXPECT_LT(squares[1], most * squares[0]) << degree;
    RecordProperty("degree_" + std::to_string(degree), std::to_string(squares[1] / squares[0]));
  }
}

// One row or many, one bandwidth or many, with or without a cache, wider inputs, summed or not.
TEST(EveryKernel, FeaturesAreTheSameBitsWhicheverWayTheyAreAskedFor) {
  constexpr size_t kDim = 67, kRows = 2 * kPairs, kPanels = 19, kOutputs = 2;
  Random random(kSeed);
  std::vector<float> coefficients(kPanels * kOutputs * kPanelWidth);
  for (float& value : coefficients) value = static_cast<float>(random.Normal());
  ForEachVariant(kDim, [&](const Setting& setting, const Variant& variant) {
    SCOPED_TRACE(variant.name);
    const std::vector<float> data = Pairs(*setting.kernel, kDim);
    const ConstMatrixView x(data.data(), kRows, kDim);
    FeatureCacheBudget budget(1 << 30);
    const auto kept = MakeFeatureMap(variant.spec, kSeed, kDim, 4096, &budget);
    const auto generated = MakeFeatureMap(variant.spec, kSeed, kDim, 4096, nullptr);
    std::vector<float> all(kPanels * kRows * kPanelWidth), other = all, at = all;
    kept->Features(x, 0.8f, 0, kPanels, all.data());
    generated->Features(x, 0.8f, 0, kPanels, other.data());
    EXPECT_EQ(all, other);
    EXPECT_EQ(kept->cached_bytes(), kept->BytesOf(kPanels * kPanelWidth));
    for (const auto& map : {kept, generated}) {
      // From the middle of a block, or of a pair, into the next block.
      map->Features(x, 0.8f, 3, kPanels - 3, other.data());
      const auto end = other.begin() + (kPanels - 3) * kRows * kPanelWidth;
      EXPECT_TRUE(std::equal(other.begin(), end, all.begin() + 3 * kRows * kPanelWidth));
    }
    float* outs[] = {other.data(), at.data()};
    generated->FeaturesAt(x, std::vector<float>{0.3f, 0.8f}, 0, kPanels, outs);
    EXPECT_EQ(all, at);

    if (variant.widens) {
      std::vector<float> wide(kRows * (kDim + 6), 0.0f);
      for (size_t r = 0; r < kRows; ++r) {
        std::copy_n(&data[r * kDim], kDim, &wide[r * (kDim + 6)]);
      }
      // Coordinates that are 0 change nothing.
      kept->Widen(kDim + 6, false)
          ->Features(ConstMatrixView(wide.data(), kRows, kDim + 6), 0.8f, 0, kPanels, other.data());
      EXPECT_EQ(all, other);
    }

    std::vector<double> sums(kRows * kOutputs), again = sums, one(kOutputs), expected = sums;
    kept->AddSums(x, 0.8f, 0, kPanels, coefficients.data(), kOutputs, sums.data());
    generated->AddSums(x, 0.8f, 0, kPanels, coefficients.data(), kOutputs, again.data());
    EXPECT_EQ(sums, again);
    kept->AddSums(x.Rows(5, 1), 0.8f, 0, kPanels, coefficients.data(), kOutputs, one.data());
    EXPECT_EQ(one[1], sums[5 * kOutputs + 1]);
    FeatureSums(all.data(), kPanels, kRows, coefficients.data(), kOutputs, expected.data());
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_TRUE(std::isfinite(sums[i]));
      EXPECT_NEAR(sums[i], expected[i], 1e-12 * (1 + std::abs(expected[i])));
    }
  });
}

TEST(EveryKernel, FeaturesAreTheSameBitsOnAllTargetsWithFusedMultiplyAdd) {
  constexpr size_t kDim = 5, kRows = 2 * kPairs, kPanels = 3;
  ForEachVariant(kDim, [&](const Setting& setting, const Variant& variant) {
    const auto map = MakeFeatureMap(variant.spec, kSeed, kDim, 4096, nullptr);
    const std::vector<float> x = Pairs(*setting.kernel, kDim);
    std::vector<float> first;
    for (const std::string& target : SimdTargets()) {
      if (!SimdTargetHasFma(target)) continue;
      ASSERT_TRUE(UseSimdTarget(target));
      std::vector<float> out(kPanels * kRows * kPanelWidth);
      map->Features(ConstMatrixView(x.data(), kRows, kDim), 0.8f, 0, kPanels, out.data());
      if (first.empty()) first = out;
      EXPECT_EQ(out, first) << variant.name << " " << target;
    }
    UseSimdTarget("");
  });
}

TEST(RandomFeatureMap, GivesTheSameBitsWithAndWithoutCacheAndWhenWidened) {
  constexpr size_t kDim = 7, kRows = 5, kPanels = 40, kOutputs = 3;
  Random random(kSeed);
  std::vector<float> x(kRows * kDim), coefficients(kPanels * kOutputs * kPanelWidth);
  for (float& value : x) value = static_cast<float>(random.Normal());
  for (float& value : coefficients) value = static_cast<float>(random.Normal());
  std::vector<float> wide_x(kRows * 2 * kDim, 0.0f);
  for (size_t i = 0; i < kRows; ++i) std::copy_n(&x[i * kDim], kDim, &wide_x[i * 2 * kDim]);

  FeatureCacheBudget everything(1 << 30), one_block(kFeaturesPerBlock * (kDim + 1) * 4);
  std::vector<std::vector<double>> results;
  for (FeatureCacheBudget* budget :
       {&everything, &one_block, static_cast<FeatureCacheBudget*>(nullptr)}) {
    const RandomFeatureMap map(FeatureSpec{}, kSeed, kDim, 4096, budget);
    for (int repeat = 0; repeat < 2; ++repeat) {
      std::vector<double> sums(kRows * kOutputs);
      map.AddSums(ConstMatrixView(x.data(), kRows, kDim), 0.7f, 0, kPanels, coefficients.data(),
                  kOutputs, sums.data());
      results.push_back(sums);
    }
    std::vector<double> sums(kRows * kOutputs);
    map.Widen(2 * kDim, true)
        ->AddSums(ConstMatrixView(wide_x.data(), kRows, 2 * kDim), 0.7f, 0, kPanels,
                  coefficients.data(), kOutputs, sums.data());
    results.push_back(sums);
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_EQ(everything.used(), 0) << "maps give their bytes back";
  EXPECT_EQ(one_block.used(), 0);
}

}  // namespace
}  // namespace kernelstream
