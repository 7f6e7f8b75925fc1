// Philox4x32-10 against the known answers its authors publish, and against their library.
#include <Random123/philox.h>
#include <gtest/gtest.h>

#include "core/base/philox.h"

namespace kernelstream {
namespace {

TEST(Philox4x32, GivesTheKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox4x32, EqualsRandom123) {
  r123::Philox4x32 theirs;
  PhiloxBlock counter = {1, 2, 3, 4};
  std::array<uint32_t, 2> key = {5, 6};
  for (int i = 0; i < 10000; ++i) {
    const r123::Philox4x32::ctr_type c = {{counter[0], counter[1], counter[2], counter[3]}};
    const r123::Philox4x32::key_type k = {{key[0], key[1]}};
    const r123::Philox4x32::ctr_type expected = theirs(c, k);
    const PhiloxBlock got = Philox4x32(counter, key);
    for (int w = 0; w < 4; ++w) ASSERT_EQ(got[w], expected[w]) << "draw " << i;
    key = {got[1] ^ key[1], got[3]};
    counter = got;
  }
}

}  // namespace
}  // namespace kernelstream
