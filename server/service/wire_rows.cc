#include "server/service/wire_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/field_error.h"

namespace kernelstream::server {
namespace {

static_assert(std::endian::native == std::endian::little,
              "SampleMatrix.values is little-endian and copied as it is");

absl::Status CheckRowCount(absl::string_view field, uint64_t rows, uint64_t max_rows) {
  if (rows <= max_rows) return absl::OkStatus();
  return InvalidField(field, absl::StrCat(rows, " rows in one message; this server takes up to ",
                                          max_rows, ". Send fewer at a time"));
}

absl::Status CheckOneSource(absl::string_view list, int list_size, const v1::SampleMatrix* matrix) {
  if (list_size > 0 && matrix != nullptr) {
    return InvalidField(list, absl::StrCat("both ", list, " and matrix are set; send one of them"));
  }
  if (list_size == 0 && matrix == nullptr) {
    return InvalidField(
        list, absl::StrCat("there are no rows; send at least one, in ", list, " or in matrix"));
  }
  return absl::OkStatus();
}

absl::Status CheckMatrix(const v1::SampleMatrix& matrix, uint64_t max_rows) {
  if (matrix.rows() == 0) return InvalidField("matrix.rows", "it is 0; expected 1 or more");
  if (matrix.dimension() == 0)
    return InvalidField("matrix.dimension", "it is 0; expected 1 or more");
  const uint64_t values = uint64_t{matrix.rows()} * matrix.dimension();
  const uint64_t bytes = matrix.values().size();
  if (bytes % sizeof(float) != 0 || bytes / sizeof(float) != values) {
    return InvalidField(
        "matrix.values",
        absl::StrCat("it has ", bytes, " bytes; ", matrix.rows(), " rows of ", matrix.dimension(),
                     " float32 values take ", values, " * 4. Send rows * dimension values"));
  }
  return CheckRowCount("matrix.rows", matrix.rows(), max_rows);
}

// OK: the row was added. Otherwise nothing was.
absl::Status AddFeatures(const v1::Features& features, std::vector<uint32_t>& indices,
                         SampleBatch& rows) {
  if (features.has_dense()) {
    const auto& values = features.dense().values();
    rows.AddDense({values.data(), static_cast<size_t>(values.size())});
    return absl::OkStatus();
  }
  if (!features.has_sparse()) {
    return InvalidField("features", "the row has no features; send dense or sparse ones");
  }
  const v1::SparseVector& sparse = features.sparse();
  if (sparse.indices_size() != sparse.values_size()) {
    return InvalidField("features.sparse.values",
                        absl::StrCat("there are ", sparse.values_size(), " values for ",
                                     sparse.indices_size(), " indices; send as many"));
  }
  indices.clear();
  for (int i = 0; i < sparse.indices_size(); ++i) {
    if (sparse.indices(i) > UINT32_MAX) {
      return InvalidField(absl::StrCat("features.sparse.indices[", i, "]"),
                          absl::StrCat("index ", sparse.indices(i),
                                       " is out of range; indices run from 0 to below the model's "
                                       "dimension"));
    }
    indices.push_back(static_cast<uint32_t>(sparse.indices(i)));
  }
  rows.AddSparse(indices, {sparse.values().data(), static_cast<size_t>(sparse.values_size())});
  return absl::OkStatus();
}

absl::Status SetTarget(const v1::Sample& sample, SampleBatch& rows) {
  switch (sample.target_case()) {
    case v1::Sample::kValue:
      rows.SetTarget(sample.value());
      break;
    case v1::Sample::kLabel:
      rows.SetLabel(sample.label());
      break;
    case v1::Sample::TARGET_NOT_SET:
      return InvalidField("value", "the row has no target; send value or label");
  }
  if (sample.has_weight()) rows.SetWeight(static_cast<float>(sample.weight()));
  return absl::OkStatus();
}

absl::Status NotUtf8() { return InvalidField("label", "the label is not UTF-8; send UTF-8"); }

void AddMatrixRows(const v1::SampleMatrix& matrix, WireRows& out) {
  out.matrix = true;
  out.count = matrix.rows();
  out.dimension = matrix.dimension();
  out.places.reserve(matrix.rows());
}

const char* MatrixRow(const v1::SampleMatrix& matrix, uint64_t row) {
  return matrix.values().data() + row * matrix.dimension() * sizeof(float);
}

void AddMatrixRow(const v1::SampleMatrix& matrix, uint64_t row, WireRows& out) {
  std::memcpy(out.rows.AddDense(matrix.dimension()), MatrixRow(matrix, row),
              size_t{matrix.dimension()} * sizeof(float));
  out.places.push_back(row);
}

absl::StatusOr<WireRows> DecodeLabelledMatrix(const v1::SampleMatrix& matrix,
                                              const std::vector<uint64_t>& bad_labels,
                                              uint64_t max_rows) {
  if (absl::Status status = CheckMatrix(matrix, max_rows); !status.ok()) return status;
  const bool labels = matrix.labels_size() > 0;
  if (labels && matrix.targets_size() > 0) {
    return InvalidField("matrix.targets", "both targets and labels are set; send one of them");
  }
  const auto targets = static_cast<uint64_t>(labels ? matrix.labels_size() : matrix.targets_size());
  if (targets != matrix.rows()) {
    return InvalidField(labels ? "matrix.labels" : "matrix.targets",
                        absl::StrCat("there are ", targets, " for ", matrix.rows(),
                                     " rows; send one per row, in targets or in labels"));
  }
  WireRows out;
  AddMatrixRows(matrix, out);
  for (uint64_t row = 0; row < matrix.rows(); ++row) {
    if (std::binary_search(bad_labels.begin(), bad_labels.end(), row)) {
      out.rejected.push_back({row, NotUtf8()});
      continue;
    }
    AddMatrixRow(matrix, row, out);
    if (labels) {
      out.rows.SetLabel(matrix.labels(static_cast<int>(row)));
    } else {
      out.rows.SetTarget(matrix.targets(static_cast<int>(row)));
    }
  }
  return out;
}

}  // namespace

std::string WireRows::Path(absl::string_view list, uint64_t place,
                           absl::string_view row_path) const {
  if (!matrix) {
    if (list == "instances") {  // its elements are the features themselves
      row_path = row_path == "features" ? "" : absl::StripPrefix(row_path, "features.");
    }
    return absl::StrCat(list, "[", place, "]", row_path.empty() ? "" : ".", row_path);
  }
  if (row_path == "value") return absl::StrCat("matrix.targets[", place, "]");
  if (row_path == "label") return absl::StrCat("matrix.labels[", place, "]");
  if (absl::ConsumePrefix(&row_path, "features.dense.values[")) {
    uint64_t column = 0;
    if (absl::SimpleAtoi(absl::StripSuffix(row_path, "]"), &column)) {
      return absl::StrCat("matrix.values[", place * dimension + column, "]");
    }
  }
  return row_path == "features.dense.values" ? "matrix.dimension" : "matrix.values";
}

absl::StatusOr<WireRows> DecodeSamples(const SampleList& samples, const v1::SampleMatrix* matrix,
                                       const std::vector<uint64_t>& bad_labels, uint64_t max_rows) {
  if (absl::Status status = CheckOneSource("samples", samples.size(), matrix); !status.ok()) {
    return status;
  }
  if (matrix != nullptr) return DecodeLabelledMatrix(*matrix, bad_labels, max_rows);
  WireRows out;
  out.count = static_cast<uint64_t>(samples.size());
  if (absl::Status status = CheckRowCount("samples", out.count, max_rows); !status.ok()) {
    return status;
  }
  std::vector<uint32_t> indices;
  for (uint64_t place = 0; place < out.count; ++place) {
    const v1::Sample& sample = samples[static_cast<int>(place)];
    const size_t before = out.rows.size();
    absl::Status status = std::binary_search(bad_labels.begin(), bad_labels.end(), place)
                              ? NotUtf8()
                              : AddFeatures(sample.features(), indices, out.rows);
    if (status.ok()) status = SetTarget(sample, out.rows);
    if (status.ok()) {
      out.places.push_back(place);
    } else {
      if (out.rows.size() > before) out.rows.RemoveLast();
      out.rejected.push_back({place, std::move(status)});
    }
  }
  return out;
}

absl::StatusOr<WireRows> DecodeInstances(const InstanceList& instances,
                                         const v1::SampleMatrix* matrix, uint64_t max_rows) {
  if (absl::Status status = CheckOneSource("instances", instances.size(), matrix); !status.ok()) {
    return status;
  }
  WireRows out;
  if (matrix != nullptr) {
    if (absl::Status status = CheckMatrix(*matrix, max_rows); !status.ok()) return status;
    if (matrix->targets_size() + matrix->labels_size() > 0) {
      return InvalidField(matrix->targets_size() > 0 ? "matrix.targets" : "matrix.labels",
                          "a prediction takes no targets; leave them out");
    }
    AddMatrixRows(*matrix, out);
    for (uint64_t row = 0; row < matrix->rows(); ++row) AddMatrixRow(*matrix, row, out);
    return out;
  }
  out.count = static_cast<uint64_t>(instances.size());
  if (absl::Status status = CheckRowCount("instances", out.count, max_rows); !status.ok()) {
    return status;
  }
  std::vector<uint32_t> indices;
  for (uint64_t place = 0; place < out.count; ++place) {
    absl::Status status = AddFeatures(instances[static_cast<int>(place)], indices, out.rows);
    if (status.ok()) {
      out.places.push_back(place);
    } else {
      out.rejected.push_back({place, std::move(status)});
    }
  }
  return out;
}

}  // namespace kernelstream::server
