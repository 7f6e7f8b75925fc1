// Rows that are asked for at the same time, evaluated together.
#ifndef KERNELSTREAM_SERVER_SERVICE_PREDICTION_GROUPS_H_
#define KERNELSTREAM_SERVER_SERVICE_PREDICTION_GROUPS_H_

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/published_cell.h"
#include "core/model/sample_batch.h"
#include "core/model/snapshot.h"
#include "server/service/worker_pool.h"

namespace kernelstream::server {

// Scores of the rows of one request.
struct GroupedScores {
  const Ref<Snapshot>& snapshot;   // that was evaluated; no older than the one asked for
  std::span<const double> scores;  // [rows][snapshot->num_outputs()]
  absl::Time begun;                // when evaluation began
};

// Thread-safe. A row of a large model takes as long as reading all of its frequencies, and a few
// more rows take hardly longer. A request is evaluated at once while one of the pool's threads is
// not busy with its model; those that come meanwhile are evaluated together as soon as one is done.
class PredictionGroups {
 public:
  // Requests with more rows gain nothing from others.
  static constexpr size_t kMostRows = 32;
  // What is told the scores; they are gone when it returns.
  using Done = absl::AnyInvocable<void(const GroupedScores&)>;

  // `threads`: of the pool.
  PredictionGroups(WorkerPool* pool, size_t threads) : pool_(pool), threads_(threads) {}

  // rows: 1 to kMostRows, of `model`, whatever that is; they and the model stay until `done` was
  // called, once, on one of the pool's threads. False: there is no room, and it will not be called.
  bool Score(const void* model, Ref<Snapshot> snapshot, const SampleBatch* rows, Done done);

 private:
  struct Member {
    Ref<Snapshot> snapshot;
    const SampleBatch* rows;
    Done done;
  };
  struct Queue {
    size_t running = 0;  // tasks of the pool; not 0 while somebody waits
    std::deque<Member> waiting;
  };
  // Evaluates who waits until nobody does.
  void Run(const void* model);
  // Nobody, if nobody waits; then one task of that model has ended.
  std::vector<Member> Take(const void* model);
  void Evaluate(std::vector<Member> members);

  WorkerPool* const pool_;
  const size_t threads_;
  absl::Mutex mutex_;
  absl::flat_hash_map<const void*, Queue> queues_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_PREDICTION_GROUPS_H_
