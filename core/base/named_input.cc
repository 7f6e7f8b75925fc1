#include "core/base/named_input.h"

#include <array>
#include <memory>

#include "xxhash.h"

namespace kernelstream {
namespace {

constexpr uint64_t kNumberSeed = 0;
constexpr uint64_t kCategorySeed = 1;

struct Free {
  void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
};

}  // namespace

uint64_t NumberIndex(absl::string_view name) {
  return XXH64(name.data(), name.size(), kNumberSeed);
}

uint64_t CategoryIndex(absl::string_view name, absl::string_view category) {
  thread_local const std::unique_ptr<XXH64_state_t, Free> state(XXH64_createState());
  std::array<unsigned char, 8> size{};
  for (size_t i = 0; i < size.size(); ++i) {
    size[i] = static_cast<unsigned char>(uint64_t{name.size()} >> (8 * i));
  }
  XXH64_reset(state.get(), kCategorySeed);
  XXH64_update(state.get(), size.data(), size.size());
  XXH64_update(state.get(), name.data(), name.size());
  XXH64_update(state.get(), category.data(), category.size());
  return XXH64_digest(state.get());
}

}  // namespace kernelstream
