// Which SIMD target runs.
#include <cstdint>
#include <string>
#include <vector>

#include "core/simd/simd.h"
#include "hwy/highway.h"

namespace kernelstream {
namespace {

// Asked once, before UseSimdTarget() can narrow Highway's own answer.
int64_t RunnableTargets() {
  static const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets;
}

// Lower bits are better.
int64_t BestOf(int64_t targets) { return targets & -targets; }

}  // namespace

std::vector<std::string> SimdTargets() {
  std::vector<std::string> names;
  for (int64_t left = RunnableTargets(); left != 0; left &= left - 1) {
    names.emplace_back(hwy::TargetName(BestOf(left)));
  }
  return names;
}

std::string ActiveSimdTarget() {
  RunnableTargets();
  return hwy::TargetName(BestOf(hwy::SupportedTargets() & HWY_TARGETS));
}

bool SimdTargetHasFma(const std::string& name) {
  return name == "AVX2" || name == "AVX3" || name == "AVX3_DL" ||
         (name == "NEON" && HWY_ARCH_ARM_A64);
}

bool UseSimdTarget(const std::string& name) {
  int64_t chosen = 0;  // 0 takes Highway's restriction away
  if (!name.empty()) {
    for (int64_t left = RunnableTargets(); left != 0; left &= left - 1) {
      if (name == hwy::TargetName(BestOf(left))) chosen = BestOf(left);
    }
    if (chosen == 0) return false;
  }
  RunnableTargets();
  hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return true;
}

}  // namespace kernelstream
