// The published cell under stress; run it under ThreadSanitizer.
#include "core/base/published_cell.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <thread>
#include <vector>

namespace kernelstream {
namespace {

// Counts its living objects and shows if it was torn or freed.
class Payload final : public RefCounted {
 public:
  Payload(uint64_t value, std::atomic<int>& alive) : alive_(alive) {
    values_.fill(value);
    ++alive_;
  }
  ~Payload() override {
    values_.fill(~uint64_t{0});
    --alive_;
  }
  uint64_t Check() const {
    for (const uint64_t value : values_) EXPECT_EQ(value, values_[0]);
    return values_[0];
  }

 private:
  std::array<uint64_t, 32> values_;
  std::atomic<int>& alive_;
};

TEST(PublishedCell, IsEmptyUntilSet) {
  PublishedCell<Payload> cell;
  EXPECT_FALSE(cell.Get());
}

TEST(PublishedCell, KeepsAnObjectAliveWhileItIsHeldAndNoLonger) {
  std::atomic<int> alive{0};
  {
    PublishedCell<Payload> cell(Ref<Payload>::Adopt(new Payload(1, alive)));
    Ref<Payload> held = cell.Get();
    cell.Set(Ref<Payload>::Adopt(new Payload(2, alive)));
    EXPECT_EQ(alive, 2);
    EXPECT_EQ(held->Check(), 1u);
    EXPECT_EQ(cell.Get()->Check(), 2u);
    held = {};
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(PublishedCell, ReadersSeeWholeObjectsThatNeverGoBack) {
  constexpr int kReaders = 8;
  constexpr uint64_t kPublished = 20000;
  std::atomic<int> alive{0};
  std::atomic<int> most_alive{0};
  {
    PublishedCell<Payload> cell(Ref<Payload>::Adopt(new Payload(0, alive)));
    std::atomic<bool> stop{false};
    std::vector<std::thread> readers;
    std::latch reading(kReaders + 1);
    for (int r = 0; r < kReaders; ++r) {
      readers.emplace_back([&] {
        uint64_t newest = 0, mine = 0;
        Ref<Payload> held;
        reading.arrive_and_wait();
        while (!stop.load(std::memory_order_relaxed)) {
          Ref<Payload> now = cell.Get();
          const uint64_t value = now->Check();
          EXPECT_GE(value, newest);
          newest = value;
          if (++mine % 16 == 0) held = now;  // some are kept for a while
          if (held) held->Check();
        }
      });
    }
    reading.arrive_and_wait();
    for (uint64_t i = 1; i <= kPublished; ++i) {
      cell.Set(Ref<Payload>::Adopt(new Payload(i, alive)));
      most_alive = std::max(most_alive.load(), alive.load());
    }
    stop = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(cell.Get()->Check(), kPublished);
  }
  EXPECT_EQ(alive, 0);
  // One in the cell, one about to be dropped, two per reader: garbage does not pile up.
  EXPECT_LE(most_alive, 2 + 2 * kReaders);
}

TEST(PublishedCell, ManyShortLivedThreadsReuseTheirSlots) {
  std::atomic<int> alive{0};
  PublishedCell<Payload> cell(Ref<Payload>::Adopt(new Payload(0, alive)));
  for (int round = 0; round < 200; ++round) {
    std::thread reader([&] { cell.Get()->Check(); });
    cell.Set(Ref<Payload>::Adopt(new Payload(static_cast<uint64_t>(round), alive)));
    reader.join();
  }
  EXPECT_EQ(alive, 1);
}

}  // namespace
}  // namespace kernelstream
