#include "server/app/options.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

ABSL_FLAG(std::string, data_dir, "",
          "Directory where models live; made if it is not there. One server at a time. Required.");
ABSL_FLAG(std::string, listen, "0.0.0.0:50051",
          "HOST:PORT of the gRPC services. Port 0 takes a free one (see --port_file).");
ABSL_FLAG(std::string, metrics_listen, "0.0.0.0:9464",
          "HOST:PORT where Prometheus reads /metrics. Empty: nowhere.");
ABSL_FLAG(std::string, port_file, "",
          "File to which HOST:PORT of the gRPC services is written once the server listens. Empty: "
          "none.");
ABSL_FLAG(int, training_threads, 0,
          "Threads that learn, at lower priority than serving. 0: one per core. What is learned "
          "does not depend on it.");
ABSL_FLAG(uint64_t, feature_cache_mib, 1024,
          "Memory for random frequencies of all models, in MiB. 0: they are drawn anew each time. "
          "Answers do not depend on it.");
ABSL_FLAG(uint64_t, max_message_mib, 16, "Largest request, in MiB, 1 to 512.");
ABSL_FLAG(uint32_t, max_models, 1000, "Most models, 1 to 100000.");
ABSL_FLAG(std::string, log_format, "text", "Log lines on standard error: text or json.");
ABSL_FLAG(std::string, log_level, "info",
          "Least log level that is written: debug, info, warning or error.");
ABSL_FLAG(absl::Duration, shutdown_grace, absl::Seconds(30),
          "How long a stop (SIGTERM, SIGINT) may go on learning rows that were taken in; they are "
          "kept in any case.");
ABSL_FLAG(bool, check_config, false, "Check the flags, say what is wrong with them, and exit.");

namespace kernelstream::server {
namespace {

constexpr std::array<const char*, 12> kFlags = {
    "data_dir",          "listen",          "metrics_listen", "port_file",  "training_threads",
    "feature_cache_mib", "max_message_mib", "max_models",     "log_format", "log_level",
    "shutdown_grace",    "check_config"};
constexpr uint64_t kMaxMessageMib = 512;
constexpr uint64_t kMaxFeatureCacheMib = uint64_t{1} << 24;
constexpr int kMaxTrainingThreads = 1024;
constexpr uint32_t kMaxModels = 100000;

bool IsOurFlagFile(absl::string_view file) { return absl::StrContains(file, "server/app/"); }

std::string EnvironmentName(absl::string_view flag) {
  return absl::StrCat("KERNELSTREAM_", absl::AsciiStrToUpper(flag));
}

constexpr char kAbout[] =
    "hosts online kernel machines over gRPC.\n"
    "Every flag can be set in the environment too: --data_dir is KERNELSTREAM_DATA_DIR; the flag "
    "wins.\n"
    "--flagfile=FILE reads flags from a file, one a line.";

// Abseil prints help as well, but ends the process with 1 after it.
bool AsksForHelp(int argc, char** argv) {
  constexpr std::array<absl::string_view, 4> kWords = {"--help", "-help", "-h", "--helpshort"};
  return std::any_of(argv, argv + argc, [&](absl::string_view word) {
    return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
  });
}

// At a flag that it does not know, or that does not parse, Abseil says so and ends the process.
bool flags_are_read = false;
void HintAtHelp() {
  if (!flags_are_read) std::fputs("kernelstream-server --help lists the flags\n", stderr);
}

void PrintHelp() {
  std::string text = absl::StrCat("kernelstream-server: ", kAbout, "\n\n");
  for (const char* name : kFlags) {
    const absl::CommandLineFlag& flag = *absl::FindCommandLineFlag(name);
    const std::string value = flag.DefaultValue();
    absl::StrAppend(&text, "  --", name, "  (", EnvironmentName(name),
                    ")  default: ", value.empty() ? "none" : value, "\n      ", flag.Help(), "\n");
  }
  absl::StrAppend(&text, "  --help  this text; --version  the version\n");
  std::fputs(text.c_str(), stdout);
}

absl::Status ReadEnvironment() {
  for (const char* name : kFlags) {
    const std::string variable = EnvironmentName(name);
    const char* value = std::getenv(variable.c_str());
    if (value == nullptr) continue;
    std::string error;
    if (!absl::FindCommandLineFlag(name)->ParseFrom(value, &error)) {
      return absl::InvalidArgumentError(absl::StrCat("environment variable ", variable, "=\"",
                                                     value, "\" is not a value of --", name,
                                                     error.empty() ? "" : ": ", error));
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CheckRange(absl::string_view flag, T value, T low, T high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " is ", value, "; expected ", low, " to ", high));
}

}  // namespace

absl::StatusOr<HostAndPort> ParseHostAndPort(absl::string_view flag, absl::string_view text) {
  const absl::Status error =
      absl::InvalidArgumentError(absl::StrCat("--", flag, " is \"", text,
                                              "\"; expected HOST:PORT with a port from 0 to 65535, "
                                              "for example 127.0.0.1:50051 or [::]:50051"));
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return error;
  HostAndPort result;
  absl::string_view host = text.substr(0, colon);
  const absl::string_view port = text.substr(colon + 1);
  if (port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(port, &result.port) || result.port > 65535) {
    return error;
  }
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  } else if (absl::StrContains(host, ":")) {
    return error;
  }
  if (host.empty() || absl::StrContains(host, "/")) return error;
  result.host = std::string(host);
  return result;
}

absl::Status CheckOptions(const ServerOptions& options) {
  if (options.data_dir.empty()) {
    return absl::InvalidArgumentError(
        "--data_dir is not set; name the directory where models are to live, for example "
        "--data_dir=/var/lib/kernelstream (or KERNELSTREAM_DATA_DIR)");
  }
  if (auto listen = ParseHostAndPort("listen", options.listen); !listen.ok())
    return listen.status();
  if (!options.metrics_listen.empty()) {
    auto listen = ParseHostAndPort("metrics_listen", options.metrics_listen);
    if (!listen.ok()) return listen.status();
  }
  absl::Status status =
      CheckRange("training_threads", options.training_threads, 0, kMaxTrainingThreads);
  status.Update(
      CheckRange("feature_cache_mib", options.feature_cache_mib, uint64_t{0}, kMaxFeatureCacheMib));
  status.Update(
      CheckRange("max_message_mib", options.max_message_mib, uint64_t{1}, kMaxMessageMib));
  status.Update(CheckRange("max_models", options.hosting.max_models, 1u, kMaxModels));
  if (options.shutdown_grace < absl::ZeroDuration() || options.shutdown_grace > absl::Hours(24)) {
    status.Update(absl::InvalidArgumentError(
        absl::StrCat("--shutdown_grace is ", absl::FormatDuration(options.shutdown_grace),
                     "; expected 0s to 24h")));
  }
  return status;
}

absl::StatusOr<ServerOptions> ReadOptions(int argc, char** argv) {
  absl::FlagsUsageConfig usage;
  usage.contains_help_flags = IsOurFlagFile;
  usage.contains_helpshort_flags = IsOurFlagFile;
  usage.version_string = [] {
    return std::string("kernelstream-server " KERNELSTREAM_VERSION "\n");
  };
  absl::SetFlagsUsageConfig(usage);
  absl::SetProgramUsageMessage(kAbout);
  if (AsksForHelp(argc, argv)) {
    PrintHelp();
    std::exit(0);
  }
  if (absl::Status status = ReadEnvironment(); !status.ok()) return status;
  const bool asks_for_text = std::any_of(argv, argv + argc, [](absl::string_view word) {
    return absl::StartsWith(word, "--version") || absl::StartsWith(word, "--help");
  });
  if (!asks_for_text) std::atexit(&HintAtHelp);
  const std::vector<char*> words = absl::ParseCommandLine(argc, argv);
  flags_are_read = true;
  if (words.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", words[1], "\" is not a flag; flags begin with -- (--help lists them)"));
  }
  ServerOptions options;
  options.data_dir = absl::GetFlag(FLAGS_data_dir);
  options.listen = absl::GetFlag(FLAGS_listen);
  options.metrics_listen = absl::GetFlag(FLAGS_metrics_listen);
  options.port_file = absl::GetFlag(FLAGS_port_file);
  options.training_threads = absl::GetFlag(FLAGS_training_threads);
  options.feature_cache_mib = absl::GetFlag(FLAGS_feature_cache_mib);
  options.max_message_mib = absl::GetFlag(FLAGS_max_message_mib);
  options.hosting.max_models = absl::GetFlag(FLAGS_max_models);
  options.shutdown_grace = absl::GetFlag(FLAGS_shutdown_grace);
  options.check_config = absl::GetFlag(FLAGS_check_config);
  if (absl::Status status = ParseLogLevel(absl::GetFlag(FLAGS_log_level), &options.log_level);
      !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--log_level: ", status.message()));
  }
  if (absl::Status status = ParseLogFormat(absl::GetFlag(FLAGS_log_format), &options.log_format);
      !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--log_format: ", status.message()));
  }
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  return options;
}

}  // namespace kernelstream::server
