// Labelled rows from files: CSV, LIBSVM and JSON lines, plain or gzip'd (told by content).
#ifndef KERNELSTREAM_CLIENT_SRC_READERS_ROW_READER_H_
#define KERNELSTREAM_CLIENT_SRC_READERS_ROW_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/include/kernelstream/client.h"

namespace kernelstream::client {

enum class Format { kCsv, kLibsvm, kJsonLines };
// What an empty cell (also NA, NaN, null, ?) is: an error, a reason to leave the row out, or zero.
enum class Missing { kError, kSkip, kZero };
// Numbers, labels, or what the first row's target looks like. kPopulation: "numerator" or 1, and
// "denominator", 0 or -1.
enum class TargetType { kAuto, kNumber, kLabel, kPopulation };

struct ReaderOptions {
  Format format = Format::kCsv;
  Missing missing = Missing::kError;
  TargetType target_type = TargetType::kAuto;
  // False: rows to predict, or of a model that learns from rows alone; a target that is there is
  // left out.
  bool target_required = true;
  // CSV only, from here to dimension. Empty: the column called target, label, class or y; else the
  // last. Several columns, separated by commas, are the targets of one regression, in this order.
  std::string target;
  // Empty: every row counts 1.
  std::string weight;
  // Columns to leave out.
  std::vector<std::string> drop;
  // 0: the one of , ; tab that is most frequent in the first line.
  char separator = 0;
  bool header = true;
  // True: a row's inputs are named after their columns, cells that are no numbers are categories.
  bool named = false;
  // Columns whose cells are categories even if they look like numbers, as postal codes do.
  std::vector<std::string> categories;
  // Values per row the model takes, 0 if not known: tells whether a file to predict has a target
  // column.
  uint32_t dimension = 0;
  // LIBSVM: the first index on disk.
  uint64_t index_base = 1;
};

struct SourceRow {
  // Where the row begins, from 1.
  uint64_t line = 0;
  Row row;
};

// Thread-compatible. Rows of one input, in order.
class RowReader {
 public:
  virtual ~RowReader() = default;

  // False at the end. InvalidArgument names input and line (and column): that line is used up, and
  // the next call goes on after it. Any other error is final.
  virtual absl::StatusOr<bool> Next(SourceRow* row) = 0;

  // What a person should know about how the input is read ("the target is column ..."); taken once.
  std::vector<std::string> TakeNotes() { return std::move(notes_); }

  // Rows left out because of Missing::kSkip.
  uint64_t skipped_rows() const { return skipped_rows_; }

  // Inputs of a dense row; 0 if they are not settled by the file.
  virtual size_t num_inputs() const { return 0; }
  // What the input at `place` of a row, from 0, is called in the file: "column \"age\"" or "index
  // 3". Empty: as it is called on the wire, or not known. indices: the row's, if it is sparse.
  virtual std::string InputName(absl::Span<const uint64_t> /*indices*/, size_t /*place*/) const {
    return "";
  }

  // Share of the input that is read, 0 to 1; absent for pipes.
  virtual std::optional<double> Fraction() const = 0;

 protected:
  std::vector<std::string> notes_;
  uint64_t skipped_rows_ = 0;
};

// path: a file, or "-" for standard input. NotFound and others name the path and what to do.
absl::StatusOr<std::unique_ptr<RowReader>> OpenRowReader(const std::string& path,
                                                         const ReaderOptions& options);

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_READERS_ROW_READER_H_
