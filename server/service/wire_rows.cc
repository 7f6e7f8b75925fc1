#include "server/service/wire_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/field_error.h"
#include "core/base/named_input.h"
#include "core/model/row_rules.h"

namespace kernelstream::server {
namespace {

constexpr double kLargestNumber = 1e30;

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

// Memory for one named row after the other.
struct NamedScratch {
  std::vector<std::pair<uint64_t, float>> inputs;
  std::vector<uint64_t> indices;
  std::vector<float> values;
};

// OK: the row, at that place of the message, was added. Otherwise nothing was.
absl::Status AddNamed(const v1::NamedVector& named, uint64_t place, NamedScratch& scratch,
                      WireRows& out) {
  const std::string* smallest_name = nullptr;
  double smallest = 0;
  auto& [inputs, indices, values] = scratch;
  inputs.clear();
  indices.clear();
  values.clear();
  const auto no_name = [](absl::string_view field) {
    return InvalidField(field, "a name is empty; give every input a name");
  };
  for (const auto& [name, number] : named.numbers()) {
    if (name.empty()) return no_name("features.named.numbers");
    if (!(std::abs(number) <= kLargestNumber)) {  // also NaN
      return InvalidField(absl::StrCat("features.named.numbers[", Shortened(name), "]"),
                          absl::StrCat("value is ", number, "; expected a finite number up to ",
                                       kLargestNumber, " in size. Fix or leave out the row"));
    }
    inputs.emplace_back(NumberIndex(name), static_cast<float>(number));
    if (number < smallest) smallest = number, smallest_name = &name;
  }
  for (const auto& [name, category] : named.categories()) {
    if (name.empty()) return no_name("features.named.categories");
    inputs.emplace_back(CategoryIndex(name, category), 1.0f);
  }
  // By value too: maps have no order, and sums of three depend on theirs.
  std::sort(inputs.begin(), inputs.end());
  for (const auto& [index, value] : inputs) {
    if (!indices.empty() && indices.back() == index) {
      values.back() += value;
      continue;
    }
    indices.push_back(index);
    values.push_back(value);
  }
  out.rows.AddNamed(indices, values);
  if (smallest_name != nullptr) {
    out.smallest_numbers.emplace_back(place, Shortened(*smallest_name));
  }
  return absl::OkStatus();
}

// Values of a dense or a sparse row.
size_t NumValues(const v1::Features& features) {
  return static_cast<size_t>(features.dense().values_size() + features.sparse().values_size());
}

absl::Status AddFeatures(const v1::Features& features, uint64_t place, NamedScratch& scratch,
                         WireRows& out) {
  if (features.has_dense()) {
    const auto& values = features.dense().values();
    out.rows.AddDense({values.data(), static_cast<size_t>(values.size())});
    return absl::OkStatus();
  }
  if (features.has_named()) return AddNamed(features.named(), place, scratch, out);
  if (!features.has_sparse()) {
    return InvalidField("features", "the row has no features; send dense, sparse or named ones");
  }
  const v1::SparseVector& sparse = features.sparse();
  if (sparse.indices_size() != sparse.values_size()) {
    return InvalidField("features.sparse.values",
                        absl::StrCat("there are ", sparse.values_size(), " values for ",
                                     sparse.indices_size(), " indices; send as many"));
  }
  const auto size = static_cast<size_t>(sparse.values_size());
  out.rows.AddSparse({sparse.indices().data(), size}, {sparse.values().data(), size});
  return absl::OkStatus();
}

absl::Status SetPopulation(int population, SampleBatch& rows) {
  switch (population) {
    case v1::POPULATION_NUMERATOR:
      rows.SetPopulation(Population::kNumerator);
      return absl::OkStatus();
    case v1::POPULATION_DENOMINATOR:
      rows.SetPopulation(Population::kDenominator);
      return absl::OkStatus();
    default:
      return InvalidField("population",
                          absl::StrCat("population is ", population,
                                       "; expected 1 (numerator) or 2 (denominator)"));
  }
}

absl::Status SetTarget(const v1::Sample& sample, SampleBatch& rows) {
  switch (sample.target_case()) {
    case v1::Sample::kValue:
      rows.SetTarget(sample.value());
      break;
    case v1::Sample::kLabel:
      rows.SetLabel(sample.label());
      break;
    case v1::Sample::kPopulation:
      if (absl::Status status = SetPopulation(sample.population(), rows); !status.ok()) {
        return status;
      }
      break;
    case v1::Sample::kVector:
      rows.SetTargets(
          {sample.vector().values().data(), static_cast<size_t>(sample.vector().values_size())});
      break;
    case v1::Sample::TARGET_NOT_SET:
      break;
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

// Where they are, if that is a place for floats; otherwise in `copy`. [rows, dimension].
std::span<const float> MatrixValues(const v1::SampleMatrix& matrix, std::vector<float>& copy) {
  const size_t size = size_t{matrix.rows()} * matrix.dimension();
  const char* const bytes = matrix.values().data();
  if (reinterpret_cast<uintptr_t>(bytes) % alignof(float) == 0) {
    return {reinterpret_cast<const float*>(bytes), size};
  }
  copy.resize(size);
  std::memcpy(copy.data(), bytes, size * sizeof(float));
  return copy;
}

// The one target field of a matrix that is set, and how many values it has; "" if none is.
absl::StatusOr<absl::string_view> TargetField(const v1::SampleMatrix& matrix) {
  const std::pair<absl::string_view, int> fields[] = {
      {"matrix.targets", matrix.targets_size()},
      {"matrix.labels", matrix.labels_size()},
      {"matrix.populations", matrix.populations_size()}};
  absl::string_view found;
  for (const auto& [field, size] : fields) {
    if (size == 0) continue;
    if (!found.empty()) {
      return InvalidField(
          found, absl::StrCat("both ", found, " and ", field, " are set; send one of them"));
    }
    found = field;
    const uint64_t per_row =
        field == "matrix.targets" ? std::max(1u, matrix.target_dimension()) : 1;
    if (static_cast<uint64_t>(size) != matrix.rows() * per_row) {
      return InvalidField(field, absl::StrCat("there are ", size, " for ", matrix.rows(),
                                              " rows; send ", per_row, " per row"));
    }
  }
  if (matrix.target_dimension() > 0 && found != "matrix.targets") {
    return InvalidField("matrix.target_dimension",
                        "it is set and targets is not; send targets, or leave it out");
  }
  return found;
}

absl::Status SetMatrixTarget(const v1::SampleMatrix& matrix, absl::string_view field, int row,
                             SampleBatch& rows) {
  if (field == "matrix.labels") {
    rows.SetLabel(matrix.labels(row));
  } else if (field == "matrix.populations") {
    return SetPopulation(matrix.populations(row), rows);
  } else if (field == "matrix.targets" && matrix.target_dimension() > 0) {
    const size_t size = matrix.target_dimension();
    rows.SetTargets({matrix.targets().data() + static_cast<size_t>(row) * size, size});
  } else if (field == "matrix.targets") {
    rows.SetTarget(matrix.targets(row));
  }
  return absl::OkStatus();
}

absl::StatusOr<WireRows> DecodeLabelledMatrix(const v1::SampleMatrix& matrix,
                                              const std::vector<uint64_t>& bad_labels,
                                              uint64_t max_rows) {
  if (absl::Status status = CheckMatrix(matrix, max_rows); !status.ok()) return status;
  const absl::StatusOr<absl::string_view> field = TargetField(matrix);
  if (!field.ok()) return field.status();
  WireRows out;
  AddMatrixRows(matrix, out);
  out.target_dimension = matrix.target_dimension();
  std::vector<float> copy;
  const std::span<const float> values = MatrixValues(matrix, copy);
  out.rows.Reserve(matrix.rows(), values.size());
  for (uint64_t row = 0; row < matrix.rows(); ++row) {
    if (std::binary_search(bad_labels.begin(), bad_labels.end(), row)) {
      out.rejected.push_back({row, NotUtf8()});
      continue;
    }
    out.rows.AddDense(values.subspan(row * matrix.dimension(), matrix.dimension()));
    out.places.push_back(row);
    absl::Status status = SetMatrixTarget(matrix, *field, static_cast<int>(row), out.rows);
    if (status.ok()) continue;
    out.rows.RemoveLast();
    out.places.pop_back();
    out.rejected.push_back({row, std::move(status)});
  }
  return out;
}

}  // namespace

std::string WireRows::Path(absl::string_view list, uint64_t place,
                           absl::string_view row_path) const {
  std::string named_path;
  if (row_path == kSmallestNumberPath) {
    const auto found = std::ranges::lower_bound(smallest_numbers, place, {},
                                                &std::pair<uint64_t, std::string>::first);
    named_path = "features.named.numbers";
    if (found != smallest_numbers.end() && found->first == place) {
      absl::StrAppend(&named_path, "[", found->second, "]");
    }
    row_path = named_path;
  }
  if (!matrix) {
    if (list == "instances") {  // its elements are the features themselves
      row_path = row_path == "features" ? "" : absl::StripPrefix(row_path, "features.");
    }
    return absl::StrCat(list, "[", place, "]", row_path.empty() ? "" : ".", row_path);
  }
  if (row_path == "value") return absl::StrCat("matrix.targets[", place, "]");
  if (row_path == "label") return absl::StrCat("matrix.labels[", place, "]");
  if (row_path == "population") return absl::StrCat("matrix.populations[", place, "]");
  if (row_path == "vector") return "matrix.target_dimension";
  uint64_t target = 0;
  if (absl::StartsWith(row_path, "vector.values[") &&
      absl::SimpleAtoi(absl::StripSuffix(absl::StripPrefix(row_path, "vector.values["), "]"),
                       &target)) {
    return absl::StrCat("matrix.targets[", place * target_dimension + target, "]");
  }
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
  size_t values = 0;
  for (const v1::Sample& sample : samples) values += NumValues(sample.features());
  out.rows.Reserve(out.count, values);
  out.places.reserve(out.count);
  NamedScratch scratch;
  for (uint64_t place = 0; place < out.count; ++place) {
    const v1::Sample& sample = samples[static_cast<int>(place)];
    const size_t before = out.rows.size();
    absl::Status status = std::binary_search(bad_labels.begin(), bad_labels.end(), place)
                              ? NotUtf8()
                              : AddFeatures(sample.features(), place, scratch, out);
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
    const absl::StatusOr<absl::string_view> field = TargetField(*matrix);
    if (!field.ok()) return field.status();
    if (!field->empty()) {
      return InvalidField(*field, "a prediction takes no targets; leave them out");
    }
    AddMatrixRows(*matrix, out);
    const size_t dimension = matrix->dimension();
    std::vector<float> copy;
    const std::span<const float> values = MatrixValues(*matrix, copy);
    if (copy.empty()) {
      out.rows = SampleBatch::ViewOf(values, dimension);
    } else {
      out.rows.Reserve(matrix->rows(), values.size());
    }
    for (uint64_t row = 0; row < matrix->rows(); ++row) {
      if (!copy.empty()) out.rows.AddDense(values.subspan(row * dimension, dimension));
      out.places.push_back(row);
    }
    return out;
  }
  out.count = static_cast<uint64_t>(instances.size());
  if (absl::Status status = CheckRowCount("instances", out.count, max_rows); !status.ok()) {
    return status;
  }
  size_t values = 0;
  for (const v1::Features& features : instances) values += NumValues(features);
  out.rows.Reserve(out.count, values);
  out.places.reserve(out.count);
  NamedScratch scratch;
  for (uint64_t place = 0; place < out.count; ++place) {
    absl::Status status = AddFeatures(instances[static_cast<int>(place)], place, scratch, out);
    if (status.ok()) {
      out.places.push_back(place);
    } else {
      out.rejected.push_back({place, std::move(status)});
    }
  }
  return out;
}

}  // namespace kernelstream::server
