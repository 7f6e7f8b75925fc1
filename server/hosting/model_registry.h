// All models by name.
#ifndef KERNELSTREAM_SERVER_HOSTING_MODEL_REGISTRY_H_
#define KERNELSTREAM_SERVER_HOSTING_MODEL_REGISTRY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/published_cell.h"
#include "server/hosting/hosted_model.h"

namespace kernelstream::server {

// Thread-safe. Get and List take no lock. Create, Delete and Stop wait for the disk: not for
// threads that must not block.
class ModelRegistry {
 public:
  ModelRegistry(const HostingEnvironment& environment, const HostingOptions& options);
  ~ModelRegistry();  // Stop(), if it was not called: without draining

  // Lists what is stored and starts loading it on the pool, each model on its own. Call once,
  // first. A damaged model is there as FAILED and does not stop the others. Error: the store cannot
  // be listed.
  absl::Status LoadAll();
  // No model is loading any more.
  bool AllLoaded() const;

  struct Created {
    std::shared_ptr<HostedModel> model;
    bool created = false;  // false: it was there, with an equal config
  };
  // `config` need not be complete. INVALID_ARGUMENT: name ("name") or config ("config. ..." paths
  // are relative to the config). ALREADY_EXISTS: another config. RESOURCE_EXHAUSTED: max_models. On
  // failure nothing is left behind.
  absl::StatusOr<Created> Create(absl::string_view name, const ModelConfig& config);
  // Wait-free but for the search. NOT_FOUND lists up to ten known names, nearest first.
  absl::StatusOr<std::shared_ptr<HostedModel>> Get(absl::string_view name) const;
  // By name, ascending.
  std::vector<std::shared_ptr<HostedModel>> List() const;
  // Durable. NOT_FOUND as Get.
  absl::Status Delete(absl::string_view name);

  // All models stop taking rows (UNAVAILABLE); returns when what was taken in has been learned, as
  // far as it makes full mini-batches or somebody waits for it, or after `grace`.
  void Drain(absl::Duration grace);
  // Ends all learning, with a last checkpoint per model. Waiters get UNAVAILABLE. Idempotent.
  void Stop();

 private:
  using Models = std::map<std::string, std::shared_ptr<HostedModel>, std::less<>>;
  // Immutable.
  struct ModelMap final : public RefCounted {
    Models models;
  };
  absl::Status NotFound(absl::string_view name) const;
  void Publish(Models models) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const HostingEnvironment environment_;
  const HostingOptions options_;
  absl::Mutex mutex_;  // one change at a time
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  PublishedCell<ModelMap> map_;
  // What Drain sleeps on between two looks. Here and not in Drain: a clock may still wake what it
  // found asleep when Drain has returned.
  absl::Mutex drain_mutex_;
  absl::CondVar drain_poll_;
};

// OK if `name` may be a model's name. INVALID_ARGUMENT about "name".
absl::Status CheckModelName(absl::string_view name);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_HOSTING_MODEL_REGISTRY_H_
