#include "server/service/stream_set.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/service/status_mapping.h"

namespace kernelstream::server {

absl::Status ServerStopping(absl::string_view next_step) {
  return WithReason(absl::UnavailableError(absl::StrCat("the server is stopping; ", next_step)),
                    kDraining);
}

void StreamSet::Add(const std::shared_ptr<DrainableStream>& stream) {
  bool draining = false;
  {
    absl::MutexLock lock(&mutex_);
    streams_.emplace(stream.get(), stream);
    draining = draining_;
    drained_any_ = drained_any_ || draining;
  }
  if (draining) stream->Drain();
}

void StreamSet::Remove(const DrainableStream* stream) {
  absl::MutexLock lock(&mutex_);
  streams_.erase(stream);
}

void StreamSet::Drain() {
  std::vector<std::shared_ptr<DrainableStream>> open;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    drained_any_ = drained_any_ || !streams_.empty();
    for (const auto& [key, weak] : streams_) {
      if (auto stream = weak.lock()) open.push_back(std::move(stream));
    }
  }
  for (const auto& stream : open) stream->Drain();
}

bool StreamSet::drained_any() const {
  absl::MutexLock lock(&mutex_);
  return drained_any_;
}

}  // namespace kernelstream::server
