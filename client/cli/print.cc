#include "client/cli/print.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/util/json_util.h"

namespace kernelstream::client {
namespace {

constexpr size_t kMostShownLabels = 20;
constexpr size_t kMostShownNumbers = 8;

// What one line has room for, of the metrics that the task has.
struct Headline {
  const char* metric;
  const char* words;
  bool percent = false;
};
constexpr Headline kHeadlines[] = {{"loss", "loss"},
                                   {"error_rate", "error", true},
                                   {"auc", "auc"},
                                   {"mean_squared_error", "squared error"},
                                   {"r2", "r2"},
                                   {"fraction_below_threshold", "below threshold", true},
                                   {"divergence", "divergence"}};

std::string VarianceMethodName(VarianceMethod method) {
  switch (method) {
    case VarianceMethod::kUnspecified:
      return "";
    case VarianceMethod::kNone:
      return "none";
    case VarianceMethod::kExact:
      return "exact";
    case VarianceMethod::kOperator:
      return "operator";
    case VarianceMethod::kTestPoints:
      return "test points";
    case VarianceMethod::kQuantilePair:
      return "quantile pair";
  }
  return "";
}

std::string AveragingName(Averaging averaging) {
  switch (averaging) {
    case Averaging::kAuto:
      return "auto";
    case Averaging::kLast:
      return "last";
    case Averaging::kPolynomial:
      return "polynomial";
    case Averaging::kUniform:
      return "uniform";
    case Averaging::kUnspecified:
      break;
  }
  return "";
}

std::string StandardizeName(Standardize standardize) {
  switch (standardize) {
    case Standardize::kAuto:
      return "auto";
    case Standardize::kOn:
      return "on";
    case Standardize::kOff:
      return "off";
    case Standardize::kUnspecified:
      break;
  }
  return "";
}

std::string WhenFullName(WhenFull when_full) {
  switch (when_full) {
    case WhenFull::kKeepLearning:
      return "keep_learning";
    case WhenFull::kFreeze:
      return "freeze";
    case WhenFull::kUnspecified:
      break;
  }
  return "";
}

std::string FeatureFormName(FeatureForm form) {
  if (form == FeatureForm::kAuto) return "auto";
  if (form == FeatureForm::kSingle) return "single";
  return form == FeatureForm::kPair ? "pair" : "";
}

std::string InputMetricName(InputMetric metric) {
  switch (metric) {
    case InputMetric::kAuto:
      return "auto";
    case InputMetric::kOff:
      return "off";
    case InputMetric::kDiagonal:
      return "diagonal";
    case InputMetric::kFull:
      return "full";
    case InputMetric::kUnspecified:
      break;
  }
  return "";
}

std::string StreamOrderName(StreamOrder order) {
  return order == StreamOrder::kOrdered ? "ordered" : "drifting";
}

std::string MaxFeaturesText(uint32_t max_features) {
  return max_features == 0 ? "as memory allows" : WithCommas(max_features);
}

std::string NumbersLine(const std::vector<double>& numbers) {
  return absl::StrJoin(
      numbers, ", ", [](std::string* out, double number) { absl::StrAppend(out, Number(number)); });
}

// After the first kMostShownNumbers of so many.
std::string Rest(size_t all) { return absl::StrCat(", ... (", all, " in all; --json shows them)"); }

// Of many, the first.
std::string FirstNumbersLine(std::vector<double> numbers) {
  if (numbers.size() <= kMostShownNumbers) return NumbersLine(numbers);
  const size_t all = numbers.size();
  numbers.resize(kMostShownNumbers);
  return absl::StrCat(NumbersLine(numbers), Rest(all));
}

std::string ComponentLine(const Component& component) {
  std::vector<std::string> parameters;
  for (const auto& [name, value] : component.parameters) {
    parameters.push_back(absl::StrCat(name, "=", Number(value)));
  }
  std::vector<std::string> terms;
  for (const ComponentTerm& term : component.terms) {
    const std::string weight = term.weight == 1 ? "" : absl::StrCat(Number(term.weight), " ");
    terms.push_back(absl::StrCat(weight, ComponentLine(term.component)));
  }
  return absl::StrCat(component.name, parameters.empty() ? "" : " ", absl::StrJoin(parameters, " "),
                      terms.empty() ? "" : " of ", absl::StrJoin(terms, "; "));
}

std::string LabelsLine(const std::vector<std::string>& labels) {
  const size_t shown = std::min(labels.size(), kMostShownLabels);
  return absl::StrCat(absl::StrJoin(labels.begin(), labels.begin() + shown, ", "),
                      shown < labels.size() ? absl::StrCat(", ... (", labels.size(), ")") : "");
}

// Lines "name  value"; empty values are left out.
class Table {
 public:
  void Add(absl::string_view name, const std::string& value) {
    if (!value.empty()) absl::StrAppendFormat(&text_, "  %-22s %s\n", name, value);
  }
  void AddCount(absl::string_view name, uint64_t value) {
    if (value != 0) Add(name, WithCommas(value));
  }
  void Lines(absl::string_view lines) { absl::StrAppend(&text_, lines); }
  void Head(absl::string_view head) { absl::StrAppend(&text_, head, "\n"); }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string MetricOf(const CandidateReport& candidate) {
  return candidate.metric == InputMetric::kOff ? "none" : InputMetricName(candidate.metric);
}

// The learners, the best recent loss first.
void AddCandidates(std::vector<CandidateReport> candidates, Table* table) {
  if (candidates.empty()) return;
  const auto best = [](const CandidateReport& c) {
    return std::min(c.recent_loss, c.recent_average_loss);
  };
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [&](const CandidateReport& a, const CandidateReport& b) { return best(a) < best(b); });
  table->Head("learners in the race");
  table->Lines(absl::StrFormat("  %-10s %-9s %12s %12s %12s %12s\n", "generation", "metric",
                               "bandwidth", "step const.", "loss", "average's"));
  for (const CandidateReport& c : candidates) {
    table->Lines(absl::StrFormat("  %-10d %-9s %12.6g %12.6g %12.6g %12.6g%s%s\n", c.generation,
                                 MetricOf(c), c.bandwidth, c.step_constant, c.recent_loss,
                                 c.recent_average_loss, c.replays ? "  replays" : "",
                                 c.served ? "  served" : ""));
  }
}

void AddConfig(const ModelConfig& config, Table* table) {
  table->Head("config as given");
  table->Add("loss", ComponentLine(config.loss));
  table->Add("kernel", ComponentLine(config.kernel));
  table->Add("update rule", ComponentLine(config.update_rule));
  table->AddCount("dimension", config.dimension);
  if (config.hashed) table->Add("inputs", "hashed");
  table->Add("standardize", StandardizeName(config.standardize));
  table->Add("input offsets", FirstNumbersLine(config.input_offsets));
  table->Add("input scales", FirstNumbersLine(config.input_scales));
  table->Add("target offsets", FirstNumbersLine(config.target_offsets));
  table->Add("target scales", FirstNumbersLine(config.target_scales));
  table->Add("labels", LabelsLine(config.labels));
  table->AddCount("max labels", config.max_labels);
  if (config.l2_penalty) table->Add("l2 penalty", Number(*config.l2_penalty));
  table->Add("averaging", AveragingName(config.averaging));
  if (config.seed) table->Add("seed", absl::StrCat(*config.seed));
  table->Add("sampler", config.sampler);
  table->Add("feature form", FeatureFormName(config.feature_form));
  table->AddCount("batch rows", config.batch_rows);
  if (config.max_batch_delay) {
    table->Add("max batch delay", absl::FormatDuration(*config.max_batch_delay));
  }
  table->AddCount("block features", config.block_features);
  if (config.max_features) table->Add("max features", MaxFeaturesText(*config.max_features));
  table->Add("when full", WhenFullName(config.when_full));
  table->AddCount("warmup rows", config.warmup_rows);
  table->Add("bandwidth scales", NumbersLine(config.candidates.bandwidth_scales));
  table->Add("step constants", NumbersLine(config.candidates.step_constants));
  table->Add("input metric", InputMetricName(config.input_metric));
  if (config.replay.ratio.value_or(0) != 0) {
    table->Add("replay", absl::StrCat(*config.replay.ratio, " per new row, of ",
                                      WithCommas(config.replay.reservoir_rows), " rows, ",
                                      StreamOrderName(config.replay.order)));
  }
  table->AddCount("memory, MiB", config.memory_mib);
}

void AddVariance(const ResolvedVariance& variance, Table* table) {
  table->Head("variance of predictions");
  table->Add("method", VarianceMethodName(variance.method));
  table->AddCount("features", variance.features);
  table->Add("bandwidth", Number(variance.bandwidth));
  table->Add("rows", WithCommas(variance.rows));
  table->Add("noise variance", Number(variance.noise_variance));
  table->Add("interval coverage", Number(variance.coverage));
  table->Add("interval factor", Number(variance.interval_factor));
  if (variance.method == VarianceMethod::kExact) {
    table->Add("predicted from",
               variance.serves_mean ? "this process's mean" : "the served learner");
  }
}

// Of the candidates, the one that is served.
std::string ServedLine(const std::vector<CandidateReport>& candidates) {
  for (const CandidateReport& c : candidates) {
    if (!c.served) continue;
    std::string line = absl::StrCat("bandwidth=", Number(c.bandwidth));
    if (c.step_constant > 0) absl::StrAppend(&line, " step_constant=", Number(c.step_constant));
    return absl::StrCat(line, " metric=", MetricOf(c));
  }
  return "";
}

// The inputs that count most, with their shares.
std::string RelevanceLine(const std::vector<double>& relevance) {
  std::vector<size_t> order(relevance.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t i, size_t j) { return relevance[i] > relevance[j]; });
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(order.size(), kMostShownNumbers); ++i) {
    parts.push_back(absl::StrFormat("%d (%.2g)", order[i], relevance[order[i]]));
  }
  return absl::StrCat(absl::StrJoin(parts, ", "),
                      order.size() > kMostShownNumbers ? Rest(order.size()) : "");
}

std::string FrequenciesLine(uint64_t bytes, uint64_t kept) {
  if (bytes == 0) return "";
  const auto size = [](uint64_t n) {
    return n < uint64_t{1} << 20 ? absl::StrFormat("%.1f KiB", static_cast<double>(n) / (1 << 10))
                                 : absl::StrFormat("%.1f MiB", static_cast<double>(n) / (1 << 20));
  };
  if (kept == bytes) return absl::StrCat(size(bytes), ", all kept");
  return absl::StrCat(size(kept), " of ", size(bytes),
                      " kept; the others are drawn again at each use (see --feature_cache_mib)");
}

void AddResolved(const ResolvedConfig& resolved, Table* table) {
  table->Head("chosen by the server");
  table->AddCount("dimension", resolved.dimension);
  table->Add("kernel", ComponentLine(resolved.kernel));
  table->Add("loss", ComponentLine(resolved.loss));
  table->Add("update rule", ComponentLine(resolved.update_rule));
  table->Add("labels", LabelsLine(resolved.labels));
  table->Add("standardized inputs", WithCommas(resolved.standardized_inputs));
  table->Add("input offsets", FirstNumbersLine(resolved.input_offsets));
  table->Add("input scales", FirstNumbersLine(resolved.input_scales));
  table->Add("target offset", NumbersLine(resolved.target_offsets));
  table->Add("target scale", NumbersLine(resolved.target_scales));
  if (resolved.loss.name == "novelty") table->Add("threshold", Number(resolved.threshold));
  table->Add("served learner", ServedLine(resolved.candidates));
  table->Add("inputs by relevance", RelevanceLine(resolved.input_relevance));
  table->Add("max features", MaxFeaturesText(resolved.max_features));
  table->AddCount("batch rows", resolved.batch_rows);
  table->Add("seed", absl::StrCat(resolved.seed));
  table->Add("serving", AveragingName(resolved.serving));
  table->Add("l2 penalty", Number(resolved.l2_penalty));
  AddCandidates(resolved.candidates, table);
  if (resolved.variance) AddVariance(*resolved.variance, table);
}

void AddValidation(const ValidationMetrics& metrics, Table* table) {
  table->Head("validation: each row predicted before it is learned");
  if (!metrics.total.values.empty()) {
    table->Add("", absl::StrFormat("%-12s %s", "recent", "since start"));
    for (const auto& [name, total] : metrics.total.values) {
      const auto recent = metrics.recent.values.find(name);
      table->Add(
          absl::StrReplaceAll(name, {{"_", " "}}),
          absl::StrFormat("%-12.6g %.6g",
                          recent == metrics.recent.values.end() ? 0 : recent->second, total));
    }
    table->Add("rows", WithCommas(metrics.rows));
    if (!metrics.recent.classes.empty()) table->Head("classes, recent rows");
    table->Lines(ClassesText(metrics.recent.classes));
    return;
  }
  table->Add("loss, recent", Number(metrics.recent_loss));
  table->Add("loss, mean", Number(metrics.mean_loss));
  table->Add("error rate, recent", absl::StrFormat("%.2f %%", 100 * metrics.recent_error_rate));
  table->Add("error rate, mean", absl::StrFormat("%.2f %%", 100 * metrics.mean_error_rate));
  table->Add("squared error, recent", Number(metrics.recent_squared_error));
  table->Add("squared error, mean", Number(metrics.mean_squared_error));
  table->Add("rows", WithCommas(metrics.rows));
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message, bool compact) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = !compact;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) return absl::StrCat("{\"error\": \"", std::string(status.message()), "\"}");
  return json;
}

std::string WithCommas(uint64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::string Number(double value) {
  for (int precision = 6; precision < 17; ++precision) {
    std::string text = absl::StrFormat("%.*g", precision, value);
    if (std::stod(text) == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

std::string PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kWarmingUp:
      return "WARMING_UP";
    case Phase::kLearning:
      return "LEARNING";
    case Phase::kFrozen:
      return "FROZEN";
    case Phase::kFailed:
      return "FAILED";
    case Phase::kUnspecified:
      break;
  }
  return "UNKNOWN";
}

std::string ClassesText(const std::vector<ClassMetrics>& classes) {
  if (classes.empty()) return "";
  const size_t shown = std::min(classes.size(), kMostShownLabels);
  size_t width = 5;
  for (size_t i = 0; i < shown; ++i) width = std::max(width, classes[i].label.size());
  std::string text = absl::StrFormat("  %-*s %10s %10s %10s %10s\n", static_cast<int>(width),
                                     "label", "weight", "precision", "recall", "f1");
  for (size_t i = 0; i < shown; ++i) {
    const ClassMetrics& metrics = classes[i];
    absl::StrAppendFormat(&text, "  %-*s %10.6g %10.4f %10.4f %10.4f\n", static_cast<int>(width),
                          metrics.label, metrics.weight, metrics.precision, metrics.recall,
                          metrics.f1);
  }
  if (shown < classes.size()) {
    absl::StrAppend(&text, "  ... (", classes.size(), " labels; --json lists them)\n");
  }
  return text;
}

std::string RecentText(const ValidationMetrics& metrics) {
  if (metrics.rows == 0) return "";
  const auto& values = metrics.recent.values;
  if (!values.empty()) {
    std::vector<std::string> parts;
    for (const Headline& headline : kHeadlines) {
      const auto found = values.find(headline.metric);
      if (found == values.end()) continue;
      parts.push_back(headline.percent
                          ? absl::StrFormat("%s %.2f %%", headline.words, 100 * found->second)
                          : absl::StrFormat("%s %.4g", headline.words, found->second));
    }
    return absl::StrJoin(parts, ", ");
  }
  if (metrics.mean_squared_error > 0) {
    return absl::StrFormat("loss %.4f, squared error %.4g", metrics.recent_loss,
                           metrics.recent_squared_error);
  }
  return absl::StrFormat("loss %.4f, error %.2f %%", metrics.recent_loss,
                         100 * metrics.recent_error_rate);
}

std::string StateLine(const ModelInfo& model) {
  std::string recent = model.validation ? RecentText(*model.validation) : "";
  return absl::StrCat(model.name, "  ", PhaseName(model.phase), "  step ", WithCommas(model.step),
                      "  features ", WithCommas(model.num_features), "  learned ",
                      WithCommas(model.rows_learned), "  pending ", WithCommas(model.rows_pending),
                      "  rejected ", WithCommas(model.rows_rejected), recent.empty() ? "" : "  ",
                      recent, model.warnings.empty() ? "" : "  (warnings: see describe)");
}

std::string DescribeText(const ModelInfo& model) {
  Table table;
  table.Head(absl::StrCat("model ", model.name));
  table.Add("uid", model.uid);
  table.Add("created", absl::FormatTime(absl::RFC3339_sec, model.create_time, absl::UTCTimeZone()));
  table.Head("state");
  table.Add("phase", PhaseName(model.phase));
  table.Add("failure", model.failure);
  for (const Warning& warning : model.warnings) table.Add("warning", warning.text);
  if (model.drift_reports != 0) table.Add("drift reports", WithCommas(model.drift_reports));
  table.Add("step", WithCommas(model.step));
  table.Add("features", WithCommas(model.num_features));
  table.Add("SIMD target", model.simd_target);
  table.Add("frequencies", FrequenciesLine(model.frequency_bytes, model.kept_frequency_bytes));
  table.Add("rows learned", WithCommas(model.rows_learned));
  table.Add("rows pending", WithCommas(model.rows_pending));
  table.Add("rows rejected", WithCommas(model.rows_rejected));
  table.Add("sequence", WithCommas(model.sequence));
  table.Add("fingerprint",
            model.fingerprint_step == model.step || model.fingerprint_step == 0
                ? model.fingerprint
                : absl::StrCat(model.fingerprint, " of step ", model.fingerprint_step));
  if (model.validation && model.validation->rows > 0) AddValidation(*model.validation, &table);
  if (model.resolved) AddResolved(*model.resolved, &table);
  AddConfig(model.config, &table);
  return table.Take();
}

}  // namespace kernelstream::client
