// Sums, products and convolutions: values, features, what they refuse.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/field_error.h"
#include "core/feature/composition.h"
#include "core/feature/feature_map.h"
#include "core/model/median_distance.h"
#include "core/model/model_config.h"
#include "core/model/row_rules.h"
#include "core/simd/simd.h"
#include "tests/support/compositions.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

constexpr uint64_t kSeed = 3;

std::unique_ptr<const Kernel> Made(ComponentConfig config) {
  auto complete = CompleteKernel(config);
  EXPECT_TRUE(complete.ok()) << complete.status();
  auto kernel = MakeKernel(*complete);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return *std::move(kernel);
}

ComponentConfig Composed(const std::string& name, double bandwidth, TermList<ComponentTerm> terms) {
  return {name, {{"bandwidth", bandwidth}}, std::move(terms)};
}

TEST(Composition, ValuesAreThoseOfTheTermsAtBothBandwidths) {
  const std::vector<double> x = {0.3, -1.2, 0.8}, y = {-0.1, 0.4, 1.5};
  const double g = Made(Leaf("gaussian", 1.4))->Evaluate(x, y);
  const double l = Made(Leaf("laplacian", 6))->Evaluate(x, y);
  const TermList<ComponentTerm> plain = {{1, Leaf("gaussian", 0.7)}, {1, Leaf("laplacian", 3)}};
  TermList<ComponentTerm> weighted = plain;
  weighted[0].weight = 0.25, weighted[1].weight = 3;
  const auto sum = Made(Composed("sum", 2, weighted));
  EXPECT_NEAR(sum->Evaluate(x, y), 0.25 * g + 3 * l, 1e-15);
  EXPECT_NEAR(Made(Composed("product", 2, plain))->Evaluate(x, y), g * l, 1e-16);
  const auto nested =
      Made(Composed("product", 1, {{1, Composed("sum", 2, weighted)}, {1, Leaf("laplacian", 6)}}));
  EXPECT_NEAR(nested->Evaluate(x, y), (0.25 * g + 3 * l) * l, 1e-15);
  EXPECT_EQ(nested->features().amplitude_square(), 3.25);
  // Two Gaussians multiply to one.
  const auto one =
      Made(Composed("product", 1, {{1, Leaf("gaussian", 3)}, {1, Leaf("gaussian", 4)}}));
  EXPECT_NEAR(one->Evaluate(x, y), Made(Leaf("gaussian", 2.4))->Evaluate(x, y), 1e-15);
}

TEST(Composition, PanelsOfASumAreThoseOfItsTermsInProportionToTheWeights) {
  for (const ComponentConfig& config : Compositions("sum")) {
    ComponentConfig with_bandwidth = config;
    with_bandwidth.parameters["bandwidth"] = 1;
    const FeatureSpec spec = Made(with_bandwidth)->features();
    const TermChoice choice(spec, kSeed);
    const size_t terms = spec.terms.size();
    std::set<std::pair<size_t, uint64_t>> used;
    std::vector<double> total(terms);
    constexpr size_t kBlocks = 4000;
    for (uint64_t block = 0; block < kBlocks; ++block) {
      std::vector<double> in_block(terms);
      for (uint64_t p = 0; p < kPanelsPerBlock; ++p) {
        const TermChoice::Panel panel = choice.At(block * kPanelsPerBlock + p);
        ASSERT_LT(panel.term, terms);
        ++in_block[panel.term], ++total[panel.term];
        EXPECT_TRUE(used.emplace(panel.term, panel.panel).second);
        EXPECT_LT(panel.panel, choice.TermPanels(panel.term, (block + 1) * kPanelsPerBlock));
      }
      for (size_t m = 0; m < terms; ++m) {
        const double q =
            spec.terms[m].weight * spec.terms[m].spec.amplitude_square() / spec.amplitude_square();
        EXPECT_LT(std::abs(in_block[m] - q * kPanelsPerBlock), 2) << "two strata are cut at most";
        if (block + 1 < kBlocks) continue;
        // At most two strata of a block vary, each by a variance of at most 1/4.
        const double error = std::sqrt(0.5 * kBlocks);
        EXPECT_NEAR(total[m], q * kBlocks * kPanelsPerBlock, 4.5 * error) << m;
      }
    }
  }
}

// Each place of a block takes each term with its probability: so the features of one step, which
// are part of a block, are unbiased too.
TEST(Composition, EveryPlaceInABlockIsAMixtureOfAllTerms) {
  const ComponentConfig config =
      Composed("sum", 1, {{1, Leaf("gaussian", 1)}, {3, Leaf("polynomial", 1)}});
  const TermChoice choice(Made(config)->features(), kSeed);
  constexpr size_t kBlocks = 4000;
  for (uint64_t p = 0; p < kPanelsPerBlock; ++p) {
    double first = 0;
    for (uint64_t block = 0; block < kBlocks; ++block) {
      first += choice.At(block * kPanelsPerBlock + p).term == 0 ? 1 : 0;
    }
    EXPECT_NEAR(first / kBlocks, 0.25, 4.5 * std::sqrt(0.25 * 0.75 / kBlocks)) << p;
  }
}

TEST(Convolution, IsTheClosedFormAndItsFeaturesAreUnbiased) {
  ComponentConfig config = Leaf("convolution", 1.7);
  config.parameters["height"] = 4;
  config.parameters["width"] = 3;
  config.parameters["channels"] = 2;
  config.parameters["patch"] = 2;
  const auto kernel = Made(config);
  constexpr size_t kDim = 24, kPairs = 4, kPanels = 2048;
  Random random(kSeed);
  std::vector<float> x(2 * kPairs * kDim);
  for (float& value : x) value = static_cast<float>(random.Normal() / 3);
  const auto map = MakeFeatureMap(kernel->features(), kSeed, kDim, 0, nullptr);
  std::vector<float> features(kPanels * 2 * kPairs * kPanelWidth);
  map->Features(ConstMatrixView(x.data(), 2 * kPairs, kDim), static_cast<float>(1 / 1.7), 0,
                kPanels, features.data());
  for (size_t pair = 0; pair < kPairs; ++pair) {
    const float* row = &x[2 * pair * kDim];
    const std::vector<double> a(row, row + kDim), b(row + kDim, row + 2 * kDim);
    const double expected = kernel->Evaluate(a, b);
    double sum = 0, squares = 0;
    for (size_t p = 0; p < kPanels; ++p) {
      for (size_t l = 0; l < kPanelWidth; ++l) {
        const float* lanes = &features[(p * 2 * kPairs + 2 * pair) * kPanelWidth + l];
        const double product = double{lanes[0]} * lanes[kPanelWidth];
        sum += product, squares += product * product;
      }
    }
    const double n = kPanels * kPanelWidth, mean = sum / n;
    EXPECT_NEAR(mean, expected, 4.5 * std::sqrt((squares / n - mean * mean) / n)) << pair;
    EXPECT_EQ(kernel->Evaluate(a, a), 1);
  }
  // One place: (1 + |x - x'|^2 / bandwidth^2)^(-1/2). One tap: the same.
  for (const double patch : {1, 5}) {
    ComponentConfig signal = Leaf("convolution", 2);
    signal.parameters["width"] = 5;
    signal.parameters["patch"] = patch;
    const std::vector<double> a = {1, 0.5, -2, 0, 0.25}, b = {0, 1, -1, 0.5, 1};
    const double square = 1 + 0.25 + 1 + 0.25 + 0.5625;
    EXPECT_NEAR(Made(signal)->Evaluate(a, b), 1 / std::sqrt(1 + square / 4), 1e-15);
  }
}

// The cosine of the filtered image, from draws made one by one.
TEST(Convolution, FrequencyIsThatOfTheFilteredImage) {
  ComponentConfig config = Leaf("convolution", 1);
  config.parameters["height"] = 3;
  config.parameters["width"] = 4;
  config.parameters["patch"] = 2;
  const FeatureSpec spec = Made(config)->features();
  constexpr size_t kDim = 12, kTaps = 4, kPlaces = 6;
  std::vector<float> x(kDim), features(kPanelWidth), draws((kTaps + kPlaces) * kPanelWidth),
      phases(kPanelWidth);
  Random random(kSeed);
  for (float& value : x) value = static_cast<float>(random.Normal());
  MakeFeatureMap(spec, kSeed, kDim, 0, nullptr)
      ->Features(ConstMatrixView(x.data(), 1, kDim), 1, 5, 1, features.data());
  SampleFrequencies(SpectralLaw::kNormal, kSeed, 80, 1, kTaps + kPlaces, draws.data());
  SamplePhases(kSeed, 80, 1, phases.data());
  for (size_t l = 0; l < kPanelWidth; ++l) {
    const auto draw = [&](size_t j) { return 2 * M_PI * draws[j * kPanelWidth + l]; };
    double projection = 2 * M_PI * phases[l];
    for (size_t r = 0; r < 2; ++r) {
      for (size_t c = 0; c < 3; ++c) {
        double filtered = 0;
        for (size_t t = 0; t < kTaps; ++t) {
          filtered += draw(t) * x[(r + t / 2) * 4 + c + t % 2];
        }
        projection += draw(kTaps + r * 3 + c) * filtered;
      }
    }
    EXPECT_NEAR(features[l], std::sqrt(2.0) * std::cos(projection), 1e-4) << l;
  }
}

std::string FieldOf(ModelConfig config, std::string* message = nullptr) {
  const absl::Status status = CompleteConfig(config);
  if (message != nullptr) *message = std::string(status.message());
  return FieldPathOf(status);
}

TEST(CompleteConfig, NamesTheFieldOfABadTerm) {
  ModelConfig base;
  base.loss.name = "square";
  base.kernel = {"sum", {}, {{1, Leaf("gaussian")}, {1, Leaf("polynomial")}}};
  EXPECT_EQ(FieldOf(base), "");
  const auto field_of = [&](auto change) {
    ModelConfig config = base;
    change(config);
    return FieldOf(config);
  };
  using Config = ModelConfig;
  EXPECT_EQ(field_of([](Config& c) { c.kernel.terms.clear(); }), "kernel.terms");
  EXPECT_EQ(field_of([](Config& c) {
              c.kernel.terms.resize(9, {1, Leaf("gaussian")});
            }),
            "kernel.terms");
  EXPECT_EQ(field_of([](Config& c) { c.kernel.name = "gaussian"; }), "kernel.terms");
  EXPECT_EQ(field_of([](Config& c) { c.loss.terms = {{1, Leaf("square")}}; }), "loss.terms");
  EXPECT_EQ(field_of([](Config& c) {
              c.update_rule.terms = {{1, Leaf("proximal")}};
            }),
            "update_rule.terms");
  for (const double weight : {0.0, -1.0, 1e7, double{INFINITY}, std::nan("")}) {
    EXPECT_EQ(field_of([&](Config& c) { c.kernel.terms[1].weight = weight; }),
              "kernel.terms[1].weight");
  }
  EXPECT_EQ(field_of([](Config& c) { c.kernel.name = "product", c.kernel.terms[0].weight = 2; }),
            "kernel.terms[0].weight");
  EXPECT_EQ(field_of([](Config& c) { c.kernel.terms[1].component = Leaf("gaussian", -1); }),
            "kernel.terms[1].component.parameters[bandwidth]");
  EXPECT_EQ(field_of([](Config& c) { c.kernel.terms[1].component.name = "nosuch"; }),
            "kernel.terms[1].component.name");
  EXPECT_EQ(field_of([](Config& c) {
              c.kernel.terms[0].component.terms = {{1, Leaf("chi2")}};
            }),
            "kernel.terms[0].component.terms");
  EXPECT_EQ(field_of([](Config& c) {
              ComponentConfig deep = c.kernel;
              for (int i = 0; i < 3; ++i) deep = {"product", {}, {{1, deep}}};
              c.kernel = deep;
            }),
            "kernel.terms[0].component.terms[0].component.terms[0].component.terms");
}

TEST(CompleteConfig, TakesALearnedMetricForCosinesOfTheInputsOnly) {
  ModelConfig config;
  config.loss.name = "square";
  config.input_metric = InputMetric::kFull;
  for (const char* second : {"laplacian", "polynomial"}) {
    for (const char* name : {"sum", "product"}) {
      config.kernel = {name, {}, {{1, Leaf("gaussian")}, {1, Leaf(second)}}};
      std::string message;
      const std::string field = FieldOf(config, &message);
      EXPECT_EQ(field, std::string(second) == "polynomial" ? "input_metric" : "") << message;
    }
  }
  config.input_metric = InputMetric::kAuto;
  ASSERT_TRUE(CompleteConfig(config).ok());
  EXPECT_EQ(config.input_metric, InputMetric::kOff);
}

TEST(CompleteConfig, TakesASamplerThatAppliesToOneOfTheTerms) {
  ModelConfig config;
  config.loss.name = "square";
  const auto message_of = [&](const char* name, const char* second, const char* sampler,
                              uint32_t dimension = 0) {
    ModelConfig given = config;
    given.kernel = {name, {}, {{1, Leaf("laplacian")}, {1, Leaf(second)}}};
    given.sampler = sampler;
    given.dimension = dimension;
    std::string message;
    const std::string field = FieldOf(given, &message);
    EXPECT_EQ(field, message.empty() ? "" : "sampler");
    return message;
  };
  for (const char* name : {"sum", "product"}) {
    for (const char* sampler : {"iid", "orthogonal", "quasi_monte_carlo", "structured"}) {
      EXPECT_EQ(message_of(name, "gaussian", sampler), "") << name << " " << sampler;
      EXPECT_EQ(message_of(name, "arc_cosine", sampler), "") << name << " " << sampler;
    }
    for (const char* sampler : {"orthogonal", "structured"}) {
      EXPECT_TRUE(absl::StrContains(message_of(name, "polynomial", sampler),
                                    "those that do: iid, quasi_monte_carlo"));
    }
  }
  // The factors of a product share the dimensions of a net, of the terms of a sum each has all.
  EXPECT_EQ(message_of("sum", "gaussian", "quasi_monte_carlo", 3666), "");
  EXPECT_EQ(message_of("product", "gaussian", "quasi_monte_carlo", 1832), "");
  EXPECT_TRUE(absl::StrContains(message_of("product", "gaussian", "quasi_monte_carlo", 1833),
                                "at most 1832"));
  // Its filter, 1 x 3 or 3 x 3, and at most as many places as inputs.
  config.kernel = Leaf("convolution");
  config.sampler = "quasi_monte_carlo";
  config.dimension = 3663;
  EXPECT_EQ(FieldOf(config), "");
  config.kernel.parameters["height"] = 3;
  config.dimension = 3657;
  EXPECT_EQ(FieldOf(config), "");
  config.dimension = 3660;
  EXPECT_EQ(FieldOf(config), "sampler");
  config.sampler = "structured";
  std::string message;
  EXPECT_EQ(FieldOf(config, &message), "sampler");
  EXPECT_TRUE(absl::StrContains(message, "iid, orthogonal, quasi_monte_carlo")) << message;
}

TEST(ChooseKernel, GivesEachTermItsOwnMedianDistance) {
  Random random(kSeed);
  std::vector<float> rows(100 * 3);
  for (float& value : rows) value = static_cast<float>(random.Normal());
  const ConstMatrixView x(rows.data(), 100, 3);
  auto config = CompleteKernel({"sum",
                                {{"bandwidth_scale", 0.5}},
                                {{1, Leaf("gaussian")},
                                 {2, {"product", {}, {{1, Leaf("laplacian")}}}},
                                 {1, Leaf("gaussian", 7)}}});
  ASSERT_TRUE(config.ok()) << config.status();
  const ComponentConfig before = *config;
  ChooseKernel(x, *config);
  const ParameterMap flat = FlatParameters(*config);
  EXPECT_EQ(flat.at("bandwidth"), 0.5);
  EXPECT_EQ(flat.at("terms[0].bandwidth"), MedianDistance(x, *Made(Leaf("gaussian", 1))));
  EXPECT_EQ(flat.at("terms[1].bandwidth"), 1);
  EXPECT_EQ(flat.at("terms[1].terms[0].bandwidth"), MedianDistance(x, *Made(Leaf("laplacian", 1))));
  EXPECT_EQ(flat.at("terms[2].bandwidth"), 7);
  EXPECT_EQ(WithParameters(before, flat), *config);
}

TEST(RowRules, NamesTheTermThatARowDoesNotSuit) {
  ModelConfig config;
  config.loss.name = "square";
  config.kernel = {"sum", {}, {{1, Leaf("gaussian")}, {1, Leaf("chi2")}}};
  ASSERT_TRUE(CompleteConfig(config).ok());
  EXPECT_FALSE((*MakeUnitKernel(config.kernel))->takes_any_input());
  const auto rules = RowRules::Create(config);
  SampleBatch rows;
  rows.AddDense(std::vector<float>{1, -3});
  const absl::Status status = (*rules)->CheckInput("m", 2, rows.row(0));
  EXPECT_EQ(FieldPathOf(status), "features.dense.values[1]");
  EXPECT_TRUE(absl::StrContains(status.message(), "kernel.terms[1]")) << status;
}

TEST(CompleteConfig, SaysHowImagesGoWithoutHashedInputs) {
  ModelConfig config;
  config.loss.name = "square";
  config.hashed = true;
  for (const ComponentConfig& kernel :
       {Leaf("convolution"),
        ComponentConfig{"sum", {}, {{1, Leaf("gaussian")}, {1, Leaf("convolution")}}}}) {
    for (const uint32_t dimension : {0, 16}) {
      config.kernel = kernel;
      config.dimension = dimension;
      std::string message;
      EXPECT_EQ(FieldOf(config, &message), "input.hashed") << message;
      EXPECT_TRUE(absl::StrContains(message, "kernel \"convolution\"")) << message;
      EXPECT_TRUE(absl::StrContains(message, "leave hashed out and set input.dimension"))
          << message;
    }
  }
}

TEST(SkewedKernels, SayWhichOffsetWouldTakeANegativeValue) {
  for (const char* name : {"skewed_chi2", "skewed_intersection"}) {
    const float values[] = {1, -2.5f};
    const absl::Status open = Made(Leaf(name, 1))->CheckInput(values);
    EXPECT_TRUE(absl::StrContains(open.message(), "with an offset above 2.5")) << open;
    ComponentConfig given = Leaf(name, 1);
    given.parameters["offset"] = 2.75;
    EXPECT_TRUE(Made(given)->CheckInput(values).ok());
  }
  const float far[] = {-1e7f};
  EXPECT_FALSE(
      absl::StrContains(Made(Leaf("skewed_chi2", 1))->CheckInput(far).message(), "an offset"));
}

TEST(RowRules, ImagesHaveTheSizeThatTheKernelSays) {
  ModelConfig config;
  config.loss.name = "square";
  config.kernel = Leaf("convolution");
  config.kernel.parameters = {{"height", 2}, {"channels", 3}};
  ModelConfig sized = config;
  sized.dimension = 16;
  EXPECT_EQ(FieldOf(sized), "input.dimension");
  sized.dimension = 18;
  EXPECT_EQ(FieldOf(sized), "");
  ASSERT_TRUE(CompleteConfig(config).ok());
  const auto rules = RowRules::Create(config);
  SampleBatch rows;
  rows.AddDense(std::vector<float>(16));
  rows.AddDense(std::vector<float>(18));
  rows.AddSparse(std::vector<uint64_t>{1}, std::vector<float>{1});
  EXPECT_EQ(FieldPathOf((*rules)->CheckInput("m", 0, rows.row(0))), "features.dense.values");
  EXPECT_TRUE((*rules)->CheckInput("m", 0, rows.row(1)).ok());
  const absl::Status open = (*rules)->CheckInput("m", 0, rows.row(2));
  EXPECT_TRUE(absl::StrContains(open.message(), "input.dimension")) << open;
  EXPECT_TRUE((*rules)->CheckInput("m", 18, rows.row(2)).ok());
}

}  // namespace
}  // namespace kernelstream
