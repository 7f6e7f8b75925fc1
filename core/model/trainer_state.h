// Everything a trainer needs to go on, as plain values: what a checkpoint holds.
#ifndef KERNELSTREAM_CORE_MODEL_TRAINER_STATE_H_
#define KERNELSTREAM_CORE_MODEL_TRAINER_STATE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/component.h"
#include "core/model/sample_batch.h"
#include "core/model/task_metrics.h"
#include "core/model/variance_estimator.h"

namespace kernelstream {

// A decayed mean: sum and weight both shrink as rows pass, so old rows count less.
struct DecayedMean {
  double sum = 0;
  double weight = 0;

  double Mean() const { return weight > 0 ? sum / weight : 0; }  // 0 before the first row
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
  NoveltyThreshold threshold;  // kNovelty
  std::vector<float> values;   // [panel][output][16]
  ValidationState validation;
};

// One learner (bandwidth and step constant) and its averages.
struct CandidateState {
  uint64_t generation = 0;   // id of the stream of frequencies it uses
  double bandwidth = 1;      // divides the projections
  double step_constant = 0;  // of the proximal rule; 0: the rule's own parameters
  bool replays = true;       // false: the shadow that learns new rows only
  CoefficientState last;
  CoefficientState average;          // empty values for Averaging::kLast
  uint64_t steps_since_restart = 0;  // of the average
  uint64_t divergences = 0;          // times its coefficients were set back to zero
};

enum class MetricForm { kIsotropic, kDiagonal, kFull };

// One stream of frequencies: frequency' = metric frequency, frequency drawn from (seed, id).
struct GenerationState {
  uint64_t id = 0;  // 0: the model's seed as it is, no metric; from 1 on in order of appearance
  MetricForm form = MetricForm::kIsotropic;
  // kDiagonal: [metric_dim]; kFull: [metric_dim][metric_dim], symmetric. Inputs beyond metric_dim
  // are taken as they are.
  uint32_t metric_dim = 0;
  std::vector<float> metric;
  double median_distance = 1;  // of recent rows under the metric
  uint64_t first_row = 0;      // rows_learned when it was made
};

// The last rows, oldest first; `previous` come before `current`, and are there only in checkpoints
// of versions before 2026-12.
struct RecentRowsState {
  SampleBatch previous, current;
};

// A uniform sample of the rows so far.
struct ReservoirState {
  SampleBatch rows;
  uint64_t seen = 0;   // rows offered since it was emptied
  uint64_t draws = 0;  // random numbers used
  uint64_t flushes = 0;
};

// History of the served model's predict-then-learn loss, and of the order of labels.
struct DriftState {
  DecayedMean fast, slow;        // of row losses
  DecayedMean exceeding;         // rows with a loss above `quantile`
  double quantile = 0;           // of row losses: a tenth are above
  uint64_t rows = 0;             // since the start or the last report
  uint64_t reports = 0;          // times drift was reported
  uint64_t last_report_row = 0;  // rows_learned at the last one
  DecayedMean same_label;        // 1 where a row has the label of the row before
  std::vector<double> label_weights;
  double last_label = -1;
  bool ordered = false;     // the stream looks sorted by label
  double usual_weight = 0;  // of rows; 0: none yet, or from a time when it was not kept
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
  uint64_t cursor = 0;      // newest_block: feature at which the next block starts
  uint32_t dimension = 0;   // the config's, or the size of the first row if that is dense; 0: open
                            // (sparse rows first)
  uint32_t sparse_dim = 0;  // 1 + the largest index of the sparse rows while the dimension is open
  uint32_t input_dim =
      0;  // coordinates that frequencies are kept for; grows while the dimension is open
  uint32_t num_outputs = 1;
  bool warm = false;    // the warm-up has ended
  SampleBatch waiting;  // the warm-up so far; once warm, the rows that do not fill a block yet
  std::vector<float> input_shift, input_inverse_scale;
  bool constant_inputs = false;  // the warm-up rows were all equal, once scaled
  // Regression: of each target, once warm.
  std::vector<double> target_offsets, target_scales;
  // kDensityRatio: weight of the rows so far of denominator and numerator.
  std::array<double, 2> population_weights{};
  ParameterMap kernel_parameters;  // FlatParameters of the kernel, complete once warm
  ParameterMap rule_parameters;  // complete once warm (with what was measured on the warm-up rows)
  std::vector<std::string> labels;
  bool labels_are_numbers = false;           // LabelTable::numbers()
  std::vector<GenerationState> generations;  // in use, by id
  std::vector<CandidateState> candidates;
  uint64_t next_generation = 1;
  uint64_t next_generation_row = 0;  // rows_learned at which the next generations are made
  uint64_t next_prune_row = 0;       // rows at which only the best generation stays; 0: not due
  uint64_t learned_since_warm = 0;   // rows, those of the warm-up included
  bool pruned = false;               // the weaker step constants are gone
  RecentRowsState recent;            // empty unless something needs it
  ReservoirState reservoir;
  ReservoirState held_out;  // StreamOrder::kOrdered: rows that are never learned
  DriftState drift;
  TaskMetricsState metrics;  // of the served predictions
  // Of the kernel (stream and bandwidth) that uncertainty is estimated under; empty without it.
  VarianceState variance;
  uint64_t variance_generation = 0;
  double variance_bandwidth = 0;          // 0: not chosen yet
  uint64_t next_variance_row = 0;         // learned_since_warm at which it is chosen again
  std::array<uint8_t, 16> fingerprint{};  // of config, step and coefficients
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_TRAINER_STATE_H_
