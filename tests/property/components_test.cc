// What the registries promise about names, parameters and ranges.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "core/feature/sampler.h"
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

// A message is cut where it is long: what was wrong comes after what was sent.
TEST(EveryPart, ShortensWhatWasSent) {
  const std::string name(100000, 'x');
  for (const Part& part : AllParts()) {
    ModelConfig parameter = part.config, unknown = part.config;
    (parameter.*part.member).parameters[name] = 1;
    (unknown.*part.member).name = name;
    for (ModelConfig* config : {&parameter, &unknown}) {
      const absl::Status status = CompleteConfig(*config);
      EXPECT_LT(status.message().size() + FieldPathOf(status).size(), 700u) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), "known: ") ||
                  absl::StrContains(status.message(), "it takes none"))
          << status;
    }
  }
}

TEST(EveryKernel, HasASource) {
  for (const KernelEntry& entry : KernelRegistry()) {
    EXPECT_FALSE(entry.doc.source.empty()) << entry.doc.name;
  }
}

// Catalogues list the kernels that a sampler takes with their default parameters.
TEST(EverySampler, NamesTheKernelsThatItTakesWithSomeParametersOnly) {
  for (const SamplerEntry& sampler : SamplerRegistry()) {
    const auto takes = [&](const FeatureSpec& spec) { return SamplerApplies(sampler, spec); };
    const std::vector<absl::string_view> listed = KernelsWith(takes);
    for (const KernelEntry& entry : KernelRegistry()) {
      const bool is_listed =
          std::find(listed.begin(), listed.end(), entry.doc.name) != listed.end();
      EXPECT_TRUE(is_listed || !entry.doc.takes_terms) << sampler.doc.name << entry.doc.name;
      for (const ParameterDoc& parameter : entry.doc.parameters) {
        if (!parameter.integer) continue;
        for (double value = parameter.min; value <= parameter.max && value < 20; value += 1) {
          auto config =
              CompleteKernel({std::string(entry.doc.name), {{std::string(parameter.name), value}}});
          ASSERT_TRUE(config.ok()) << config.status();
          const auto kernel = MakeUnitKernel(*config);
          ASSERT_TRUE(kernel.ok()) << kernel.status();
          if (takes((*kernel)->features()) == is_listed) continue;
          EXPECT_TRUE(absl::StrContains(
              sampler.doc.doc, absl::StrCat(entry.doc.name, ": not ", parameter.name, " ", value)))
              << sampler.doc.name << " " << entry.doc.name;
        }
      }
    }
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

struct Refusal {
  ComponentConfig kernel;
  std::string field, says;  // both empty: accepted
};

TEST(CheckNewKernel, RefusesWhatHasNoEffect) {
  const auto dot = [](ParameterMap parameters) {
    return ComponentConfig{"dot_product", std::move(parameters)};
  };
  const auto sum_of = [](ComponentConfig term) {
    return ComponentConfig{"sum", {}, {{1, Leaf("gaussian")}, {1, std::move(term)}}};
  };
  const Refusal cases[] = {
      {dot({}), "", ""},
      {dot({{"function", 1}, {"radius", 0.5}}), "", ""},
      {dot({{"function", 2}, {"a0", 0}, {"a8", 2}}), "", ""},
      {dot({{"a3", 0.5}}), "a3", "function 2, the series of given coefficients, does"},
      {dot({{"a0", 0}, {"function", 1}}), "a0", "Set function to 2, or leave a0 out"},
      {dot({{"radius", 0.5}}), "radius", "function 1, the geometric series, does"},
      {dot({{"radius", 0.5}, {"function", 2}}), "radius", "function is 2"},
      {dot({{"a0", 0}, {"a1", 0}, {"a2", 0}, {"function", 2}}), "a0", "a0 to a8 are all 0"},
      {{"gaussian", {{"bandwidth", 2}}}, "", ""},
      {{"gaussian", {{"bandwidth_scale", 2}}}, "", ""},
      {{"gaussian", {{"bandwidth", 2}, {"bandwidth_scale", 2}}},
       "bandwidth_scale",
       "Leave one of them out"},
      {{"sum", {{"bandwidth", 2}, {"bandwidth_scale", 2}}, {{1, Leaf("gaussian")}}},
       "bandwidth_scale",
       "kernel \"sum\""},
      {sum_of(dot({{"radius", 0.5}})), "radius", "function 1"},
      {{"convolution", {{"height", 256}, {"width", 256}}}, "", ""},
      {{"convolution", {{"height", 256}, {"width", 256}, {"channels", 3}}},
       "height",
       "have 196608 values; a row has at most 65536"},
      {{"convolution", {{"height", 65536}, {"channels", 2}}}, "height", "131072 values"},
  };
  for (const Refusal& refusal : cases) {
    const auto complete = CompleteKernel(refusal.kernel);
    ASSERT_TRUE(complete.ok()) << complete.status();
    const absl::Status status = CheckNewKernel(*complete);
    EXPECT_EQ(status.ok(), refusal.field.empty()) << status << refusal.says;
    EXPECT_TRUE(absl::StrContains(status.message(), refusal.says)) << status;
    if (status.ok()) continue;
    EXPECT_EQ(FieldPathOf(status),
              absl::StrCat("kernel.", refusal.kernel.terms.size() < 2 ? "" : "terms[1].component.",
                           "parameters[", refusal.field, "]"));
  }
}

// Field path of the refusal of a new model; empty: accepted. The config completes in any case, as
// stored ones have to.
std::string RefusedField(ModelConfig config, const std::string& says) {
  const absl::Status complete = CompleteConfig(config);
  EXPECT_TRUE(complete.ok()) << complete;
  const absl::Status status = CheckNewConfig(config);
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), says)) << status;
  return FieldPathOf(status);
}

TEST(CheckNewConfig, RefusesReplayThatHasNoEffect) {
  struct Case {
    std::string loss, rule;
    ReplayConfig replay;
    std::string field, says;  // both empty: accepted
  };
  const StreamOrder ordered = StreamOrder::kOrdered, drifting = StreamOrder::kDrifting;
  const Case cases[] = {
      {"novelty", "proximal", {}, "", ""},
      {"novelty", "proximal", {.ratio = 0}, "", ""},
      {"novelty", "proximal", {.ratio = 3}, "replay.ratio", "leave it out"},
      {"novelty", "proximal", {.ratio = 1, .order = ordered}, "replay.ratio", "every row once"},
      {"novelty", "proximal", {.ratio = {}, .order = ordered}, "replay.order", "leave it out"},
      {"square", "proximal", {.ratio = 0}, "", ""},
      {"square", "proximal", {.ratio = {}, .order = ordered}, "", ""},
      {"square", "proximal", {.ratio = 0, .order = ordered}, "replay.order", "1 or more"},
      {"density_ratio", "proximal", {.ratio = {}, .order = drifting}, "", ""},
      {"density_ratio", "proximal", {.ratio = {}, .order = ordered}, "replay.order", "1 or more"},
      {"density_ratio", "proximal", {.ratio = 1, .order = ordered}, "", ""},
      {"square",
       "newest_block",
       {.ratio = {}, .order = ordered},
       "replay.order",
       "leave replay.order out"},
      {"softmax", "block_newton", {.ratio = {}, .order = ordered}, "replay.order", "\"proximal\""},
  };
  for (const Case& one : cases) {
    ModelConfig config;
    config.loss.name = one.loss;
    config.update_rule.name = one.rule;
    config.replay = one.replay;
    EXPECT_EQ(RefusedField(config, one.says), one.field) << one.loss << " " << one.says;
  }
}

TEST(CheckNewConfig, RefusesOptionsThatHaveNoEffect) {
  using Change = std::function<void(ModelConfig&)>;
  struct Case {
    std::string loss;
    Change change;
    std::string field, says;  // both empty: accepted
  };
  const auto labels = [](uint32_t most) -> Change {
    return [most](ModelConfig& c) { c.max_labels = most; };
  };
  const auto variance = [](uint32_t features, std::optional<double> noise, double coverage,
                           VarianceMethod method = VarianceMethod::kNone) -> Change {
    return [=](ModelConfig& c) {
      c.variance.method = method;
      c.variance.features = features;
      c.variance.noise_variance = noise;
      c.variance.coverage = coverage;
    };
  };
  const auto reservoir = [](std::optional<uint32_t> ratio, uint32_t rows,
                            const std::string& rule = "") -> Change {
    return [=](ModelConfig& c) {
      c.replay.ratio = ratio;
      c.replay.reservoir_rows = rows;
      c.update_rule.name = rule;
    };
  };
  const auto scales = [](const std::string& kernel, std::vector<double> values,
                         std::optional<double> penalty = {},
                         const std::string& rule = "") -> Change {
    return [=](ModelConfig& c) {
      c.kernel.name = kernel;
      c.candidates.bandwidth_scales = values;
      c.l2_penalty = penalty;
      c.update_rule.name = rule;
    };
  };
  const std::vector<double> grid = {0.5, 1, 2};
  const std::string rows_field = "replay.reservoir_rows",
                    grid_field = "candidates.bandwidth_scales";
  const Case cases[] = {
      {"softmax", labels(50), "", ""},
      {"square", labels(50), "max_labels", "\"square\" has no labels; leave max_labels out"},
      {"novelty", labels(2), "max_labels", "has no labels"},
      {"logistic", labels(50), "max_labels", "take loss \"softmax\""},
      {"logistic", labels(2), "", ""},
      {"square", labels(1000), "", ""},
      {"square", variance(0, {}, 0.8), "variance.coverage", "set variance.method to EXACT"},
      {"softmax", variance(0, {}, 0.8), "variance.coverage", "has no variance; leave"},
      {"square", variance(0, 1, 0), "variance.noise_variance", "or leave variance.noise_variance"},
      {"square", variance(512, {}, 0), "variance.features", "no effect without variance.method"},
      {"huber", variance(512, {}, 0), "variance.features", "to QUANTILE_PAIR"},
      {"square", variance(1024, {}, 0.9), "", ""},
      {"square", variance(512, 1, 0.8, VarianceMethod::kExact), "", ""},
      {"square", reservoir(0, 500), rows_field, "set replay.ratio to 1 or more, or leave"},
      {"density_ratio", reservoir({}, 500), rows_field, "to 1 or more"},
      {"novelty", reservoir({}, 500), rows_field, "no rows are kept; leave"},
      {"square", reservoir({}, 500, "newest_block"), rows_field, "no rows are kept; leave"},
      {"square", reservoir({}, 500), "", ""},
      {"square", reservoir(0, 16384), "", ""},
      {"square", scales("hellinger", grid), grid_field, "multiplies kernel \"hellinger\" by"},
      {"density_ratio", scales("chi2", {0.25}), grid_field, "; leave"},
      {"novelty", scales("chi2", {0.25}), "", ""},  // has a penalty
      {"square", scales("hellinger", {1}), "", ""},
      {"square", scales("hellinger", grid, 1e-3), "", ""},
      {"square", scales("hellinger", grid, 0, "newest_block"), "", ""},
      {"square", scales("gaussian", grid), "", ""},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(absl::StrCat(one.loss, " ", one.field, " ", one.says));
    ModelConfig config;
    config.loss.name = one.loss;
    one.change(config);
    EXPECT_EQ(RefusedField(config, one.says), one.field);
  }
}

// A config that comes back from the server may be sent again under another name.
TEST(CheckNewConfig, TakesWhatACompleteConfigHas) {
  for (const Part& part : AllParts()) {
    ModelConfig config = part.config;
    ASSERT_TRUE(CompleteConfig(config).ok()) << part.doc.name;
    EXPECT_EQ(RefusedField(config, ""), "") << part.doc.name;
  }
}

// The paper's Algorithm 1 is unbiased step by step only if the new features do not depend on those
// of the steps before.
TEST(CheckNewConfig, RulesThatLearnNewFeaturesAloneTakeWholeGroups) {
  struct Case {
    std::string rule, sampler;
    CosineForm form;
    uint32_t dimension, block, completed;
    std::string field, says;
  };
  const CosineForm pair = CosineForm::kPair, single = CosineForm::kSingle;
  const Case cases[] = {
      {"newest_block", "iid", pair, 0, 0, 0, "", ""},
      {"newest_block", "iid", pair, 0, 48, 48, "", ""},
      {"newest_block", "quasi_monte_carlo", pair, 0, 0, 512, "", ""},
      {"newest_block", "quasi_monte_carlo", single, 0, 0, 256, "", ""},
      {"newest_block", "quasi_monte_carlo", pair, 0, 64, 64, "block_features", "multiple of 512"},
      {"newest_block", "quasi_monte_carlo", pair, 0, 1024, 1024, "", ""},
      {"newest_block", "quasi_monte_carlo", pair, 0, 8192, 8192, "", ""},
      {"block_newton", "orthogonal", pair, 9, 0, 256, "", ""},
      {"block_newton", "orthogonal", pair, 9, 128, 128, "block_features", "multiple of 256"},
      {"newest_block", "structured", pair, 784, 0, 2048, "", ""},
      {"newest_block", "structured", pair, 784, 512, 512, "block_features", "multiple of 2048"},
      {"newest_block", "structured", pair, 0, 256, 256, "sampler", "set input.dimension"},
      {"proximal", "quasi_monte_carlo", pair, 0, 64, 64, "", ""},
      {"proximal", "structured", pair, 0, 0, 0, "", ""},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.rule + " " + one.sampler + " " + one.says);
    ModelConfig config;
    config.loss.name = "square";
    config.update_rule.name = one.rule;
    config.sampler = one.sampler;
    config.feature_form = one.form;
    config.dimension = one.dimension;
    config.block_features = one.block;
    ModelConfig complete = config;
    ASSERT_TRUE(CompleteConfig(complete).ok());
    EXPECT_EQ(complete.block_features, one.completed);
    EXPECT_EQ(RefusedField(config, one.says), one.field);
  }
}

TEST(CheckNewConfig, RefusesAMetricOfMoreInputsThanItIsLearnedOf) {
  struct Case {
    InputMetric metric;
    uint32_t dimension;
    std::string field, says;
  };
  const Case cases[] = {
      {InputMetric::kFull, 0, "", ""},
      {InputMetric::kFull, 512, "", ""},
      {InputMetric::kFull, 513, "input_metric", "at most 512 inputs, and input.dimension is 513"},
      {InputMetric::kFull, 513, "input_metric", "take DIAGONAL"},
      {InputMetric::kFull, 20000, "input_metric", "; leave input_metric out"},
      {InputMetric::kDiagonal, 16384, "", ""},
      {InputMetric::kDiagonal, 16385, "input_metric", "at most 16384 inputs"},
      {InputMetric::kAuto, 20000, "", ""},
      {InputMetric::kOff, 20000, "", ""},
  };
  for (const Case& one : cases) {
    ModelConfig config;
    config.loss.name = "square";
    config.dimension = one.dimension;
    config.input_metric = one.metric;
    EXPECT_EQ(RefusedField(config, one.says), one.field) << one.dimension << " " << one.says;
  }
}

TEST(CompleteConfig, NamesTheSamplersAndKernelsThatApply) {
  ModelConfig config;
  config.loss.name = "square";
  config.kernel.name = "laplacian";
  config.sampler = "orthogonal";
  EXPECT_TRUE(absl::StrContains(CompleteConfig(config).message(), "iid, quasi_monte_carlo"))
      << CompleteConfig(config);
  EXPECT_TRUE(absl::StrContains(CompleteConfig(config).message(),
                                "one projection on a normal frequency, and these are cosines on "
                                "frequencies of another law"))
      << CompleteConfig(config);
  ModelConfig series;
  series.loss.name = "square";
  series.kernel = {"dot_product", {{"function", 2}}};
  series.sampler = "orthogonal";
  EXPECT_EQ(CompleteConfig(series).message(),
            "sampler \"orthogonal\" does not apply to the features of kernel \"dot_product\" (with "
            "function 0 or 1 it does): it takes cosines or powers of one projection on a normal "
            "frequency, and these are products of several projections on random signs; those that "
            "do: iid");
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
