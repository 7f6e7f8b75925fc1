#include "client/src/readers/row_reader.h"

#include <utility>

#include "client/src/readers/byte_source.h"
#include "client/src/readers/csv_reader.h"
#include "client/src/readers/jsonl_reader.h"
#include "client/src/readers/libsvm_reader.h"

namespace kernelstream::client {

absl::StatusOr<std::unique_ptr<RowReader>> OpenRowReader(const std::string& path,
                                                         const ReaderOptions& options) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = ByteSource::Open(path);
  if (!source.ok()) return source.status();
  switch (options.format) {
    case Format::kLibsvm:
      return std::make_unique<LibsvmReader>(*std::move(source), options);
    case Format::kJsonLines:
      return std::make_unique<JsonLinesReader>(*std::move(source), options);
    case Format::kCsv:
      break;
  }
  auto csv = std::make_unique<CsvReader>(*std::move(source), options);
  if (absl::Status status = csv->Open(); !status.ok()) return status;
  return csv;
}

}  // namespace kernelstream::client
