// A small server without network or disk, and rows for it.
#ifndef KERNELSTREAM_TESTS_UNIT_HOSTING_SUPPORT_H_
#define KERNELSTREAM_TESTS_UNIT_HOSTING_SUPPORT_H_

#include <sched.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/hosting/model_registry.h"
#include "server/store/memory_store.h"
#include "tests/unit/store_random.h"

namespace kernelstream::server {

// Square loss on two inputs, small mini-batches, no early cut before the clock has moved.
inline ModelConfig SmallConfig() {
  ModelConfig config;
  config.loss.name = "square";
  config.batch_rows = 8;
  config.max_features = 64;
  config.warmup_rows = 16;
  config.max_batch_delay_seconds = 0.020;
  return config;
}

// Rows numbered from `first` on; input 0 of a row is its number, so that it can be found in the
// log.
inline AppendRequest NumberedRows(uint64_t first, uint64_t count,
                                  AckLevel ack = AckLevel::kDurable) {
  AppendRequest request;
  request.ack = ack;
  for (uint64_t n = first; n < first + count; ++n) {
    const auto x = static_cast<float>(n);
    request.rows.AddDense(std::vector<float>{x, x * 0.5f - 3});
    request.rows.SetTarget(0.25 * static_cast<double>(n % 7) - 1);
    request.numbers.push_back(n);
  }
  return request;
}
inline AppendRequest FromProducer(AppendRequest request, const std::string& producer) {
  request.producer_id = producer;
  request.producer_sequence = request.numbers.front();
  request.next_producer_sequence = request.numbers.back() + 1;
  return request;
}

// Everything but the store, which outlives it: making it anew is a restart.
class Host {
 public:
  explicit Host(Store* store, const HostingOptions& options = {}, int threads = 2)
      : pool({threads, 0}, &clock),
        log(store, &clock, &metrics),
        registry({store, &log, &pool, &clock, &metrics, nullptr}, options) {}
  ~Host() {
    registry.Stop();
    log.Shutdown();
    pool.Shutdown();
  }

  std::shared_ptr<HostedModel> Create(const std::string& name,
                                      const ModelConfig& config = SmallConfig()) {
    auto created = registry.Create(name, config);
    EXPECT_TRUE(created.ok()) << created.status();
    return created.ok() ? created->model : nullptr;
  }
  // Loads what is stored and waits for it.
  void Load() {
    ASSERT_TRUE(registry.LoadAll().ok());
    while (!registry.AllLoaded()) sched_yield();
  }
  std::shared_ptr<HostedModel> Get(const std::string& name) {
    auto model = registry.Get(name);
    EXPECT_TRUE(model.ok()) << model.status();
    return *model;
  }
  // Everything sent is logged, and all of it that makes full mini-batches is learned and published.
  void Settle(HostedModel& model) {
    log.Flush();
    while (!model.Drained()) sched_yield();
    // Drained is said when the rows are taken; the slice that learns them may still run.
    while (model.status().rows_pending >= model.config().batch_rows) sched_yield();
  }

  ManualClock clock;
  Metrics metrics;
  TrainingPool pool;
  LogWriter log;
  ModelRegistry registry;
};

// Waits for the answer; moves the clock meanwhile if asked to, so that early cuts are made.
inline absl::StatusOr<AppendResult> AppendAndWait(HostedModel& model, AppendRequest request,
                                                  ManualClock* clock = nullptr) {
  absl::StatusOr<AppendResult> out = absl::UnknownError("no answer");
  absl::Notification done;
  model.Append(std::move(request), [&](absl::StatusOr<AppendResult> result) {
    out = std::move(result);
    done.Notify();
  });
  if (clock == nullptr) {
    done.WaitForNotification();
  } else {
    while (!done.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
      clock->Advance(absl::Milliseconds(25));
    }
  }
  return out;
}

// Input 0 of every row in the log, in order.
inline std::vector<uint64_t> NumbersInLog(Store& store, ModelUid uid) {
  std::vector<uint64_t> numbers;
  EXPECT_TRUE(store
                  .ReadLog(uid, 0,
                           [&numbers](LogEntry entry) {
                             if (const auto* rows = std::get_if<RowsRecord>(&entry)) {
                               for (size_t i = 0; i < rows->rows.size(); ++i) {
                                 numbers.push_back(
                                     static_cast<uint64_t>(rows->rows.row(i).values[0]));
                               }
                             }
                             return absl::OkStatus();
                           })
                  .ok());
  return numbers;
}

inline std::vector<uint64_t> UpTo(uint64_t last) {
  std::vector<uint64_t> numbers;
  for (uint64_t n = 1; n <= last; ++n) numbers.push_back(n);
  return numbers;
}

// An operation of the store that always fails.
inline void FailAlways(MemoryStore& store, MemoryStore::Op failing, absl::Status error) {
  store.SetHook([failing, error](MemoryStore::Op op, ModelUid) {
    return op == failing ? error : absl::OkStatus();
  });
}

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_TESTS_UNIT_HOSTING_SUPPORT_H_
