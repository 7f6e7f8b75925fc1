#include "server/service/wire_bytes.h"

#include <algorithm>
#include <climits>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "core/model/text.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/slice.h"
#include "server/service/status_mapping.h"

namespace kernelstream::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint64_t kSmallestTransportLimit = uint64_t{64} << 20;

// CodedInputStream's own limit where it parses.
const int kMaxDepth = CodedInputStream::GetDefaultRecursionLimit();

struct BadText {
  std::string path;
  bool is_row_label = false;
  uint64_t row = 0;
};

// Walks an encoded message and overwrites every string that is not UTF-8, so that it parses.
class TextRepair {
 public:
  explicit TextRepair(std::string* bytes)
      : bytes_(bytes),
        input_(reinterpret_cast<const uint8_t*>(bytes->data()), static_cast<int>(bytes->size())) {}

  // False: not an encoded message at all, or too_deep().
  bool Run(const Descriptor* type) { return Walk(type, "", 0, 0); }
  const std::vector<BadText>& found() const { return found_; }
  // Messages inside each other deeper than protobuf reads them.
  bool too_deep() const { return too_deep_; }

 private:
  // `place`: of this message in its repeated field.
  bool Walk(const Descriptor* type, const std::string& prefix, uint64_t place, int depth) {
    if (depth > kMaxDepth) {
      too_deep_ = true;
      return false;
    }
    std::vector<uint64_t> seen(static_cast<size_t>(type->field_count()));
    while (const uint32_t tag = input_.ReadTag()) {
      const FieldDescriptor* field =
          type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      const bool has_text =
          field != nullptr &&
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED &&
          (field->type() == FieldDescriptor::TYPE_MESSAGE ||
           field->type() == FieldDescriptor::TYPE_STRING);
      if (!has_text) {
        if (!WireFormatLite::SkipField(&input_, tag)) return false;
        continue;
      }
      uint32_t size = 0;
      if (!input_.ReadVarint32(&size) || size > bytes_->size()) return false;
      const uint64_t index = seen[static_cast<size_t>(field->index())]++;
      const std::string path = field->is_repeated()
                                   ? absl::StrCat(prefix, field->name(), "[", index, "]")
                                   : absl::StrCat(prefix, field->name());
      if (field->type() == FieldDescriptor::TYPE_STRING) {
        if (!CheckText(*field, path, index, place, size)) return false;
        continue;
      }
      const CodedInputStream::Limit limit = input_.PushLimit(static_cast<int>(size));
      if (!Walk(field->message_type(), path + ".", index, depth + 1) ||
          !input_.ConsumedEntireMessage()) {
        return false;
      }
      input_.PopLimit(limit);
    }
    return true;
  }

  bool CheckText(const FieldDescriptor& field, const std::string& path, uint64_t index,
                 uint64_t place, uint32_t size) {
    const size_t begin = static_cast<size_t>(input_.CurrentPosition());
    if (!input_.Skip(static_cast<int>(size))) return false;
    if (IsUtf8(absl::string_view(*bytes_).substr(begin, size))) return true;
    for (size_t i = begin; i < begin + size; ++i) {
      if (static_cast<unsigned char>((*bytes_)[i]) >= 0x80) (*bytes_)[i] = '?';
    }
    BadText bad{.path = path};
    if (field.full_name() == "kernelstream.v1.Sample.label") {
      bad.is_row_label = true;
      bad.row = place;
    } else if (field.full_name() == "kernelstream.v1.SampleMatrix.labels") {
      bad.is_row_label = true;
      bad.row = index;
    }
    found_.push_back(std::move(bad));
    return true;
  }

  std::string* const bytes_;
  CodedInputStream input_;
  std::vector<BadText> found_;
  bool too_deep_ = false;
};

absl::Status ParseRepaired(const grpc::ByteBuffer& bytes, google::protobuf::Message* message,
                           std::vector<uint64_t>* bad_labels) {
  std::vector<grpc::Slice> slices;
  std::string flat;
  if (!bytes.Dump(&slices).ok()) return absl::InternalError("the request could not be read");
  flat.reserve(bytes.Length());
  for (const grpc::Slice& slice : slices) {
    flat.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  TextRepair repair(&flat);
  const bool walked = repair.Run(message->GetDescriptor());
  if (repair.too_deep()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", message->GetDescriptor()->full_name(), " sent has more than ", kMaxDepth,
        " messages inside each other; protobuf reads no more. Kernels are "
        "nested at most 3 deep"));
  }
  if (!walked || repair.found().empty() || !message->ParseFromString(flat)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", bytes.Length(), " bytes sent are not an encoded ",
        message->GetDescriptor()->full_name(), "; generate the client from proto/kernelstream/v1"));
  }
  for (const BadText& bad : repair.found()) {
    if (bad.is_row_label && bad_labels != nullptr) {
      bad_labels->push_back(bad.row);
    } else {
      return InvalidField(bad.path, "the text is not UTF-8; send UTF-8");
    }
  }
  return absl::OkStatus();
}

}  // namespace

int TransportLimit(uint64_t max_message_bytes) {
  return static_cast<int>(
      std::min<uint64_t>(INT_MAX, std::max(kSmallestTransportLimit, 4 * max_message_bytes)));
}

absl::Status ParseMessage(const grpc::ByteBuffer& bytes, uint64_t max_bytes,
                          google::protobuf::Message* message, std::vector<uint64_t>* bad_labels) {
  if (bytes.Length() > max_bytes) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat(
            "the message has ", bytes.Length(), " bytes; this server takes up to ", max_bytes,
            " (--max_message_mib=", max_bytes >> 20, "). Send fewer rows at a time")),
        kMessageTooLarge);
  }
  if (bytes.Length() == 0) {  // the encoding of a message with nothing set
    message->Clear();
    return absl::OkStatus();
  }
  grpc::ByteBuffer copy = bytes;  // shares the bytes; the reader wants to own something
  {
    grpc::ProtoBufferReader reader(&copy);
    if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) return absl::OkStatus();
  }
  return ParseRepaired(bytes, message, bad_labels);
}

void QuietProtobuf() { google::protobuf::SetLogHandler(nullptr); }

grpc::ByteBuffer SerializeMessage(const google::protobuf::Message& message) {
  grpc::Slice slice(message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

google::protobuf::ArenaOptions GrowingBlocks(char* first, size_t size) {
  constexpr size_t kLargestBlockBytes = 1 << 20;
  google::protobuf::ArenaOptions options;
  options.initial_block = first;
  options.initial_block_size = size;
  options.max_block_size = kLargestBlockBytes;
  return options;
}

}  // namespace kernelstream::server
