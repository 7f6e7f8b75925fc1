#include "server/hosting/sequence_waiters.h"

#include <utility>

namespace kernelstream::server {

uint64_t SequenceWaiters::Add(uint64_t sequence, Callback callback) {
  const uint64_t id = ++last_id_;
  by_id_[id] = by_sequence_.emplace(sequence, Waiter{id, std::move(callback)});
  return id;
}

bool SequenceWaiters::Cancel(uint64_t id) {
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return false;
  by_sequence_.erase(it->second);
  by_id_.erase(it);
  return true;
}

std::vector<SequenceWaiters::Callback> SequenceWaiters::TakeUpTo(uint64_t sequence) {
  std::vector<Callback> callbacks;
  while (AnyUpTo(sequence)) {
    const auto it = by_sequence_.begin();
    by_id_.erase(it->second.id);
    callbacks.push_back(std::move(it->second.callback));
    by_sequence_.erase(it);
  }
  return callbacks;
}

std::vector<SequenceWaiters::Callback> SequenceWaiters::TakeAll() { return TakeUpTo(UINT64_MAX); }

}  // namespace kernelstream::server
