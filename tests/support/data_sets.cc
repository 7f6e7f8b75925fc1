#include "tests/support/data_sets.h"

#include <zlib.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numbers>
#include <numeric>
#include <vector>

#include "tests/support/random.h"

namespace kernelstream {
namespace {

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
}

// The whole file, decompressed.
std::string ReadAll(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) Die("cannot open " + path);
  std::string text;
  char buffer[1 << 16];
  int size = 0;
  while ((size = gzread(file, buffer, sizeof(buffer))) > 0) text.append(buffer, size);
  gzclose(file);
  if (size < 0 || text.empty()) Die("cannot read " + path);
  return text;
}

uint32_t BigEndian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

}  // namespace

std::optional<std::string> DataFolder() {
  const char* folder = std::getenv("KERNELSTREAM_DATA");
  if (folder == nullptr || !std::filesystem::is_directory(folder)) return std::nullopt;
  return folder;
}

namespace {

// Lines "target prefix index:value ...", the first index being `base`.
SampleBatch ReadSparseRows(const std::string& path, const std::string& prefix, uint64_t base) {
  const std::string text = ReadAll(path);
  SampleBatch rows;
  const char* p = text.c_str();
  std::vector<uint64_t> indices;
  std::vector<float> values;
  while (*p != '\0') {
    char* end = nullptr;
    const double target = std::strtod(p, &end);
    if (end == p) Die("no label in " + path);
    p = end;
    indices.clear();
    values.clear();
    while (*p == ' ') ++p;
    if (text.compare(static_cast<size_t>(p - text.c_str()), prefix.size(), prefix) != 0) {
      Die("no " + prefix + " in " + path);
    }
    p += prefix.size();
    while (*p == ' ') ++p;
    while (*p != '\n' && *p != '\0') {
      indices.push_back(std::strtoull(p, &end, 10) - base);
      if (*end != ':') Die("no colon in " + path);
      values.push_back(std::strtof(end + 1, &end));
      p = end;
      while (*p == ' ') ++p;
    }
    if (*p == '\n') ++p;
    rows.AddSparse(indices, values);
    rows.SetTarget(target);
  }
  return rows;
}

}  // namespace

SampleBatch ReadLibsvm(const std::string& path) { return ReadSparseRows(path, "", 1); }

SampleBatch ReadVowpalWabbit(const std::string& path) { return ReadSparseRows(path, "|f", 0); }

SampleBatch ReadCsv(const std::string& path, bool labels, int target) {
  const std::string text = ReadAll(path);
  SampleBatch rows;
  std::vector<std::string> cells;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    cells.clear();
    for (size_t from = at; from <= end;) {
      const size_t comma = std::min(text.find(',', from), end);
      cells.push_back(text.substr(from, comma - from));
      from = comma + 1;
    }
    const bool first_line = at == 0;
    at = end + 1;
    const size_t label = target < 0 ? cells.size() - 1 : static_cast<size_t>(target);
    std::vector<float> values;
    bool is_header = false;
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c == label) continue;
      char* stop = nullptr;
      values.push_back(std::strtof(cells[c].c_str(), &stop));
      if (stop != cells[c].c_str()) continue;
      if (!first_line) Die("no number \"" + cells[c] + "\" in " + path);
      is_header = true;
    }
    if (is_header) continue;
    rows.AddDense(values);
    if (labels) {
      rows.SetLabel(cells[label]);
    } else {
      rows.SetTarget(std::strtod(cells[label].c_str(), nullptr));
    }
  }
  return rows;
}

std::vector<bool> ReadMask(const std::string& path, size_t column) {
  const std::string text = ReadAll(path);
  std::vector<bool> mask;
  for (size_t at = 0; at < text.size();) {
    mask.push_back(text[at + 2 * column] == '1');
    at = std::min(text.find('\n', at), text.size()) + 1;
  }
  return mask;
}

SampleBatch ReadMnist(const std::string& data_folder, MnistPart part) {
  const std::string start =
      data_folder + "/mnist/" + (part == MnistPart::kTrain ? "train" : "t10k");
  const std::string images = start + "-images-idx3-ubyte.gz";
  const std::string pixels = ReadAll(images), digits = ReadAll(start + "-labels-idx1-ubyte.gz");
  const size_t count = BigEndian(pixels, 4);
  constexpr size_t kPixels = 784, kImagesAt = 16, kLabelsAt = 8;
  if (BigEndian(digits, 4) != count || pixels.size() != kImagesAt + count * kPixels) {
    Die("not an MNIST file: " + images);
  }
  SampleBatch rows;
  for (size_t i = 0; i < count; ++i) {
    float* row = rows.AddDense(kPixels);
    for (size_t j = 0; j < kPixels; ++j) {
      row[j] =
          static_cast<float>(static_cast<uint8_t>(pixels[kImagesAt + i * kPixels + j])) / 255.0f;
    }
    rows.SetLabel(std::to_string(static_cast<int>(digits[kLabelsAt + i])));
  }
  return rows;
}

SampleBatch Shuffled(const SampleBatch& rows, uint64_t seed) {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  Random random(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  SampleBatch shuffled;
  for (const size_t i : order) shuffled.AppendRow(rows, i);
  return shuffled;
}

double SyntheticFunction(float x0, float x1) {
  const double norm = std::hypot(x0, x1);
  return std::cos(0.5 * std::numbers::pi * norm) * std::exp(-0.1 * std::numbers::pi * norm);
}

SampleBatch SyntheticRows(size_t count, uint64_t seed, double noise) {
  SampleBatch rows;
  Random random(seed);
  for (size_t i = 0; i < count; ++i) {
    const auto x0 = static_cast<float>(random.Uniform(-5, 5));
    const auto x1 = static_cast<float>(random.Uniform(-5, 5));
    rows.AddDense(std::array{x0, x1});
    rows.SetTarget(SyntheticFunction(x0, x1) + noise * random.Normal());
  }
  return rows;
}

}  // namespace kernelstream
