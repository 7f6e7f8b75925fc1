// Requests as bytes: whatever a caller sends is decoded to rows that pass the rules, or refused row
// by row.
#include <cmath>
#include <cstdlib>

#include "core/model/row_rules.h"
#include "kernelstream/v1/online_update_service.pb.h"
#include "server/service/wire_bytes.h"
#include "server/service/wire_rows.h"
#include "tests/fuzz/fuzz.h"

namespace kernelstream {
namespace {

constexpr uint64_t kMaxRows = 4096;

void Require(bool holds) {
  if (!holds) std::abort();
}

const RowRules& Rules() {
  static const RowRules& rules = [&]() -> const RowRules& {
    ModelConfig config;
    config.loss.name = "softmax";
    Require(CompleteConfig(config).ok());
    return *RowRules::Create(config)->release();
  }();
  return rules;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  v1::UpdateRequest samples;
  samples.set_model("m");
  v1::Sample* dense = samples.add_samples();
  for (const float value : {1.0f, 2.0f, 3.0f})
    dense->mutable_features()->mutable_dense()->add_values(value);
  dense->set_value(1);
  v1::Sample* sparse = samples.add_samples();
  sparse->mutable_features()->mutable_sparse()->add_indices(5);
  sparse->mutable_features()->mutable_sparse()->add_values(1);
  sparse->set_label("yes");
  sparse->set_weight(2);
  v1::UpdateRequest matrix;
  matrix.mutable_matrix()->set_rows(2);
  matrix.mutable_matrix()->set_dimension(3);
  matrix.mutable_matrix()->set_values(std::string(24, '\0'));
  matrix.mutable_matrix()->add_labels("a");
  matrix.mutable_matrix()->add_labels("b");
  return {samples.SerializeAsString(), matrix.SerializeAsString()};
}

}  // namespace kernelstream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kernelstream;  // NOLINT
  static const bool quiet = (server::QuietProtobuf(), true);
  static_cast<void>(quiet);
  const grpc::Slice slice(data, size);
  const grpc::ByteBuffer bytes(&slice, 1);
  v1::UpdateRequest request;
  std::vector<uint64_t> bad_labels;
  if (!server::ParseMessage(bytes, uint64_t{1} << 24, &request, &bad_labels).ok()) return 0;
  const auto rows = server::DecodeSamples(
      request.samples(), request.has_matrix() ? &request.matrix() : nullptr, bad_labels, kMaxRows);
  if (!rows.ok()) return 0;
  Require(rows->rows.size() == rows->places.size());
  Require(rows->rows.size() + rows->rejected.size() == rows->count);
  for (size_t i = 0; i < rows->rows.size(); ++i) {
    const RowView row = rows->rows.row(i);
    if (!Rules().CheckInput("m", 0, row).ok()) continue;
    for (const float value : row.values) Require(std::isfinite(value));
    Require(row.MinDimension() <= kMaxInputDimension);
    static_cast<void>(Rules().CheckTarget("m", rows->rows.target(i), rows->rows.weight(i), 0, {}));
  }
  return 0;
}
