// Values <-> the records of proto/kernelstream/storage/v1, without keys and checksums.
#ifndef KERNELSTREAM_SERVER_STORE_CODEC_H_
#define KERNELSTREAM_SERVER_STORE_CODEC_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/store.h"

namespace kernelstream::server::codec {

// Version of keys, frame and records that is written; see FORMAT.md.
inline constexpr uint32_t kFormatVersion = 2;

// Decoders: DATA_LOSS if the bytes are not such a record. Encoding is deterministic.
std::string EncodeFormat(uint32_t version);
absl::StatusOr<uint32_t> DecodeFormat(absl::string_view bytes);
std::string EncodeCounter(uint64_t value);
absl::StatusOr<uint64_t> DecodeCounter(absl::string_view bytes);
std::string EncodeModel(const StoredModel& model);
absl::StatusOr<StoredModel> DecodeModel(ModelUid uid, absl::string_view bytes);
std::string EncodeRows(const RowsRecord& record);
absl::StatusOr<RowsRecord> DecodeRows(uint64_t first_sequence, absl::string_view bytes);
std::string EncodeCut();
absl::StatusOr<CutRecord> DecodeCut(uint64_t sequence, absl::string_view bytes);
std::string EncodeProducer(const ProducerPosition& position);
absl::StatusOr<ProducerPosition> DecodeProducer(absl::string_view bytes);
std::string EncodeRequest(const RequestRecord& request);
absl::StatusOr<RequestRecord> DecodeRequest(absl::string_view request_id, absl::string_view bytes);
std::string EncodeRequestNumber(absl::string_view request_id);
absl::StatusOr<std::string> DecodeRequestNumber(absl::string_view bytes);

// Sets of rows of a state that are kept in chunks of their own, by number.
inline constexpr size_t kNumRowSets = 4;
using RowCounts = std::array<uint64_t, kNumRowSets>;
template <typename State>
auto RowSetsOf(State& state) {
  return std::array{&state.recent.previous, &state.recent.current, &state.reservoir.rows,
                    &state.held_out.rows};
}

// Everything of the state but the coefficients' values and the rows of its row sets.
std::string EncodeCheckpoint(const TrainerState& state);
// The state with each coefficient vector sized, to be filled from its chunks, and no row in its row
// sets; `row_counts`, if not null: how many belong there.
absl::StatusOr<TrainerState> DecodeCheckpoint(absl::string_view bytes,
                                              RowCounts* row_counts = nullptr);
// One chunk after the other, each of about 1 MiB or one row.
std::vector<std::string> EncodeRowChunks(const SampleBatch& rows);
// DATA_LOSS: not such a chunk.
absl::Status AppendRowChunk(absl::string_view bytes, SampleBatch& rows);

// A chunk is raw little-endian float32: values [chunk * kChunkValues, ...) of one coefficient set.
inline constexpr size_t kChunkValues = size_t{1} << 18;  // 1 MiB
inline size_t NumChunks(size_t num_values) {
  return (num_values + kChunkValues - 1) / kChunkValues;
}
absl::string_view ChunkBytes(const std::vector<float>& values, size_t chunk);
absl::Status FillChunk(absl::string_view bytes, size_t chunk, std::vector<float>& values);

}  // namespace kernelstream::server::codec

#endif  // KERNELSTREAM_SERVER_STORE_CODEC_H_
