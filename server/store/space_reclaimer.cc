#include "server/store/space_reclaimer.h"

#include <cstdint>

#include "rocksdb/options.h"
#include "server/telemetry/log.h"

namespace kernelstream::server {
namespace {

// Less is not worth the rewriting of files that hold other models too.
constexpr uint64_t kWorthwhileBytes = uint64_t{4} << 20;

}  // namespace

SpaceReclaimer::SpaceReclaimer(rocksdb::DB* db, std::vector<rocksdb::ColumnFamilyHandle*> families)
    : db_(db), families_(std::move(families)), thread_([this] { ThreadMain(); }) {}

SpaceReclaimer::~SpaceReclaimer() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void SpaceReclaimer::Reclaim(std::string begin, std::string end) {
  absl::MutexLock lock(&mutex_);
  ranges_.emplace_back(std::move(begin), std::move(end));
  changed_.SignalAll();
}

void SpaceReclaimer::WaitUntilIdle() {
  absl::MutexLock lock(&mutex_);
  while (!ranges_.empty() && !ended_) changed_.Wait(&mutex_);
}

void SpaceReclaimer::ThreadMain() {
  absl::MutexLock lock(&mutex_);
  while (!ended_) {
    if (ranges_.empty()) {
      changed_.Wait(&mutex_);
      continue;
    }
    const Range range = ranges_.front();
    mutex_.Unlock();
    Compact(range);
    mutex_.Lock();
    ranges_.pop_front();
    changed_.SignalAll();
  }
}

void SpaceReclaimer::Compact(const Range& range) {
  const rocksdb::Slice begin(range.first), end(range.second);
  const rocksdb::Range deleted(begin, end);
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    rocksdb::SizeApproximationOptions of_files;
    uint64_t bytes = 0;
    if (!db_->GetApproximateSizes(of_files, family, &deleted, 1, &bytes).ok()) continue;
    if (bytes < kWorthwhileBytes) continue;
    rocksdb::CompactRangeOptions options;
    options.exclusive_manual_compaction = false;
    options.canceled = &ended_;
    const rocksdb::Status status = db_->CompactRange(options, family, &begin, &end);
    if (!status.ok() && !ended_) {
      Log(LogLevel::kWarning, "space_not_reclaimed",
          {{"bytes", bytes}, {"error", status.ToString()}});
    }
  }
}

}  // namespace kernelstream::server
