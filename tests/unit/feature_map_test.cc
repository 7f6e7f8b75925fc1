#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "core/feature/random_feature_map.h"

namespace kernelstream {
namespace {

TEST(RandomFeatureMap, VisitsTheSameRunsWithAndWithoutACache) {
  for (const size_t dim : {3, 1500, 40000}) {  // all of a block, some panels of it, one panel
    FeatureCacheBudget budget(int64_t{1} << 30);
    const RandomFeatureMap kept(FeatureSpec{}, 7, dim, 512, &budget);
    const RandomFeatureMap generated(FeatureSpec{}, 7, dim, 512, nullptr);
    const auto runs = [](const RandomFeatureMap& map) {
      std::vector<std::pair<uint64_t, size_t>> result;
      map.VisitPanels(3, 24, [&](const FeaturePanels& panels, uint64_t first) {
        result.emplace_back(first, panels.num_panels);
      });
      return result;
    };
    EXPECT_EQ(runs(kept), runs(generated)) << dim;
    EXPECT_EQ(kept.cached_bytes(), kept.BytesOf(512));  // of both blocks, some panels of each
    EXPECT_EQ(generated.cached_bytes(), 0);
    EXPECT_EQ(generated.BytesOf(512), kept.BytesOf(512));
  }
}

}  // namespace
}  // namespace kernelstream
