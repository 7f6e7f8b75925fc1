#include "server/hosting/log_writer.h"

#include <utility>

#include "absl/synchronization/notification.h"
#include "server/telemetry/log.h"

namespace kernelstream::server {
namespace {

// A group is one write: large enough to share the sync, small enough not to hold up those that wait
// for it.
constexpr uint64_t kMostGroupBytes = uint64_t{8} << 20;
constexpr size_t kMostGroupItems = 4096;

}  // namespace

LogWriter::LogWriter(Store* store, Clock* clock, Metrics* metrics)
    : store_(store), clock_(clock), metrics_(metrics), thread_([this] { ThreadMain(); }) {}

LogWriter::~LogWriter() { Shutdown(); }

bool LogWriter::Submit(LogItem&& item) {
  absl::MutexLock lock(&mutex_);
  if (ended_) return false;
  queue_.push_back(std::move(item));
  if (queue_.size() == 1) submitted_.Signal();
  return true;
}

absl::Status LogWriter::RunAndWait(absl::AnyInvocable<absl::Status()> work) {
  absl::Status status;
  absl::Notification done;
  LogItem item;
  item.kind = LogItem::Kind::kRun;
  item.run = [&] {
    status = work();
    done.Notify();
  };
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return absl::UnavailableError("the server is stopping");
    queue_.push_back(std::move(item));
    if (queue_.size() == 1) submitted_.Signal();
  }
  done.WaitForNotification();
  return status;
}

void LogWriter::Flush() {
  RunAndWait([] { return absl::OkStatus(); }).IgnoreError();
}

void LogWriter::Shutdown() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    submitted_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

std::vector<LogItem> LogWriter::TakeGroup() {
  std::vector<LogItem> group;
  uint64_t bytes = 0;
  absl::MutexLock lock(&mutex_);
  while (queue_.empty() && !ended_) submitted_.Wait(&mutex_);
  while (!queue_.empty() && group.size() < kMostGroupItems && bytes < kMostGroupBytes) {
    const bool alone = queue_.front().kind == LogItem::Kind::kRun;
    if (alone && !group.empty()) break;
    bytes += queue_.front().reserved_bytes;
    group.push_back(std::move(queue_.front()));
    queue_.pop_front();
    if (alone) break;
  }
  return group;
}

void LogWriter::ThreadMain() {
  while (true) {
    std::vector<LogItem> group = TakeGroup();
    if (group.empty()) return;
    if (group.front().kind == LogItem::Kind::kRun) {
      group.front().run();
    } else {
      WriteGroup(group);
    }
  }
}

void LogWriter::WriteGroup(std::vector<LogItem>& group) {
  std::vector<LogAppend> appends;
  std::vector<size_t> owners;
  for (size_t i = 0; i < group.size(); ++i) {
    std::optional<LogAppend> append = group[i].client->Stage(group[i]);
    if (!append) continue;
    appends.push_back(*std::move(append));
    owners.push_back(i);
  }
  absl::Status status;
  if (!appends.empty()) {
    const absl::Time begin = clock_->Now();
    status = store_->Commit(appends);
    if (metrics_ != nullptr && status.ok())
      metrics_->Committed(clock_->Now() - begin, appends.size());
    if (!status.ok()) {
      if (metrics_ != nullptr) metrics_->CommitFailed();
      Log(LogLevel::kError, "log_write_failed",
          {{"appends", appends.size()}, {"error", status.ToString()}});
    }
  }
  for (size_t k = 0; k < owners.size(); ++k) group[owners[k]].log = std::move(appends[k]);
  for (LogItem& item : group) {
    const std::shared_ptr<LogClient> client = item.client;
    if (status.ok()) {
      client->Committed(item);
    } else {
      client->NotCommitted(item, status);
    }
  }
}

}  // namespace kernelstream::server
