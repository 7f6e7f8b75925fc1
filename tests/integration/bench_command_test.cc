// `kernelstream bench`, run briefly against a whole server.
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/simd/simd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int exit_status;
  std::string text;
};

class BenchCommand : public ::testing::Test {
 protected:
  void Learn(const std::string& model, const v1::ModelConfig& config) {
    server_->Create(model, config);
    v1::UpdateRequest request;
    request.set_model(model);
    *request.mutable_matrix() = AsMatrix(NumberedSamples(1, 64), /*with_targets=*/true);
    v1::UpdateResponse response;
    ASSERT_TRUE(server_->Update(request, &response).ok());
    server_->WaitForSequence(model, 64);
  }

  Outcome Run(const std::string& arguments) const {
    const std::string command = absl::StrCat("'", KERNELSTREAM_BINARY, "' --address ",
                                             server_.address(), " ", arguments, " 2>&1");
    Outcome outcome;
    std::FILE* pipe = popen(command.c_str(), "r");
    char buffer[4096];
    for (size_t got = 0; (got = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
      outcome.text.append(buffer, got);
    }
    const int status = pclose(pipe);
    outcome.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }

  InProcessServer server_;
};

constexpr char kTiny[] = " --seconds 0.02 --repeats 2 --in-flight 5 --connections 2 --rows 20 ";

TEST_F(BenchCommand, MeasuresAModelAndLeavesItAsItIs) {
  Learn("m", SmallConfig("logistic"));
  const std::string before = server_->Get("m").state().fingerprint();
  Outcome run = Run(absl::StrCat("bench m", kTiny));
  EXPECT_EQ(run.exit_status, 0) << run.text;
  // 10 ms of calls are too few for p99.9.
  const std::string number = " +[0-9.,]+", none = " +-";
  for (const char* line :
       {"empty RPC", "Predict, 1 row", "empty RPC, 5 in flight", "Predict, 1 row, 5 in flight"}) {
    const char* const share = absl::StartsWith(line, "Predict") ? "±[0-9]+ % +[0-9]+ %" : "±";
    EXPECT_THAT(run.text,
                ContainsRegex(absl::StrCat("  ", line, number, number, none, number, " +", share)));
  }
  EXPECT_THAT(run.text, ContainsRegex("StreamPredict, 20 rows a request +[0-9,]+ +±"));
  EXPECT_THAT(run.text,
              AllOf(HasSubstr("seed=42"), HasSubstr("this machine: "),
                    HasSubstr(absl::StrCat("SIMD target ", ActiveSimdTarget(), "\n")),
                    HasSubstr("LEARNING"), HasSubstr("generated, each value from N"),
                    HasSubstr("times that of an empty RPC"), Not(HasSubstr("has learned"))));
  run = Run(absl::StrCat("--json bench m", kTiny));
  EXPECT_THAT(run.text, AllOf(Not(HasSubstr("\"p999Seconds\"")), HasSubstr("\"ofLimit\""),
                              HasSubstr("\"serverSimdTarget\""), HasSubstr("\"rowsPerSecond\""),
                              HasSubstr("\"rowsLearned\": 0"), Not(HasSubstr("streamUpdate"))));
  EXPECT_EQ(server_->Get("m").state().fingerprint(), before);
}

TEST_F(BenchCommand, UpdateSaysThatItChangesTheModel) {
  v1::ModelConfig quick = SmallConfig("softmax");
  quick.mutable_max_batch_delay()->set_seconds(0);
  Learn("m", quick);
  const Outcome run = Run(absl::StrCat("bench m --update", kTiny));
  EXPECT_EQ(run.exit_status, 0) << run.text;
  EXPECT_THAT(run.text, HasSubstr("--update changes model m"));
  EXPECT_THAT(run.text, ContainsRegex("StreamUpdate, rows learned +[0-9,]+ +±"));
  EXPECT_THAT(run.text, ContainsRegex("Predict, 1 row, while learning +[0-9.]+"));
  EXPECT_THAT(run.text, ContainsRegex("model m has learned [1-9][0-9,]* rows of this run"));
  EXPECT_GT(server_->Get("m").state().rows_learned(), 64u);
}

TEST_F(BenchCommand, TakesRowsThatTheModelTakes) {
  // Generated rows have to be positive for this kernel.
  v1::ModelConfig counts = SmallConfig("square");
  counts.mutable_kernel()->set_name("chi2");
  server_->Create("counts", counts);
  Outcome run = Run(absl::StrCat("bench counts", kTiny));
  EXPECT_EQ(run.exit_status, 0) << run.text;
  EXPECT_THAT(run.text, HasSubstr("the size of one from N(0, 1)"));

  v1::ModelConfig open = SmallConfig("square");
  open.mutable_input()->clear_dimension();
  server_->Create("open", open);
  run = Run(absl::StrCat("bench open", kTiny));
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.text, HasSubstr("give rows with --input"));
  const TempDir dir;
  const std::string file = dir.path() + "/rows.libsvm";
  std::ofstream(file) << "0 1:1.5 4:2\n0 2:1\n";
  run = Run(absl::StrCat("bench open --format libsvm --input ", file, kTiny));
  EXPECT_EQ(run.exit_status, 0) << run.text;
  EXPECT_THAT(run.text, HasSubstr("the first 2 of "));

  run = Run(absl::StrCat("bench none", kTiny));
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.text, HasSubstr("there is no model \"none\""));
}

TEST_F(BenchCommand, AnInterruptPrintsWhatThereIs) {
  Learn("m", SmallConfig("logistic"));
  std::FILE* pipe = popen(absl::StrCat("'", KERNELSTREAM_BINARY, "' --address ", server_.address(),
                                       " bench m --seconds 600 2>&1 & echo $!; wait $!")
                              .c_str(),
                          "r");
  char line[4096];
  ASSERT_NE(std::fgets(line, sizeof(line), pipe), nullptr);
  const pid_t pid = std::atoi(line);
  std::string text;
  bool interrupted = false;
  while (std::fgets(line, sizeof(line), pipe) != nullptr) {
    text += line;
    if (interrupted || !absl::StrContains(line, "per second")) continue;
    kill(pid, SIGINT);  // it is about to measure, for hours
    interrupted = true;
  }
  const int status = pclose(pipe);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 130) << text;
  EXPECT_THAT(text, AllOf(ContainsRegex("empty RPC +[0-9.]+"), HasSubstr("interrupted")));
}

}  // namespace
}  // namespace kernelstream::support
