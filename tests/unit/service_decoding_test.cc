// What the service makes of bytes and rows, without a server.
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "core/model/row_rules.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "kernelstream/v1/model_service.pb.h"
#include "server/service/wire_bytes.h"
#include "server/service/wire_rows.h"

namespace kernelstream::server {
namespace {

// A CreateModelRequest whose kernel has terms in terms, `depth` components in all, and an unknown
// field in the innermost one's name if `spoiled`. Written back to front: sizes come last.
std::string Nested(size_t depth, bool spoiled) {
  std::string reversed;
  const auto wrap = [&](int field) {
    uint64_t size = reversed.size();
    std::string varint;
    do {
      varint += static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0));
      size >>= 7;
    } while (size > 0);
    reversed.append(varint.rbegin(), varint.rend());
    reversed += static_cast<char>(field << 3 | 2);
  };
  reversed = spoiled ? "\xff" : "x";
  wrap(v1::Component::kNameFieldNumber);
  for (size_t i = 1; i < depth; ++i) {
    wrap(v1::Component::Term::kComponentFieldNumber);
    wrap(v1::Component::kTermsFieldNumber);
  }
  wrap(v1::ModelConfig::kKernelFieldNumber);
  wrap(v1::CreateModelRequest::kConfigFieldNumber);
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

absl::Status Parsed(const std::string& bytes, v1::CreateModelRequest* request) {
  const grpc::Slice slice(bytes);
  return ParseMessage(grpc::ByteBuffer(&slice, 1), 64 << 20, request, nullptr);
}

TEST(ParseMessage, RefusesDeepNestingByName) {
  QuietProtobuf();
  v1::CreateModelRequest request;
  EXPECT_TRUE(Parsed(Nested(3, false), &request).ok());
  EXPECT_EQ(request.config().kernel().terms(0).component().terms(0).component().name(), "x");
  EXPECT_TRUE(absl::StrContains(FieldPathOf(Parsed(Nested(3, true), &request)), "terms[0]"));
  // So deep that a walk without a limit would leave the stack.
  for (const size_t depth : {60, 1000, 100000}) {
    const absl::Status status = Parsed(Nested(depth, false), &request);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), "more than 100 messages inside each other"))
        << depth << status;
  }
  EXPECT_TRUE(absl::StrContains(Parsed("nonsense", &request).message(), "are not an encoded"));
}

TEST(WireRows, NameTheNumberThatAKernelRefuses) {
  InstanceList instances;
  for (const double shift : {0.0, 2.0}) {
    auto& numbers = *instances.Add()->mutable_named()->mutable_numbers();
    numbers["a"] = 1 - shift, numbers["second"] = 0.5 - shift, numbers["c"] = 0.75 - shift;
  }
  instances.Add()->mutable_dense()->add_values(-1);
  const auto rows = DecodeInstances(instances, nullptr, 10);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->Path("instances", 1, kSmallestNumberPath), "instances[1].named.numbers[second]");
  EXPECT_EQ(rows->Path("samples", 1, kSmallestNumberPath),
            "samples[1].features.named.numbers[second]");
  EXPECT_EQ(rows->Path("instances", 0, kSmallestNumberPath), "instances[0].named.numbers");

  ModelConfig config;
  config.loss.name = "square";
  config.kernel.name = "chi2";
  config.hashed = true;
  ASSERT_TRUE(CompleteConfig(config).ok());
  const auto rules = RowRules::Create(config);
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_TRUE((*rules)->CheckInput("m", 0, rows->rows.row(0)).ok());
  const absl::Status status = (*rules)->CheckInput("m", 0, rows->rows.row(1));
  EXPECT_EQ(FieldPathOf(status), kSmallestNumberPath);
  EXPECT_TRUE(absl::StrContains(status.message(), "a number is -1.5; kernel \"chi2\"")) << status;
}

}  // namespace
}  // namespace kernelstream::server
