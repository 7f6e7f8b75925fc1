// Why an address cannot be listened on; gRPC does not say.
#ifndef KERNELSTREAM_SERVER_APP_LISTEN_H_
#define KERNELSTREAM_SERVER_APP_LISTEN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/app/options.h"

namespace kernelstream::server {

// OK: an address of the host could be bound a moment ago, as gRPC binds it (also with connections
// in TIME_WAIT). INVALID_ARGUMENT: unknown host, or none of this machine. UNAVAILABLE: the port is
// taken. PERMISSION_DENIED. The message names --`flag`.
absl::Status CheckCanListen(absl::string_view flag, const HostAndPort& address);

// "HOST:PORT", "[HOST]:PORT" for IPv6.
std::string JoinHostAndPort(const HostAndPort& address);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_APP_LISTEN_H_
