// What the codecs share: records to bytes and back, enumerations to their numbers on disk, lists.
#ifndef KERNELSTREAM_SERVER_STORE_RECORD_BYTES_H_
#define KERNELSTREAM_SERVER_STORE_RECORD_BYTES_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message_lite.h"
#include "google/protobuf/repeated_field.h"

namespace kernelstream::server::codec {

// Maps are written in key order.
inline std::string Serialize(const google::protobuf::MessageLite& message) {
  std::string out;
  out.reserve(message.ByteSizeLong());
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return out;
}

// DATA_LOSS: the bytes are not such a message.
inline absl::Status Parse(absl::string_view bytes, google::protobuf::MessageLite& message) {
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError(absl::StrCat("not a ", message.GetTypeName()));
  }
  return absl::OkStatus();
}

// The code's enumerations start at 0 and the file's at 1, in the same order.
template <typename Record, typename Enum>
Record EnumToRecord(Enum value) {
  return static_cast<Record>(static_cast<int>(value) + 1);
}

// False: a number this version does not know.
template <typename Enum>
bool EnumFromRecord(int record, Enum last, Enum& out) {
  if (record < 1 || record > static_cast<int>(last) + 1) return false;
  out = static_cast<Enum>(record - 1);
  return true;
}

using Doubles = google::protobuf::RepeatedField<double>;

inline void Copy(std::span<const double> values, Doubles* out) {
  out->Add(values.begin(), values.end());
}
inline void Copy(const Doubles& values, std::vector<double>& out) {
  out.assign(values.begin(), values.end());
}

}  // namespace kernelstream::server::codec

#endif  // KERNELSTREAM_SERVER_STORE_RECORD_BYTES_H_
