// Rows whose zeros are left out have the features of the dense rows, bit for bit, for every kernel.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/feature/feature_map.h"
#include "core/kernel/kernel.h"
#include "core/simd/simd.h"
#include "tests/support/kernel_settings.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

constexpr uint64_t kSeed = 77;
constexpr size_t kRows = 9, kDim = 200, kPanels = 37;
constexpr float kInverseBandwidths[] = {0.6f, 1.1f, 0.25f};

// Rows in runs of two; the first row has no values.
SparseRows Sparse(const std::vector<float>& dense) {
  SparseRows rows;
  for (size_t r = 0; r < kRows; ++r) {
    if (r % 2 == 0) {
      SparseRows::Run run;
      run.num_rows = std::min<size_t>(2, kRows - r);
      for (uint64_t j = 0; j < kDim; ++j) {
        bool occurs = false;
        for (size_t i = 0; i < run.num_rows; ++i) occurs |= dense[(r + i) * kDim + j] != 0;
        if (occurs) run.ids.push_back(j);
      }
      rows.runs.push_back(run);
    }
    const std::vector<uint64_t>& ids = rows.runs.back().ids;
    for (uint32_t place = 0; place < ids.size(); ++place) {
      const float value = dense[r * kDim + ids[place]];
      if (value == 0) continue;
      rows.places.push_back(place);
      rows.values.push_back(value);
    }
    rows.begins.push_back(rows.values.size());
  }
  return rows;
}

std::vector<float> Features(const FeatureMap& map, InputsView x) {
  const size_t floats = kPanels * kRows * kPanelWidth;
  std::vector<float> all(std::size(kInverseBandwidths) * floats);
  std::vector<float*> out;
  for (size_t k = 0; k < std::size(kInverseBandwidths); ++k) out.push_back(&all[k * floats]);
  map.FeaturesAt(x, kInverseBandwidths, 3, kPanels, out);
  return all;
}

std::vector<double> Sums(const FeatureMap& map, InputsView x) {
  Random random(kSeed + 1);
  std::vector<float> coefficients(2 * kPanels * kPanelWidth);
  for (float& value : coefficients) value = static_cast<float>(random.Normal());
  std::vector<double> sums(2 * kRows, 0);
  map.AddSums(x, kInverseBandwidths[0], 1, kPanels, coefficients.data(), 2, sums.data());
  return sums;
}

template <class T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

void ExpectSameFeatures(const Kernel& kernel) {
  Random random(kSeed);
  std::vector<float> dense(kRows * kDim, 0.0f);
  for (size_t i = kDim; i < dense.size(); ++i) {
    const auto value = static_cast<float>(random.Normal());
    if (random.Uniform() < 0.15) dense[i] = kernel.takes_any_input() ? value : value * value;
  }
  const ConstMatrixView x(dense.data(), kRows, kDim);
  const SparseRows sparse = Sparse(dense);
  FeatureCacheBudget budget(int64_t{1} << 28);
  FeatureSpec spec = kernel.features();
  for (const bool pairs : {false, true}) {
    if (pairs && !spec.takes_pairs()) continue;
    SCOPED_TRACE(pairs ? "pairs" : "single");
    spec.pairs = pairs;
    const auto kept = MakeFeatureMap(spec, kSeed, kDim, 4096, &budget);
    const auto generated = MakeFeatureMap(spec, kSeed, 1, 4096, nullptr);
    EXPECT_TRUE(SameBits(Features(*kept, x), Features(*generated, sparse)));
    EXPECT_TRUE(SameBits(Features(*kept, x), Features(*kept, sparse)));
    EXPECT_TRUE(SameBits(Sums(*kept, x), Sums(*generated, sparse)));
  }
}

TEST(EveryKernel, HasTheSameFeaturesOfSparseRows) {
  for (const KernelEntry& entry : KernelRegistry()) {
    for (const ComponentConfig& setting : FeatureSettings(entry.doc.name)) {
      SCOPED_TRACE(SettingText(setting));
      auto config = CompleteKernel(setting);
      ASSERT_TRUE(config.ok()) << config.status();
      const std::vector<float> row(kDim);
      ChooseKernelParameters({row.data(), 1, kDim}, *config);
      const auto kernel = MakeUnitKernel(*config);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      ExpectSameFeatures(**kernel);
    }
  }
}

}  // namespace
}  // namespace kernelstream
