#ifndef KERNELSTREAM_CLIENT_SRC_READERS_LIBSVM_READER_H_
#define KERNELSTREAM_CLIENT_SRC_READERS_LIBSVM_READER_H_

#include <memory>
#include <string>

#include "client/src/readers/byte_source.h"
#include "client/src/readers/row_reader.h"

namespace kernelstream::client {

// Thread-compatible. "target index:value index:value ... # comment"; indices on disk start from
// index_base and become indices from 0. Empty lines are passed over; qid is ignored.
class LibsvmReader : public RowReader {
 public:
  LibsvmReader(std::unique_ptr<ByteSource> source, ReaderOptions options);
  absl::StatusOr<bool> Next(SourceRow* row) override;
  std::optional<double> Fraction() const override { return source_->Fraction(); }
  std::string InputName(absl::Span<const uint64_t> indices, size_t place) const override;

 private:
  absl::Status ParseLine(absl::string_view line, Row* row);
  absl::Status ParseTargetToken(absl::string_view token, Row* row);

  std::unique_ptr<ByteSource> source_;
  ReaderOptions options_;
  std::string line_;
  bool qid_noted_ = false;
};

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_READERS_LIBSVM_READER_H_
