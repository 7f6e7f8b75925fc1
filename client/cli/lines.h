#ifndef KERNELSTREAM_CLIENT_CLI_LINES_H_
#define KERNELSTREAM_CLIENT_CLI_LINES_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "client/include/kernelstream/client.h"
#include "client/src/readers/row_reader.h"

namespace kernelstream::client {

// Where a row stands in its file, and which inputs it has if it is sparse.
struct SentLine {
  uint64_t line = 0;
  std::vector<uint64_t> indices;
};
SentLine LineOf(const SourceRow& row);

// What the file calls the input that the server's error about such a row is about ("column
// \"age\""); empty if it is about something else, or the server calls it the same.
std::string InputOf(const absl::Status& error, const RowReader& reader, const SentLine& row);

// Where in the file that is, of an error about one request with these rows: "line 7, column
// \"age\""; empty if the error names no row.
std::string PlaceOf(const absl::Status& error, const RowReader& reader,
                    absl::Span<const SentLine> rows);

struct LineProblem {
  uint64_t line = 0;
  std::string input;  // as InputOf
  std::string message;
};

// Thread-safe. Which line each unacknowledged row came from, and the rows the server refused.
class Lines {
 public:
  static constexpr size_t kMostListed = 20;

  // reader: must outlive this.
  Lines(const RowReader* reader, uint64_t first_row) : reader_(*reader), first_row_(first_row) {}

  void Sent(SentLine line);
  void Acknowledged(const StreamAck& ack);
  // The first kMostListed refused rows.
  std::vector<LineProblem> listed() const;
  uint64_t rejected() const;
  // Line of the first row not acknowledged; of the last row sent if there is none.
  uint64_t next_line() const;
  // True once an ack has told what the model is.
  bool model_is_known() const;

 private:
  const RowReader& reader_;
  mutable absl::Mutex mu_;
  uint64_t first_row_ ABSL_GUARDED_BY(mu_);
  uint64_t last_line_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<SentLine> lines_ ABSL_GUARDED_BY(mu_);
  std::vector<LineProblem> listed_ ABSL_GUARDED_BY(mu_);
  uint64_t rejected_ ABSL_GUARDED_BY(mu_) = 0;
  bool model_is_known_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_CLI_LINES_H_
