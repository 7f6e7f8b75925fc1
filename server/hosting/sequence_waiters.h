// Callers that wait until the published model has learned a row.
#ifndef KERNELSTREAM_SERVER_HOSTING_SEQUENCE_WAITERS_H_
#define KERNELSTREAM_SERVER_HOSTING_SEQUENCE_WAITERS_H_

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace kernelstream::server {

// Thread-compatible. Never calls back itself: the owner does, without its lock.
class SequenceWaiters {
 public:
  using Callback = absl::AnyInvocable<void(absl::Status)>;

  // An id from 1 on.
  uint64_t Add(uint64_t sequence, Callback callback);
  // False: not there (any more).
  bool Cancel(uint64_t id);
  // Those that wait for `sequence` or less, by sequence.
  std::vector<Callback> TakeUpTo(uint64_t sequence);
  std::vector<Callback> TakeAll();
  // Somebody waits for `sequence` or less.
  bool AnyUpTo(uint64_t sequence) const {
    return !by_sequence_.empty() && by_sequence_.begin()->first <= sequence;
  }
  bool empty() const { return by_sequence_.empty(); }

 private:
  struct Waiter {
    uint64_t id;
    Callback callback;
  };
  std::multimap<uint64_t, Waiter> by_sequence_;
  std::unordered_map<uint64_t, std::multimap<uint64_t, Waiter>::iterator> by_id_;
  uint64_t last_id_ = 0;
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_HOSTING_SEQUENCE_WAITERS_H_
