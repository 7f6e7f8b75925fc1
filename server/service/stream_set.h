// Streams that are open, so that they can be ended politely when the server stops.
#ifndef KERNELSTREAM_SERVER_SERVICE_STREAM_SET_H_
#define KERNELSTREAM_SERVER_SERVICE_STREAM_SET_H_

#include <memory>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace kernelstream::server {

// Thread-safe.
class DrainableStream {
 public:
  virtual ~DrainableStream() = default;
  // Read no further; end with UNAVAILABLE once everything that was read is answered.
  virtual void Drain() = 0;
};

// UNAVAILABLE, what a drained stream ends with. next_step: what is kept, and what to do.
absl::Status ServerStopping(absl::string_view next_step);

// Thread-safe.
class StreamSet {
 public:
  void Add(const std::shared_ptr<DrainableStream>& stream);
  void Remove(const DrainableStream* stream);
  // Drains all streams, also those added later.
  void Drain();
  // Whether a stream was ended by it.
  bool drained_any() const;

 private:
  mutable absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool drained_any_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_map<const DrainableStream*, std::weak_ptr<DrainableStream>> streams_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_SERVICE_STREAM_SET_H_
