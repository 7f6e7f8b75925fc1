#include "server/store/keys.h"

#include <cstring>
#include <memory>

#include <xxhash.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace kernelstream::server::keys {
namespace {

constexpr size_t kChecksumBytes = 8;

void AppendBigEndian(uint64_t value, int bytes, std::string& out) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift));
  }
}

uint64_t ReadBigEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (char byte : bytes) value = (value << 8) | static_cast<unsigned char>(byte);
  return value;
}

std::string WithKind(ModelUid uid, char kind, absl::string_view rest) {
  std::string key = OfModel(uid);
  key.push_back(kind);
  key.append(rest.data(), rest.size());
  return key;
}

std::string Checksum(absl::string_view key, absl::string_view payload) {
  // Two passes over short strings instead of one over a copy: the key's hash seeds the payload's.
  const uint64_t seed = XXH3_64bits(key.data(), key.size());
  const uint64_t hash = XXH3_64bits_withSeed(payload.data(), payload.size(), seed);
  std::string out;
  for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>(hash >> shift));
  return out;
}

}  // namespace

std::string OfModel(ModelUid uid) {
  std::string key;
  AppendBigEndian(uid, 8, key);
  return key;
}

std::string OfModelRecord(ModelUid uid, absl::string_view name) {
  return absl::StrCat(OfModel(uid), name);
}

std::string OfLog(ModelUid uid, uint64_t sequence, char kind) {
  std::string key = OfModel(uid);
  AppendBigEndian(sequence, 8, key);
  key.push_back(kind);
  return key;
}

std::optional<LogKey> ParseLog(absl::string_view key) {
  if (key.size() != 17 || (key[16] != kRows && key[16] != kCut)) return std::nullopt;
  return LogKey{UidOf(key), ReadBigEndian(key.substr(8, 8)), key[16]};
}

std::string OfLastSequence(ModelUid uid) { return WithKind(uid, 's', ""); }
std::string OfLastRequest(ModelUid uid) { return WithKind(uid, 'r', ""); }

std::string OfProducer(ModelUid uid, absl::string_view producer_id) {
  return absl::StrCat(OfModel(uid), producer_id);
}

std::string OfRequest(ModelUid uid, absl::string_view request_id) {
  return WithKind(uid, 'i', request_id);
}

std::string OfRequestNumber(ModelUid uid, uint64_t number) {
  std::string rest;
  AppendBigEndian(number, 8, rest);
  return WithKind(uid, 'n', rest);
}

std::optional<uint64_t> ParseRequestNumber(ModelUid uid, absl::string_view key) {
  if (key.size() != 17 || UidOf(key) != uid || key[8] != 'n') return std::nullopt;
  return ReadBigEndian(key.substr(9));
}

std::string OfCheckpoint(ModelUid uid) { return WithKind(uid, 0, ""); }

std::string OfChunk(ModelUid uid, uint32_t set, uint32_t chunk) {
  std::string rest;
  AppendBigEndian(set, 4, rest);
  AppendBigEndian(chunk, 4, rest);
  return WithKind(uid, 1, rest);
}

std::string OfRowsChunk(ModelUid uid, uint32_t set, uint32_t chunk) {
  std::string rest;
  AppendBigEndian(set, 4, rest);
  AppendBigEndian(chunk, 4, rest);
  return WithKind(uid, 2, rest);
}

ModelUid UidOf(absl::string_view key) { return ReadBigEndian(key.substr(0, 8)); }

std::string Seal(absl::string_view key, absl::string_view payload) {
  return absl::StrCat(Checksum(key, payload), payload);
}

absl::StatusOr<absl::string_view> Unseal(absl::string_view key, absl::string_view value) {
  if (value.size() < kChecksumBytes) return absl::DataLossError("the value is too short");
  const absl::string_view payload = value.substr(kChecksumBytes);
  if (Checksum(key, payload) != value.substr(0, kChecksumBytes)) {
    return absl::DataLossError("the checksum does not match");
  }
  return payload;
}

}  // namespace kernelstream::server::keys
