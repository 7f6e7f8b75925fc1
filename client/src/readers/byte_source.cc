#include "client/src/readers/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kernelstream::client {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
// 15 bits of window, gzip header.
constexpr int kGzipWindowBits = 15 + 16;

bool HasGzipMagic(const char* bytes, size_t size) {
  return size >= 2 && bytes[0] == '\x1F' && bytes[1] == '\x8B';
}

}  // namespace

struct ByteSource::Inflater {
  ~Inflater() { inflateEnd(&stream); }
  z_stream stream = {};
  bool member_ended = false;
};

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::Open(const std::string& path) {
  const bool standard_input = path == "-";
  const int fd = standard_input ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    return absl::Status(
        error == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kPermissionDenied,
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
  const uint64_t bytes = known && S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  return absl::WrapUnique(new ByteSource(fd, standard_input ? "standard input" : path, bytes));
}

ByteSource::ByteSource(int fd, std::string name, uint64_t file_bytes)
    : fd_(fd),
      name_(std::move(name)),
      file_bytes_(file_bytes),
      raw_(kBufferBytes),
      buffer_(kBufferBytes) {}

ByteSource::~ByteSource() { close(fd_); }

absl::Status ByteSource::ReadRaw() {
  // Bytes that are left move to the front, so that the first two arrive together.
  std::copy(raw_.begin() + raw_begin_, raw_.begin() + raw_end_, raw_.begin());
  raw_end_ -= std::exchange(raw_begin_, 0);
  const ssize_t got = read(fd_, raw_.data() + raw_end_, raw_.size() - raw_end_);
  if (got < 0) {
    if (errno == EINTR) return absl::CancelledError("interrupted while reading");
    return absl::UnknownError(absl::StrCat("cannot read ", name_, " after line ", line_number_,
                                           ": ", std::strerror(errno)));
  }
  raw_at_end_ = got == 0;
  raw_end_ += static_cast<size_t>(got);
  raw_bytes_ += static_cast<size_t>(got);
  return absl::OkStatus();
}

absl::Status ByteSource::Fill() {
  while (!started_ && !raw_at_end_ && raw_end_ < 2) {
    if (absl::Status status = ReadRaw(); !status.ok()) return status;
  }
  if (!std::exchange(started_, true) && HasGzipMagic(raw_.data(), raw_end_)) {
    inflater_ = std::make_unique<Inflater>();
    if (inflateInit2(&inflater_->stream, kGzipWindowBits) != Z_OK) {
      return absl::ResourceExhaustedError(absl::StrCat("no memory to decompress ", name_));
    }
  }
  if (inflater_ != nullptr) return Inflate();
  if (raw_begin_ == raw_end_ && !raw_at_end_) {
    if (absl::Status status = ReadRaw(); !status.ok()) return status;
  }
  begin_ = 0;
  end_ = raw_end_ - raw_begin_;
  std::copy(raw_.begin() + raw_begin_, raw_.begin() + raw_end_, buffer_.begin());
  raw_begin_ = raw_end_ = 0;
  return absl::OkStatus();
}

absl::Status ByteSource::Inflate() {
  z_stream& stream = inflater_->stream;
  begin_ = end_ = 0;
  while (end_ == 0) {
    if (raw_begin_ == raw_end_ && !raw_at_end_) {
      if (absl::Status status = ReadRaw(); !status.ok()) return status;
    }
    if (inflater_->member_ended) {
      while (raw_end_ - raw_begin_ == 1 && !raw_at_end_) {
        if (absl::Status status = ReadRaw(); !status.ok()) return status;
      }
      // Another member may follow; anything else is padding.
      if (!HasGzipMagic(raw_.data() + raw_begin_, raw_end_ - raw_begin_)) return absl::OkStatus();
      inflateReset(&stream);
      inflater_->member_ended = false;
    }
    if (raw_begin_ == raw_end_) {
      return absl::DataLossError(
          absl::StrCat(name_, " ends in the middle of its compressed data, after line ",
                       line_number_, "; get a complete copy"));
    }
    stream.next_in = reinterpret_cast<Bytef*>(raw_.data() + raw_begin_);
    stream.avail_in = static_cast<uInt>(raw_end_ - raw_begin_);
    stream.next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream.avail_out = static_cast<uInt>(buffer_.size());
    const int code = inflate(&stream, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      return absl::DataLossError(absl::StrCat(
          name_, " has damaged compressed data after line ", line_number_,
          stream.msg != nullptr ? absl::StrCat(" (", stream.msg, ")") : "", "; get a good copy"));
    }
    raw_begin_ = raw_end_ - stream.avail_in;
    end_ = buffer_.size() - stream.avail_out;
    inflater_->member_ended = code == Z_STREAM_END;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ByteSource::ReadLine(std::string* line) {
  line->clear();
  bool any = false;
  bool too_long = false;
  while (true) {
    if (begin_ == end_) {
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
  return std::min(1.0, static_cast<double>(raw_bytes_) / static_cast<double>(file_bytes_));
}

}  // namespace kernelstream::client
