// The `kernelstream` command, run as a person runs it, against the fake server.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_server.h"

namespace kernelstream::client {
namespace {

using support::FaultPoint;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct Outcome {
  int exit_status;
  std::string out;
  std::string err;
};

class CommandLine : public ::testing::Test {
 protected:
  CommandLine() {
    std::string pattern = ::testing::TempDir() + "/kernelstream_cli_XXXXXX";
    dir_ = mkdtemp(pattern.data());
  }
  ~CommandLine() override { std::system(absl::StrCat("rm -r '", dir_, "'").c_str()); }

  std::string File(const std::string& name, const std::string& text) const {
    const std::string path = absl::StrCat(dir_, "/", name);
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::string ReadFile(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

  // Runs through a shell, so arguments may be quoted and redirected. Standard input is empty unless
  // given.
  Outcome RunRaw(const std::string& arguments) const {
    const std::string out = dir_ + "/out";
    const std::string err = dir_ + "/err";
    const std::string command =
        absl::StrCat("'", KERNELSTREAM_BINARY, "' ", arguments, " >'", out, "' 2>'", err, "'",
                     arguments.find('<') == std::string::npos ? " </dev/null" : "");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(out), ReadFile(err)};
  }
  Outcome Run(const std::string& arguments) const {
    return RunRaw(absl::StrCat("--address ", server_.address(), " ", arguments));
  }

  support::FakeServer server_;
  std::string dir_;
};

TEST_F(CommandLine, CreatesListsDescribesAndDeletes) {
  Outcome run = Run(
      "create m --loss logistic --kernel gaussian --set bandwidth=0.5 --max-features 100 --seed 7 "
      "--max-batch-delay 20ms --labels no,yes --standardize off --averaging last --warmup-rows 3 "
      "--when-full freeze --l2-penalty 0.001 --update-rule newest_block --rule-set theta=2 "
      "--bandwidth-scales 0.5,1 --input-metric off --replay 2 --replay-rows 500 "
      "--replay-order ordered --memory-mib 64 --input-offsets 1,2 --input-scales 3,4.5 "
      "--target-offsets 7 --target-scales 8.25");
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("created model m"));
  EXPECT_THAT(Run("list").out, StartsWith("m  WARMING_UP"));
  run = Run("describe m");
  for (const char* part :
       {"gaussian bandwidth=0.5", "no, yes", "newest_block theta=2", "20ms", "freeze", "0.5, 1",
        "input offsets          1, 2\n", "input scales           3, 4.5\n",
        "target offsets         7\n", "target scales          8.25\n",
        "2 per new row, of 500 rows, ordered", "WARMING_UP", "fingerprint", "2023-11-14"}) {
    EXPECT_THAT(run.out, HasSubstr(part));
  }
  const std::string json = Run("describe m --json").out;
  EXPECT_THAT(json, HasSubstr("\"maxFeatures\": 100"));
  EXPECT_THAT(json, HasSubstr("\"targetScales\": [\n   8.25"));
  run = Run("delete m");
  EXPECT_NE(run.exit_status, 0);
  EXPECT_THAT(run.err, HasSubstr("--yes"));
  EXPECT_EQ(Run("delete m --yes").exit_status, 0);
  run = Run("describe m");
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.err, StartsWith("kernelstream: no model \"m\""));
}

TEST_F(CommandLine, DescribeAndWatchPrintTheMetricsOfTheTask) {
  server_.AddModel("m");
  ASSERT_EQ(Run("update m --input " + File("rows.csv", "a,y\n1,1\n2,1\n")).exit_status, 0);
  const std::string described = Run("describe m").out;
  EXPECT_THAT(described, ContainsRegex("error rate +0.125 +0.125"));
  EXPECT_THAT(described, ContainsRegex("auc +0.9 +0.9"));
  EXPECT_THAT(described, ContainsRegex("yes +0 +0.0000 +0.0000 +0.7500"));
  EXPECT_THAT(described, Not(HasSubstr("squared")));
  EXPECT_THAT(described, ContainsRegex("target offset +0.5, -3\n"));
  EXPECT_THAT(described, ContainsRegex("target scale +1, 6\n"));
  EXPECT_THAT(described, HasSubstr("0, 1, 2, 3, 4, 5, 6, 7, ... (10 in all; --json shows them)\n"));
  EXPECT_THAT(described,
              ContainsRegex("served learner +bandwidth=1.25 step_constant=0.1 metric=diagonal"));
  EXPECT_THAT(described, ContainsRegex("frequencies +512.0 KiB of 3.0 MiB kept; "));
  // The largest first, equal ones by number.
  EXPECT_THAT(
      described,
      ContainsRegex("inputs by relevance +3 .1., 7 .0.38., 2 .0.25., 6 .0.25., 1 .0.12., "));
  EXPECT_THAT(Run("describe m --json").out, HasSubstr("\"servedBandwidth\": 1.25"));
  EXPECT_THAT(Run("watch m --count 1").out, HasSubstr("loss 0.25, error 12.50 %, auc 0.9"));
}

TEST_F(CommandLine, ConfigFileIsOverriddenByFlags) {
  const std::string config =
      File("model.textproto", "loss { name: 'square' } max_features: 10 seed: 5 batch_rows: 8\n");
  EXPECT_EQ(Run("create m --max-features 20 --config " + config).exit_status, 0);
  const std::string described = Run("--json describe m").out;
  EXPECT_THAT(described, HasSubstr("\"name\": \"square\""));
  EXPECT_THAT(described, HasSubstr("\"maxFeatures\": 20"));
  EXPECT_THAT(described, HasSubstr("\"batchRows\": 8"));
  const Outcome bad =
      Run("create n --config " + File("bad.textproto", "loss { name: 'square' }\nsed: 5\n"));
  EXPECT_EQ(bad.exit_status, 1);
  EXPECT_THAT(bad.err, HasSubstr("line 2"));
  EXPECT_THAT(bad.err, HasSubstr("sed"));
}

TEST_F(CommandLine, UsageErrorsSayWhatIsKnown) {
  Outcome run = Run("updat m");
  EXPECT_EQ(run.exit_status, 2);
  EXPECT_THAT(run.err, HasSubstr("there is no command \"updat\"; did you mean update?"));
  EXPECT_THAT(run.err, HasSubstr("create, update, predict"));
  run = Run("create m --losss logistic");
  EXPECT_EQ(run.exit_status, 2);
  EXPECT_THAT(run.err, HasSubstr("there is no option --losss; did you mean --loss?"));
  EXPECT_THAT(run.err, HasSubstr("kernelstream create --help"));
  EXPECT_THAT(Run("create m --los=logistic").err,
              HasSubstr("no option --los; did you mean --loss?"));
  EXPECT_THAT(Run("update m --inptu a.csv").err,
              HasSubstr("no option --inptu; did you mean --input?"));
  EXPECT_THAT(Run("list --jsn").err, HasSubstr("no option --jsn; did you mean --json?"));
  run = Run("create m --loss logistic --zzz");
  EXPECT_THAT(run.err, StartsWith("kernelstream: there is no option --zzz; kernelstream create"));
  EXPECT_THAT(Run("update m").err, HasSubstr("--input is required"));
  EXPECT_EQ(RunRaw("").exit_status, 2);
  EXPECT_EQ(RunRaw("--help").exit_status, 0);
  EXPECT_EQ(RunRaw("update --help").exit_status, 0);
  run = Run("create m");
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.err, HasSubstr("add --loss"));
  EXPECT_THAT(Run("create m --loss logistic --set bandwidth").err, HasSubstr("name=number"));
  EXPECT_THAT(Run("create m --loss hinges").err, HasSubstr("known: logistic, square"));
}

TEST_F(CommandLine, AFlagThatTakesAWordListsThem) {
  const std::string file = " --input " + File("rows.csv", "a,y\n1,1\n");
  Outcome run = Run("update m --format xml" + file);
  EXPECT_EQ(run.exit_status, 2);
  EXPECT_THAT(run.err, StartsWith("kernelstream: --format: expected csv, libsvm or jsonl; got "
                                  "\"xml\"; kernelstream update --help"));
  EXPECT_THAT(Run("update m --format 1" + file).err, HasSubstr("expected csv, libsvm or jsonl"));
  EXPECT_THAT(Run("update m --on-bad-line go" + file).err, HasSubstr("expected stop or skip"));
  EXPECT_THAT(Run("predict m --outputs score,foo" + file).err,
              HasSubstr("--outputs: expected score, label, probabilities, value, variance or "
                        "prediction_interval; got \"foo\""));
  for (const std::string numbers : {"''", "1,,2", "1,two"}) {
    run = Run("create m --loss square --input-scales " + numbers);
    EXPECT_EQ(run.exit_status, 2);
    EXPECT_THAT(run.err, HasSubstr("needs a number between any two commas"));
  }
  EXPECT_THAT(Run("create m --loss logistic --averaging mean").err,
              HasSubstr("expected auto, last, polynomial or uniform"));
}

TEST_F(CommandLine, UnreachableServerIsNamed) {
  const Outcome run = RunRaw("--address 127.0.0.1:1 --timeout 50ms list");
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.err, StartsWith("kernelstream: no kernelstream server answers at 127.0.0.1:1"));
  EXPECT_THAT(run.err, HasSubstr("KERNELSTREAM_ADDRESS"));
}

TEST_F(CommandLine, AddressComesFromTheEnvironment) {
  server_.AddModel("m");
  setenv("KERNELSTREAM_ADDRESS", server_.address().c_str(), 1);
  EXPECT_THAT(RunRaw("list").out, StartsWith("m  "));
  unsetenv("KERNELSTREAM_ADDRESS");
}

TEST_F(CommandLine, UpdateLearnsAFileAndSumsUp) {
  server_.AddModel("m");
  const std::string file = File("rows.csv", "a,b,y\n1,2,1\n3,4,-1\n5,6,1\n");
  const Outcome run = Run("update m --input " + file);
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("rows: 3 sent, 3 accepted, 0 rejected"));
  EXPECT_THAT(run.out, HasSubstr("loss 0.25, error 12.50 %"));
  EXPECT_EQ(server_.Log("m").size(), 3u);
  const Outcome json = Run("--json update m --input " + file);
  EXPECT_THAT(json.out, HasSubstr("\"rowsAccepted\": 3"));
  EXPECT_THAT(json.out, HasSubstr("\"ok\": true"));
}

TEST_F(CommandLine, UpdateReadsStandardInput) {
  server_.AddModel("m");
  const std::string file = File("rows.libsvm", "+1 1:1 3:2\n-1 2:1\n");
  EXPECT_EQ(Run("update m --input - --format libsvm <" + file).exit_status, 0);
  EXPECT_EQ(server_.Log("m")[0].sample.features().sparse().indices(1), 2u);
}

TEST_F(CommandLine, RejectedRowsAreListedWithTheirLines) {
  server_.AddModel("m");
  std::string text = "{\"features\": [1, 2], \"target\": 1}\n\n";
  for (int i = 0; i < 25; ++i) text += "{\"features\": [1], \"target\": 1}\n";
  const Outcome run = Run("update m --format jsonl --input " + File("rows.jsonl", text));
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.err, HasSubstr("line 3 was rejected: takes 2 values per row"));
  EXPECT_THAT(run.err, HasSubstr("line 22 was rejected"));
  EXPECT_THAT(run.err, Not(HasSubstr("line 23 was rejected")));
  EXPECT_THAT(run.err, HasSubstr("and 5 more"));
  EXPECT_THAT(run.out, HasSubstr("1 accepted, 25 rejected"));
}

TEST_F(CommandLine, BadLineStopsOrIsSkipped) {
  server_.AddModel("m");
  const std::string file = File("rows.csv", "a,y\n1,1\nred,1\n3,1\n");
  Outcome run = Run("update m --producer p --input " + file);
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.err, HasSubstr("line 3, column \"a\": \"red\" is not a number"));
  EXPECT_EQ(server_.Log("m").size(), 1u);
  run = Run("update m --producer p --on-bad-line skip --input " + file);
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.out, HasSubstr("1 sent, 1 accepted, 0 rejected, 1 bad lines, 1 logged before"));
  EXPECT_EQ(server_.Log("m").size(), 2u);
}

TEST_F(CommandLine, AnUpdateThatFailsBeforeItsFirstRowTellsOfTheModelAsItIs) {
  server_.AddModel("m");
  ASSERT_EQ(Run("update m --input " + File("rows.csv", "a,y\n1,1\n2,1\n3,-1\n")).exit_status, 0);
  const std::string state = absl::StrCat("model: step ", server_.Log("m").size(), ", ");
  const std::string bad = File("bad.csv", "a,y\nred,1\n");
  Outcome run = Run("update m --input " + bad);
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.err, HasSubstr("line 2, column \"a\""));
  EXPECT_THAT(run.out, HasSubstr(state));
  // The stream and the model are gone: nothing is known of it.
  server_.Inject(FaultPoint::kBeforeLog, 0, grpc::StatusCode::NOT_FOUND);
  run = Run("update m --input " + File("one.csv", "a,y\n1,1\n"));
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.out, HasSubstr("0 accepted"));
  EXPECT_THAT(run.out, Not(HasSubstr("model: step")));
  server_.Inject(FaultPoint::kBeforeLog, 0, grpc::StatusCode::NOT_FOUND);
  run = Run("--json update m --input " + File("one.csv", "a,y\n1,1\n"));
  EXPECT_THAT(run.out, Not(HasSubstr("\"step\"")));
}

TEST_F(CommandLine, AFileWithoutARowIsAnError) {
  server_.AddModel("m");
  ASSERT_EQ(Run("update m --input " + File("rows.csv", "a,y\n1,1\n")).exit_status, 0);
  const std::string header = File("header.csv", "a,y\n");
  Outcome run = Run("update m --input " + header);
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.err, HasSubstr("header.csv has no rows; nothing was learned"));
  EXPECT_THAT(run.out, HasSubstr("model: step 1, "));
  run = Run("update m --format libsvm --input - <" + File("empty", ""));
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_THAT(run.err, HasSubstr("standard input has no rows"));
  EXPECT_THAT(Run("--json update m --input " + header).out, HasSubstr("\"ok\": false"));
}

TEST_F(CommandLine, AModelThatTakesNoMoreRowsIsSummedUpWithoutACommandToGoOn) {
  server_.AddModel("m");
  const std::string file = File("rows.csv", "a,y\n1,1\n2,-1\n3,1\n");
  for (const std::string flags : {"", "--no-wait-applied "}) {
    server_.Inject(FaultPoint::kBeforeLog, 2, grpc::StatusCode::FAILED_PRECONDITION);
    Outcome run = Run("update m --batch 1 " + flags + "--input " + file);
    EXPECT_EQ(run.exit_status, 1);
    EXPECT_THAT(run.out, HasSubstr("3 sent, 2 accepted, 0 rejected"));
    EXPECT_THAT(run.out, Not(HasSubstr("model: step 0, 0 features")));
    EXPECT_THAT(run.err, HasSubstr("scripted failure"));
    EXPECT_THAT(run.err, Not(HasSubstr("to go on")));
    server_.Inject(FaultPoint::kBeforeLog, 0, grpc::StatusCode::FAILED_PRECONDITION);
    run = Run("update m " + flags + "--input " + file);
    EXPECT_THAT(run.out, HasSubstr("0 accepted"));
    EXPECT_THAT(run.out, Not(HasSubstr("model: step 0, 0 features")));
  }
}

TEST_F(CommandLine, TargetsFollowTheLossOfTheModel) {
  server_.AddModel("several", "square");
  const std::string table = File("rows.csv", "p,a,b,q\n1,2,3,4\n");
  EXPECT_EQ(Run("update several --target q,p --input " + table).exit_status, 0);
  ASSERT_EQ(server_.Log("several").size(), 1u);
  EXPECT_THAT(server_.Log("several")[0].sample.vector().values(), ::testing::ElementsAre(4, 1));

  server_.AddModel("odd", "novelty");
  const Outcome run = Run("update odd --input " + File("bare.csv", "a,b,y\n1,2,3\n"));
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("the column \"y\" is taken for a target and left out"));
  ASSERT_EQ(server_.Log("odd").size(), 1u);
  EXPECT_EQ(server_.Log("odd")[0].sample.target_case(), v1::Sample::TARGET_NOT_SET);
  EXPECT_EQ(server_.Log("odd")[0].sample.features().dense().values_size(), 2);
  EXPECT_EQ(Run("evaluate odd --input " + File("more.csv", "a,b\n1,2\n")).exit_status, 0);

  server_.AddModel("ratio", "density_ratio");
  EXPECT_EQ(Run("update ratio --target from --input " +
                File("two.csv", "a,b,from\n1,2,numerator\n3,4,0\n"))
                .exit_status,
            0);
  ASSERT_EQ(server_.Log("ratio").size(), 2u);
  EXPECT_EQ(server_.Log("ratio")[0].sample.population(), v1::POPULATION_NUMERATOR);
  EXPECT_EQ(server_.Log("ratio")[1].sample.population(), v1::POPULATION_DENOMINATOR);
}

TEST_F(CommandLine, ProducerResumesWhereItLeftOff) {
  server_.AddModel("m");
  const std::string file = File("rows.csv", "a,y\n1,1\n2,1\n3,1\n4,1\n");
  EXPECT_EQ(Run("update m --producer p --limit 3 --input " + file).exit_status, 0);
  EXPECT_EQ(server_.Log("m").size(), 3u);
  const Outcome run = Run("update m --producer p --input " + file);
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("3 rows of producer p are logged already"));
  const auto log = server_.Log("m");
  ASSERT_EQ(log.size(), 4u);
  EXPECT_EQ(log[3].sample.features().dense().values(0), 4);
  EXPECT_EQ(Run("update m --producer p --input " + file).exit_status, 0);
  EXPECT_EQ(server_.Log("m").size(), 4u);
}

TEST_F(CommandLine, UpdateBridgesALostConnection) {
  server_.AddModel("m");
  server_.Inject(FaultPoint::kAfterLog);
  const Outcome run = Run("update m --input " + File("rows.csv", "a,y\n1,1\n2,1\n"));
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("connection lost, trying again"));
  EXPECT_EQ(server_.Log("m").size(), 2u);
}

TEST_F(CommandLine, InterruptSaysWhereToResume) {
  server_.AddModel("m");
  int input[2];
  ASSERT_EQ(pipe2(input, O_CLOEXEC), 0);
  const std::string err = dir_ + "/err";
  const std::string address = server_.address();
  const pid_t child = fork();
  if (child == 0) {
    dup2(input[0], STDIN_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    execl(KERNELSTREAM_BINARY, "kernelstream", "--address", address.c_str(), "update", "m",
          "--producer", "p", "--batch", "1", "--input", "-", nullptr);
    _exit(127);
  }
  const std::string rows = "a,y\n1,1\n";
  ASSERT_EQ(write(input[1], rows.data(), rows.size()), static_cast<ssize_t>(rows.size()));
  server_.AwaitRows("m", 1);
  kill(child, SIGINT);
  close(input[1]);
  close(input[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_THAT(ReadFile(err), HasSubstr("resume with: kernelstream update m"));
  EXPECT_THAT(ReadFile(err), HasSubstr("--producer p"));
  EXPECT_EQ(server_.Log("m").size(), 1u);
}

TEST_F(CommandLine, PredictWritesCsvAndJsonLines) {
  server_.AddModel("m");
  const std::string file = File("rows.csv", "a,b\n1,2\n3,-4\n");
  Outcome run = Run("predict m --input " + file);
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_EQ(run.out, "score,label\n3,1\n-1,-1\n");
  run = Run("predict m --outputs score,label,probabilities --batch 1 --input " + file);
  EXPECT_THAT(run.out, StartsWith("score,label,probability_-1,probability_1\n3,1,0.04"));
  run = Run("--json predict m --input " + file);
  EXPECT_THAT(run.out, StartsWith("{\"scores\":[3],\"label\":\"1\""));
  const std::string output = dir_ + "/predictions.csv";
  EXPECT_THAT(Run("predict m --input " + file + " --output " + output).out, IsEmpty());
  EXPECT_EQ(ReadFile(output), "score,label\n3,1\n-1,-1\n");
  EXPECT_EQ(Run("predict m --input " + file + " --output /dev/full").exit_status, 1);
}

TEST_F(CommandLine, PredictKeepsTheOrderOfAFileOverABrokenConnection) {
  server_.AddModel("m");
  std::string rows = "a\n", expected = "score,label\n";
  for (int i = 1; i <= 100; ++i) {
    absl::StrAppend(&rows, i, "\n");
    absl::StrAppend(&expected, i, ",1\n");
  }
  server_.Inject(FaultPoint::kBeforeLog, 5);
  server_.Inject(FaultPoint::kAfterAck, 17, grpc::StatusCode::OK);
  const Outcome run = Run("predict m --batch 3 --input " + File("rows.csv", rows));
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_EQ(run.out, expected);
  EXPECT_EQ(server_.faults_left(), 0u);
}

TEST_F(CommandLine, PredictNamesTheLineAfterTheAnswersToThoseBefore) {
  server_.AddModel("m");
  server_.Inject(FaultPoint::kBeforeLog, 2, grpc::StatusCode::INVALID_ARGUMENT);
  Outcome run = Run("predict m --batch 2 --input " + File("rows.csv", "a\n1\n2\n3\n4\n5\n6\n7\n"));
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_EQ(run.out, "score,label\n1,1\n2,1\n3,1\n4,1\n");
  EXPECT_THAT(run.err, HasSubstr("rows from line 6 on"));
  run = Run("predict m --batch 2 --input " + File("bad.csv", "a\n1\n2\n3\nx\n5\n"));
  EXPECT_EQ(run.exit_status, 1);
  EXPECT_EQ(run.out, "score,label\n1,1\n2,1\n");
  EXPECT_THAT(run.err, HasSubstr("line 5"));
}

TEST_F(CommandLine, PredictLeavesOutTheTargetTheModelWasTaughtWith) {
  server_.AddModel("m", "square");
  const std::string file = File("rows.csv", "a,b,price\n1,2,30\n");
  ASSERT_EQ(Run("update m --input " + file).exit_status, 0);
  EXPECT_EQ(Run("predict m --input " + file).out, "score,value\n3,6\n");
  EXPECT_EQ(Run("predict m --input " + File("bare.csv", "a,b\n1,2\n")).out, "score,value\n3,6\n");
  const std::string two = File("two.csv", "a,b\n1,2\n9,9\n");
  EXPECT_EQ(Run("predict m --variance --input " + two).out,
            "score,value,variance,interval_low,interval_high\n3,6,0.25,5,7\n18,36,,35,37\n");
  EXPECT_EQ(Run("predict m --outputs value,prediction_interval --input " + two).out,
            "score,value,interval_low,interval_high\n3,6,5,7\n18,36,35,37\n");
}

TEST_F(CommandLine, EvaluatePrintsMetrics) {
  server_.AddModel("m");
  const std::string file = File("rows.csv", "a,y\n1,1\n-1,1\n");
  const Outcome run = Run("evaluate m --input " + file);
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("error_rate 0.5"));
  EXPECT_THAT(Run("evaluate m --json --input " + file).out, HasSubstr("\"error_rate\": 0.5"));
  EXPECT_THAT(Run("evaluate m --target price --input " + file).err,
              HasSubstr("predict works without"));
}

TEST_F(CommandLine, WatchPrintsAsManyLinesAsAsked) {
  server_.AddModel("m");
  const Outcome run = Run("watch m --count 2 --interval 1ms");
  EXPECT_EQ(run.exit_status, 0);
  const std::vector<std::string> lines = absl::StrSplit(run.out, '\n', absl::SkipEmpty());
  EXPECT_EQ(lines.size(), 2u);
  EXPECT_THAT(Run("--json watch m --count 1").out, HasSubstr("\"phase\":\"PHASE_LEARNING\""));
}

TEST_F(CommandLine, CatalogueListsPartsAndParameters) {
  const std::string text = Run("kernels").out;
  EXPECT_THAT(text, HasSubstr("bandwidth (1e-06 to 1e+06, default: chosen"));
  EXPECT_THAT(text, HasSubstr("  inputs: any\n"));
  EXPECT_THAT(Run("kernels --json").out, HasSubstr("\"inputs\": \"any\""));
  EXPECT_THAT(Run("losses").out, HasSubstr("square"));
  EXPECT_THAT(Run("losses --json").out, HasSubstr("\"name\": \"logistic\""));
  EXPECT_THAT(Run("losses square").out, Not(HasSubstr("logistic")));
  EXPECT_THAT(Run("samplers").out, HasSubstr("  kernels: gaussian, matern\n"));
  EXPECT_THAT(Run("samplers --json").out, HasSubstr("\"matern\""));
  const Outcome unknown = Run("losses squares");
  EXPECT_EQ(unknown.exit_status, 1);
  EXPECT_THAT(unknown.err, HasSubstr("unknown loss \"squares\"; known: logistic, square"));
}

TEST_F(CommandLine, CatalogueIsATableInMarkdown) {
  EXPECT_EQ(Run("kernels --markdown").out,
            "| kernel | k(x, x') | inputs | parameters (default) |\n"
            "|---|---|---|---|\n"
            "| `gaussian` | exp(-\\|x - x'\\|^2 / (2 bandwidth^2)) | any "
            "| `bandwidth` (from the data) |\n");
  EXPECT_EQ(Run("losses --markdown").out, "| loss |\n|---|\n| `logistic` |\n| `square` |\n");
  EXPECT_EQ(Run("samplers --markdown").out,
            "| sampler | how frequencies are drawn | kernels |\n|---|---|---|\n"
            "| `iid` | one by one | gaussian, matern |\n");
}

}  // namespace
}  // namespace kernelstream::client
