#include "server/store/rows_codec.h"

#include <algorithm>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace kernelstream::server::codec {
namespace {

using storage::v1::RowsBlock;

absl::Status Misfit(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("a rows record's ", what, " do not fit its rows"));
}

template <typename T>
void AppendBytes(std::span<const T> values, std::string& out) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

template <typename T>
void AppendValue(const T& value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The columns of a block, checked for size and ready to be read row by row.
struct Columns {
  std::vector<float> values, weights;
  std::vector<uint64_t> indices;
  std::vector<double> targets, vector_targets;
};

absl::Status ReadIndices(const RowsBlock& block, std::vector<uint64_t>& out) {
  if (!block.wide_indices().empty()) {
    return block.indices().empty() && ReadArray(block.wide_indices(), out) ? absl::OkStatus()
                                                                           : Misfit("wide indices");
  }
  std::vector<uint32_t> narrow;
  if (!ReadArray(block.indices(), narrow)) return Misfit("indices");
  out.assign(narrow.begin(), narrow.end());
  return absl::OkStatus();
}

void EncodeIndices(const SampleBatch& rows, RowsBlock& out) {
  bool wide = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto indices = rows.row(i).indices;
    wide |= std::any_of(indices.begin(), indices.end(), [](uint64_t j) { return j > UINT32_MAX; });
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto indices = rows.row(i).indices;
    if (wide) {
      AppendBytes(indices, *out.mutable_wide_indices());
      continue;
    }
    for (const uint64_t index : indices) {
      AppendValue(static_cast<uint32_t>(index), *out.mutable_indices());
    }
  }
}

int KindOf(const TargetView& target) {
  switch (target.kind) {
    case TargetKind::kValue:
    case TargetKind::kLabel:
      return RowsBlock::NUMBER_OR_LABEL;
    case TargetKind::kVector:
      return RowsBlock::VECTOR;
    case TargetKind::kPopulation:
      return target.population == Population::kNumerator ? RowsBlock::NUMERATOR
                                                         : RowsBlock::DENOMINATOR;
    case TargetKind::kNone:
      break;
  }
  return RowsBlock::NONE;
}

int KindAt(const RowsBlock& block, size_t row) {
  if (block.target_kinds().empty()) return RowsBlock::NUMBER_OR_LABEL;
  return static_cast<unsigned char>(block.target_kinds()[row]);
}

absl::Status CheckTargetKinds(const RowsBlock& block, Columns& columns) {
  if (!block.target_kinds().empty() && block.target_kinds().size() != block.rows()) {
    return Misfit("target kinds");
  }
  if (!ReadArray(block.vector_targets(), columns.vector_targets)) return Misfit("vector targets");
  const auto sizes = static_cast<size_t>(block.vector_sizes_size());
  uint64_t vectors = 0, values = 0;
  for (uint32_t i = 0; i < block.rows(); ++i) {
    const int kind = KindAt(block, i);
    if (!RowsBlock::TargetKind_IsValid(kind)) return Misfit("target kinds");
    if (kind != RowsBlock::NUMBER_OR_LABEL && block.label_numbers_size() != 0 &&
        block.label_numbers(static_cast<int>(i)) != 0) {
      return Misfit("label numbers");
    }
    if (kind != RowsBlock::VECTOR) continue;
    if (sizes != 1 && vectors >= sizes) return Misfit("vector sizes");
    values += block.vector_sizes(sizes == 1 ? 0 : static_cast<int>(vectors));
    ++vectors;
    if (values > columns.vector_targets.size()) return Misfit("vector targets");
  }
  if (sizes != 1 && vectors != sizes) return Misfit("vector sizes");
  if (values != columns.vector_targets.size()) return Misfit("vector targets");
  return absl::OkStatus();
}

void EncodeTargetKinds(const SampleBatch& rows, RowsBlock& out) {
  bool uniform = true;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TargetView target = rows.target(i);
    out.mutable_target_kinds()->push_back(static_cast<char>(KindOf(target)));
    if (target.kind != TargetKind::kVector) continue;
    out.add_vector_sizes(static_cast<uint32_t>(target.values.size()));
    uniform &= out.vector_sizes(0) == target.values.size();
    AppendBytes(target.values, *out.mutable_vector_targets());
  }
  if (uniform && out.vector_sizes_size() > 1) out.mutable_vector_sizes()->Truncate(1);
}

absl::Status CheckColumns(const RowsBlock& block, Columns& columns) {
  const uint64_t rows = block.rows();
  const auto fits = [rows](uint64_t size) { return size == 0 || size == rows; };
  if (block.value_counts_size() != 1 && static_cast<uint64_t>(block.value_counts_size()) != rows) {
    return Misfit("value counts");
  }
  if (!fits(block.sparse().size())) return Misfit("sparse flags");
  if (!ReadArray(block.values(), columns.values)) return Misfit("values");
  if (absl::Status status = ReadIndices(block, columns.indices); !status.ok()) return status;
  if (!ReadArray(block.targets(), columns.targets) || !fits(columns.targets.size())) {
    return Misfit("targets");
  }
  if (!ReadArray(block.weights(), columns.weights) || !fits(columns.weights.size())) {
    return Misfit("weights");
  }
  if (!fits(block.label_numbers_size())) return Misfit("label numbers");
  uint64_t values = 0, indices = 0;
  for (uint64_t i = 0; i < rows; ++i) {
    const uint32_t count = block.value_counts(block.value_counts_size() == 1 ? 0 : i);
    values += count;
    if (!block.sparse().empty() && block.sparse()[i] != 0) indices += count;
    // Counts come from the disk: stop before a sum could wrap.
    if (values > columns.values.size()) return Misfit("values");
  }
  if (values != columns.values.size()) return Misfit("values");
  if (indices != columns.indices.size()) return Misfit("indices");
  for (uint32_t number : block.label_numbers()) {
    if (number > static_cast<uint32_t>(block.labels_size())) return Misfit("labels");
  }
  return CheckTargetKinds(block, columns);
}

}  // namespace

void EncodeRowsBlock(const SampleBatch& rows, RowsBlock& out) {
  out.set_rows(static_cast<uint32_t>(rows.size()));
  bool any_sparse = false, any_target = false, any_weight = false, any_label = false;
  bool any_other = false, uniform = true;
  size_t values = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TargetView target = rows.target(i);
    any_sparse |= rows.row(i).sparse;
    any_label |= target.kind == TargetKind::kLabel;
    any_other |= KindOf(target) != RowsBlock::NUMBER_OR_LABEL;
    // By bits: -0.0 and NaN are to come back as they are.
    any_target |= std::bit_cast<uint64_t>(target.value) != 0;
    any_weight |= std::bit_cast<uint32_t>(rows.weight(i)) != std::bit_cast<uint32_t>(1.0f);
    uniform &= rows.row(i).values.size() == rows.row(0).values.size();
    values += rows.row(i).values.size();
  }
  out.mutable_values()->reserve(values * sizeof(float));
  absl::flat_hash_map<absl::string_view, uint32_t> numbers;
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowView row = rows.row(i);
    const TargetView target = rows.target(i);
    if (i == 0 || !uniform) out.add_value_counts(static_cast<uint32_t>(row.values.size()));
    AppendBytes(row.values, *out.mutable_values());
    if (any_sparse) out.mutable_sparse()->push_back(row.sparse ? 1 : 0);
    if (any_target) AppendValue(target.value, *out.mutable_targets());
    if (any_weight) AppendValue(rows.weight(i), *out.mutable_weights());
    if (!any_label) continue;
    if (target.kind != TargetKind::kLabel) {
      out.add_label_numbers(0);
      continue;
    }
    const auto [place, is_new] = numbers.emplace(target.label, out.labels_size() + 1);
    if (is_new) out.add_labels(std::string(target.label));
    out.add_label_numbers(place->second);
  }
  if (any_sparse) EncodeIndices(rows, out);
  if (any_other) EncodeTargetKinds(rows, out);
}

absl::Status DecodeRowsBlock(const RowsBlock& block, SampleBatch& out) {
  out.Clear();
  if (block.rows() == 0) return absl::OkStatus();
  Columns columns;
  if (absl::Status status = CheckColumns(block, columns); !status.ok()) return status;
  std::span<const float> values = columns.values;
  std::span<const uint64_t> indices = columns.indices;
  std::span<const double> vectors = columns.vector_targets;
  int vector = 0;
  for (uint32_t i = 0; i < block.rows(); ++i) {
    const uint32_t count = block.value_counts(block.value_counts_size() == 1 ? 0 : i);
    if (!block.sparse().empty() && block.sparse()[i] != 0) {
      out.AddSparse(indices.first(count), values.first(count));
      indices = indices.subspan(count);
    } else {
      out.AddDense(values.first(count));
    }
    values = values.subspan(count);
    switch (KindAt(block, i)) {
      case RowsBlock::NUMBER_OR_LABEL: {
        const uint32_t number = block.label_numbers_size() == 0 ? 0 : block.label_numbers(i);
        if (number != 0) {
          out.SetLabel(block.labels(number - 1));
        } else {
          out.SetTarget(columns.targets.empty() ? 0 : columns.targets[i]);
        }
        break;
      }
      case RowsBlock::VECTOR: {
        const uint32_t size = block.vector_sizes(block.vector_sizes_size() == 1 ? 0 : vector++);
        out.SetTargets(vectors.first(size));
        vectors = vectors.subspan(size);
        break;
      }
      case RowsBlock::NUMERATOR:
        out.SetPopulation(Population::kNumerator);
        break;
      case RowsBlock::DENOMINATOR:
        out.SetPopulation(Population::kDenominator);
        break;
      default:
        break;
    }
    if (!columns.weights.empty()) out.SetWeight(columns.weights[i]);
  }
  return absl::OkStatus();
}

}  // namespace kernelstream::server::codec
