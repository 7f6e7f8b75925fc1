#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/app/server.h"
#include "server/telemetry/log.h"

namespace kernelstream::server {
namespace {

std::string SignalName(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

// Waits for the signals for the rest of the process's life.
void WatchSignals(sigset_t signals, absl::Notification* stop) {
  int signal = 0;
  sigwait(&signals, &signal);
  Log(LogLevel::kInfo, "stopping", {{"signal", SignalName(signal)}});
  stop->Notify();
  sigwait(&signals, &signal);
  Log(LogLevel::kWarning, "stopped_at_once", {{"signal", SignalName(signal)}});
  // Nothing is lost: what was acknowledged as durable is in the log.
  _exit(128 + signal);
}

}  // namespace

int Run(const ServerOptions& options) {
  // gRPC's own lines say less than ours; GRPC_VERBOSITY brings them back.
  setenv("GRPC_VERBOSITY", "none", /*overwrite=*/0);
  SetUpLogging(options.log_level, options.log_format);
  signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // inherited by every thread

  static absl::Notification* const stop = new absl::Notification;  // outlives the watching thread
  std::thread(WatchSignals, signals, stop).detach();

  const absl::Time begin = absl::Now();
  auto server = Server::Start(options);
  if (!server.ok()) {
    Log(LogLevel::kError, "not_started", {{"error", server.status().message()}});
    return 1;
  }
  Log(LogLevel::kInfo, "listening",
      {{"address", (*server)->address()},
       {"metrics_port", (*server)->metrics_port()},
       {"data_dir", options.data_dir},
       {"seconds", absl::ToDoubleSeconds(absl::Now() - begin)}});
  stop->WaitForNotification();
  const absl::Time stopping = absl::Now();
  (*server)->Stop();
  server->reset();
  Log(LogLevel::kInfo, "stopped", {{"seconds", absl::ToDoubleSeconds(absl::Now() - stopping)}});
  return 0;
}

}  // namespace kernelstream::server
