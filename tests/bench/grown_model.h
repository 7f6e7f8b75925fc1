// Models for benchmarks: all their features are there, and nothing is decided any more.
#ifndef KERNELSTREAM_TESTS_BENCH_GROWN_MODEL_H_
#define KERNELSTREAM_TESTS_BENCH_GROWN_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/feature/feature_map.h"
#include "core/model/model_config.h"
#include "core/model/sample_batch.h"
#include "core/model/trainer.h"

namespace kernelstream::bench {

inline constexpr uint64_t kModelSeed = 42;
inline constexpr uint32_t kModelBatchRows = 64;

// Independent standard normal inputs. Two labels: +1 where the first input is above 0; more: one
// after the other.
SampleBatch NormalRows(size_t count, size_t dim, size_t labels);

// Thread-compatible. A classifier that has learned at least 1024 rows and each label.
struct GrownModel {
  struct Options {
    size_t dim = 54;
    size_t labels = 2;
    uint32_t features = 8192;
    // bandwidths x step_constants learners race; 1 x 1: one learner.
    size_t bandwidths = 1;
    size_t step_constants = 1;
    int64_t cache_bytes = int64_t{2} << 30;
  };
  GrownModel(const Options& options, Executor& executor);
  void Learn(size_t steps);
  // Features that each step makes a Gram matrix of, as Trainer::Impl::GramChunks chooses them; 0
  // where the kernel's own values stand for it.
  size_t GramFeatures() const;
  // The fewest operations of a step's Gram matrices, of all bandwidths.
  double GramFlops() const;

  FeatureCacheBudget budget;
  ModelConfig config;
  SampleBatch rows;
  std::unique_ptr<Trainer> trainer;
  size_t next = 0;
};

}  // namespace kernelstream::bench

#endif  // KERNELSTREAM_TESTS_BENCH_GROWN_MODEL_H_
