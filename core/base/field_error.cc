#include "core/base/field_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace kernelstream {
namespace {
constexpr absl::string_view kFieldPayload = "kernelstream/field";
}  // namespace

absl::Status InvalidField(absl::string_view path, absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kFieldPayload, absl::Cord(path));
  return status;
}

std::string Shortened(absl::string_view text) {
  constexpr size_t kShown = 64;
  if (text.size() <= kShown) return absl::Utf8SafeCHexEscape(text);
  return absl::StrCat(absl::Utf8SafeCHexEscape(text.substr(0, kShown)), "...");
}

std::string FieldPathOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kFieldPayload);
  return payload.has_value() ? std::string(*payload) : std::string();
}

absl::Status PrefixField(absl::string_view prefix, const absl::Status& status) {
  if (status.ok()) return status;
  absl::Status out = status;
  out.SetPayload(kFieldPayload, absl::Cord(absl::StrCat(prefix, FieldPathOf(status))));
  return out;
}

}  // namespace kernelstream
