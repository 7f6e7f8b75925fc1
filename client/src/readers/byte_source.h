#ifndef KERNELSTREAM_CLIENT_SRC_READERS_BYTE_SOURCE_H_
#define KERNELSTREAM_CLIENT_SRC_READERS_BYTE_SOURCE_H_

#include <zlib.h>

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

// Thread-compatible. Lines of a file or of standard input, decompressed if it is gzip'd.
class ByteSource {
 public:
  // Longest line, and longest quoted CSV record.
  static constexpr size_t kMaxLineBytes = size_t{64} << 20;

  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // The next line without its LF or CRLF; false at the end. A byte order mark before the first line is left out.
  // InvalidArgument: the line is too long (it is skipped). DataLoss: the compressed data is damaged.
  absl::StatusOr<bool> ReadLine(std::string* line);

  // Number of the line last read, from 1.
  uint64_t line_number() const { return line_number_; }
  // As people know it: the path, or "standard input".
  const std::string& name() const { return name_; }
  std::optional<double> Fraction() const;

 private:
  ByteSource(gzFile file, std::string name, uint64_t file_bytes);
  absl::Status Fill();

  gzFile file_;
  std::string name_;
  uint64_t file_bytes_;  // On disk; 0 for pipes.
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;
  uint64_t line_number_ = 0;
};

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_READERS_BYTE_SOURCE_H_
