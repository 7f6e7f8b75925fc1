// Memory of large steps: handed on, never shared, gone with the last holder.
#include "core/model/large_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace kernelstream {
namespace {

using Buffers = LargeFeatures::Buffers;

TEST(LargeFeatures, WaitForTheNextStep) {
  const LargeFeatures holder, other;
  const float* memory = nullptr;
  {
    Buffers buffers(holder);
    EXPECT_TRUE(buffers.floats().empty());
    buffers.floats().emplace_back(1000);
    memory = buffers.floats()[0].data();
  }
  Buffers again(other);
  ASSERT_EQ(again.floats().size(), 1u);
  EXPECT_EQ(again.floats()[0].data(), memory);
}

TEST(LargeFeatures, AreOfOneStepAtATime) {
  const LargeFeatures holder;
  Buffers first(holder), second(holder);
  first.floats().emplace_back(8);
  EXPECT_TRUE(second.floats().empty());
  const float* memory = first.floats()[0].data();
  Buffers moved = std::move(first);
  EXPECT_EQ(moved.floats()[0].data(), memory);
}

TEST(LargeFeatures, AreGivenBackByAssignment) {
  const LargeFeatures holder;
  Buffers buffers(holder);
  buffers.floats().emplace_back(8);
  const float* memory = buffers.floats()[0].data();
  buffers = {};
  Buffers again(holder);
  ASSERT_EQ(again.floats().size(), 1u);
  EXPECT_EQ(again.floats()[0].data(), memory);
}

TEST(LargeFeatures, GoWithTheLastHolder) {
  {
    const LargeFeatures holder;
    Buffers buffers(holder);
    buffers.floats().emplace_back(8);
  }
  const LargeFeatures holder;
  EXPECT_TRUE(Buffers(holder).floats().empty());
}

// Of threads that step at once, nobody writes where another one does.
TEST(LargeFeatures, AreNeverShared) {
  constexpr int kThreads = 4, kSteps = 2000;
  const LargeFeatures holder;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kSteps; ++i) {
        Buffers buffers(holder);
        if (buffers.floats().empty()) buffers.floats().emplace_back(64);
        AlignedFloats& floats = buffers.floats()[0];
        const auto mine = static_cast<float>(t * kSteps + i);
        std::fill(floats.begin(), floats.end(), mine);
        for (const float value : floats) ASSERT_EQ(value, mine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // At most as many wait as there were at once.
  std::vector<Buffers> all;
  size_t waiting = 0;
  for (int i = 0; i < 2 * kThreads; ++i) {
    all.emplace_back(holder);
    if (!all.back().floats().empty()) ++waiting;
  }
  EXPECT_GE(waiting, 1u);
  EXPECT_LE(waiting, size_t{kThreads});
}

}  // namespace
}  // namespace kernelstream
