#include "server/store/rocksdb_status.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace kernelstream::server {
namespace {

bool IsDiskFull(const rocksdb::Status& status) {
  return status.IsNoSpace() || absl::StrContains(status.ToString(), "No space left on device") ||
         absl::StrContains(status.ToString(), "Disk quota exceeded");
}

// " (process 1234)" if the system says who holds the lock file.
std::string LockHolder(const std::string& directory) {
  const int file = open(absl::StrCat(directory, "/LOCK").c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return "";
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool found = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0;
  close(file);
  return found ? absl::StrCat(" (process ", lock.l_pid, ")") : "";
}

}  // namespace

absl::Status FromRocksDb(absl::string_view doing, const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrCat("could not ", doing, ": ", status.ToString());
  if (IsDiskFull(status)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the data disk is full; nothing of this was stored. Free some space and send it again. (",
        message, ")"));
  }
  if (status.IsCorruption()) return absl::DataLossError(message);
  return absl::UnavailableError(
      absl::StrCat(message, ". Check the data disk; if the error stays, restart the server."));
}

absl::Status FromRocksDbOpen(const std::string& directory, const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = status.ToString();
  // RocksDB has no code for a lock that is held.
  if (status.IsIOError() && absl::StrContains(text, "LOCK") &&
      (absl::StrContains(text, "While lock file") || absl::StrContains(text, "lock hold"))) {
    return absl::FailedPreconditionError(
        absl::StrCat("data directory ", directory, " is in use by another kernelstream-server",
                     LockHolder(directory), "; stop it, or give this one its own --data_dir"));
  }
  if (status.IsCorruption()) {
    return absl::DataLossError(absl::StrCat(
        "data directory ", directory, " is damaged: ", text,
        ". Restore it from a backup, or start with an empty --data_dir and keep this one."));
  }
  return FromRocksDb(absl::StrCat("open data directory ", directory), status);
}

}  // namespace kernelstream::server
