// Data sets for accuracy tests and experiments.
#ifndef KERNELSTREAM_TESTS_SUPPORT_DATA_SETS_H_
#define KERNELSTREAM_TESTS_SUPPORT_DATA_SETS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/sample_batch.h"

namespace kernelstream {

// Folder named by the environment variable KERNELSTREAM_DATA; nullopt if it is not set or not
// there.
std::optional<std::string> DataFolder();

// LIBSVM text, gzip'd or not, indices from 1 in the file. Aborts with a message if the file cannot
// be read.
SampleBatch ReadLibsvm(const std::string& path);

// MNIST images (pixel / 255, 784 dense values) with their labels as text, from idx files, gzip'd or
// not.
SampleBatch ReadMnist(const std::string& images, const std::string& labels);

// The rows in a random order given by `seed`.
SampleBatch Shuffled(const SampleBatch& rows, uint64_t seed);

// The paper's synthetic regression: x uniform on [-5, 5]^2, f(x) = cos(0.5 pi |x|) exp(-0.1 pi
// |x|), y = f(x) + noise N(0, noise^2).
double SyntheticFunction(float x0, float x1);
SampleBatch SyntheticRows(size_t rows, uint64_t seed, double noise);

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_SUPPORT_DATA_SETS_H_
