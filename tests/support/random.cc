#include "tests/support/random.h"

#include "core/base/philox.h"
#include "core/base/quantile.h"

namespace kernelstream {

double Random::Uniform() {
  const uint64_t i = drawn_++;
  const PhiloxBlock block = Philox4x32(
      {static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32), 0, 0}, PhiloxKey(seed_));
  return UniformDouble(block[0], block[1]);
}

double Random::Normal() { return NormalQuantile(Uniform()); }

}  // namespace kernelstream
