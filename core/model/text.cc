#include "core/model/text.h"

#include <charconv>
#include <cstdint>

namespace kernelstream {

bool IsUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    size_t length = 0;
    uint32_t point = 0, least = 0;
    if (lead < 0x80) {
      ++i;
      continue;
    } else if (lead >> 5 == 0x6) {
      length = 2, point = lead & 0x1F, least = 0x80;
    } else if (lead >> 4 == 0xE) {
      length = 3, point = lead & 0x0F, least = 0x800;
    } else if (lead >> 3 == 0x1E) {
      length = 4, point = lead & 0x07, least = 0x10000;
    } else {
      return false;
    }
    if (i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k) {
      const auto next = static_cast<uint8_t>(text[i + k]);
      if (next >> 6 != 0x2) return false;
      point = (point << 6) | (next & 0x3F);
    }
    if (point < least || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return false;
    i += length;
  }
  return true;
}

std::string ShortestDecimal(double value) {
  if (value == 0) return "0";
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

}  // namespace kernelstream
