#include "core/base/digest.h"

#include <xxhash.h>

#include <bit>
#include <cstring>
#include <new>

namespace kernelstream {

void Digest128::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Digest128::Digest128() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void Digest128::Add(const void* data, size_t size) {
  if (size > 0) XXH3_128bits_update(state_.get(), data, size);
}

void Digest128::AddU64(uint64_t value) {
  uint8_t bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(value >> (8 * i));
  Add(bytes, sizeof(bytes));
}

void Digest128::AddDouble(double value) { AddU64(std::bit_cast<uint64_t>(value)); }

std::array<uint8_t, 16> Digest128::Finish() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
  std::array<uint8_t, 16> digest;
  std::memcpy(digest.data(), canonical.digest, digest.size());
  return digest;
}

std::string DigestHex(const std::array<uint8_t, 16>& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const uint8_t byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace kernelstream
