#include "core/base/published_cell.h"

#include <sched.h>

namespace kernelstream::published_cell_internal {
namespace {

std::atomic<ReaderSlot*> slots{nullptr};

// Takes a free slot or adds one.
ReaderSlot* TakeSlot() {
  for (ReaderSlot* slot = slots.load(std::memory_order_acquire); slot != nullptr;
       slot = slot->next) {
    bool free = false;
    if (!slot->taken.load(std::memory_order_relaxed) &&
        slot->taken.compare_exchange_strong(free, true, std::memory_order_acquire)) {
      return slot;
    }
  }
  auto* slot = new ReaderSlot;  // lives as long as the process: writers walk the list at any time
  slot->next = slots.load(std::memory_order_relaxed);
  while (!slots.compare_exchange_weak(slot->next, slot, std::memory_order_seq_cst)) {
  }
  return slot;
}

// Gives the slot back when the thread ends.
struct SlotOwner {
  ReaderSlot* slot = TakeSlot();
  ~SlotOwner() { slot->taken.store(false, std::memory_order_release); }
};

}  // namespace

ReaderSlot* ThisThreadSlot() {
  thread_local SlotOwner owner;
  return owner.slot;
}

void WaitForReaders() {
  for (ReaderSlot* slot = slots.load(std::memory_order_seq_cst); slot != nullptr;
       slot = slot->next) {
    const uint64_t seen = slot->inside.load(std::memory_order_seq_cst);
    if (seen % 2 == 0) continue;
    while (slot->inside.load(std::memory_order_acquire) == seen) sched_yield();
  }
}

}  // namespace kernelstream::published_cell_internal
