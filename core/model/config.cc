#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "core/base/finite.h"
#include "core/feature/sampler.h"
#include "core/kernel/kernel.h"
#include "core/loss/loss.h"
#include "core/model/check_range.h"
#include "core/model/given_scales.h"
#include "core/model/learned_metric.h"
#include "core/model/model_config.h"
#include "core/model/model_features.h"
#include "core/model/text.h"
#include "core/model/update_rule.h"

namespace kernelstream {
namespace {

// The derivatives of novelty are 0 or -1: smaller constants throw the scores about, and lift the
// rows learned above others like them.
constexpr double kNoveltyStepConstant = 100;
// Scores of novelty are all alike but for what the features get wrong, so few features rank badly;
// and with one learner, many cost little.
constexpr uint32_t kNoveltyBlockFeatures = 1024;
// Words: most inputs are rare, and what a feature has not seen when they come it does not learn.
// So many steps until a hashed model has all its features.
constexpr uint32_t kHashedStepsUntilFull = 8;
// Models with more features than this have them all after so many steps, as one with this many
// has: features that come late have little left to learn from.
constexpr uint32_t kFeaturesGrownByRows = 8192, kStepsUntilFull = 128;
// What is filled in also where it has no effect, and so is taken from whoever sends it.
constexpr uint32_t kDefaultMaxLabels = 1000, kDefaultReservoirRows = 16384;
constexpr uint32_t kDefaultVarianceFeatures = 1024;
constexpr double kDefaultCoverage = 0.9;

absl::Status CompleteRule(Task task, ModelConfig& config) {
  const bool step_constant_given = config.update_rule.parameters.contains("step_constant");
  if (config.update_rule.name.empty()) config.update_rule.name = "proximal";
  const UpdateRuleEntry* rule = FindUpdateRule(config.update_rule.name);
  if (rule == nullptr) {
    std::vector<absl::string_view> known;
    for (const UpdateRuleEntry& entry : UpdateRuleRegistry()) known.push_back(entry.doc.name);
    return UnknownComponent("update_rule", config.update_rule.name, known);
  }
  auto parameters = CompleteParameters("update_rule", rule->doc, config.update_rule);
  if (!parameters.ok()) return parameters.status();
  config.update_rule.parameters = *std::move(parameters);
  if (task == Task::kNovelty && config.update_rule.name == "proximal" && !step_constant_given) {
    config.update_rule.parameters["step_constant"] = kNoveltyStepConstant;
  }
  if (!config.l2_penalty.has_value()) config.l2_penalty = rule->default_l2_penalty;
  return CheckRange("l2_penalty", *config.l2_penalty, 0.0, 1e6);
}

absl::Status CheckLabels(Task task, ModelConfig& config) {
  if (config.max_labels == 0) config.max_labels = kDefaultMaxLabels;
  if (absl::Status s = CheckRange("max_labels", config.max_labels, 2u, kMaxLabels); !s.ok())
    return s;
  if (config.labels.empty()) return absl::OkStatus();
  if (!HasLabels(task)) {
    return InvalidField(
        "labels", absl::StrCat("loss \"", config.loss.name, "\" takes no labels; leave them out"));
  }
  if (task == Task::kBinary && config.labels.size() != 2) {
    return InvalidField("labels", absl::StrCat("loss \"", config.loss.name, "\" takes two labels; ",
                                               config.labels.size(), " are given"));
  }
  if (config.labels.size() < 2 || config.labels.size() > config.max_labels) {
    return InvalidField("labels", absl::StrCat(config.labels.size(),
                                               " labels are given; expected 2 to max_labels = ",
                                               config.max_labels));
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < config.labels.size(); ++i) {
    const std::string& label = config.labels[i];
    const std::string field = absl::StrCat("labels[", i, "]");
    if (label.empty() || label.size() > kMaxLabelBytes || !IsUtf8(label)) {
      return InvalidField(field,
                          absl::StrCat("label is not 1 to ", kMaxLabelBytes, " bytes of UTF-8"));
    }
    if (!seen.insert(label).second) {
      return InvalidField(field, absl::StrCat("label \"", Shortened(label), "\" is given twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGrid(absl::string_view field, const std::vector<double>& values) {
  if (values.size() > kMaxGridValues) {
    return InvalidField(field, absl::StrCat(field, " has ", values.size(),
                                            " values; expected at most ", kMaxGridValues));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    absl::Status status = CheckRange(absl::StrCat(field, "[", i, "]"), values[i], 1e-6, 1e6);
    if (!status.ok()) return status;
    if (std::count(values.begin(), values.end(), values[i]) > 1) {
      return InvalidField(field, absl::StrCat(field, " has ", values[i], " twice"));
    }
  }
  return absl::OkStatus();
}

// `given`: the rule's parameters before defaults.
absl::Status CompleteGrid(Task task, const ParameterMap& given_rule,
                          const ParameterMap& given_kernel, const Kernel& kernel,
                          ModelConfig& config) {
  CandidateGrid& grid = config.candidates;
  const bool proximal = config.update_rule.name == "proximal";
  if (!proximal && !grid.step_constants.empty()) {
    return InvalidField("candidates.step_constants",
                        absl::StrCat("step constants belong to update rule \"proximal\"; the model "
                                     "has \"",
                                     config.update_rule.name, "\"; leave them out"));
  }
  const bool can_race = proximal && task != Task::kNovelty;
  if (grid.bandwidth_scales.empty()) {
    const bool given =
        given_kernel.contains("bandwidth") || given_kernel.contains("bandwidth_scale");
    if (kernel.is_homogeneous() || given) {
      grid.bandwidth_scales = {1};
    } else if (task == Task::kNovelty) {
      grid.bandwidth_scales = {0.25};  // wide kernels see one cloud, whatever its shape
    } else if (!can_race) {
      grid.bandwidth_scales = {1};
    } else if (!kernel.is_bounded()) {
      // k(x, x) at a fraction of the usual length is astronomical for some rows.
      grid.bandwidth_scales = {1, 2, 4};
    } else if (task == Task::kDensityRatio) {
      grid.bandwidth_scales = {0.5, 1, 2, 4};
    } else {
      grid.bandwidth_scales = {0.125, 0.25, 0.5, 1, 2};
    }
  }
  if (grid.step_constants.empty() && proximal) {
    if (can_race && !given_rule.contains("step_constant")) {
      // exp(score) makes gradients of single rows large: density ratios take small steps.
      grid.step_constants = task == Task::kDensityRatio ? std::vector<double>{30, 100, 300, 1000}
                                                        : std::vector<double>{0.1, 0.3, 1, 3};
    } else {
      grid.step_constants = {config.update_rule.parameters.at("step_constant")};
    }
  }
  absl::Status status = CheckGrid("candidates.bandwidth_scales", grid.bandwidth_scales);
  status.Update(CheckGrid("candidates.step_constants", grid.step_constants));
  return status;
}

absl::Status CompleteReplay(Task task, ModelConfig& config) {
  ReplayConfig& replay = config.replay;
  if (replay.reservoir_rows == 0) replay.reservoir_rows = kDefaultReservoirRows;
  const bool possible = config.update_rule.name == "proximal";
  if (!replay.ratio.has_value()) {
    const bool pays = task != Task::kNovelty && task != Task::kDensityRatio;
    if (!possible || !pays) {
      replay.ratio = 0;
    } else if (replay.order == StreamOrder::kOrdered) {
      replay.ratio = 6;
    } else {
      replay.ratio = task == Task::kRegression ? 3 : 1;
    }
  }
  absl::Status status = CheckRange("replay.ratio", *replay.ratio, 0u, kMaxReplayRatio);
  status.Update(CheckRange("replay.reservoir_rows", replay.reservoir_rows, 64u, kMaxReservoirRows));
  if (status.ok() && *replay.ratio > 0 && !possible) {
    return InvalidField("replay.ratio",
                        absl::StrCat("replay needs update rule \"proximal\"; the model has \"",
                                     config.update_rule.name, "\"; leave replay out"));
  }
  return status;
}

// Points decide the dimension where the config leaves it open.
absl::Status CheckTestPoints(const Kernel& kernel, ModelConfig& config) {
  const std::vector<std::vector<float>>& points = config.variance.test_points;
  const std::string field = "variance.test_points";
  if (config.variance.method != VarianceMethod::kTestPoints) {
    if (points.empty()) return absl::OkStatus();
    return InvalidField(field, "test points belong to method TEST_POINTS; leave them out");
  }
  if (points.empty() || points.size() > kMaxTestPoints) {
    return InvalidField(field, absl::StrCat(points.size(), " test points are given; expected 1 to ",
                                            kMaxTestPoints));
  }
  const size_t size = config.dimension != 0 ? config.dimension : points[0].size();
  for (size_t i = 0; i < points.size(); ++i) {
    const std::string point = absl::StrCat(field, "[", i, "]");
    if (points[i].empty() || points[i].size() != size) {
      return InvalidField(point, absl::StrCat("a test point has ", points[i].size(),
                                              " values; expected ", std::max<size_t>(size, 1)));
    }
    if (!AllFinite(points[i])) {
      return InvalidField(point, "a test point has a value that is not a finite number");
    }
    absl::Status status = PrefixField(point, kernel.CheckDimension(points[i].size()));
    status.Update(PrefixField(absl::StrCat(point, "."), kernel.CheckInput(points[i])));
    if (!status.ok()) return status;
  }
  config.dimension = static_cast<uint32_t>(std::min<size_t>(size, kMaxInputDimension + size_t{1}));
  return absl::OkStatus();
}

absl::Status CompleteVariance(Task task, const Kernel& kernel, ModelConfig& config) {
  VarianceConfig& variance = config.variance;
  if (variance.features == 0) variance.features = kDefaultVarianceFeatures;
  if (variance.coverage == 0) variance.coverage = kDefaultCoverage;
  absl::Status status =
      CheckRange("variance.features", variance.features, 16u, kMaxVarianceFeatures);
  status.Update(CheckRange("variance.coverage", variance.coverage, 0.01, 0.999));
  if (variance.noise_variance.has_value()) {
    status.Update(CheckRange("variance.noise_variance", *variance.noise_variance, 1e-300, 1e300));
  }
  status.Update(CheckTestPoints(kernel, config));
  if (!status.ok()) return status;
  if (variance.features % 16 != 0) {
    return InvalidField(
        "variance.features",
        absl::StrCat("variance.features is ", variance.features, "; expected a multiple of 16"));
  }
  if (variance.method == VarianceMethod::kNone) return absl::OkStatus();
  if (task != Task::kRegression) {
    return InvalidField("variance.method",
                        absl::StrCat("loss \"", config.loss.name,
                                     "\" is no regression and has no variance; leave it out"));
  }
  if (variance.method != VarianceMethod::kQuantilePair && config.loss.name != "square") {
    return InvalidField("variance.method",
                        absl::StrCat("the variance of a Gaussian process needs loss \"square\"; "
                                     "the model has \"",
                                     config.loss.name, "\": take QUANTILE_PAIR for intervals"));
  }
  return absl::OkStatus();
}

// Indices without a bound leave no room for what is kept per input.
absl::Status CompleteHashed(ModelConfig& config) {
  if (!config.hashed) return absl::OkStatus();
  const auto refused = [](absl::string_view field, absl::string_view why) {
    return InvalidField(field, absl::StrCat("with input.hashed ", why, "; leave it out"));
  };
  if (config.dimension != 0) return refused("input.dimension", "there is no dimension");
  if (config.standardize == Standardize::kOn) {
    return refused("input.standardize", "inputs are used as they come");
  }
  if (config.input_metric != InputMetric::kAuto && config.input_metric != InputMetric::kOff) {
    return refused("input_metric", "no metric is learned");
  }
  if (config.variance.method == VarianceMethod::kTestPoints) {
    return InvalidField("variance.method",
                        "with input.hashed there are no test points, which have a dimension; take "
                        "EXACT");
  }
  if (!config.sampler.empty() && config.sampler != "iid") {
    return InvalidField("sampler", absl::StrCat("with input.hashed frequencies are drawn one by "
                                                "one; sampler is \"",
                                                Shortened(config.sampler), "\", expected iid"));
  }
  config.sampler = "iid";
  config.standardize = Standardize::kOff;
  config.input_metric = InputMetric::kOff;
  return absl::OkStatus();
}

// AUTO stays where the data decides; OFF where a learned metric cannot apply.
absl::Status CompleteMetric(Task task, bool bandwidth_given, const Kernel& kernel,
                            ModelConfig& config) {
  if (config.input_metric != InputMetric::kOff && !kernel.features().is_shift_invariant()) {
    if (config.input_metric != InputMetric::kAuto) {
      return InvalidField("input_metric",
                          absl::StrCat("a learned metric needs a kernel of x - x', such as "
                                       "gaussian; the model has \"",
                                       config.kernel.name, "\"; leave input_metric out"));
    }
    config.input_metric = InputMetric::kOff;
  }
  const bool possible = config.update_rule.name == "proximal" && task != Task::kNovelty;
  if (config.input_metric == InputMetric::kAuto) {
    if (!possible || bandwidth_given) config.input_metric = InputMetric::kOff;
    return absl::OkStatus();
  }
  if (config.input_metric != InputMetric::kOff && !possible) {
    return InvalidField("input_metric",
                        absl::StrCat("a learned metric needs update rule \"proximal\" and a loss "
                                     "that can be compared between metrics; the model has \"",
                                     config.update_rule.name, "\" and \"", config.loss.name,
                                     "\"; leave input_metric out"));
  }
  return absl::OkStatus();
}

absl::Status CheckNewLabels(Task task, const ModelConfig& config) {
  if (task == Task::kMulticlass || config.max_labels == kDefaultMaxLabels) return absl::OkStatus();
  const bool two = task == Task::kBinary;
  if (two && config.max_labels == 2) return absl::OkStatus();
  return InvalidField(
      "max_labels",
      absl::StrCat("max_labels is ", config.max_labels, ", and loss \"", config.loss.name,
                   two ? "\" has two labels" : "\" has no labels", "; leave max_labels out",
                   two ? ", or take loss \"softmax\" for more labels" : ""));
}

absl::Status CheckNewVariance(Task task, const ModelConfig& config) {
  const VarianceConfig& variance = config.variance;
  if (variance.method != VarianceMethod::kNone) return absl::OkStatus();
  absl::string_view field;
  if (variance.coverage != kDefaultCoverage) field = "variance.coverage";
  if (variance.noise_variance.has_value()) field = "variance.noise_variance";
  if (variance.features != kDefaultVarianceFeatures) field = "variance.features";
  if (field.empty()) return absl::OkStatus();
  if (task != Task::kRegression) {
    return InvalidField(
        field, absl::StrCat("loss \"", config.loss.name,
                            "\" is no regression and has no variance; leave ", field, " out"));
  }
  return InvalidField(
      field, absl::StrCat(field, " has no effect without variance.method; set variance.method to ",
                          config.loss.name == "square" ? "EXACT" : "QUANTILE_PAIR", ", or leave ",
                          field, " out"));
}

// Where bandwidths multiply the kernel by constants, proximal steps are the same at all of them:
// their damping is relative to the kernel. A penalty is not.
absl::Status CheckNewGrid(const ModelConfig& config) {
  const std::vector<double>& scales = config.candidates.bandwidth_scales;
  if (scales == std::vector<double>{1} || config.update_rule.name != "proximal" ||
      *config.l2_penalty > 0) {
    return absl::OkStatus();
  }
  const auto kernel = MakeUnitKernel(config.kernel);
  if (!kernel.ok()) return kernel.status();
  if (!(*kernel)->is_homogeneous()) return absl::OkStatus();
  return InvalidField(
      "candidates.bandwidth_scales",
      absl::StrCat("another bandwidth only multiplies kernel \"", config.kernel.name,
                   "\" by a constant, and learners at several would all be the same; leave "
                   "candidates.bandwidth_scales out"));
}

absl::Status CheckNewReplay(Task task, const ModelConfig& config) {
  const ReplayConfig& replay = config.replay;
  const bool ordered = replay.order == StreamOrder::kOrdered;
  if (task == Task::kNovelty && (*replay.ratio > 0 || ordered)) {
    return InvalidField(
        *replay.ratio > 0 ? "replay.ratio" : "replay.order",
        absl::StrCat("loss \"", config.loss.name,
                     "\" learns every row once: replay has no effect; leave it out"));
  }
  if (*replay.ratio > 0) return absl::OkStatus();
  const bool possible = config.update_rule.name == "proximal" && task != Task::kNovelty;
  if (!ordered && replay.reservoir_rows != kDefaultReservoirRows) {
    return InvalidField(
        "replay.reservoir_rows",
        absl::StrCat("replay.reservoir_rows is ", replay.reservoir_rows,
                     ", and replay.ratio is 0: no rows are kept; ",
                     possible ? "set replay.ratio to 1 or more, or leave " : "leave ",
                     "replay.reservoir_rows out"));
  }
  if (!ordered) return absl::OkStatus();
  return InvalidField(
      "replay.order",
      absl::StrCat("ORDERED streams are learned by replay, and replay.ratio is 0",
                   possible
                       ? "; set it to 1 or more, or leave replay.order out"
                       : absl::StrCat(", the only one for update rule \"", config.update_rule.name,
                                      "\"; leave replay.order out, or take update "
                                      "rule \"proximal\"")));
}

// Rules that learn new features alone need them independent of those before.
absl::Status CheckNewBlocks(const ModelConfig& config) {
  if (config.update_rule.name == "proximal") return absl::OkStatus();
  const auto kernel = MakeUnitKernel(config.kernel);
  if (!kernel.ok()) return kernel.status();
  const size_t group = IndependentGroup(ModelFeatures(**kernel, config), config.dimension);
  const std::string rule = absl::StrCat("update rule \"", config.update_rule.name,
                                        "\" learns the features of one step alone");
  if (group == 0) {
    const bool sum = config.kernel.name == "sum" || config.dimension != 0;
    return InvalidField("sampler",
                        absl::StrCat("sampler \"", config.sampler,
                                     "\" draws features of several steps together, and ", rule,
                                     sum ? "; leave sampler out, or take update rule \"proximal\""
                                         : "; set input.dimension, which says how many, or leave "
                                           "sampler out"));
  }
  // The first step may take them all.
  if (config.block_features % group == 0 || config.block_features == config.max_features) {
    return absl::OkStatus();
  }
  return InvalidField(
      "block_features",
      absl::StrCat("sampler \"", config.sampler, "\" draws ", group, " features together, and ",
                   rule, "; set block_features to a multiple of ", group, ", or leave it out"));
}

}  // namespace

absl::Status CheckNewConfig(const ModelConfig& config) {
  if (absl::Status status = CheckNewKernel(config.kernel); !status.ok()) return status;
  ComponentConfig named = config.loss;
  const auto loss = MakeLoss(named);
  if (!loss.ok()) return loss.status();
  if (absl::Status s = CheckNewLabels((*loss)->task(), config); !s.ok()) return s;
  if (absl::Status s = CheckNewVariance((*loss)->task(), config); !s.ok()) return s;
  if (absl::Status s = CheckNewGrid(config); !s.ok()) return s;
  if (absl::Status s = CheckNewReplay((*loss)->task(), config); !s.ok()) return s;
  if (absl::Status s = CheckNewBlocks(config); !s.ok()) return s;
  const uint32_t widest = WidestInputsOf(config.input_metric);
  if (config.dimension <= widest) return absl::OkStatus();
  const bool full = config.input_metric == InputMetric::kFull;
  return InvalidField(
      "input_metric",
      absl::StrCat("input_metric ", full ? "FULL" : "DIAGONAL", " is learned of at most ", widest,
                   " inputs, and input.dimension is ", config.dimension,
                   full && config.dimension <= kMaxDiagonalMetricDim
                       ? "; take DIAGONAL, or leave input_metric out"
                       : "; leave input_metric out"));
}

absl::Status CompleteConfig(ModelConfig& config) {
  auto loss = MakeLoss(config.loss);
  if (!loss.ok()) return loss.status();
  if (config.kernel.name.empty()) config.kernel.name = "gaussian";
  const ParameterMap given_kernel = config.kernel.parameters;
  const ParameterMap given_rule = config.update_rule.parameters;
  auto kernel = CompleteKernel(config.kernel);
  if (!kernel.ok()) return kernel.status();
  config.kernel = *std::move(kernel);
  if (absl::Status s = CompleteScales((*loss)->task(), config); !s.ok()) return s;
  // What is asked of it below does not depend on what is chosen from the data.
  const auto unit_kernel = MakeUnitKernel(config.kernel);
  if (!unit_kernel.ok()) return unit_kernel.status();
  if (config.hashed) {
    const absl::Status status = (*unit_kernel)->CheckDimension(0);
    if (!status.ok()) {
      return InvalidField("input.hashed", absl::StrCat(status.message(),
                                                       ", and hashed inputs have no size; leave "
                                                       "hashed out and set input.dimension"));
    }
  } else if (config.dimension != 0) {
    const absl::Status status = (*unit_kernel)->CheckDimension(config.dimension);
    if (!status.ok()) return PrefixField("input.dimension", status);
  }
  if (config.standardize == Standardize::kOn && !(*unit_kernel)->takes_any_input()) {
    return InvalidField(config.input_scales.empty() ? "input.standardize" : "input.scales",
                        absl::StrCat("kernel \"", config.kernel.name,
                                     "\" takes counts or shares, whose zero has a meaning: they "
                                     "cannot be standardized; leave standardize, offsets and "
                                     "scales out"));
  }
  if (absl::Status s = CompleteHashed(config); !s.ok()) return s;
  const bool chooses_penalty = !config.l2_penalty.has_value();
  if (absl::Status s = CompleteRule((*loss)->task(), config); !s.ok()) return s;
  if (chooses_penalty) {
    config.l2_penalty = std::max(*config.l2_penalty, (*loss)->least_l2_penalty());
  }
  if (absl::Status s = CheckLabels((*loss)->task(), config); !s.ok()) return s;
  if (absl::Status s = CompleteFeatures(**unit_kernel, config); !s.ok()) return s;
  if (!config.seed.has_value()) config.seed = 42;
  if (config.batch_rows == 0) config.batch_rows = 64;
  if (!config.max_batch_delay_seconds.has_value()) config.max_batch_delay_seconds = 0.020;
  if (config.max_features == 0) config.max_features = 8192;
  if (config.memory_mib == 0) config.memory_mib = 1024;
  if (config.warmup_rows == 0) config.warmup_rows = 500;
  if (absl::Status s =
          CompleteGrid((*loss)->task(), given_rule, given_kernel, **unit_kernel, config);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = CompleteReplay((*loss)->task(), config); !s.ok()) return s;
  if (absl::Status s = CompleteVariance((*loss)->task(), **unit_kernel, config); !s.ok()) return s;
  if (absl::Status s = CompleteMetric((*loss)->task(), given_kernel.contains("bandwidth"),
                                      **unit_kernel, config);
      !s.ok()) {
    return s;
  }
  // A model that ends when its features do, or whose features do not end, grows by its rows.
  if (config.update_rule.name == "proximal" && config.block_features == 0 &&
      config.when_full == WhenFull::kKeepLearning && config.max_features != kUnlimitedFeatures) {
    if ((*loss)->task() == Task::kNovelty) {
      config.block_features = std::min(config.max_features, kNoveltyBlockFeatures);
    } else if (config.hashed) {
      config.block_features =
          (config.max_features + kHashedStepsUntilFull - 1) / kHashedStepsUntilFull;
    } else if (config.max_features > kFeaturesGrownByRows) {
      config.block_features = (config.max_features + kStepsUntilFull - 1) / kStepsUntilFull;
    }
  }
  if (config.update_rule.name != "proximal" && config.block_features == 0) {
    const size_t group = IndependentGroup(ModelFeatures(**unit_kernel, config), config.dimension);
    if (group > 1) {
      config.block_features = std::min(config.max_features, static_cast<uint32_t>(group));
    }
  }
  absl::Status status = CheckRange("input.dimension", config.dimension, 0u, kMaxInputDimension);
  status.Update(CheckRange("batch_rows", config.batch_rows, 1u, kMaxBatchRows));
  status.Update(CheckRange("max_batch_delay", *config.max_batch_delay_seconds, 0.0, 3600.0));
  if (config.max_features != kUnlimitedFeatures) {
    status.Update(CheckRange("max_features", config.max_features, 16u, kMaxFeatures));
  }
  status.Update(CheckRange("block_features", config.block_features, 0u,
                           std::min(config.max_features, kMaxFeatures)));
  status.Update(CheckRange("memory_mib", config.memory_mib, 1u, kMaxMemoryMib));
  status.Update(CheckRange("warmup_rows", config.warmup_rows, 2u, kMaxWarmupRows));
  return status;
}

}  // namespace kernelstream
