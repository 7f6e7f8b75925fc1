#include "core/feature/feature_map.h"

#include "core/feature/composite_feature_map.h"
#include "core/feature/random_feature_map.h"
#include "core/feature/structured.h"

namespace kernelstream {

bool FeatureCacheBudget::TryTake(int64_t bytes) {
  int64_t left = left_.load(std::memory_order_relaxed);
  while (left >= bytes) {
    if (left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
  }
  return false;
}

std::shared_ptr<const FeatureMap> MakeFeatureMap(const FeatureSpec& spec, uint64_t seed,
                                                 size_t input_dim, uint64_t max_features,
                                                 FeatureCacheBudget* budget) {
  if (spec.sampler == Sampler::kStructured) {
    return std::make_shared<StructuredFeatureMap>(spec, seed, input_dim, max_features, budget);
  }
  if (spec.composition != Composition::kNone && !spec.is_shift_invariant()) {
    if (spec.composition == Composition::kSum) {
      return std::make_shared<SumFeatureMap>(spec, seed, input_dim, max_features, budget);
    }
    return std::make_shared<ProductFeatureMap>(spec, seed, input_dim, max_features, budget);
  }
  return std::make_shared<RandomFeatureMap>(spec, seed, input_dim, max_features, budget);
}

}  // namespace kernelstream
