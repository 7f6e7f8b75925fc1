// Who gets the room of a full queue, step by step.
#include "server/hosting/queue_room.h"

#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace kernelstream::server {
namespace {

using Space = QueueRoom::Space;

Space Rows(uint64_t rows) { return {rows, 10 * rows}; }

// A queue of 64 rows that is full, with waiters that note what they were granted.
class QueueRoomTest : public testing::Test {
 protected:
  QueueRoomTest() { EXPECT_TRUE(room_.Take(Rows(64))); }

  // Its place in `granted`.
  size_t Wait(uint64_t rows) {
    const size_t i = granted_.size();
    granted_.emplace_back();
    ids_.push_back(room_.Wait(Rows(rows), [this, i](std::optional<Space> space) {
      granted_[i] = space.has_value() ? space->rows : 0;
    }));
    return i;
  }
  // What a training step does.
  void Learn(uint64_t rows) {
    room_.GiveBack(Rows(rows));
    for (QueueRoom::Grant& grant : room_.Grants()) grant.callback(grant.space);
  }

  QueueRoom room_{Rows(64)};
  std::vector<std::optional<uint64_t>> granted_;
  std::vector<QueueRoom::WaitId> ids_;
};

TEST_F(QueueRoomTest, WhatIsGrantedBelongsToWhoeverWaited) {
  const size_t first = Wait(8), second = Wait(8);
  Learn(8);
  EXPECT_EQ(granted_[first], 8u);
  EXPECT_EQ(granted_[second], std::nullopt);
  EXPECT_FALSE(room_.Take(Rows(1)));
  EXPECT_TRUE(room_.TakeGranted(Rows(8), Rows(8)));
  EXPECT_EQ(room_.taken_rows(), 64u);
}

// It would wait for ever if others took each mini-batch that becomes free.
TEST_F(QueueRoomTest, ALargeBatchIsOvertakenByAsManyRowsAsItHasAndNoMore) {
  const size_t large = Wait(48), behind = Wait(8);
  uint64_t overtaken = 0;
  for (int step = 0; step < 100 && !granted_[large].has_value(); ++step) {
    Learn(8);
    if (room_.Take(Rows(8))) overtaken += 8;
  }
  EXPECT_EQ(granted_[large], 48u);
  EXPECT_EQ(overtaken, 48u);
  EXPECT_TRUE(room_.TakeGranted(Rows(48), Rows(48)));
  for (int step = 0; step < 4; ++step) Learn(8);
  EXPECT_EQ(granted_[behind], 8u);
}

// Streams wait again as soon as they were served, so that there is always somebody in line.
TEST_F(QueueRoomTest, ACallerThatTriesAgainIsServedBesideThoseWhoWait) {
  uint64_t served = 0, of_waiters = 0;
  for (int i = 0; i < 8; ++i) Wait(8);
  for (int step = 0; step < 1000; ++step) {
    Learn(8);
    for (size_t i = 0; i < granted_.size(); ++i) {
      if (!granted_[i].has_value()) continue;
      EXPECT_TRUE(room_.TakeGranted(Rows(*granted_[i]), Rows(*granted_[i])));
      of_waiters += *std::exchange(granted_[i], std::nullopt);
      Wait(8);
    }
    if (room_.Take(Rows(4))) served += 4;
  }
  EXPECT_GT(served, 8000u / 5);
  EXPECT_GT(of_waiters, 8000u / 5);
  EXPECT_LE(served + of_waiters, 8000u + 64);
}

// A caller that was refused may never come back.
TEST_F(QueueRoomTest, RoomKeptForACallerIsGivenToThoseWhoWaitOnceHalfTheQueueIsEmpty) {
  EXPECT_FALSE(room_.Take(Rows(8)));
  for (int i = 0; i < 20; ++i) Wait(8);
  uint64_t granted = 0;
  for (int step = 0; step < 12; ++step) {
    Learn(8);
    for (auto& rows : granted_) {
      if (!rows.has_value()) continue;
      EXPECT_TRUE(room_.TakeGranted(Rows(*rows), Rows(*rows)));
      granted += *std::exchange(rows, std::nullopt);
    }
  }
  EXPECT_EQ(granted, 8u * 12);
}

TEST_F(QueueRoomTest, NobodyStandsBehindAWaitThatWasCancelled) {
  Wait(64);
  const size_t behind = Wait(8);
  Learn(8);
  EXPECT_EQ(granted_[behind], std::nullopt);
  EXPECT_TRUE(room_.Cancel(ids_[0]));
  EXPECT_FALSE(room_.Cancel(ids_[0]));
  Learn(0);
  EXPECT_EQ(granted_[behind], 8u);
  EXPECT_FALSE(room_.Cancel(ids_[behind]));
}

TEST_F(QueueRoomTest, WaitsThatEndGetNothing) {
  Wait(8);
  for (QueueRoom::Callback& callback : room_.EndWaits()) callback(std::nullopt);
  EXPECT_EQ(granted_[0], 0u);
  EXPECT_FALSE(room_.AnyWaits());
}

TEST_F(QueueRoomTest, BytesCountToo) {
  EXPECT_TRUE(room_.IsTooLarge({1, 641}));
  EXPECT_FALSE(room_.IsTooLarge({64, 640}));
  room_.GiveBack(Rows(64));
  EXPECT_TRUE(room_.Take({1, 600}));
  EXPECT_FALSE(room_.Take({1, 41}));
  EXPECT_TRUE(room_.Take({1, 40}));
}

}  // namespace
}  // namespace kernelstream::server
