// The one thread that writes to the log.
#ifndef KERNELSTREAM_SERVER_HOSTING_LOG_WRITER_H_
#define KERNELSTREAM_SERVER_HOSTING_LOG_WRITER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/hosting/append.h"
#include "server/hosting/clock.h"
#include "server/store/store.h"
#include "server/telemetry/metrics.h"

namespace kernelstream::server {

class LogClient;

// One thing on its way to the log.
struct LogItem {
  enum class Kind { kAppend, kCut, kPosition, kRun };
  Kind kind = Kind::kAppend;
  std::shared_ptr<LogClient> client;  // not for kRun

  // kAppend: rows that have passed the door, with the room reserved for them.
  AppendRequest append;
  AppendCallback callback;
  uint64_t reserved_rows = 0;
  uint64_t reserved_bytes = 0;
  absl::Time arrival;
  // kCut.
  uint64_t cut_sequence = 0;
  // kPosition.
  std::string producer_id;
  absl::AnyInvocable<void(absl::StatusOr<ProducerPosition>)> position_callback;
  ProducerPosition position;
  // kRun.
  absl::AnyInvocable<void()> run;

  // Set by Stage.
  absl::Status error;  // refused by itself, whatever becomes of the group
  AppendResult result;
  std::optional<LogAppend> log;  // what was written, after Committed
};

// A model, as the log writer sees it. Called on the log writer's thread only.
class LogClient {
 public:
  virtual ~LogClient() = default;
  // What to write for the item, if anything. Numbers are given out here; those of a group that
  // fails are taken back.
  virtual std::optional<LogAppend> Stage(LogItem& item) = 0;
  // The group was written, with item.log. Called for every item, in order, also if nothing was
  // written for it.
  virtual void Committed(LogItem& item) = 0;
  // Nothing of the group was written.
  virtual void NotCommitted(LogItem& item, const absl::Status& status) = 0;
};

// Thread-safe. Group commit for all models: while one synchronous write runs, the next group
// gathers. Items are handled in the order of their submission. After a failed write the next group
// is tried afresh.
class LogWriter {
 public:
  // metrics may be null.
  LogWriter(Store* store, Clock* clock, Metrics* metrics);
  ~LogWriter();  // Shutdown()

  // Never blocks. False after Shutdown; then the item is as it was.
  [[nodiscard]] bool Submit(LogItem&& item);
  // Runs `work` on the log writer's thread, after everything submitted before; waits for it. Must
  // not be called from there. UNAVAILABLE after Shutdown.
  absl::Status RunAndWait(absl::AnyInvocable<absl::Status()> work);
  // Returns when everything submitted before has been handled.
  void Flush();
  // Handles what was submitted, then ends the thread. Idempotent.
  void Shutdown();

 private:
  void ThreadMain();
  std::vector<LogItem> TakeGroup() ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteGroup(std::vector<LogItem>& group);

  Store* const store_;
  Clock* const clock_;
  Metrics* const metrics_;
  absl::Mutex mutex_;
  absl::CondVar submitted_;
  std::deque<LogItem> queue_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_HOSTING_LOG_WRITER_H_
