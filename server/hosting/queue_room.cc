#include "server/hosting/queue_room.h"

#include <algorithm>
#include <utility>

namespace kernelstream::server {

void QueueRoom::Enter(Space space) {
  taken_.rows += space.rows;
  taken_.bytes += space.bytes;
}

bool QueueRoom::Take(Space space) {
  const bool overtakes = AnyWaits();
  if (!Fits(space) || (overtakes && overtaken_rows_ >= waiters_.front().space.rows)) {
    if (!refused_rows_.has_value()) granted_since_refusal_ = 0;
    refused_rows_ = space.rows;
    return false;
  }
  if (overtakes) overtaken_rows_ += space.rows;
  refused_rows_.reset();
  Enter(space);
  return true;
}

bool QueueRoom::TakeInTurn(Space space) {
  if (AnyWaits() || !Fits(space)) return false;
  Enter(space);
  return true;
}

bool QueueRoom::TakeGranted(Space granted, Space space) {
  Return(granted);
  if (!Fits(space)) return Take(space);
  Enter(space);
  return true;
}

void QueueRoom::GiveBack(Space taken) {
  taken_.rows -= taken.rows;
  taken_.bytes -= taken.bytes;
}

void QueueRoom::Return(Space granted) {
  granted_.rows -= granted.rows;
  granted_.bytes -= granted.bytes;
}

QueueRoom::WaitId QueueRoom::Wait(Space space, Callback callback) {
  if (!AnyWaits()) overtaken_rows_ = 0;
  waiters_.push_back({++last_id_, space, std::move(callback)});
  return last_id_;
}

bool QueueRoom::Cancel(WaitId id) {
  const auto waiter = std::ranges::find(waiters_, id, &Waiter::id);
  if (waiter == waiters_.end()) return false;
  if (waiter == waiters_.begin()) overtaken_rows_ = 0;
  waiters_.erase(waiter);
  return true;
}

bool QueueRoom::IsKeptForCallers() {
  if (!refused_rows_.has_value() || granted_since_refusal_ < *refused_rows_) return false;
  if (taken_.rows + granted_.rows > size_.rows / 2 ||
      taken_.bytes + granted_.bytes > size_.bytes / 2) {
    return true;
  }
  refused_rows_.reset();  // it had its chance
  return false;
}

std::vector<QueueRoom::Grant> QueueRoom::Grants() {
  std::vector<Grant> grants;
  while (AnyWaits() && Fits(waiters_.front().space) && !IsKeptForCallers()) {
    Waiter& first = waiters_.front();
    granted_.rows += first.space.rows;
    granted_.bytes += first.space.bytes;
    granted_since_refusal_ += first.space.rows;
    grants.push_back({first.space, std::move(first.callback)});
    waiters_.pop_front();
    overtaken_rows_ = 0;
  }
  return grants;
}

std::vector<QueueRoom::Callback> QueueRoom::EndWaits() {
  std::vector<Callback> callbacks;
  for (Waiter& waiter : waiters_) callbacks.push_back(std::move(waiter.callback));
  waiters_.clear();
  return callbacks;
}

}  // namespace kernelstream::server
