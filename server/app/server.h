// The composition root: the one place that names every part.
#ifndef KERNELSTREAM_SERVER_APP_SERVER_H_
#define KERNELSTREAM_SERVER_APP_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/app/options.h"

namespace kernelstream::server {

// Thread-compatible. A whole server: store, log, pools, models, services, listeners.
//   start: open the store -> list the models and load them in the background -> listen -> port file
//   stop:  health NOT_SERVING -> streams end, new rows are refused -> what was taken in is learned,
//   up to shutdown_grace
//          -> a checkpoint per model -> callers of ended streams hear of it -> calls in flight end
//          -> listeners and store close
class Server {
 public:
  // `options`: checked. FAILED_PRECONDITION: the data directory is in use, or cannot be used.
  // UNAVAILABLE: an address cannot be listened on. The message says what to do.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  ~Server();  // Stop()

  // HOST:PORT of the gRPC services, with the port that was bound.
  const std::string& address() const;
  // 0 if there is no metrics listener.
  int metrics_port() const;
  // Blocks. Idempotent.
  void Stop();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Runs a server until SIGTERM or SIGINT, then stops it. A second signal ends the process at once.
// Returns its exit status: 0, or 1 if it could not start (it has logged why). Call once, on the
// main thread, before there are others.
int Run(const ServerOptions& options);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_APP_SERVER_H_
