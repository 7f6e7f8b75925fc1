// What the registries promise about names, parameters and ranges.
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "core/base/field_error.h"
#include "core/kernel/kernel.h"
#include "core/loss/loss.h"
#include "core/model/model_config.h"
#include "core/model/update_rule.h"
#include "tests/support/compositions.h"

namespace kernelstream {
namespace {

struct Part {
  std::string kind;
  ComponentDoc doc;
  ModelConfig config;
  ComponentConfig ModelConfig::*member;
};

std::vector<Part> AllParts() {
  std::vector<Part> parts;
  ModelConfig base;
  base.loss.name = "logistic";
  for (const LossEntry& entry : LossRegistry())
    parts.push_back({"loss", entry.doc, base, &ModelConfig::loss});
  for (const KernelEntry& entry : KernelRegistry())
    parts.push_back({"kernel", entry.doc, base, &ModelConfig::kernel});
  for (const UpdateRuleEntry& entry : UpdateRuleRegistry()) {
    parts.push_back({"update_rule", entry.doc, base, &ModelConfig::update_rule});
  }
  for (Part& part : parts) part.config.*part.member = Named(part.doc.name);
  return parts;
}

TEST(EveryPart, MakesACompleteConfigThatCompletesToItself) {
  for (const Part& part : AllParts()) {
    ModelConfig config = part.config;
    ASSERT_TRUE(CompleteConfig(config).ok()) << part.doc.name;
    ModelConfig again = config;
    ASSERT_TRUE(CompleteConfig(again).ok()) << part.doc.name;
    EXPECT_EQ(again, config) << part.doc.name;
    EXPECT_FALSE(part.doc.doc.empty());
  }
}

TEST(EveryParameter, TakesItsEndsAndRefusesWhatIsBeyondNamingTheRange) {
  for (const Part& part : AllParts()) {
    for (const ParameterDoc& parameter : part.doc.parameters) {
      EXPECT_FALSE(parameter.doc.empty()) << parameter.name;
      const auto complete = [&](double value) {
        ModelConfig config = part.config;
        (config.*part.member).parameters[std::string(parameter.name)] = value;
        return CompleteConfig(config);
      };
      EXPECT_TRUE(complete(parameter.min).ok()) << part.doc.name << " " << parameter.name;
      EXPECT_TRUE(complete(parameter.max).ok()) << part.doc.name << " " << parameter.name;
      if (parameter.default_value.has_value()) {
        EXPECT_TRUE(complete(*parameter.default_value).ok())
            << part.doc.name << " " << parameter.name;
      }
      for (const double bad :
           {std::nan(""), double{INFINITY}, -double{INFINITY}, parameter.max * 2 + 1,
            parameter.min - std::abs(parameter.min) - 1}) {
        const absl::Status status = complete(bad);
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << part.doc.name << " " << bad;
        EXPECT_EQ(FieldPathOf(status),
                  part.kind + ".parameters[" + std::string(parameter.name) + "]");
        EXPECT_TRUE(absl::StrContains(status.message(), "expected")) << status;
      }
    }
  }
}

TEST(EveryKind, NamesTheKnownOnesWhenANameIsUnknown) {
  std::string known_kernels, known_losses;
  for (const Part& part : AllParts()) {
    ModelConfig config = part.config;
    (config.*part.member).name = "nosuch";
    const absl::Status status = CompleteConfig(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(FieldPathOf(status), part.kind + ".name");
    EXPECT_TRUE(absl::StrContains(status.message(), std::string(part.doc.name))) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "nosuch")) << status;
  }
}

TEST(EveryPart, NamesItsParametersWhenOneIsUnknown) {
  for (const Part& part : AllParts()) {
    ModelConfig config = part.config;
    (config.*part.member).parameters["nosuch"] = 1;
    const absl::Status status = CompleteConfig(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    for (const ParameterDoc& parameter : part.doc.parameters) {
      EXPECT_TRUE(absl::StrContains(status.message(), std::string(parameter.name))) << status;
    }
  }
}

TEST(CompleteConfig, NamesTheSamplersAndKernelsThatApply) {
  ModelConfig config;
  config.loss.name = "square";
  config.kernel.name = "laplacian";
  config.sampler = "orthogonal";
  EXPECT_TRUE(absl::StrContains(CompleteConfig(config).message(), "iid, quasi_monte_carlo"))
      << CompleteConfig(config);
  config.sampler = "";
  ASSERT_TRUE(CompleteConfig(config).ok());
  EXPECT_EQ(config.feature_form, CosineForm::kPair) << "AUTO where pairs have less variance";
  config.kernel = {"matern", {{"nu", 0.1}}};
  config.feature_form = CosineForm::kAuto;
  ASSERT_TRUE(CompleteConfig(config).ok());
  EXPECT_EQ(config.feature_form, CosineForm::kSingle);
  config.kernel = {"polynomial", {}};
  config.feature_form = CosineForm::kPair;
  EXPECT_TRUE(absl::StrContains(CompleteConfig(config).message(),
                                "gaussian, laplacian, cauchy, matern, skewed_chi2, "
                                "skewed_intersection"))
      << CompleteConfig(config);
}

TEST(CompleteConfig, NamesTheFieldThatIsOutOfRange) {
  const auto field_of = [](auto change) {
    ModelConfig config;
    config.loss.name = "softmax";
    change(config);
    return FieldPathOf(CompleteConfig(config));
  };
  EXPECT_EQ(field_of([](ModelConfig& c) { c.batch_rows = 5000; }), "batch_rows");
  EXPECT_EQ(field_of([](ModelConfig& c) { c.max_features = 3; }), "max_features");
  EXPECT_EQ(field_of([](ModelConfig& c) { c.block_features = 9000; }), "block_features");
  EXPECT_EQ(field_of([](ModelConfig& c) { c.warmup_rows = 1; }), "warmup_rows");
  EXPECT_EQ(field_of([](ModelConfig& c) { c.dimension = 100000; }), "input.dimension");
  EXPECT_EQ(field_of([](ModelConfig& c) { c.sampler = "sobol"; }), "sampler");
  EXPECT_EQ(field_of([](ModelConfig& c) {
              c.sampler = "quasi_monte_carlo";
              c.dimension = 4000;
            }),
            "sampler");
  EXPECT_EQ(field_of([](ModelConfig& c) {
              c.kernel.name = "chi2";
              c.feature_form = CosineForm::kPair;
            }),
            "feature_form");
  EXPECT_EQ(field_of([](ModelConfig& c) { c.l2_penalty = -1; }), "l2_penalty");
  EXPECT_EQ(field_of([](ModelConfig& c) { c.l2_penalty = NAN; }), "l2_penalty");
  EXPECT_EQ(field_of([](ModelConfig& c) { c.max_batch_delay_seconds = -1; }), "max_batch_delay");
  EXPECT_EQ(field_of([](ModelConfig& c) { c.max_labels = 1; }), "max_labels");
  EXPECT_EQ(field_of([](ModelConfig& c) { c.labels = {"a"}; }), "labels");
  EXPECT_EQ(field_of([](ModelConfig& c) { c.labels = {"a", "a"}; }), "labels[1]");
  EXPECT_EQ(field_of([](ModelConfig& c) { c.labels = {"a", "\xff"}; }), "labels[1]");
  EXPECT_EQ(field_of([](ModelConfig& c) {
              c.loss.name = "square", c.labels = {"a", "b"};
            }),
            "labels");
  EXPECT_EQ(field_of([](ModelConfig& c) {
              c.loss.name = "hinge", c.labels = {"a", "b", "c"};
            }),
            "labels");
}

}  // namespace
}  // namespace kernelstream
