#include "client/src/readers/numbers.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/src/utf8.h"

namespace kernelstream::client {
namespace {

constexpr size_t kMostQuotedBytes = 40;

absl::Status Parse(absl::string_view text, double limit, double* value) {
  text = absl::StripAsciiWhitespace(text);
  if (!absl::SimpleAtod(text, value)) {
    return absl::InvalidArgumentError(absl::StrCat(Quote(text), " is not a number"));
  }
  const char first_digit =
      text[text.find_first_not_of("+-") == absl::string_view::npos ? 0
                                                                   : text.find_first_not_of("+-")];
  if (std::isnan(*value) || (!absl::ascii_isdigit(first_digit) && first_digit != '.')) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quote(text), " is not a finite number; leave the row out or correct it"));
  }
  if (std::abs(*value) > limit) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quote(text), " is too large; values go up to 1e30, so rescale the column"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

bool IsMissing(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty() || text == "?") return true;
  if (text.size() > 4) return false;
  for (const absl::string_view word : {"na", "n/a", "nan", "null", "none"}) {
    if (absl::EqualsIgnoreCase(text, word)) return true;
  }
  return false;
}

absl::Status ParseTarget(absl::string_view text, double* value) {
  return Parse(text, DBL_MAX, value);
}

absl::Status ParsePopulation(absl::string_view text, Population* population) {
  text = absl::StripAsciiWhitespace(text);
  double number = 0;
  const bool is_number = absl::SimpleAtod(text, &number);
  if (absl::EqualsIgnoreCase(text, "numerator") || (is_number && number == 1)) {
    *population = Population::kNumerator;
  } else if (absl::EqualsIgnoreCase(text, "denominator") ||
             (is_number && (number == 0 || number == -1))) {
    *population = Population::kDenominator;
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        Quote(text), " is no population; give numerator (or 1) or denominator (or 0 or -1)"));
  }
  return absl::OkStatus();
}

absl::Status ParseFeature(absl::string_view text, float* value) {
  double wide = 0;
  if (absl::Status status = Parse(text, FLT_MAX, &wide); !status.ok()) return status;
  *value = static_cast<float>(wide);
  return absl::OkStatus();
}

std::string Quote(absl::string_view text) {
  const bool cut = text.size() > kMostQuotedBytes;
  size_t length = cut ? kMostQuotedBytes : text.size();
  while (cut && length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) --length;
  const absl::string_view shown = text.substr(0, length);
  return absl::StrCat("\"", IsUtf8(shown) ? absl::Utf8SafeCEscape(shown) : absl::CHexEscape(shown),
                      cut ? "..." : "", "\"");
}

}  // namespace kernelstream::client
