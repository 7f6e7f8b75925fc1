// A 128-bit digest of bytes (XXH3), to compare states and detect damage. Not for security.
#ifndef KERNELSTREAM_CORE_BASE_DIGEST_H_
#define KERNELSTREAM_CORE_BASE_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

struct XXH3_state_s;

namespace kernelstream {

// Thread-compatible. The digest of everything added so far, as if it were one run of bytes; equal
// on every machine.
class Digest128 {
 public:
  Digest128();

  void Add(const void* data, size_t size);
  // Eight bytes, least significant first.
  void AddU64(uint64_t value);
  // The bits of the value: 0.0 and -0.0 differ, so do NaNs with different bits.
  void AddDouble(double value);

  // Canonical (big-endian) bytes. More may be added afterwards.
  std::array<uint8_t, 16> Finish() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

// 32 lower-case hexadecimal digits.
std::string DigestHex(const std::array<uint8_t, 16>& digest);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_BASE_DIGEST_H_
