// SampleBatch <-> RowsBlock.
#ifndef KERNELSTREAM_SERVER_STORE_ROWS_CODEC_H_
#define KERNELSTREAM_SERVER_STORE_ROWS_CODEC_H_

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/model/sample_batch.h"
#include "kernelstream/storage/v1/record.pb.h"

namespace kernelstream::server::codec {

static_assert(std::endian::native == std::endian::little, "records hold the machine's own arrays");

void EncodeRowsBlock(const SampleBatch& rows, storage::v1::RowsBlock& out);
// DATA_LOSS: columns do not fit each other.
absl::Status DecodeRowsBlock(const storage::v1::RowsBlock& block, SampleBatch& out);

template <typename T>
absl::string_view BytesOf(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// False: not a whole number of values.
template <typename T>
bool ReadArray(absl::string_view bytes, std::vector<T>& out) {
  if (bytes.size() % sizeof(T) != 0) return false;
  out.resize(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return true;
}

}  // namespace kernelstream::server::codec

#endif  // KERNELSTREAM_SERVER_STORE_ROWS_CODEC_H_
