#include "tests/bench/grown_model.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/model/feature_chunks.h"
#include "tests/support/random.h"

namespace kernelstream::bench {

SampleBatch NormalRows(size_t count, size_t dim, size_t labels) {
  SampleBatch rows;
  Random random(kModelSeed);
  for (size_t i = 0; i < count; ++i) {
    float* x = rows.AddDense(dim);
    for (size_t j = 0; j < dim; ++j) x[j] = static_cast<float>(random.Normal());
    if (labels > 2) {
      rows.SetLabel(std::to_string(i % labels));
    } else {
      rows.SetTarget(x[0] > 0 ? 1 : -1);
    }
  }
  return rows;
}

GrownModel::GrownModel(const Options& options, Executor& executor)
    : budget(options.cache_bytes),
      rows(NormalRows(std::max<size_t>(1024, options.labels), options.dim, options.labels)) {
  config.loss.name = options.labels > 2 ? "softmax" : "logistic";
  config.max_labels = static_cast<uint32_t>(std::max<size_t>(options.labels, 1000));
  config.max_features = config.block_features = options.features;
  config.batch_rows = kModelBatchRows;
  config.seed = kModelSeed;
  config.replay.ratio = 0;
  config.candidates.bandwidth_scales = {0.125, 0.25, 0.5, 1, 2};
  config.candidates.bandwidth_scales.resize(options.bandwidths);
  config.candidates.step_constants = {0.1, 0.3, 1, 3};
  config.candidates.step_constants.resize(options.step_constants);
  config.input_metric = InputMetric::kOff;
  if (!CompleteConfig(config).ok()) std::abort();
  trainer = *Trainer::Create(config, {&executor, &budget});
  Learn(rows.size() / kModelBatchRows);
}

void GrownModel::Learn(size_t steps) {
  for (size_t i = 0; i < steps; ++i) {
    const size_t first = kModelBatchRows * (next++ % (rows.size() / kModelBatchRows));
    trainer->Step(rows, first, kModelBatchRows, next * kModelBatchRows);
  }
}

size_t GrownModel::GramFeatures() const {
  const auto& constants = config.candidates.step_constants;
  const double smallest = *std::min_element(constants.begin(), constants.end());
  if (FeatureChunks::GramFeatures(kModelBatchRows, smallest) <= config.max_features) return 0;
  const FeatureChunks chunks(config.max_features);
  return chunks.Run(0, chunks.ForGram(kModelBatchRows, smallest)).num_panels * kPanelWidth;
}

double GrownModel::GramFlops() const {
  constexpr double kPairs = kModelBatchRows * (kModelBatchRows + 1) / 2;
  constexpr double kExponentialFlops = 20;
  const auto bandwidths = static_cast<double>(config.candidates.bandwidth_scales.size());
  const size_t features = GramFeatures();
  if (features > 0) return bandwidths * kPairs * 2 * static_cast<double>(features);
  return kPairs *
         (3 * static_cast<double>(rows.row(0).values.size()) + bandwidths * kExponentialFlops);
}

}  // namespace kernelstream::bench
