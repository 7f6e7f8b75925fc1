#include "client/cli/progress.h"

#include <unistd.h>

#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/print.h"

namespace kernelstream::client {
namespace {

constexpr int kBarWidth = 24;
constexpr absl::Duration kRedraw = absl::Milliseconds(100);
constexpr absl::Duration kPlain = absl::Seconds(2);

}  // namespace

ProgressLine::ProgressLine(bool silent)
    : silent_(silent),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(absl::Now()),
      next_(start_ + (terminal_ ? kRedraw : kPlain)) {}

absl::Duration ProgressLine::elapsed() const { return absl::Now() - start_; }

void ProgressLine::Tick(const StreamProgress& progress, std::optional<double> fraction) {
  const absl::Time now = absl::Now();
  if (silent_ || now < next_) return;
  next_ = now + (terminal_ ? kRedraw : kPlain);
  std::string line;
  if (fraction) {
    if (terminal_) {
      const int filled = static_cast<int>(*fraction * kBarWidth);
      line =
          absl::StrCat("[", std::string(filled, '#'), std::string(kBarWidth - filled, '.'), "] ");
    }
    absl::StrAppendFormat(&line, "%3.0f %%  ", 100 * *fraction);
  }
  const double seconds = std::max(1e-3, absl::ToDoubleSeconds(now - start_));
  absl::StrAppend(
      &line, WithCommas(progress.rows_acknowledged), " rows  ",
      WithCommas(static_cast<uint64_t>(static_cast<double>(progress.rows_acknowledged) / seconds)),
      " rows/s");
  if (progress.validation) {
    const std::string recent = RecentText(*progress.validation);
    if (!recent.empty()) absl::StrAppend(&line, "  ", recent);
  }
  if (progress.num_features != 0) {
    absl::StrAppend(&line, "  ", WithCommas(progress.num_features), " features");
  }
  if (progress.rows_rejected != 0) {
    absl::StrAppend(&line, "  ", WithCommas(progress.rows_rejected), " rejected");
  }
  if (terminal_) {
    std::cerr << "\r\033[K" << line << std::flush;
    drawn_ = true;
  } else {
    std::cerr << line << std::endl;
  }
}

void ProgressLine::Clear() {
  if (drawn_) std::cerr << "\r\033[K" << std::flush;
  drawn_ = false;
}

}  // namespace kernelstream::client
