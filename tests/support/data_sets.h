// Data sets for accuracy tests and experiments.
#ifndef KERNELSTREAM_TESTS_SUPPORT_DATA_SETS_H_
#define KERNELSTREAM_TESTS_SUPPORT_DATA_SETS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/sample_batch.h"

namespace kernelstream {

// Folder named by the environment variable KERNELSTREAM_DATA; nullopt if it is not set or not
// there.
std::optional<std::string> DataFolder();

// LIBSVM text, gzip'd or not, indices from 1 in the file. Aborts with a message if the file cannot
// be read.
SampleBatch ReadLibsvm(const std::string& path);

// Vowpal Wabbit text, gzip'd or not, of lines "label |f index:value ...", indices increasing.
// Aborts with a message if the file cannot be read.
SampleBatch ReadVowpalWabbit(const std::string& path);

// Numeric CSV, gzip'd or not; a first line with a cell that is no number is a header. The column
// `target` (-1: the last) is the target, as text where `labels`, else as a number; the others are
// dense values. Aborts with a message if the file cannot be read.
SampleBatch ReadCsv(const std::string& path, bool labels, int target = -1);

// Column `column` of a CSV of zeros and ones, one per row.
std::vector<bool> ReadMask(const std::string& path, size_t column);

// MNIST images (pixel / 255, 784 dense values) with their labels as text, from the idx files in
// `data_folder`/mnist.
enum class MnistPart { kTrain, kTest };
SampleBatch ReadMnist(const std::string& data_folder, MnistPart part);

// The rows in a random order given by `seed`.
SampleBatch Shuffled(const SampleBatch& rows, uint64_t seed);

// The paper's synthetic regression: x uniform on [-5, 5]^2, f(x) = cos(0.5 pi |x|) exp(-0.1 pi
// |x|), y = f(x) + noise N(0, noise^2).
double SyntheticFunction(float x0, float x1);
SampleBatch SyntheticRows(size_t rows, uint64_t seed, double noise);

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_SUPPORT_DATA_SETS_H_
