// Who gets the room of a model's queue.
#ifndef KERNELSTREAM_SERVER_HOSTING_QUEUE_ROOM_H_
#define KERNELSTREAM_SERVER_HOSTING_QUEUE_ROOM_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/functional/any_invocable.h"

namespace kernelstream::server {

// Thread-compatible. Rows and bytes of a bounded queue: taken by rows that are in it, or granted to
// somebody who waited and has not used it yet.
//
// Those who wait are served in their order. Beside them there are callers that try once and come
// again. Neither kind starves the other: callers may overtake whoever waits in front by as many
// rows as that one wants, then the room is kept for it; and a caller that was refused finds room
// once as many rows as it has were granted, as long as the queue is more than half full (so that
// what is kept for somebody who never comes again costs no work).
class QueueRoom {
 public:
  struct Space {
    uint64_t rows = 0, bytes = 0;
  };
  using WaitId = uint64_t;  // from 1
  // Gets the space that is granted now: to be used or returned. Nothing: the wait has ended
  // without.
  using Callback = absl::AnyInvocable<void(std::optional<Space>)>;

  explicit QueueRoom(Space size) : size_(size) {}

  // It would not fit into the empty queue.
  bool IsTooLarge(Space space) const {
    return space.rows > size_.rows || space.bytes > size_.bytes;
  }
  uint64_t taken_rows() const { return taken_.rows; }
  bool AnyWaits() const { return !waiters_.empty(); }

  // For a caller that tries once.
  bool Take(Space space);
  // For a caller that waits if it has to: behind those who wait already.
  bool TakeInTurn(Space space);
  // What was granted becomes taken, or, where that is not the same, is returned and Take decides.
  bool TakeGranted(Space granted, Space space);
  void GiveBack(Space taken);
  // At a start: what the log holds, whatever the size is now.
  void SetTaken(Space taken) { taken_ = taken; }
  void Return(Space granted);

  WaitId Wait(Space space, Callback callback);
  // True: the callback was dropped. False: it was taken by Grants or EndWaits.
  bool Cancel(WaitId id);

  // To be called after anything that makes room, without locks: those who wait and now have room.
  struct Grant {
    Space space;
    Callback callback;
  };
  std::vector<Grant> Grants();
  // To be called with nothing, without locks.
  std::vector<Callback> EndWaits();

 private:
  struct Waiter {
    WaitId id;
    Space space;
    Callback callback;
  };
  bool Fits(Space space) const {
    return taken_.rows + granted_.rows + space.rows <= size_.rows &&
           taken_.bytes + granted_.bytes + space.bytes <= size_.bytes;
  }
  bool IsKeptForCallers();
  void Enter(Space space);

  const Space size_;
  Space taken_, granted_;
  std::deque<Waiter> waiters_;
  WaitId last_id_ = 0;
  uint64_t overtaken_rows_ = 0;           // since the waiter in front is there
  std::optional<uint64_t> refused_rows_;  // of a caller that will come again
  uint64_t granted_since_refusal_ = 0;    // rows
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_HOSTING_QUEUE_ROOM_H_
