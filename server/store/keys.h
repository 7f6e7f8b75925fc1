// Keys of the data directory, and the frame around its values. FORMAT.md is the specification.
#ifndef KERNELSTREAM_SERVER_STORE_KEYS_H_
#define KERNELSTREAM_SERVER_STORE_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/store.h"

namespace kernelstream::server::keys {

// Big-endian numbers, so that keys sort as the numbers do.
std::string OfModel(
    ModelUid uid);  // also the prefix of all keys of the model, in every column family
std::string OfModelRecord(ModelUid uid, absl::string_view name);

// Log: uid, sequence, kind. A cut sorts after the rows record that begins at its sequence.
inline constexpr char kRows = 0;
inline constexpr char kCut = 1;
std::string OfLog(ModelUid uid, uint64_t sequence, char kind);
struct LogKey {
  ModelUid uid = 0;
  uint64_t sequence = 0;
  char kind = kRows;
};
std::optional<LogKey> ParseLog(absl::string_view key);

std::string OfLastSequence(ModelUid uid);
std::string OfLastRequest(ModelUid uid);
std::string OfProducer(ModelUid uid, absl::string_view producer_id);
std::string OfRequest(ModelUid uid, absl::string_view request_id);
std::string OfRequestNumber(ModelUid uid, uint64_t number);
// The number of an OfRequestNumber key of this model; nullopt for any other key.
std::optional<uint64_t> ParseRequestNumber(ModelUid uid, absl::string_view key);
std::string OfCheckpoint(ModelUid uid);
// set: 2 * candidate, + 1 for the average. OfChunk(uid, 0, 0) is the first of all chunks of the
// model.
std::string OfChunk(ModelUid uid, uint32_t set, uint32_t chunk);
// set: 0 recent rows, the older half; 1 the newer half; 2 the reservoir; 3 the rows held out.
std::string OfRowsChunk(ModelUid uid, uint32_t set, uint32_t chunk);
inline constexpr char kFormat[] = "format";
inline constexpr char kLastUid[] = "last_uid";

// The uid at the front of a key of at least 8 bytes.
ModelUid UidOf(absl::string_view key);

// value = XXH3-64 of key and payload (8 bytes, little-endian), payload.
std::string Seal(absl::string_view key, absl::string_view payload);
// The payload. DATA_LOSS: the value was not sealed under this key, or has changed since.
absl::StatusOr<absl::string_view> Unseal(absl::string_view key, absl::string_view value);

}  // namespace kernelstream::server::keys

#endif  // KERNELSTREAM_SERVER_STORE_KEYS_H_
