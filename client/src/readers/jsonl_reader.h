#ifndef KERNELSTREAM_CLIENT_SRC_READERS_JSONL_READER_H_
#define KERNELSTREAM_CLIENT_SRC_READERS_JSONL_READER_H_

#include <memory>
#include <string>

#include "client/src/readers/byte_source.h"
#include "client/src/readers/row_reader.h"

namespace kernelstream::client {

// Thread-compatible. One object per line: {"features": [0.5, 2], "target": 1, "weight": 2}.
// features is an array, or an object from index (from 0) to value; target a number, a string, or an
// array of numbers (several targets). Empty lines are passed over.
class JsonLinesReader : public RowReader {
 public:
  JsonLinesReader(std::unique_ptr<ByteSource> source, ReaderOptions options);
  absl::StatusOr<bool> Next(SourceRow* row) override;
  std::optional<double> Fraction() const override { return source_->Fraction(); }

 private:
  std::unique_ptr<ByteSource> source_;
  ReaderOptions options_;
  std::string line_;
};

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_READERS_JSONL_READER_H_
