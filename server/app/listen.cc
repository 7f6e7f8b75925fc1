#include "server/app/listen.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace kernelstream::server {
namespace {

// 0, or errno.
int TryBind(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int on = 1;
  int error = 0;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(fd, address.ai_addr, address.ai_addrlen) != 0 || listen(fd, 1) != 0) {
    error = errno;
  }
  close(fd);
  return error;
}

}  // namespace

std::string JoinHostAndPort(const HostAndPort& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return absl::StrCat(v6 ? "[" : "", address.host, v6 ? "]" : "", ":", address.port);
}

absl::Status CheckCanListen(absl::string_view flag, const HostAndPort& address) {
  const std::string text = JoinHostAndPort(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string port = absl::StrCat(address.port);
  if (const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", text, ": unknown host (",
                                                   gai_strerror(error),
                                                   "); name an address of this machine"));
  }
  int first_error = 0;
  bool bound = false;
  for (const addrinfo* one = found; one != nullptr && !bound; one = one->ai_next) {
    const int error = TryBind(*one);
    bound = error == 0;
    if (first_error == 0) first_error = error;
  }
  freeaddrinfo(found);
  if (bound) return absl::OkStatus();
  switch (first_error) {
    case EADDRINUSE:
      return absl::UnavailableError(absl::StrCat(
          "address in use: ", text, "; stop the other process or choose another --", flag));
    case EACCES:
      return absl::PermissionDeniedError(absl::StrCat("no permission to listen on ", text,
                                                      "; choose a --", flag,
                                                      " with a port from 1024 on, or 0"));
    case EADDRNOTAVAIL:
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, "=", text,
                       ": no address of this machine; choose one of its own, or 0.0.0.0"));
    default:
      return absl::UnavailableError(absl::StrCat("cannot listen on ", text, ": ",
                                                 std::strerror(first_error), "; choose another --",
                                                 flag));
  }
}

}  // namespace kernelstream::server
