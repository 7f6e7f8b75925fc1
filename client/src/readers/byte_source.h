#ifndef KERNELSTREAM_CLIENT_SRC_READERS_BYTE_SOURCE_H_
#define KERNELSTREAM_CLIENT_SRC_READERS_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kernelstream::client {

// Thread-compatible. Lines of a file or of standard input, decompressed if it is gzip'd. A line of
// a pipe is handed out as soon as it is there.
class ByteSource {
 public:
  // Longest line, and longest quoted CSV record.
  static constexpr size_t kMaxLineBytes = size_t{64} << 20;

  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // The next line without its LF or CRLF; false at the end. A byte order mark before the first line
  // is left out. InvalidArgument: the line is too long (it is skipped). DataLoss: the compressed
  // data is damaged. Cancelled: a signal came while waiting for a pipe.
  absl::StatusOr<bool> ReadLine(std::string* line);

  // Number of the line last read, from 1.
  uint64_t line_number() const { return line_number_; }
  // As people know it: the path, or "standard input".
  const std::string& name() const { return name_; }
  std::optional<double> Fraction() const;

 private:
  struct Inflater;

  ByteSource(int fd, std::string name, uint64_t file_bytes);
  // Puts the next bytes into buffer_; none at the end.
  absl::Status Fill();
  // The next bytes as they are on disk, into raw_.
  absl::Status ReadRaw();
  absl::Status Inflate();

  const int fd_;
  const std::string name_;
  const uint64_t file_bytes_;  // On disk; 0 for pipes.
  uint64_t raw_bytes_ = 0;     // Read so far.
  std::vector<char> raw_;
  size_t raw_begin_ = 0;
  size_t raw_end_ = 0;
  bool raw_at_end_ = false;
  bool started_ = false;
  std::unique_ptr<Inflater> inflater_;  // Null if the input is not compressed.
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t line_number_ = 0;
};

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_READERS_BYTE_SOURCE_H_
