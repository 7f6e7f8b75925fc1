// kernelstream-server as a program: flags, environment, messages, signals.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Flags, BadValuesAreNamedWithWhatWasExpected) {
  TempDir dir;
  struct Case {
    std::string flag;
    const char* message;
  };
  const std::vector<Case> cases = {
      {"--max_message_mib=0", "--max_message_mib is 0; expected 1 to 512"},
      {"--max_message_mib=banana", "max_message_mib"},
      {"--max_message_mib=banana", "kernelstream-server --help lists the flags"},
      {"--max_models=0", "--max_models is 0; expected 1 to 100000"},
      {"--training_threads=-1", "--training_threads is -1"},
      {"--listen=localhost", "--listen is \"localhost\"; expected HOST:PORT"},
      {"--metrics_listen=1.2.3.4:70000", "--metrics_listen is"},
      {"--log_level=loud", "--log_level"},
      {"--log_format=xml", "--log_format"},
      {"--shutdown_grace=-1s", "--shutdown_grace is -1s"},
      {"--no_such_flag=1", "no_such_flag"},
      {"--no_such_flag=1", "kernelstream-server --help lists the flags"},
      {"word", "\"word\" is not a flag"},
  };
  for (const Case& one : cases) {
    ServerProcess server(dir.path() + "/data", {one.flag, "--check_config"});
    EXPECT_EQ(server.WaitForExit(), 1) << one.flag;
    EXPECT_THAT(server.output(), HasSubstr(one.message));
  }
}

TEST(Flags, TheVersionIsAskedForWithoutAHint) {
  ServerProcess server("", {"--version"});
  EXPECT_EQ(server.WaitForExit(), 0);
  EXPECT_THAT(server.output(), StartsWith("kernelstream-server "));
  EXPECT_THAT(server.output(), Not(HasSubstr("--help")));
}

TEST(Flags, DataDirectoryIsRequired) {
  ServerProcess server("", {"--check_config"});
  EXPECT_EQ(server.WaitForExit(), 1);
  EXPECT_THAT(server.output(), HasSubstr("--data_dir is not set"));
}

TEST(Flags, CheckConfigTouchesNothing) {
  TempDir dir;
  ServerProcess server(dir.path() + "/data", {"--check_config"});
  EXPECT_EQ(server.WaitForExit(), 0) << server.output();
  struct stat ignored;
  EXPECT_NE(stat((dir.path() + "/data").c_str(), &ignored), 0);
}

TEST(Flags, HelpListsOurFlagsWithTheirDefaults) {
  ServerProcess server("", {"--help"}, {"KERNELSTREAM_MAX_MODELS=none"});
  EXPECT_EQ(server.WaitForExit(), 0);
  EXPECT_THAT(server.output(), HasSubstr("default: 0.0.0.0:50051"));
  for (const char* flag :
       {"--data_dir", "--listen", "--metrics_listen", "--port_file", "--training_threads",
        "--feature_cache_mib", "--max_message_mib", "--max_models", "--log_format", "--log_level",
        "--shutdown_grace", "--check_config"}) {
    EXPECT_THAT(server.output(), HasSubstr(flag));
  }
  EXPECT_THAT(server.output(), HasSubstr("KERNELSTREAM_DATA_DIR"));
}

TEST(Flags, TheEnvironmentIsReadAndTheFlagWins) {
  TempDir dir;
  const std::string data = absl::StrCat("KERNELSTREAM_DATA_DIR=", dir.path(), "/data");
  {
    ServerProcess server("", {"--check_config"}, {data});
    EXPECT_EQ(server.WaitForExit(), 0) << server.output();
  }
  {
    ServerProcess server("", {"--check_config"}, {data, "KERNELSTREAM_MAX_MODELS=none"});
    EXPECT_EQ(server.WaitForExit(), 1);
    EXPECT_THAT(server.output(), HasSubstr("KERNELSTREAM_MAX_MODELS=\"none\""));
  }
  {
    ServerProcess server("", {"--check_config", "--max_models=5"},
                         {data, "KERNELSTREAM_MAX_MODELS=0"});
    EXPECT_EQ(server.WaitForExit(), 0) << server.output();
  }
  {
    ServerProcess server("", {"--check_config"}, {data, "KERNELSTREAM_MAX_MODELS=0"});
    EXPECT_EQ(server.WaitForExit(), 1);
    EXPECT_THAT(server.output(), HasSubstr("--max_models is 0"));
  }
}

TEST(Flags, AFlagfileIsRead) {
  TempDir dir;
  const std::string file = dir.path() + "/flags";
  std::ofstream(file) << "--max_models=0\n";
  ServerProcess server(dir.path() + "/data", {"--check_config", absl::StrCat("--flagfile=", file)});
  EXPECT_EQ(server.WaitForExit(), 1);
  EXPECT_THAT(server.output(), HasSubstr("--max_models is 0"));
}

TEST(Process, WritesItsAddressLogsItAndStopsOnSigterm) {
  TempDir dir;
  const std::string port_file = dir.path() + "/port";
  ServerProcess server(dir.path() + "/data", {absl::StrCat("--port_file=", port_file)});
  const std::string address = server.WaitUntilListening();
  ASSERT_FALSE(address.empty()) << server.output();
  std::string written;
  std::getline(std::ifstream(port_file), written);
  EXPECT_EQ(written, address);
  Connection connection(address);
  connection.Create("m", SmallConfig("square"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.WaitForExit(), 0) << server.output();
  EXPECT_THAT(server.output(), HasSubstr("event=stopping signal=SIGTERM"));
  EXPECT_THAT(server.output(), HasSubstr("event=stopped"));
}

// Acknowledged as durable, not learned, and waited for: the stop takes its whole grace. A second
// signal ends it.
// gRPC's own limit is 4 MiB.
TEST(Process, TakesARequestOf5MiBWithoutAFlag) {
  constexpr uint32_t kRows = 640, kDimension = 2048;
  TempDir dir;
  ServerProcess server(dir.path() + "/data");
  Connection connection(server.WaitUntilListening());
  connection.WaitUntilServing();
  v1::ModelConfig config = SmallConfig("square");
  config.mutable_input()->set_dimension(kDimension);
  connection.Create("m", config);
  v1::UpdateRequest request;
  request.set_model("m");
  v1::SampleMatrix& matrix = *request.mutable_matrix();
  matrix.set_rows(kRows);
  matrix.set_dimension(kDimension);
  matrix.set_values(std::string(kRows * kDimension * sizeof(float), '\0'));
  for (uint32_t row = 0; row < kRows; ++row) matrix.add_targets(row % 3);
  ASSERT_GE(request.ByteSizeLong(), 5u << 20);
  v1::UpdateResponse response;
  const grpc::Status status = connection.Update(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.rows_accepted(), kRows);
}

TEST(Process, ASecondSignalEndsADrainAtOnce) {
  TempDir dir;
  ServerProcess server(dir.path() + "/data", {"--shutdown_grace=1h"});
  const std::string address = server.WaitUntilListening();
  ASSERT_FALSE(address.empty()) << server.output();
  Connection connection(address);
  connection.Create("m", SmallConfig("square"));
  const v1::StreamUpdateRequest::Open open = OpenStream("m", "", v1::ACK_LEVEL_APPLIED);
  StreamSession stream(connection, open);
  stream.Opened();
  v1::StreamUpdateRequest::Batch batch;
  *batch.add_samples() = NumberedSample(1);  // no full mini-batch: learned in an hour
  stream.Send(batch);
  v1::UpdateRequest update;
  update.set_model("m");
  *update.add_samples() = NumberedSample(2);
  v1::UpdateResponse response;
  ASSERT_TRUE(connection.Update(update, &response).ok());  // behind the batch in the log
  server.Signal(SIGTERM);
  // Refused: so the drain has begun.
  while (connection.Update(update, &response).ok()) {
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.WaitForExit(), 128 + SIGTERM);
  EXPECT_THAT(server.output(), HasSubstr("event=stopped_at_once"));
}

TEST(Process, ADataDirectoryInUseOrUnusableIsExplained) {
  TempDir dir;
  ServerProcess first(dir.path() + "/data");
  ASSERT_FALSE(first.WaitUntilListening().empty());
  ServerProcess second(dir.path() + "/data");
  EXPECT_EQ(second.WaitForExit(), 1);
  EXPECT_THAT(second.output(), HasSubstr("event=not_started"));
  EXPECT_THAT(second.output(), HasSubstr("is in use by another"));

  std::ofstream(dir.path() + "/file") << "not a directory";
  ServerProcess third(dir.path() + "/file/data");
  EXPECT_EQ(third.WaitForExit(), 1);
  EXPECT_THAT(third.output(), HasSubstr("event=not_started"));
}

TEST(Process, AnAddressInUseIsExplained) {
  TempDir dir;
  ServerProcess first(dir.path() + "/one");
  const std::string address = first.WaitUntilListening();
  ServerProcess second(dir.path() + "/two", {absl::StrCat("--listen=", address)});
  EXPECT_EQ(second.WaitForExit(), 1);
  EXPECT_THAT(second.output(), HasSubstr(absl::StrCat("address in use: ", address)));
  ServerProcess third(dir.path() + "/three", {absl::StrCat("--metrics_listen=", address)});
  EXPECT_EQ(third.WaitForExit(), 1);
  EXPECT_THAT(third.output(), HasSubstr(absl::StrCat("address in use: ", address)));
  EXPECT_THAT(third.output(), HasSubstr("choose another --metrics_listen"));
}

TEST(Process, JsonLogIsOneObjectPerLine) {
  TempDir dir;
  ServerProcess server(dir.path() + "/data", {"--log_format=json", "--listen=127.0.0.1:99999"});
  EXPECT_EQ(server.WaitForExit(), 1);
  ServerProcess taken(dir.path() + "/file", {"--log_format=json", "--listen=192.0.2.1:0"});
  EXPECT_EQ(taken.WaitForExit(), 1);
  EXPECT_EQ(taken.output().front(), '{');
  EXPECT_THAT(taken.output(), HasSubstr("\"event\":\"not_started\""));
}

}  // namespace
}  // namespace kernelstream::support
