#include "core/model/large_features.h"

#include <array>
#include <atomic>
#include <cstddef>

namespace kernelstream {
namespace {

using Floats = std::vector<AlignedFloats>;

// Places where buffers wait; more than threads that learn.
constexpr size_t kMostWaiting = 256;
std::array<std::atomic<Floats*>, kMostWaiting> waiting;
std::atomic<size_t> holders = 0;

std::unique_ptr<Floats> TakeWaiting() {
  for (std::atomic<Floats*>& place : waiting) {
    if (place.load(std::memory_order_relaxed) == nullptr) continue;
    if (Floats* floats = place.exchange(nullptr, std::memory_order_acq_rel)) {
      return std::unique_ptr<Floats>(floats);
    }
  }
  return nullptr;
}

void LetWait(std::unique_ptr<Floats> floats) {
  for (std::atomic<Floats*>& place : waiting) {
    Floats* none = nullptr;
    if (place.compare_exchange_strong(none, floats.get(), std::memory_order_acq_rel)) {
      floats.release();
      return;
    }
  }
}

}  // namespace

LargeFeatures::LargeFeatures() { holders.fetch_add(1, std::memory_order_acq_rel); }

LargeFeatures::~LargeFeatures() {
  if (holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  while (TakeWaiting() != nullptr) continue;
}

LargeFeatures::Buffers::Buffers(const LargeFeatures&) : floats_(TakeWaiting()) {
  if (floats_ == nullptr) floats_ = std::make_unique<Floats>();
}

LargeFeatures::Buffers::~Buffers() {
  if (floats_ != nullptr) LetWait(std::move(floats_));
}

}  // namespace kernelstream
