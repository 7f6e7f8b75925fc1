// Values of the store: damaged bytes are DATA_LOSS, never a crash, never other rows. The first byte
// chooses the decoder.
#include <cstdlib>

#include "server/store/codec.h"
#include "tests/fuzz/fuzz.h"

namespace kernelstream {
namespace {

using namespace server::codec;  // NOLINT: every name of it is meant

enum Kind : uint8_t {
  kRows,
  kCheckpoint,
  kModel,
  kProducer,
  kRequest,
  kCut,
  kFormat,
  kRowChunk,
  kKinds
};

void Require(bool holds) {
  if (!holds) std::abort();
}

server::RowsRecord SeedRows() {
  server::RowsRecord record;
  record.producer_id = "p";
  record.producer_sequence = 4;
  record.next_producer_sequence = 7;
  record.rows.AddDense(std::vector<float>{1, 2, 3});
  record.rows.SetTarget(-1);
  record.rows.AddSparse(std::vector<uint64_t>{0, 900}, std::vector<float>{1, 2});
  record.rows.SetLabel("label");
  record.rows.SetWeight(2);
  return record;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  TrainerState state;
  state.labels = {"a", "b"};
  state.waiting = SeedRows().rows;
  state.kernel_parameters = {{"bandwidth", 2}};
  state.candidates.resize(1);
  state.candidates[0].last.values.assign(16, 1.0f);
  state.generations = {{.id = 2, .form = MetricForm::kDiagonal, .metric_dim = 1, .metric = {2}}};
  state.drift.label_weights = {1, 2};
  state.metrics.total.class_actual = state.metrics.total.class_predicted =
      state.metrics.total.class_correct = {1, 2};
  server::StoredModel model;
  model.name = "m";
  model.config.loss.name = "square";
  std::vector<std::string> seeds(kKinds);
  seeds[kRows] = EncodeRows(SeedRows());
  seeds[kCheckpoint] = EncodeCheckpoint(state);
  seeds[kModel] = EncodeModel(model);
  seeds[kProducer] = EncodeProducer({3, 9});
  seeds[kRequest] = EncodeRequest({"id", 1, "answer"});
  seeds[kCut] = EncodeCut();
  seeds[kFormat] = EncodeFormat(1);
  seeds[kRowChunk] = EncodeRowChunks(SeedRows().rows).front();
  for (size_t kind = 0; kind < seeds.size(); ++kind)
    seeds[kind].insert(0, 1, static_cast<char>(kind));
  return seeds;
}

}  // namespace kernelstream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kernelstream;  // NOLINT
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % kKinds) {
    case kRows: {
      const auto record = DecodeRows(10, bytes);
      if (!record.ok()) break;
      for (size_t i = 0; i < record->rows.size(); ++i) {
        const RowView row = record->rows.row(i);
        Require(!row.sparse || row.indices.size() == row.values.size());
      }
      Require(!record->rows.empty());
      break;
    }
    case kCheckpoint: {
      const auto state = DecodeCheckpoint(bytes);
      if (!state.ok()) break;
      Require(IsConsistent(state->metrics.recent) && IsConsistent(state->metrics.total));
      Require(state->candidates.empty() || !state->generations.empty());
      break;
    }
    case kRowChunk: {
      SampleBatch rows;
      Require(!AppendRowChunk(bytes, rows).ok() || !rows.empty());
      break;
    }
    case kModel:
      static_cast<void>(DecodeModel(1, bytes));
      break;
    case kProducer:
      static_cast<void>(DecodeProducer(bytes));
      break;
    case kRequest:
      static_cast<void>(DecodeRequest("id", bytes));
      break;
    case kCut:
      static_cast<void>(DecodeCut(1, bytes));
      break;
    case kFormat:
      static_cast<void>(DecodeFormat(bytes));
      break;
  }
  return 0;
}
