#include "client/src/readers/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kernelstream::client {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::Open(const std::string& path) {
  const bool standard_input = path == "-";
  const int fd = standard_input ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    return absl::Status(error == ENOENT ? absl::StatusCode::kNotFound
                                        : absl::StatusCode::kPermissionDenied,
                        absl::StrCat("cannot open ", path, ": ", std::strerror(error),
                                     "; check the path and its permissions"));
  }
  struct stat info {};
  const bool known = fstat(fd, &info) == 0;
  if (known && S_ISDIR(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is a directory; give a file, or - for standard input"));
  }
  gzFile file = gzdopen(fd, "rb");
  if (file == nullptr) {
    close(fd);
    return absl::ResourceExhaustedError(absl::StrCat("no memory to read ", path));
  }
  gzbuffer(file, kBufferBytes);
  const uint64_t bytes = known && S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  return absl::WrapUnique(
      new ByteSource(file, standard_input ? "standard input" : path, bytes));
}

ByteSource::ByteSource(gzFile file, std::string name, uint64_t file_bytes)
    : file_(file), name_(std::move(name)), file_bytes_(file_bytes), buffer_(kBufferBytes) {}

ByteSource::~ByteSource() { gzclose(file_); }

absl::Status ByteSource::Fill() {
  const int got = gzread(file_, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  begin_ = 0;
  end_ = got > 0 ? static_cast<size_t>(got) : 0;
  if (got > 0) return absl::OkStatus();
  at_end_ = true;
  int code = Z_OK;
  const char* reason = gzerror(file_, &code);
  if (code == Z_OK || code == Z_STREAM_END) return absl::OkStatus();
  if (code == Z_BUF_ERROR) {
    return absl::DataLossError(absl::StrCat(name_, " ends in the middle of its compressed data, after line ",
                                            line_number_, "; get a complete copy"));
  }
  if (code == Z_ERRNO) {
    return absl::UnknownError(absl::StrCat("cannot read ", name_, " after line ", line_number_, ": ",
                                           std::strerror(errno)));
  }
  return absl::DataLossError(absl::StrCat(name_, " has damaged compressed data after line ",
                                          line_number_, " (", reason, "); get a good copy"));
}

absl::StatusOr<bool> ByteSource::ReadLine(std::string* line) {
  line->clear();
  bool any = false;
  bool too_long = false;
  while (true) {
    if (begin_ == end_) {
      if (at_end_) break;
      if (absl::Status status = Fill(); !status.ok()) return status;
      if (begin_ == end_) break;
    }
    any = true;
    const char* data = buffer_.data() + begin_;
    const auto* newline = static_cast<const char*>(std::memchr(data, '\n', end_ - begin_));
    const size_t length = newline != nullptr ? newline - data : end_ - begin_;
    if (line->size() + length > kMaxLineBytes) too_long = true;
    if (!too_long) line->append(data, length);
    begin_ += length + (newline != nullptr ? 1 : 0);
    if (newline != nullptr) break;
  }
  if (!any) return false;
  ++line_number_;
  if (too_long) {
    line->clear();
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ", line ", line_number_, ": longer than ", kMaxLineBytes >> 20,
                     " MiB; check that the file has one row per line"));
  }
  if (!line->empty() && line->back() == '\r') line->pop_back();
  if (line_number_ == 1) {
    if (absl::StartsWith(*line, "\xEF\xBB\xBF")) line->erase(0, 3);
    if (absl::StartsWith(*line, "\xFF\xFE") || absl::StartsWith(*line, "\xFE\xFF")) {
      return absl::DataLossError(
          absl::StrCat(name_, " is UTF-16; convert it, for example with iconv -f utf-16 -t utf-8"));
    }
  }
  return true;
}

std::optional<double> ByteSource::Fraction() const {
  if (file_bytes_ == 0) return std::nullopt;
  const auto offset = static_cast<double>(gzoffset(file_));
  return std::min(1.0, std::max(0.0, offset / static_cast<double>(file_bytes_)));
}

}  // namespace kernelstream::client
