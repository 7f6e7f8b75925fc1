// Everything a trainer needs to go on, as plain values: what a checkpoint holds.
#ifndef KERNELSTREAM_CORE_MODEL_TRAINER_STATE_H_
#define KERNELSTREAM_CORE_MODEL_TRAINER_STATE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/component.h"
#include "core/model/sample_batch.h"

namespace kernelstream {

// A decayed mean: sum and weight both shrink as rows pass, so old rows count less.
struct DecayedMean {
  double sum = 0;
  double weight = 0;
};

// Running predict-then-learn errors of one coefficient set.
struct ValidationState {
  DecayedMean recent_loss, recent_errors, recent_squares;
  double total_loss = 0, total_errors = 0, total_squares = 0;
  uint64_t rows = 0;
};

// One set of coefficients: value of feature f, output k = scale * values[panel of f][k][lane of f].
struct CoefficientState {
  double scale = 1;
  std::vector<float> values;  // [panel][output][16]
  ValidationState validation;
};

// One learner (bandwidth and step constant) and its averages.
struct CandidateState {
  double bandwidth = 1;
  CoefficientState last;
  CoefficientState average;          // empty values for Averaging::kLast
  uint64_t steps_since_restart = 0;  // of the average
};

struct TrainerState {
  uint64_t step = 0;     // mini-batches given to Step and replayed from the warm-up
  uint64_t updates = 0;  // those since the warm-up: t of the update rules
  uint64_t sequence = 0;
  uint64_t rows_learned = 0;
  uint64_t rows_skipped = 0;
  uint64_t divergences =
      0;  // times the coefficients were set back to zero because scores grew without bound
  uint64_t num_features = 0;
  uint64_t cursor = 0;  // newest_block: feature at which the next block starts
  uint32_t dimension =
      0;  // the config's, or the size of the first dense row; 0: open (sparse rows only)
  uint32_t input_dim =
      0;  // coordinates that frequencies are kept for; grows while the dimension is open
  uint32_t num_outputs = 1;
  bool warm = false;   // the warm-up has ended
  SampleBatch warmup;  // rows kept so far, empty once warm
  std::vector<float> input_shift, input_inverse_scale;
  double target_offset = 0, target_scale = 1;
  ParameterMap kernel_parameters;  // complete once warm
  ParameterMap rule_parameters;  // complete once warm (with what was measured on the warm-up rows)
  std::vector<std::string> labels;
  std::vector<CandidateState> candidates;  // one for now
  std::array<uint8_t, 16> fingerprint{};   // of config, step and coefficients
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_TRAINER_STATE_H_
