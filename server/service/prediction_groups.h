// Rows that are asked for at the same time, evaluated together.
#ifndef KERNELSTREAM_SERVER_SERVICE_PREDICTION_GROUPS_H_
#define KERNELSTREAM_SERVER_SERVICE_PREDICTION_GROUPS_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
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
  absl::Duration share;            // what it took, divided by the requests of the group
};

// One request. Its rows and its model stay as long as it does. Its functions may be called on any
// thread of the pool, one at a time.
class GroupedRequest {
 public:
  virtual ~GroupedRequest() = default;
  // False: nobody waits for it any more, and it is dropped.
  virtual bool Wanted() = 0;
  // The scores are gone when it returns.
  virtual void Scored(const GroupedScores& group) = 0;
};

// Thread-safe. A row of a large model takes as long as reading all of its frequencies, and a few
// more rows take hardly longer. A request goes to the pool by itself while not every thread has
// work for its model; those that come meanwhile are evaluated together when one of these is done.
class PredictionGroups {
 public:
  // Requests with more rows gain nothing from others.
  static constexpr size_t kMostRows = 32;

  // `threads`: of the pool, which is shut down before this object goes. max_waiting: requests of
  // all models.
  PredictionGroups(WorkerPool* pool, size_t threads, size_t max_waiting)
      : pool_(pool), threads_(threads), max_waiting_(max_waiting) {}

  // rows: 1 to kMostRows of `request`, for `model`, whatever that is; none of them wide
  // (Snapshot::IsWide). False: there is no room, and nothing of `request` is called.
  bool Score(const void* model, Ref<Snapshot> snapshot, const SampleBatch* rows,
             std::shared_ptr<GroupedRequest> request);

 private:
  struct Member {
    Ref<Snapshot> snapshot;
    const SampleBatch* rows;
    std::shared_ptr<GroupedRequest> request;
  };
  struct Queue {
    size_t running = 0;  // tasks of the pool; not 0 while somebody waits
    size_t rows = 0;     // that wait
    std::deque<Member> waiting;
  };
  // Evaluates who waits, then gives way to other models.
  void Run(const void* model);
  // Nobody, if nobody waits; then one task of that model has ended.
  std::vector<Member> Take(const void* model);
  void Evaluate(const std::vector<Member>& members);

  WorkerPool* const pool_;
  const size_t threads_, max_waiting_;
  absl::Mutex mutex_;
  absl::flat_hash_map<const void*, Queue> queues_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // in all queues
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_PREDICTION_GROUPS_H_
