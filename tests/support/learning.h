// Whole models in tests: rows in, predictions and their errors out.
#ifndef KERNELSTREAM_TESTS_SUPPORT_LEARNING_H_
#define KERNELSTREAM_TESTS_SUPPORT_LEARNING_H_

#include <algorithm>
#include <vector>

#include "core/model/trainer.h"

namespace kernelstream {

// Learns rows [first, end) in full mini-batches from row `first` on; the last one may be smaller.
inline void Feed(Trainer& trainer, const ModelConfig& config, const SampleBatch& rows, size_t first,
                 size_t end) {
  for (size_t i = first; i < end; i += config.batch_rows) {
    const size_t count = std::min<size_t>(config.batch_rows, end - i);
    trainer.Step(rows, i, count, i + count);
  }
}

// What a user reads for each row.
inline std::vector<Prediction> Predictions(const Snapshot& snapshot, const SampleBatch& rows,
                                           Executor& executor) {
  const size_t outputs = snapshot.num_outputs();
  std::vector<double> scores(rows.size() * outputs);
  snapshot.Score(rows, executor, scores.data());
  std::vector<Prediction> predictions;
  for (size_t i = 0; i < rows.size(); ++i) {
    predictions.push_back(snapshot.Link({scores.data() + i * outputs, outputs}));
  }
  return predictions;
}

// Classification: share of rows with a wrong label. Otherwise the mean squared error of the first
// target, in its units.
inline double ErrorOn(const Snapshot& snapshot, const SampleBatch& rows, Executor& executor) {
  const std::vector<Prediction> predictions = Predictions(snapshot, rows, executor);
  const bool labels = HasLabels(snapshot.loss().task());
  double sum = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (labels) {
      sum += predictions[i].label != RowRules::CanonicalLabel(rows.target(i)) ? 1 : 0;
    } else {
      const double off = predictions[i].value - rows.target(i).value;
      sum += off * off;
    }
  }
  return sum / static_cast<double>(rows.size());
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_SUPPORT_LEARNING_H_
