#include "client/src/encode.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/src/utf8.h"

namespace kernelstream::client {

namespace {

v1::Population ToWire(Population population) {
  return population == Population::kNumerator ? v1::POPULATION_NUMERATOR
                                              : v1::POPULATION_DENOMINATOR;
}

const std::vector<double>* Vector(const Row& row) {
  return std::get_if<std::vector<double>>(&row.target);
}

bool AllUtf8(const NamedFeatures& named) {
  for (const auto& [name, number] : named.numbers) {
    if (!IsUtf8(name)) return false;
  }
  for (const auto& [name, category] : named.categories) {
    if (!IsUtf8(name) || !IsUtf8(category)) return false;
  }
  return true;
}

size_t EncodedBytes(const NamedFeatures& named) {
  constexpr size_t kTagsAndSizes = 16;
  size_t bytes = 0;
  for (const auto& [name, number] : named.numbers) {
    bytes += name.size() + sizeof(number) + kTagsAndSizes;
  }
  for (const auto& [name, category] : named.categories) {
    bytes += name.size() + category.size() + kTagsAndSizes;
  }
  return bytes;
}

}  // namespace

absl::Status CheckRows(absl::Span<const Row> rows, uint64_t first_number) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const uint64_t number = first_number + i;
    if (const auto* sparse = std::get_if<SparseFeatures>(&row.features);
        sparse != nullptr && sparse->indices.size() != sparse->values.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", number, " has ", sparse->indices.size(), " indices and ",
                       sparse->values.size(), " values; give one value per index"));
    }
    if (const auto* named = std::get_if<NamedFeatures>(&row.features);
        named != nullptr && !AllUtf8(*named)) {
      return absl::InvalidArgumentError(absl::StrCat("a name or category of row ", number,
                                                     " is not UTF-8; convert it before sending"));
    }
    if (const auto* label = std::get_if<std::string>(&row.target);
        label != nullptr && !IsUtf8(*label)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the label of row ", number, " is not UTF-8; convert it before sending"));
    }
  }
  return absl::OkStatus();
}

size_t EncodedBytes(const Row& row) {
  size_t bytes = 48;  // Tags, lengths, target and weight.
  if (const auto* dense = std::get_if<DenseFeatures>(&row.features)) {
    bytes += dense->values.size() * sizeof(float);
  } else if (const auto* named = std::get_if<NamedFeatures>(&row.features)) {
    bytes += EncodedBytes(*named);
  } else {
    // Varints of indices below 2^28 take up to four bytes; larger ones up to ten.
    for (const uint64_t index : std::get<SparseFeatures>(row.features).indices) {
      bytes += sizeof(float) + (index < (uint64_t{1} << 28) ? 4 : 10);
    }
  }
  if (const auto* label = std::get_if<std::string>(&row.target)) bytes += label->size();
  if (Vector(row) != nullptr) bytes += Vector(row)->size() * sizeof(double);
  return bytes;
}

bool FeaturesFitMatrix(absl::Span<const Row> rows) {
  if (rows.empty()) return false;
  const auto* first = std::get_if<DenseFeatures>(&rows[0].features);
  if (first == nullptr || first->values.empty()) return false;
  return std::all_of(rows.begin(), rows.end(), [&](const Row& row) {
    const auto* dense = std::get_if<DenseFeatures>(&row.features);
    return dense != nullptr && dense->values.size() == first->values.size();
  });
}

bool FitMatrix(absl::Span<const Row> rows) {
  if (!FeaturesFitMatrix(rows)) return false;
  for (const Row& row : rows) {
    if (row.weight.has_value() || row.target.index() != rows[0].target.index()) return false;
    // A matrix cannot say that a vector is empty.
    if (Vector(row) != nullptr &&
        (Vector(row)->empty() || Vector(row)->size() != Vector(rows[0])->size())) {
      return false;
    }
  }
  return true;
}

void AppendFloats(absl::Span<const float> values, std::string* bytes) {
  static_assert(std::endian::native == std::endian::little, "the wire is little-endian");
  bytes->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

void EncodeMatrix(absl::Span<const Row> rows, bool with_targets, v1::SampleMatrix* matrix) {
  const size_t dimension = std::get<DenseFeatures>(rows[0].features).values.size();
  matrix->set_rows(static_cast<uint32_t>(rows.size()));
  matrix->set_dimension(static_cast<uint32_t>(dimension));
  std::string* bytes = matrix->mutable_values();
  bytes->reserve(rows.size() * dimension * sizeof(float));
  for (const Row& row : rows) {
    AppendFloats(std::get<DenseFeatures>(row.features).values, bytes);
    if (!with_targets) continue;
    if (const auto* value = std::get_if<double>(&row.target)) {
      matrix->add_targets(*value);
    } else if (const auto* label = std::get_if<std::string>(&row.target)) {
      matrix->add_labels(*label);
    } else if (const auto* population = std::get_if<Population>(&row.target)) {
      matrix->add_populations(ToWire(*population));
    } else if (const auto* vector = Vector(row)) {
      matrix->set_target_dimension(static_cast<uint32_t>(vector->size()));
      matrix->mutable_targets()->Add(vector->begin(), vector->end());
    }
  }
}

absl::Status EncodeMatrix(const Matrix& from, v1::SampleMatrix* matrix) {
  if (from.values.size() != from.rows * from.dimension) {
    return absl::InvalidArgumentError(
        absl::StrCat("the matrix has ", from.values.size(), " values; ", from.rows, " rows of ",
                     from.dimension, " values need ", from.rows * from.dimension));
  }
  matrix->set_rows(static_cast<uint32_t>(from.rows));
  matrix->set_dimension(static_cast<uint32_t>(from.dimension));
  AppendFloats(from.values, matrix->mutable_values());
  return absl::OkStatus();
}

void EncodeFeatures(const Features& features, v1::Features* message) {
  if (const auto* dense = std::get_if<DenseFeatures>(&features)) {
    message->mutable_dense()->mutable_values()->Add(dense->values.begin(), dense->values.end());
    return;
  }
  if (const auto* named = std::get_if<NamedFeatures>(&features)) {
    message->mutable_named()->mutable_numbers()->insert(named->numbers.begin(),
                                                        named->numbers.end());
    message->mutable_named()->mutable_categories()->insert(named->categories.begin(),
                                                           named->categories.end());
    return;
  }
  const auto& sparse = std::get<SparseFeatures>(features);
  v1::SparseVector* vector = message->mutable_sparse();
  vector->mutable_indices()->Add(sparse.indices.begin(), sparse.indices.end());
  vector->mutable_values()->Add(sparse.values.begin(), sparse.values.end());
}

void EncodeSamples(absl::Span<const Row> rows,
                   google::protobuf::RepeatedPtrField<v1::Sample>* samples) {
  samples->Reserve(static_cast<int>(rows.size()));
  for (const Row& row : rows) {
    v1::Sample* sample = samples->Add();
    EncodeFeatures(row.features, sample->mutable_features());
    if (const auto* value = std::get_if<double>(&row.target)) {
      sample->set_value(*value);
    } else if (const auto* label = std::get_if<std::string>(&row.target)) {
      sample->set_label(*label);
    } else if (const auto* population = std::get_if<Population>(&row.target)) {
      sample->set_population(ToWire(*population));
    } else if (const auto* vector = Vector(row)) {
      sample->mutable_vector()->mutable_values()->Add(vector->begin(), vector->end());
    }
    if (row.weight) sample->set_weight(*row.weight);
  }
}

}  // namespace kernelstream::client
