#include "server/telemetry/log.h"

#include <atomic>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "spdlog/logger.h"
#include "spdlog/sinks/stdout_sinks.h"

namespace kernelstream::server {
namespace {

constexpr const char* kLevelNames[] = {"debug", "info", "warning", "error"};
constexpr const char* kShortNames[] = {"DEBUG", "INFO", "WARN", "ERROR"};
constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                 spdlog::level::warn, spdlog::level::err};

std::atomic<LogFormat> log_format{LogFormat::kText};

// Lives for ever: threads may log until the process ends.
spdlog::logger& Logger() {
  static spdlog::logger& logger = *[] {
    auto* made =
        new spdlog::logger("kernelstream", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->set_level(spdlog::level::info);
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return logger;
}

// Inside double quotes, in JSON's way; bytes that are not ASCII pass, control characters do not.
std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

bool NeedsQuotes(absl::string_view text) {
  if (text.empty()) return true;
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '=' || c == 0x7f || static_cast<unsigned char>(c) <= ' ') {
      return true;
    }
  }
  return false;
}

template <typename Enum, size_t n>
absl::Status Parse(absl::string_view what, absl::string_view text, const char* const (&names)[n],
                   Enum* out) {
  std::string known;
  for (size_t i = 0; i < n; ++i) {
    if (absl::AsciiStrToLower(text) == names[i]) {
      *out = static_cast<Enum>(i);
      return absl::OkStatus();
    }
    absl::StrAppend(&known, i == 0 ? "" : ", ", names[i]);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown ", what, " \"", text, "\"; expected one of: ", known));
}

}  // namespace

absl::Status ParseLogLevel(absl::string_view text, LogLevel* level) {
  return Parse("log level", text, kLevelNames, level);
}

absl::Status ParseLogFormat(absl::string_view text, LogFormat* format) {
  static constexpr const char* kNames[] = {"text", "json"};
  return Parse("log format", text, kNames, format);
}

void SetUpLogging(LogLevel level, LogFormat format) {
  log_format.store(format);
  Logger().set_level(kLevels[static_cast<int>(level)]);
}

std::string FormatLogLine(LogFormat format, LogLevel level, absl::string_view time,
                          absl::string_view event, std::initializer_list<LogField> fields) {
  if (format == LogFormat::kJson) {
    std::string line =
        absl::StrCat("{\"time\":", Quoted(time), ",\"level\":\"",
                     kLevelNames[static_cast<int>(level)], "\",\"event\":", Quoted(event));
    for (const LogField& field : fields) {
      absl::StrAppend(&line, ",", Quoted(field.key), ":", Quoted(field.value));
    }
    return line + "}";
  }
  std::string line =
      absl::StrCat(time, " ", kShortNames[static_cast<int>(level)], " event=", event);
  for (const LogField& field : fields) {
    absl::StrAppend(&line, " ", field.key, "=",
                    NeedsQuotes(field.value) ? Quoted(field.value) : field.value);
  }
  return line;
}

void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) {
  spdlog::logger& logger = Logger();
  const spdlog::level::level_enum spd_level = kLevels[static_cast<int>(level)];
  if (!logger.should_log(spd_level)) return;
  const std::string time =
      absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  const std::string line = FormatLogLine(log_format.load(), level, time, event, fields);
  logger.log(spd_level, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace kernelstream::server
