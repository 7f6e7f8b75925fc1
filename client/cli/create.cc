#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cli/globals.h"
#include "client/cli/print.h"
#include "client/src/convert.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace kernelstream::client {
namespace {

struct CreateFlags {
  std::string name;
  std::string config_path;
  std::string loss;
  std::string kernel;
  std::string update_rule;
  std::vector<std::string> kernel_set;
  std::vector<std::string> loss_set;
  std::vector<std::string> rule_set;
  ModelConfig config;
};

// Keeps the first error of the parser, with its place.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text.empty())
      text = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  std::string text;
};

absl::StatusOr<ModelConfig> ReadConfig(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, "; give a file with a ModelConfig as text protobuf"));
  }
  v1::ModelConfig config;
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text.str(), &config)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ", ", error.text, "; the fields are those of ModelConfig in model.proto"));
  }
  return FromProto(config);
}

absl::Status ParseAssignments(const std::string& flag, const std::vector<std::string>& assignments,
                              Component* component) {
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    double value = 0;
    if (equals == 0 || equals == std::string::npos ||
        !absl::SimpleAtod(assignment.substr(equals + 1), &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " ", assignment, " is not name=number, like bandwidth=0.5"));
    }
    component->parameters[assignment.substr(0, equals)] = value;
  }
  return absl::OkStatus();
}

// What a flag sets replaces what the file says; a component of another name starts without
// parameters.
void SetComponent(const std::string& name, Component* component) {
  if (name.empty() || name == component->name) return;
  *component = {.name = name, .parameters = {}, .terms = {}};
}

absl::StatusOr<ModelConfig> MakeConfig(const CreateFlags& flags) {
  ModelConfig config;
  if (!flags.config_path.empty()) {
    absl::StatusOr<ModelConfig> read = ReadConfig(flags.config_path);
    if (!read.ok()) return read.status();
    config = *std::move(read);
  }
  SetComponent(flags.loss, &config.loss);
  SetComponent(flags.kernel, &config.kernel);
  SetComponent(flags.update_rule, &config.update_rule);
  for (const absl::Status& status :
       {ParseAssignments("--set", flags.kernel_set, &config.kernel),
        ParseAssignments("--loss-set", flags.loss_set, &config.loss),
        ParseAssignments("--rule-set", flags.rule_set, &config.update_rule)}) {
    if (!status.ok()) return status;
  }
  // Parameters without a name are for the default part.
  if (config.kernel.name.empty() && !config.kernel.parameters.empty()) {
    config.kernel.name = "gaussian";
  }
  if (config.update_rule.name.empty() && !config.update_rule.parameters.empty()) {
    config.update_rule.name = "proximal";
  }
  const ModelConfig& given = flags.config;
  if (given.dimension != 0) config.dimension = given.dimension;
  if (given.hashed) config.hashed = true;
  if (given.standardize != Standardize::kUnspecified) config.standardize = given.standardize;
  const auto replace = [](const std::vector<double>& values, std::vector<double>& in) {
    if (!values.empty()) in = values;
  };
  replace(given.input_offsets, config.input_offsets);
  replace(given.input_scales, config.input_scales);
  replace(given.target_offsets, config.target_offsets);
  replace(given.target_scales, config.target_scales);
  if (!given.labels.empty()) config.labels = given.labels;
  if (given.max_labels != 0) config.max_labels = given.max_labels;
  if (given.l2_penalty) config.l2_penalty = given.l2_penalty;
  if (given.averaging != Averaging::kUnspecified) config.averaging = given.averaging;
  if (given.seed) config.seed = given.seed;
  if (!given.sampler.empty()) config.sampler = given.sampler;
  if (given.batch_rows != 0) config.batch_rows = given.batch_rows;
  if (given.max_batch_delay) config.max_batch_delay = given.max_batch_delay;
  if (given.block_features != 0) config.block_features = given.block_features;
  if (given.max_features) config.max_features = given.max_features;
  if (given.when_full != WhenFull::kUnspecified) config.when_full = given.when_full;
  if (given.warmup_rows != 0) config.warmup_rows = given.warmup_rows;
  const VarianceConfig& variance = given.variance;
  if (variance.method != VarianceMethod::kUnspecified) config.variance.method = variance.method;
  if (variance.features != 0) config.variance.features = variance.features;
  if (variance.noise_variance) config.variance.noise_variance = variance.noise_variance;
  if (variance.coverage != 0) config.variance.coverage = variance.coverage;
  replace(given.candidates.bandwidth_scales, config.candidates.bandwidth_scales);
  replace(given.candidates.step_constants, config.candidates.step_constants);
  if (given.feature_form != FeatureForm::kUnspecified) config.feature_form = given.feature_form;
  if (given.input_metric != InputMetric::kUnspecified) config.input_metric = given.input_metric;
  if (given.replay.ratio) config.replay.ratio = given.replay.ratio;
  if (given.replay.reservoir_rows != 0) {
    config.replay.reservoir_rows = given.replay.reservoir_rows;
  }
  if (given.replay.order != StreamOrder::kUnspecified) config.replay.order = given.replay.order;
  if (given.memory_mib != 0) config.memory_mib = given.memory_mib;
  if (config.loss.name.empty()) {
    return absl::InvalidArgumentError(
        "no loss is given; add --loss, for example --loss logistic (kernelstream losses lists "
        "them)");
  }
  return config;
}

int RunCreate(const Globals& globals, const CreateFlags& flags) {
  absl::StatusOr<ModelConfig> config = MakeConfig(flags);
  if (!config.ok()) return Fail(config.status());
  absl::StatusOr<std::unique_ptr<Client>> client = globals.Connect();
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<CreatedModel> created = (*client)->CreateModel(flags.name, *config);
  if (!created.ok()) return Fail(created.status());
  if (globals.json) {
    v1::CreateModelResponse response;
    *response.mutable_model() = ToProto(created->model);
    response.set_created(created->created);
    std::cout << ToJson(response);
  } else if (created->created) {
    std::cout << "created model " << flags.name << "; teach it with: kernelstream update "
              << flags.name << " --input FILE --format csv\n";
  } else {
    std::cout << "model " << flags.name << " exists already, with this config\n";
  }
  return kExitOk;
}

// A flag that takes numbers separated by commas.
void AddNumbers(CLI::App* command, const char* flag, std::vector<double>* values,
                const char* what) {
  command
      ->add_option_function<std::string>(
          flag,
          [flag, values](const std::string& text) {
            values->clear();
            for (const absl::string_view number : absl::StrSplit(text, ',')) {
              double& value = values->emplace_back();
              if (!absl::SimpleAtod(number, &value)) {
                throw CLI::ValidationError(
                    flag, absl::StrCat("\"", text, "\" needs a number between any two commas"));
              }
            }
          },
          what)
      ->option_text("NUMBERS");
}

// Which learners race, and what they learn again.
void AddRace(CLI::App* command, ModelConfig* config) {
  AddNumbers(command, "--bandwidth-scales", &config->candidates.bandwidth_scales,
             "Bandwidths that race, as multiples of the median distance, separated by "
             "commas; default 0.125,0.25,0.5,1,2");
  AddNumbers(command, "--step-constants", &config->candidates.step_constants,
             "Step constants that race, separated by commas; default 0.1,0.3,1,3");
  command
      ->add_option("--input-metric", config->input_metric,
                   "Learn a metric of the inputs: auto, off, diagonal or full")
      ->transform(OneOf<InputMetric>({{"auto", InputMetric::kAuto},
                                      {"off", InputMetric::kOff},
                                      {"diagonal", InputMetric::kDiagonal},
                                      {"full", InputMetric::kFull}}))
      ->option_text("KIND (auto)");
  command->add_option(
      "--replay", config->replay.ratio,
      "Old rows learned again per new row; default 3 for regressions, 1 for labels, 6 "
      "if ordered, 0 for novelty, density ratios and rules other than proximal; 0: "
      "none");
  command->add_option("--replay-rows", config->replay.reservoir_rows,
                      "Old rows kept for it; default 16384");
  command
      ->add_option("--replay-order", config->replay.order,
                   "Why new rows differ from old ones: drifting (the world changes) or ordered "
                   "(rows are sent sorted)")
      ->transform(OneOf<StreamOrder>(
          {{"drifting", StreamOrder::kDrifting}, {"ordered", StreamOrder::kOrdered}}))
      ->option_text("WHY (drifting)");
  command->add_option("--memory-mib", config->memory_mib,
                      "Most memory of all learners' coefficients, in MiB; default 1024");
}

}  // namespace

void AddCreate(CLI::App* app, Globals* globals) {
  auto flags = std::make_shared<CreateFlags>();
  ModelConfig& config = flags->config;
  CLI::App* command = AddCommand(app, "create", "Create a model; --loss is all it needs");
  command->add_option("NAME", flags->name, "Name of the model")->required();
  command->add_option("--loss", flags->loss, "What is learned (kernelstream losses)");
  command->add_option("--loss-set", flags->loss_set, "Parameter of the loss, name=number")
      ->allow_extra_args(false);
  command->add_option("--kernel", flags->kernel,
                      "Similarity of two inputs (kernelstream kernels); default gaussian");
  command->add_option("--set", flags->kernel_set, "Parameter of the kernel, name=number")
      ->allow_extra_args(false);
  command->add_option("--update-rule", flags->update_rule,
                      "proximal (default), newest_block (the paper's Algorithm 1) or block_newton "
                      "(that with a Newton step of the newest features)");
  command
      ->add_option("--rule-set", flags->rule_set,
                   "Parameter of the update rule, name=number. proximal: step_constant; "
                   "newest_block: schedule, theta, step_size, noise_constant, top_eigenvalue; "
                   "block_newton: step_size, ridge")
      ->allow_extra_args(false);
  command->add_option("--max-features", config.max_features,
                      "Most random features; default 8192; 0: as --memory-mib allows");
  command->add_option("--seed", config.seed, "Seed of all random numbers; default 42");
  command->add_option("--batch-rows", config.batch_rows, "Most rows of a mini-batch; default 64");
  command->add_option("--warmup-rows", config.warmup_rows,
                      "Rows to choose scaling and bandwidth from; default 500");
  command
      ->add_option_function<std::string>(
          "--max-batch-delay",
          [&config](const std::string& text) {
            if (!absl::ParseDuration(text, &config.max_batch_delay.emplace())) {
              throw CLI::ValidationError("--max-batch-delay",
                                         text + " is not a duration like 20ms");
            }
          },
          "Longest wait for a batch to fill; default 20ms")
      ->type_name("DURATION");
  command->add_option(
      "--block-features", config.block_features,
      "Features added per step; default as many as the step has rows; rule proximal "
      "with a limit, learning on when full: 1024 for novelty, above 8192 "
      "--max-features / 128");
  command->add_option("--dimension", config.dimension,
                      "Values per row; default: those of the first row, if it is dense");
  command->add_flag("--hashed", config.hashed,
                    "Named inputs, categories and any index below 2^64, without a dimension");
  command->add_option("--labels", config.labels, "Labels, separated by commas; default: discovered")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--max-labels", config.max_labels,
                      "Most labels that are discovered; default 1000");
  command->add_option("--standardize", config.standardize, "auto, on or off; default auto")
      ->transform(OneOf<Standardize>(
          {{"auto", Standardize::kAuto}, {"on", Standardize::kOn}, {"off", Standardize::kOff}}))
      ->option_text("WHETHER (auto)");
  AddNumbers(command, "--input-offsets", &config.input_offsets,
             "What is taken from each input, separated by commas; default: chosen, 0 with "
             "--input-scales");
  AddNumbers(command, "--input-scales", &config.input_scales,
             "What each input is then divided by; default: chosen, 1 with --input-offsets");
  AddNumbers(command, "--target-offsets", &config.target_offsets,
             "What is taken from each target of a regression; default: chosen, 0 with "
             "--target-scales");
  AddNumbers(command, "--target-scales", &config.target_scales,
             "What each target is then divided by; default: chosen, 1 with --target-offsets");
  command->add_option("--averaging", config.averaging, "auto, last, polynomial or uniform")
      ->transform(OneOf<Averaging>({{"auto", Averaging::kAuto},
                                    {"last", Averaging::kLast},
                                    {"polynomial", Averaging::kPolynomial},
                                    {"uniform", Averaging::kUniform}}))
      ->option_text("KIND (auto)");
  command->add_option("--when-full", config.when_full, "keep_learning or freeze")
      ->transform(OneOf<WhenFull>(
          {{"keep_learning", WhenFull::kKeepLearning}, {"freeze", WhenFull::kFreeze}}))
      ->option_text("WHAT (keep_learning)");
  command->add_option("--l2-penalty", config.l2_penalty, "Weight of |f|^2 / 2 in the objective");
  command
      ->add_option("--variance", config.variance.method,
                   "How uncertain predictions are: none, exact, operator, test_points (points in "
                   "--config) or quantile_pair; regressions only")
      ->transform(OneOf<VarianceMethod>({{"none", VarianceMethod::kNone},
                                         {"exact", VarianceMethod::kExact},
                                         {"operator", VarianceMethod::kOperator},
                                         {"test_points", VarianceMethod::kTestPoints},
                                         {"quantile_pair", VarianceMethod::kQuantilePair}}))
      ->option_text("METHOD (none)");
  command->add_option("--variance-features", config.variance.features,
                      "Random features that the variance is estimated on; default 1024");
  command->add_option("--noise-variance", config.variance.noise_variance,
                      "Variance of the targets' noise; default: estimated");
  command->add_option("--coverage", config.variance.coverage,
                      "Share of targets that prediction intervals are to hold; default 0.9");
  AddRace(command, &config);
  command->add_option("--sampler", config.sampler,
                      "How frequencies are drawn: iid (default), orthogonal, "
                      "quasi_monte_carlo or structured");
  command
      ->add_option("--feature-form", config.feature_form,
                   "Cosine features, each with its own frequency or in pairs: auto, single or pair")
      ->transform(OneOf<FeatureForm>({{"auto", FeatureForm::kAuto},
                                      {"single", FeatureForm::kSingle},
                                      {"pair", FeatureForm::kPair}}))
      ->option_text("FORM (auto)");
  command->add_option("--config", flags->config_path,
                      "File with a ModelConfig as text protobuf; the other flags override it");
  command->callback([globals, flags] {
    globals->run = [globals, flags] { return RunCreate(*globals, *flags); };
  });
}

}  // namespace kernelstream::client
