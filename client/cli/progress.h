#ifndef KERNELSTREAM_CLIENT_CLI_PROGRESS_H_
#define KERNELSTREAM_CLIENT_CLI_PROGRESS_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "client/include/kernelstream/client.h"

namespace kernelstream::client {

// Thread-compatible. How far an update is, on standard error: one redrawn line with a bar on a
// terminal, a plain line every two seconds otherwise.
class ProgressLine {
 public:
  // silent: nothing is printed.
  explicit ProgressLine(bool silent);

  // Prints if it is time. fraction: share of the input that was read, if known.
  void Tick(const StreamProgress& progress, std::optional<double> fraction);
  // Ends a redrawn line, so that other text may follow.
  void Clear();

  absl::Duration elapsed() const;

 private:
  const bool silent_;
  const bool terminal_;
  const absl::Time start_;
  absl::Time next_;
  bool drawn_ = false;
};

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_CLI_PROGRESS_H_
