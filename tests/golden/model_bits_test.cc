// What a log means must not change either: the fingerprint of a model that has learned 3000 rows
// with default settings, its learned metric included. A change of what learning computes changes it
// on purpose: then the new one is written here, and said so where the change is described.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/digest.h"
#include "core/model/trainer.h"
#include "core/simd/simd.h"
#include "tests/support/learning.h"
#include "tests/support/random.h"

namespace kernelstream {
namespace {

constexpr char kFingerprint[] = "6f3215b25011d6bb453d32e301f5aa67";
constexpr size_t kRows = 3000, kDim = 6;

// Targets by arithmetic alone, the same on every machine; the last inputs do not matter.
SampleBatch Rows() {
  SampleBatch rows;
  Random random(1);
  for (size_t i = 0; i < kRows; ++i) {
    float* x = rows.AddDense(kDim);
    for (size_t j = 0; j < kDim; ++j) x[j] = static_cast<float>(random.Uniform(-1, 1));
    const double a = x[0], b = x[1];
    rows.SetTarget(a * a * a - 2 * a * b + 0.5 * b);
  }
  return rows;
}

TEST(ModelBits, OfADefaultModelAreTheSameOnAllTargets) {
  ModelConfig config;
  config.loss.name = "square";
  config.max_features = 1024;
  ASSERT_TRUE(CompleteConfig(config).ok());
  const SampleBatch rows = Rows();
  InlineExecutor executor;
  size_t targets = 0;
  for (const std::string& target : SimdTargets()) {
    if (!SimdTargetHasFma(target)) continue;
    ++targets;
    SCOPED_TRACE(target);
    ASSERT_TRUE(UseSimdTarget(target));
    auto trainer = Trainer::Create(config, {&executor, nullptr});
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    Feed(**trainer, config, rows, 0, rows.size());
    const Ref<Snapshot> snapshot = (*trainer)->MakeSnapshot();
    const auto& candidates = snapshot->resolved().candidates;
    EXPECT_TRUE(std::any_of(candidates.begin(), candidates.end(), [](const CandidateReport& c) {
      return c.form != MetricForm::kIsotropic;
    }));
    EXPECT_EQ(DigestHex(snapshot->fingerprint()), kFingerprint);
  }
  UseSimdTarget("");
  if (targets == 0) GTEST_SKIP() << "this CPU has no fused multiply-add: not run";
}

}  // namespace
}  // namespace kernelstream
