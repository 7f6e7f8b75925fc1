#ifndef KERNELSTREAM_CLIENT_SRC_READERS_CSV_READER_H_
#define KERNELSTREAM_CLIENT_SRC_READERS_CSV_READER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/src/readers/byte_source.h"
#include "client/src/readers/row_reader.h"

namespace kernelstream::client {

// Thread-compatible. Cells as in RFC 4180: quotes may hold separators, doubled quotes and line
// ends. Every column that is not a target, the weight or dropped is an input, in the order of the
// file. Empty lines are passed over.
class CsvReader : public RowReader {
 public:
  CsvReader(std::unique_ptr<ByteSource> source, ReaderOptions options);

  // Reads the header and settles the columns. Not InvalidArgument: nothing can be read.
  // FailedPrecondition says so if the file looks like LIBSVM or JSON lines.
  absl::Status Open();
  absl::StatusOr<bool> Next(SourceRow* row) override;
  std::optional<double> Fraction() const override { return source_->Fraction(); }
  size_t num_inputs() const override { return num_features_; }
  std::string InputName(absl::Span<const uint64_t> indices, size_t place) const override;

 private:
  enum class Role { kFeature, kCategory, kTarget, kWeight, kDropped };

  // The next record that is not empty, in cells_[0, num_cells_); false at the end.
  absl::StatusOr<bool> ReadRecord();
  absl::Status SplitRecord();
  absl::Status SettleColumns();
  // The target columns in order; none: there is no target to read. NotFound: a named column is not
  // there, and a target is needed.
  absl::StatusOr<std::vector<size_t>> ChooseTargets(size_t candidates);
  absl::Status ParseRecord(Row* row, bool* skip);
  absl::Status ParseTargetCell(const std::string& cell, Row* row);
  // An input of ReaderOptions::named.
  absl::Status ParseNamedCell(const std::string& cell, size_t column, NamedFeatures* features);
  // One of several, of column `column`.
  absl::Status ParseVectorCell(const std::string& cell, size_t column, Row* row);
  absl::Status Located(uint64_t line, absl::string_view column, absl::string_view message) const;

  std::unique_ptr<ByteSource> source_;
  ReaderOptions options_;
  TargetType target_type_;
  std::vector<std::string> names_;
  std::vector<Role> roles_;
  std::vector<size_t> targets_;  // columns, in the order of the targets
  size_t num_features_ = 0;
  uint64_t record_line_ = 0;
  std::string record_;
  std::string line_;
  std::vector<std::string> cells_;
  size_t num_cells_ = 0;
  // Without a header the first record settles the columns and is then a row.
  bool record_waiting_ = false;
};

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_READERS_CSV_READER_H_
