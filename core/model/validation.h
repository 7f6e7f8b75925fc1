// Predict-then-learn losses.
#ifndef KERNELSTREAM_CORE_MODEL_VALIDATION_H_
#define KERNELSTREAM_CORE_MODEL_VALIDATION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kernelstream {

// Errors of rows that were predicted before they were learned. See the wire's ValidationMetrics.
struct ValidationMetrics {
  double recent_loss = 0, mean_loss = 0;
  double recent_error_rate = 0, mean_error_rate = 0;
  double recent_squared_error = 0, mean_squared_error = 0;
  uint64_t rows = 0;
};

// What a user reads of one row's scores.
struct Prediction {
  std::vector<double> scores;
  std::string label;                  // classification
  std::vector<double> probabilities;  // one per known label, where the loss has them
  double value = 0;                   // regression, target units
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_VALIDATION_H_
