// Metrics of labelled rows under one snapshot.
#ifndef KERNELSTREAM_CORE_MODEL_EVALUATOR_H_
#define KERNELSTREAM_CORE_MODEL_EVALUATOR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/executor.h"
#include "core/model/sample_batch.h"
#include "core/model/snapshot.h"
#include "core/model/task_metrics.h"
#include "core/model/validation.h"

namespace kernelstream {

// Rows whose scores are kept for an exact AUC (16 bytes each); beyond, it comes from the histogram
// of all of them.
inline constexpr size_t kMaxRankedRows = size_t{1} << 18;

// Thread-compatible. Nothing is learned. Memory: the sums, and for two labels the scores of the
// first kMaxRankedRows rows.
class Evaluator {
 public:
  // interval_coverage: the one that the model's prediction intervals are made for.
  explicit Evaluator(double interval_coverage = 0.9) : interval_coverage_(interval_coverage) {}

  // `snapshot`: the same in all calls. Rows must have passed RowRules::CheckInput and CheckTarget,
  // and have as many targets as the snapshot. Where a row is returned, it is the first one with a
  // score that is not finite (Snapshot::Score), and no row was added.
  std::optional<size_t> Add(const Snapshot& snapshot, const SampleBatch& rows, Executor& executor);
  TaskMetrics Metrics(const Snapshot& snapshot) const;
  uint64_t rows() const { return sums_.rows; }

 private:
  struct Ranked {
    double score = 0;
    float first = 0, second = 0;  // weight as a row of that label
  };
  void Rank(std::span<const double> scores, std::span<const double> targets,
            std::span<const double> weights);

  double interval_coverage_;
  MetricSums sums_;
  std::vector<Ranked> ranked_;  // empty once there are too many
  bool ranks_ = true;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_EVALUATOR_H_
