// Log lines: an event with fields, on stderr.
#ifndef KERNELSTREAM_SERVER_TELEMETRY_LOG_H_
#define KERNELSTREAM_SERVER_TELEMETRY_LOG_H_

#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace kernelstream::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
// kText: `2026-01-31T12:00:00.000Z INFO event=recovered model=churn step=81920`; values with spaces
// are quoted. kJson: one JSON object per line, with the keys time, level and event and the fields
// as strings.
enum class LogFormat { kText, kJson };

// INVALID_ARGUMENT: names what is known ("debug", "info", "warning", "error"; "text", "json").
absl::Status ParseLogLevel(absl::string_view text, LogLevel* level);
absl::Status ParseLogFormat(absl::string_view text, LogFormat* format);

// Once, before the first line; the default is info and text.
void SetUpLogging(LogLevel level, LogFormat format);

// A key with its value as text. Never put a secret or a row's contents into one.
struct LogField {
  template <typename T>
  LogField(absl::string_view k, const T& v) : key(k), value(absl::StrCat(v)) {}
  absl::string_view key;
  std::string value;
};

// Thread-safe. Writes one line, if `level` is enabled. `event` is a snake_case word.
void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields);

// The line Log would write, without time; for tests.
std::string FormatLogLine(LogFormat format, LogLevel level, absl::string_view time,
                          absl::string_view event, std::initializer_list<LogField> fields);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_TELEMETRY_LOG_H_
