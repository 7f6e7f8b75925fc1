// Bytes of the wire <-> messages, with errors a caller can use.
#ifndef KERNELSTREAM_SERVER_SERVICE_WIRE_BYTES_H_
#define KERNELSTREAM_SERVER_SERVICE_WIRE_BYTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"

namespace kernelstream::server {

// gRPC's own decoding answers a message that does not parse with UNIMPLEMENTED, or on a stream as
// if the caller had finished, and one label that is not UTF-8 fails a whole message. So requests
// are decoded here.

// What the transport lets through, so that ParseMessage is there to name the limit and the flag.
int TransportLimit(uint64_t max_message_bytes);

// RESOURCE_EXHAUSTED: more than max_bytes. INVALID_ARGUMENT: not such a message, or a string that
// is not UTF-8. `bad_labels` gets the rows (by place in `samples` or `matrix.labels`) whose label
// is not UTF-8; those labels are changed. Null: they are errors like others.
absl::Status ParseMessage(const grpc::ByteBuffer& bytes, uint64_t max_bytes,
                          google::protobuf::Message* message, std::vector<uint64_t>* bad_labels);

// Protobuf writes a line of its own for every message that does not parse: callers would fill the
// log. Call once, early.
void QuietProtobuf();

grpc::ByteBuffer SerializeMessage(const google::protobuf::Message& message);

// For the messages of one request. Blocks grow to twice the one before, so that many rows take few.
// The first one is the caller's, if there is one.
google::protobuf::ArenaOptions GrowingBlocks(char* first = nullptr, size_t size = 0);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_WIRE_BYTES_H_
