// What a person should know about a stream reaches GetModel, the log and `kernelstream describe`.
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Full batches, and more than the 256 after warm-up that a warning takes.
constexpr uint64_t kRows = 400;
constexpr uint64_t kRowsPerRequest = 400;
// As many as a change takes to be one: the row at which streams that change do so.
constexpr uint64_t kChange = 2000;

struct Stream {
  const char* model;
  const char* loss;
  std::function<v1::Sample(uint64_t number)> row;
  v1::Warning::Kind kind;
  const char* event;
  const char* text;
  uint64_t rows = kRows;
  std::function<void(v1::ModelConfig&)> configure = [](v1::ModelConfig&) {};
};

// `row` with another target.
v1::Sample WithTarget(v1::Sample row, double target) {
  row.set_value(target);
  return row;
}

std::vector<Stream> Streams() {
  return {{"alike", "logistic", [](uint64_t i) { return WithTarget(NumberedSample(i), 1); },
           v1::Warning::KIND_ONE_LABEL, "one_label", "rows so far have the label \"1\""},
          {"flat", "square", [](uint64_t i) { return WithTarget(NumberedSample(i), 3.5); },
           v1::Warning::KIND_CONSTANT_TARGET, "constant_target",
           "rows so far have the same target, 3.5"},
          {"still", "square",
           [](uint64_t i) {
             return DenseSample({2, 5}, static_cast<double>(i % 7));
           },
           v1::Warning::KIND_CONSTANT_INPUTS, "constant_inputs",
           "every input column was constant in the first 64 rows"},
          {"good", "logistic", &NumberedSample, v1::Warning::KIND_UNSPECIFIED, "", ""}};
}

// Warnings that do not go with one row.
std::vector<Stream> StreamsThatMislead() {
  const auto one_learner = [](v1::ModelConfig& config) {
    config.mutable_candidates()->add_bandwidth_scales(1);
    config.mutable_candidates()->add_step_constants(1);
    config.mutable_replay()->set_ratio(0);
    config.set_input_metric(v1::INPUT_METRIC_OFF);
  };
  return {
      {"changed", "square",
       [](uint64_t i) {
         const double target = NumberedSample(i).value();
         return WithTarget(NumberedSample(i), i <= kChange ? target : 1 - target);
       },
       v1::Warning::KIND_DRIFT, "drift", "errors rose suddenly after row 2", kChange + 400,
       one_learner},
      {"sorted", "logistic",
       [](uint64_t i) { return WithTarget(NumberedSample(i), i <= kChange ? 0 : 1); },
       v1::Warning::KIND_ORDERED, "ordered_stream", "sorted by label", kChange + 400, one_learner},
      {"wild", "square", &NumberedSample, v1::Warning::KIND_DIVERGED, "diverged",
       "takes steps that are too large", kRows,
       [](v1::ModelConfig& config) {
         v1::Component& rule = *config.mutable_update_rule();
         rule.set_name("newest_block");
         (*rule.mutable_parameters())["schedule"] = 2;
         (*rule.mutable_parameters())["step_size"] = 1e6;
       }},
      {"wide", "square",
       [](uint64_t i) {
         return DenseSample(std::vector<float>(513, static_cast<float>(i % 5)),
                            static_cast<double>(i % 7));
       },
       v1::Warning::KIND_NO_METRIC, "no_metric", "the rows have 513 inputs", 16,
       [](v1::ModelConfig& config) {
         config.mutable_input()->set_dimension(0);
         config.set_input_metric(v1::INPUT_METRIC_FULL);
       }},
      {"far", "square",
       [](uint64_t i) { return WithTarget(NumberedSample(i), 1000 + NumberedSample(i).value()); },
       v1::Warning::KIND_FAR_TARGETS, "far_targets", "create the model again with other", kRows,
       [](v1::ModelConfig& config) { config.add_target_scales(1); }}};
}

v1::ModelConfig ConfigOf(const Stream& stream) {
  v1::ModelConfig config = SmallConfig(stream.loss);
  stream.configure(config);
  return config;
}

void Send(Connection& server, const Stream& stream, uint64_t rows) {
  for (uint64_t first = 1; first <= rows; first += kRowsPerRequest) {
    v1::UpdateRequest request;
    request.set_model(stream.model);
    request.set_ack(v1::ACK_LEVEL_APPLIED);
    for (uint64_t i = first; i < first + kRowsPerRequest && i <= rows; ++i) {
      *request.add_samples() = stream.row(i);
    }
    v1::UpdateResponse response;
    const grpc::Status status = server.Update(request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
}

// Empty if there is no warning of that kind.
std::string TextOf(const v1::ModelState& state, v1::Warning::Kind kind) {
  for (const v1::Warning& warning : state.warnings()) {
    if (warning.kind() == kind) return warning.text();
  }
  return "";
}

std::string Describe(const std::string& address, const std::string& model) {
  const std::string command =
      absl::StrCat("'", KERNELSTREAM_BINARY, "' --address ", address, " describe ", model);
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (size_t read = 0; (read = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    text.append(buffer, read);
  }
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

TEST(Warnings, ReachTheModelDescribeAndTheLog) {
  TempDir dir;
  ServerProcess process(dir.path() + "/data");
  const std::string address = process.WaitUntilListening();
  Connection server(address);
  server.WaitUntilServing();
  std::vector<Stream> streams = Streams();
  for (const Stream& stream : StreamsThatMislead()) streams.push_back(stream);
  for (const Stream& stream : streams) {
    SCOPED_TRACE(stream.model);
    server.Create(stream.model, ConfigOf(stream));
    Send(server, stream, stream.rows);
    const v1::ModelState state = server.Get(stream.model).state();
    const std::string described = Describe(address, stream.model);
    if (*stream.event == '\0') {
      EXPECT_THAT(state.warnings(), IsEmpty());
      EXPECT_THAT(described, Not(HasSubstr("warning")));
      continue;
    }
    const std::string text = TextOf(state, stream.kind);
    EXPECT_THAT(text, HasSubstr(stream.text));
    EXPECT_THAT(described, ContainsRegex("warning +"));
    EXPECT_THAT(described, HasSubstr(text));
  }
  process.Signal(SIGTERM);
  EXPECT_EQ(process.WaitForExit(), 0);
  const std::vector<std::string> lines = absl::StrSplit(process.output(), '\n');
  for (const Stream& stream : streams) {
    const auto of_model = HasSubstr(absl::StrCat("model=", stream.model, " "));
    if (*stream.event == '\0') {
      EXPECT_THAT(lines, Not(Contains(AllOf(HasSubstr(" WARN "), of_model))));
      continue;
    }
    // Once, not with every snapshot.
    EXPECT_THAT(lines, Contains(AllOf(HasSubstr(" WARN "), of_model,
                                      HasSubstr(absl::StrCat("event=", stream.event, " "))))
                           .Times(1));
  }
}

// The line of that model among the metrics of a running server; empty if there is none.
std::string ExportedDriftReports(const ServerProcess& process, const std::string& model) {
  const std::string output = process.output();
  constexpr char kPort[] = " metrics_port=";
  const size_t port = output.find(kPort);
  if (port == std::string::npos) return "";
  const std::string text = ReadMetrics(std::atoi(output.c_str() + port + sizeof(kPort) - 1));
  const std::string start =
      absl::StrCat("kernelstream_drift_reports_total{model=\"", model, "\"} ");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, start)) {
      return std::string(absl::StripTrailingAsciiWhitespace(line));
    }
  }
  return "";
}

TEST(Drift, IsCountedInTheMetricsOncePerReportSinceTheStart) {
  TempDir dir;
  const std::vector<Stream> misleading = StreamsThatMislead();
  const Stream& changed = misleading.front();
  ASSERT_EQ(changed.kind, v1::Warning::KIND_DRIFT);
  const std::vector<std::string> flags = {"--metrics_listen=127.0.0.1:0"};
  uint64_t reports = 0;
  {
    ServerProcess process(dir.path() + "/data", flags);
    Connection server(process.WaitUntilListening());
    server.WaitUntilServing();
    server.Create(changed.model, ConfigOf(changed));
    server.Create("good", SmallConfig("square"));
    Send(server, changed, kChange);
    EXPECT_EQ(ExportedDriftReports(process, changed.model), "0");
    Stream rest = changed;
    rest.row = [&](uint64_t i) { return changed.row(kChange + i); };
    Send(server, rest, changed.rows - kChange);
    reports = server.Get(changed.model).state().drift_reports();
    EXPECT_EQ(reports, 1u);
    EXPECT_EQ(ExportedDriftReports(process, changed.model), "1");
    EXPECT_EQ(ExportedDriftReports(process, "good"), "0");
    process.Signal(SIGTERM);
    EXPECT_EQ(process.WaitForExit(), 0);
  }
  // A counter is of one process; the model's state says what there was before.
  ServerProcess process(dir.path() + "/data", flags);
  Connection server(process.WaitUntilListening());
  server.WaitUntilServing();
  EXPECT_EQ(server.Get(changed.model).state().drift_reports(), reports);
  EXPECT_EQ(ExportedDriftReports(process, changed.model), "0");
}

TEST(Warnings, GoWithTheFirstRowThatDiffers) {
  InProcessServer server;
  for (Stream stream : Streams()) {
    SCOPED_TRACE(stream.model);
    server->Create(stream.model, SmallConfig(stream.loss));
    Send(*server.operator->(), stream, kRows);
    stream.row = [](uint64_t i) {
      return WithTarget(NumberedSample(i), static_cast<double>(i % 2));
    };
    Send(*server.operator->(), stream, 16);
    // What was chosen from constant inputs stays chosen.
    const bool stays = stream.kind == v1::Warning::KIND_CONSTANT_INPUTS;
    EXPECT_EQ(!TextOf(server->Get(stream.model).state(), stream.kind).empty(), stays);
  }
}

}  // namespace
}  // namespace kernelstream::support
