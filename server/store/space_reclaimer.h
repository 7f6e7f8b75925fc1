// Gives the disk back what deleted models took.
#ifndef KERNELSTREAM_SERVER_STORE_SPACE_RECLAIMER_H_
#define KERNELSTREAM_SERVER_STORE_SPACE_RECLAIMER_H_

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/db.h"

namespace kernelstream::server {

// Thread-safe. RocksDB drops deleted data when later writes make it rewrite the files, which for a
// deleted model may be never; this rewrites them at once, on a thread of its own since that may
// take seconds. What a stop interrupts is left to RocksDB. Borrows the database and its families;
// ends before them.
class SpaceReclaimer {
 public:
  SpaceReclaimer(rocksdb::DB* db, std::vector<rocksdb::ColumnFamilyHandle*> families);
  // Does not wait for what is left to do.
  ~SpaceReclaimer();

  // The keys in [begin, end) have been deleted.
  void Reclaim(std::string begin, std::string end);
  // Until everything that was asked for has been tried.
  void WaitUntilIdle();

 private:
  using Range = std::pair<std::string, std::string>;
  void ThreadMain();
  void Compact(const Range& range);

  rocksdb::DB* const db_;
  const std::vector<rocksdb::ColumnFamilyHandle*> families_;
  std::atomic<bool> ended_{false};
  absl::Mutex mutex_;
  std::deque<Range> ranges_ ABSL_GUARDED_BY(mutex_);  // the one being worked on stays in front
  absl::CondVar changed_;
  std::thread thread_;
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_STORE_SPACE_RECLAIMER_H_
