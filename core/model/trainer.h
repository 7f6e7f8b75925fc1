// Learning: one mini-batch in, one step out.
#ifndef KERNELSTREAM_CORE_MODEL_TRAINER_H_
#define KERNELSTREAM_CORE_MODEL_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/executor.h"
#include "core/base/published_cell.h"
#include "core/feature/feature_map.h"
#include "core/model/model_config.h"
#include "core/model/sample_batch.h"
#include "core/model/snapshot.h"
#include "core/model/trainer_state.h"

namespace kernelstream {

// Thread-compatible. A model as a pure function of its config and the mini-batches given to Step:
// equal calls give equal bits, whatever the executor, the cache budget, the SIMD target (with fused
// multiply-add), and wherever Save and Restore come in between.
class Trainer {
 public:
  struct Options {
    Executor* executor = nullptr;  // must outlive the trainer
    FeatureCacheBudget* budget =
        nullptr;  // null: no cache; must outlive the trainer and its snapshots
  };

  // config: complete (CompleteConfig), else INVALID_ARGUMENT.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const ModelConfig& config,
                                                         const Options& options);
  // Goes on where Save left off. DATA_LOSS: the state does not belong to the config or is damaged
  // (its coefficients do not give its fingerprint).
  static absl::StatusOr<std::unique_ptr<Trainer>> Restore(const ModelConfig& config,
                                                          const TrainerState& state,
                                                          const Options& options);
  ~Trainer();

  // Learns rows [first, first + count) of `batch`, which have passed RowRules; 1 <= count <=
  // config.batch_rows. `sequence` is the log position of the last of them. While warming up the
  // rows are kept; the row that completes the warm-up makes the scales final and all kept rows are
  // learned in order. The proximal rule learns blocks of 64 rows: the last ones, which do not fill
  // a block, wait, and snapshots show the model as if these were one more, so that what is learned
  // follows from the rows alone, not from how many came at a time. A row that turns out not to be
  // learnable (a label for which there is no room) is left out and counted once its block is
  // learned.
  void Step(const SampleBatch& batch, size_t first, size_t count, uint64_t sequence);

  // The model as it is now. Copies the served coefficients. Its fingerprint takes reading those of
  // all learners, several times as long: with `older` its fingerprint is kept, and the step of it.
  Ref<Snapshot> MakeSnapshot(const Snapshot* older = nullptr) const;
  TrainerState Save() const;

  ModelPhase phase() const;
  uint64_t step() const;
  uint64_t sequence() const;
  uint64_t rows_learned() const;
  // Rows that Step left out.
  uint64_t rows_skipped() const;
  // Times the coefficients were set back to zero because scores had grown beyond 1e6 standardised
  // units (a step size that is too large for the newest-block rule; the proximal rule does not do
  // this).
  uint64_t divergences() const;

 private:
  class Impl;
  explicit Trainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_TRAINER_H_
