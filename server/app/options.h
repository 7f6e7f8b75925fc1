// What can be chosen when a server is started: flags, and the same in the environment.
#ifndef KERNELSTREAM_SERVER_APP_OPTIONS_H_
#define KERNELSTREAM_SERVER_APP_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/hosting/hosted_model.h"
#include "server/telemetry/log.h"

namespace kernelstream::server {

// The flags say what each means (options.cc, --help).
struct ServerOptions {
  std::string data_dir;
  std::string listen = "0.0.0.0:50051";
  std::string metrics_listen = "0.0.0.0:9464";
  std::string port_file;
  int training_threads = 0;  // 0: as many as cores
  uint64_t feature_cache_mib = 1024;
  uint64_t max_message_mib = 16;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  absl::Duration shutdown_grace = absl::Seconds(30);
  bool check_config = false;
  HostingOptions hosting;  // --max_models; the rest has no flag
  // Rows of a large model that are asked for at the same time are evaluated together. No flag: it
  // is off only to be measured.
  bool group_predictions = true;
};

struct HostAndPort {
  std::string host;  // without brackets
  int port = 0;
};
// INVALID_ARGUMENT: not HOST:PORT or [HOST]:PORT with a port from 0 to 65535. `flag` is named in
// the message.
absl::StatusOr<HostAndPort> ParseHostAndPort(absl::string_view flag, absl::string_view text);

// INVALID_ARGUMENT: names the flag, its value, and what was expected.
absl::Status CheckOptions(const ServerOptions& options);

// Reads KERNELSTREAM_* from the environment, then the command line (--flagfile included), which
// wins. Ends the process after --help and --version (with 0), and for flags that do not parse (with
// 1), with a message. INVALID_ARGUMENT: as CheckOptions; an environment value that does not parse;
// a word that is not a flag.
absl::StatusOr<ServerOptions> ReadOptions(int argc, char** argv);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_APP_OPTIONS_H_
