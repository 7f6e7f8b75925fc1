// One named model: what it takes in, what it learns, what it serves.
#ifndef KERNELSTREAM_SERVER_HOSTING_HOSTED_MODEL_H_
#define KERNELSTREAM_SERVER_HOSTING_HOSTED_MODEL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/published_cell.h"
#include "core/feature/feature_map.h"
#include "core/model/label_table.h"
#include "core/model/row_rules.h"
#include "core/model/snapshot.h"
#include "core/model/trainer.h"
#include "server/hosting/append.h"
#include "server/hosting/append_ledger.h"
#include "server/hosting/clock.h"
#include "server/hosting/log_writer.h"
#include "server/hosting/pending_rows.h"
#include "server/hosting/queue_room.h"
#include "server/hosting/sequence_waiters.h"
#include "server/hosting/training_pool.h"
#include "server/store/store.h"
#include "server/telemetry/metrics.h"

namespace kernelstream::server {

// What models share. Everything outlives the models.
struct HostingEnvironment {
  Store* store = nullptr;
  LogWriter* log = nullptr;
  TrainingPool* pool = nullptr;
  Clock* clock = nullptr;
  Metrics* metrics = nullptr;
  FeatureCacheBudget* feature_cache = nullptr;  // null: nothing is cached
};

struct HostingOptions {
  uint32_t max_models = 1000;
  // Of one model: rows taken in and not yet learned.
  uint64_t max_pending_rows = 65536;
  uint64_t max_pending_bytes = uint64_t{64} << 20;
  // A checkpoint is taken after this much training, or after 20 times what the last checkpoint took
  // if that is longer.
  absl::Duration checkpoint_interval = absl::Seconds(2);
  // With unsaved steps and nothing to learn for this long, a checkpoint is taken anyway.
  absl::Duration checkpoint_idle = absl::Seconds(3);
};

struct ModelStatus {
  enum class Phase { kLoading, kWarmingUp, kLearning, kFrozen, kFailed };
  Phase phase = Phase::kLoading;
  std::string failure;         // kFailed: what is wrong, and what to do
  uint64_t rows_pending = 0;   // logged, not in the published model
  uint64_t rows_rejected = 0;  // since the server started
  Ref<Snapshot> snapshot;      // null: nothing to serve
};

// Thread-safe. Takes rows in (check, reserve room, log, acknowledge), learns them on the pool's
// threads, publishes snapshots. Owns the trainer (one slice at a time) and the queue; borrows the
// environment. snapshot() takes no lock and its step never goes back.
class HostedModel final : public Runnable,
                          public LogClient,
                          public std::enable_shared_from_this<HostedModel> {
 public:
  // `is_new`: the store holds nothing of the model yet; it serves at once. Otherwise it is loading
  // until its first slice has run.
  static absl::StatusOr<std::shared_ptr<HostedModel>> Make(StoredModel stored, bool is_new,
                                                           const HostingEnvironment& environment,
                                                           const HostingOptions& options);
  // A model that only says why it cannot be used.
  static std::shared_ptr<HostedModel> MakeFailed(StoredModel stored, std::string failure,
                                                 const HostingEnvironment& environment,
                                                 const HostingOptions& options);
  ~HostedModel() override;

  // Lets the pool load and train.
  void Start();

  const std::string& name() const { return stored_.name; }
  ModelUid uid() const { return stored_.uid; }
  const ModelConfig& config() const { return stored_.config; }
  absl::Time create_time() const { return stored_.create_time; }
  const HostingOptions& options() const { return options_; }

  // Wait-free. Null while loading and for a failed model without a good state.
  Ref<Snapshot> snapshot() const { return published_.Get(); }
  // A snapshot, or why there is none: UNAVAILABLE while loading, FAILED_PRECONDITION if failed.
  // Wait-free if there is one.
  absl::StatusOr<Ref<Snapshot>> ServingSnapshot() const;
  ModelStatus status() const;

  // Checks every row, takes the good ones. Never blocks on disk or training. Errors (nothing of the
  // batch is learned):
  //   RESOURCE_EXHAUSTED   queue full (WaitForSpace), or disk full
  //   FAILED_PRECONDITION  frozen, failed, or a gap in the producer's numbers (the expected one is
  //   named) INVALID_ARGUMENT     more rows than the queue can ever hold UNAVAILABLE loading,
  //   draining, or the disk failed NOT_FOUND            deleted
  // Bad rows are not an error: they are in the result (see AppendResult::refused).
  // What had been logged before is acknowledged and not learned again, also by a frozen model. A
  // model that freezes takes no rows once the published one is full; what was logged by then is
  // learned, and only then is its phase kFrozen.
  void Append(AppendRequest request, AppendCallback callback);
  // Calls back once there is room for a batch of this size, which is then kept for it: an
  // AppendRequest uses it, or ReturnSpace lets it go. With nothing if there will be none: the model
  // takes no rows (Append says why). On this thread if that is so already; then the result is 0.
  QueueRoom::WaitId WaitForSpace(QueueRoom::Space space, QueueRoom::Callback callback);
  void ReturnSpace(QueueRoom::Space granted);
  // True: the callback was dropped. False: it has been called or is about to be.
  bool CancelSpaceWait(QueueRoom::WaitId id);

  using PositionCallback = absl::AnyInvocable<void(absl::StatusOr<ProducerPosition>)>;
  // Where the producer stands, everything that was appended before this call included.
  void GetProducerPosition(std::string producer_id, PositionCallback callback);

  using WaitId = uint64_t;
  using WaitCallback = absl::AnyInvocable<void(absl::Status)>;
  // Calls back once the published snapshot's sequence is at least `sequence`: OK; or NOT_FOUND
  // deleted, FAILED_PRECONDITION failed, UNAVAILABLE stopped. On this thread if that is so already;
  // then the result is 0.
  WaitId WaitForSequence(uint64_t sequence, WaitCallback callback);
  // True: the callback was dropped. False: it has been called or is about to be.
  bool CancelWait(WaitId id);

  // Largest sequence that is logged.
  uint64_t logged_sequence() const;
  // For whoever predicts from the model. rules(): only where ServingSnapshot gives a snapshot.
  ModelMetrics& metrics() const { return *metrics_; }
  const RowRules& rules() const { return *rules_; }

  // For the registry. Stop taking rows; then nothing new is logged once the log writer has run what
  // it had.
  void BeginDrain();
  // No full mini-batch is left to learn and nobody waits for a logged row (or the model is not
  // serving).
  bool Drained() const;
  // Ends learning and writes a checkpoint if there are unsaved steps. Waiters get UNAVAILABLE.
  void Stop();
  // Removes the model from the store and ends it: callers that wait get NOT_FOUND. On error the
  // model goes on.
  absl::Status Delete();

  // Runnable.
  absl::Time RunSlice() override;
  // LogClient; on the log writer's thread.
  std::optional<LogAppend> Stage(LogItem& item) override;
  void Committed(LogItem& item) override;
  void NotCommitted(LogItem& item, const absl::Status& status) override;

 private:
  enum class Life { kLoading, kServing, kFailed, kDeleting, kDeleted, kStopped };
  // Who may come in: thread-compatible, guarded by door_mutex_.
  struct Door {
    RowWidth width;
    uint32_t targets = 0;  // of a regression's row; 0: open
    std::optional<LabelTable> labels;
  };

  HostedModel(StoredModel stored, const HostingEnvironment& environment,
              const HostingOptions& options);

  // Taking in.
  absl::Status WhyNoRows() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // OK unless the published model is full and was created to freeze then.
  absl::Status FrozenError() const;
  // The model is frozen from here on if it is full and nothing that was let in is left to learn.
  void NoteFrozen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRow(const SampleBatch& rows, size_t i, const Snapshot* snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(door_mutex_);
  // Keeps the rows that pass; the others go to the rejected list.
  void CheckRows(AppendRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(door_mutex_);
  absl::Status Reserve(const AppendRequest& request);
  void GiveBack(uint64_t rows, uint64_t bytes);
  // Those whose turn has come, to be called by CallBack.
  std::vector<QueueRoom::Grant> RoomForWaiters() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void CallBack(std::vector<QueueRoom::Grant> grants);
  // Somebody needs room. Where the full queue holds less than one mini-batch, it is cut early, or
  // they would wait out max_batch_delay for rows that cannot come.
  void WantRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool QueueStalls() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteAtDoor(const SampleBatch& rows, Door& door) const;
  void LeaveDoor(const LogItem& item);
  void ForgetDoorIfEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(door_mutex_);
  void FinishAppend(LogItem& item, const absl::Status& status);
  void CutDecided(const absl::Status& status);

  // Learning; in slices only.
  absl::Time TrainSlice();
  // Rows that the next mini-batch has, 0 if it is not complete. Then `wake` says when to look
  // again, or `cut` that an early cut is to be logged.
  uint64_t NextBatch(absl::Time now, absl::Time& wake, bool& cut)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RequestCut(uint64_t sequence);
  // One step. How long it took.
  absl::Duration Step(const PendingRows::Taken& taken);
  // kOlder: with the fingerprint of the published snapshot, which is not the newest then.
  enum class Digest { kFresh, kOlder };
  void Publish(Digest digest);
  void EndWaitsForPublished();
  // When a checkpoint is due; InfiniteFuture if there is nothing new.
  absl::Time CheckpointTime() const;
  void Checkpoint();

  // Loading.
  void Load();
  absl::Status LoadState();
  absl::Status Replay();
  void OpenDoor(const TrainerState* state);
  void Fail(std::string failure);
  void EndWaiters(const absl::Status& status);
  void ReportPhase();
  // Logs and counts what a snapshot warns of for the first time.
  void ReportWarnings(const Snapshot& snapshot);

  const StoredModel stored_;
  const HostingEnvironment environment_;
  const HostingOptions options_;
  std::unique_ptr<const RowRules> rules_;
  std::shared_ptr<ModelMetrics> metrics_;

  PublishedCell<Snapshot> published_;

  // Lock order: door_mutex_, then mutex_.
  mutable absl::Mutex door_mutex_;
  Door door_ ABSL_GUARDED_BY(door_mutex_);                // with everything that was let in
  Door logged_ ABSL_GUARDED_BY(door_mutex_);              // with everything that was logged
  uint64_t at_door_ ABSL_GUARDED_BY(door_mutex_) = 0;     // let in, not yet logged or dropped
  bool door_dirty_ ABSL_GUARDED_BY(door_mutex_) = false;  // something let in was dropped

  mutable absl::Mutex mutex_;
  Life life_ ABSL_GUARDED_BY(mutex_) = Life::kLoading;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool frozen_ ABSL_GUARDED_BY(mutex_) = false;  // it will not learn another row
  std::string failure_ ABSL_GUARDED_BY(mutex_);
  QueueRoom room_ ABSL_GUARDED_BY(mutex_);
  bool room_wanted_ ABSL_GUARDED_BY(mutex_) = false;  // and none was given back since
  PendingRows pending_ ABSL_GUARDED_BY(mutex_);       // logged, not learned
  uint64_t logged_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  // An early cut on its way to the log, or there already and not yet learned.
  enum class CutState { kNone, kRequested, kDurable };
  CutState cut_state_ ABSL_GUARDED_BY(mutex_) = CutState::kNone;
  uint64_t cut_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time cut_retry_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  SequenceWaiters waiters_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> rows_rejected_{0};

  // The log writer's thread only.
  AppendLedger ledger_;

  // Slices only.
  std::unique_ptr<Trainer> trainer_;
  SampleBatch work_;
  absl::Time digest_time_ = absl::InfinitePast();  // when a fingerprint was made
  absl::Duration publish_cost_;
  absl::Duration trained_since_publish_;
  absl::Duration checkpoint_cost_;
  absl::Duration trained_since_checkpoint_;
  uint64_t saved_sequence_ = 0;
  std::optional<uint64_t> drift_reports_;  // of the last snapshot
  std::set<WarningKind> warned_;           // what it warned of
  uint64_t replayed_rows_ = 0;
  absl::Time last_learned_ = absl::InfinitePast();
  absl::Time checkpoint_retry_ = absl::InfinitePast();
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_HOSTING_HOSTED_MODEL_H_
