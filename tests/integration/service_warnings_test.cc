// What a person should know about a stream reaches GetModel, the log and `kernelstream describe`.
#include <signal.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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

struct Stream {
  const char* model;
  const char* loss;
  std::function<v1::Sample(uint64_t number)> row;
  v1::Warning::Kind kind;
  const char* event;
  const char* text;
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

void Send(Connection& server, const Stream& stream, uint64_t rows) {
  v1::UpdateRequest request;
  request.set_model(stream.model);
  for (uint64_t i = 1; i <= rows; ++i) *request.add_samples() = stream.row(i);
  v1::UpdateResponse response;
  ASSERT_TRUE(server.Update(request, &response).ok());
  server.WaitForSequence(stream.model, response.sequence());
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
  for (const Stream& stream : Streams()) {
    SCOPED_TRACE(stream.model);
    server.Create(stream.model, SmallConfig(stream.loss));
    Send(server, stream, kRows);
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
  for (const Stream& stream : Streams()) {
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
