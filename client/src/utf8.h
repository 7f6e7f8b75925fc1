#ifndef KERNELSTREAM_CLIENT_SRC_UTF8_H_
#define KERNELSTREAM_CLIENT_SRC_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace kernelstream::client {

// True if text is well-formed UTF-8: shortest forms only, no surrogates, up to U+10FFFF.
inline bool IsUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int length = lead < 0x80                   ? 1
                       : lead >= 0xC2 && lead < 0xE0 ? 2
                       : lead >= 0xE0 && lead < 0xF0 ? 3
                       : lead >= 0xF0 && lead < 0xF5 ? 4
                                                     : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (int k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    }
    if (length > 2) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
          (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
        return false;
      }
    }
    i += length;
  }
  return true;
}

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_UTF8_H_
