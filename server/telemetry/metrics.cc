#include "server/telemetry/metrics.h"

#include <array>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/collectable.h"
#include "prometheus/counter.h"
#include "prometheus/exposer.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"

namespace kernelstream::server {
namespace {

namespace names = metric_names;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

// Ten microseconds to ten seconds, about 2.15 apart.
const Histogram::BucketBoundaries kSecondsBuckets = {
    1e-5,  2.2e-5, 4.6e-5, 1e-4, 2.2e-4, 4.6e-4, 1e-3, 2.2e-3, 4.6e-3, 0.01,
    0.022, 0.046,  0.1,    0.22, 0.46,   1,      2.2,  4.6,    10};
const Histogram::BucketBoundaries kGroupBuckets = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

// gRPC's numbers are Abseil's.
constexpr int kNumCodes = 17;

std::string CodeName(int code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

// A gauge whose value is asked for when it is read.
class ObservedGauge final : public prometheus::Collectable {
 public:
  explicit ObservedGauge(std::function<double()> value) : value_(std::move(value)) {}
  std::vector<prometheus::MetricFamily> Collect() const override {
    prometheus::MetricFamily family;
    family.name = names::kFeatureCacheBytes;
    family.help = "Bytes that the feature caches of all models hold.";
    family.type = prometheus::MetricType::Gauge;
    family.metric.emplace_back();
    family.metric.back().gauge.value = value_();
    return {family};
  }

 private:
  const std::function<double()> value_;
};

class RpcSeries final : public RpcMetrics {
 public:
  Counter* started = nullptr;
  std::array<Counter*, kNumCodes> handled{};
  Histogram* seconds = nullptr;

  void Started() override { started->Increment(); }
  void Handled(absl::StatusCode code, absl::Duration took) override {
    const int number = static_cast<int>(code);
    handled[number >= 0 && number < kNumCodes ? number : 2]->Increment();
    seconds->Observe(Seconds(took));
  }
};

struct ModelSeries {
  Counter *accepted, *rejected, *learned, *steps, *checkpoint_failures, *drift, *predict_rows;
  Gauge *pending, *phase;
  Histogram *step, *publish, *checkpoint, *predict_queue, *predict_compute;
};

}  // namespace

class Metrics::Impl {
 public:
  Impl();

  ModelSeries AddSeries(const std::string& model);
  void RemoveSeries(const ModelSeries& series);
  Family<Counter>& Counters(const char* name, const char* help);
  Family<Gauge>& Gauges(const char* name, const char* help);
  Family<Histogram>& Histograms(const char* name, const char* help);

  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  Family<Counter>&accepted, &rejected, &learned, &steps, &checkpoint_failures, &drift,
      &predict_rows;
  Family<Gauge>&pending, &phase;
  Family<Histogram>&step, &publish, &checkpoint, &predict_queue, &predict_compute;
  Histogram &commit_seconds, &commit_appends;
  Counter& commit_failures;
  Family<Counter>&rpc_started, &rpc_handled;
  Family<Histogram>& rpc_seconds;

  absl::Mutex mutex;
  // The series of a model are removed by its last reference, unless a newer one has taken them over
  // by then.
  struct Entry {
    std::weak_ptr<ModelMetrics> metrics;
    ModelSeries series{};
    uint64_t generation = 0;
  };
  std::map<std::string, Entry> models ABSL_GUARDED_BY(mutex);
  uint64_t generations ABSL_GUARDED_BY(mutex) = 0;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<RpcSeries>> rpcs
      ABSL_GUARDED_BY(mutex);
  std::shared_ptr<ObservedGauge> feature_cache ABSL_GUARDED_BY(mutex);
  std::unique_ptr<prometheus::Exposer> exposer ABSL_GUARDED_BY(mutex);
};

namespace {

// Gives its series back when it ends.
class ModelMetricsImpl final : public ModelMetrics {
 public:
  ModelMetricsImpl(const ModelSeries& series, std::function<void()> give_back)
      : series_(series), give_back_(std::move(give_back)) {}
  ~ModelMetricsImpl() override { give_back_(); }

  void RowsAccepted(uint64_t rows) override {
    series_.accepted->Increment(static_cast<double>(rows));
  }
  void RowsRejected(uint64_t rows) override {
    series_.rejected->Increment(static_cast<double>(rows));
  }
  void Learned(uint64_t rows, uint64_t num_steps, absl::Duration took) override {
    series_.learned->Increment(static_cast<double>(rows));
    series_.steps->Increment(static_cast<double>(num_steps));
    series_.step->Observe(Seconds(took));
  }
  void PendingRows(uint64_t rows) override { series_.pending->Set(static_cast<double>(rows)); }
  void Phase(PhaseMetric value) override { series_.phase->Set(static_cast<double>(value)); }
  void Published(absl::Duration took) override { series_.publish->Observe(Seconds(took)); }
  void CheckpointWritten(absl::Duration took) override {
    series_.checkpoint->Observe(Seconds(took));
  }
  void CheckpointFailed() override { series_.checkpoint_failures->Increment(); }
  void Drifted(uint64_t reports) override {
    series_.drift->Increment(static_cast<double>(reports));
  }
  void Predicted(uint64_t rows, absl::Duration queued, absl::Duration computed) override {
    series_.predict_rows->Increment(static_cast<double>(rows));
    series_.predict_queue->Observe(Seconds(queued));
    series_.predict_compute->Observe(Seconds(computed));
  }

 private:
  const ModelSeries series_;
  const std::function<void()> give_back_;
};

}  // namespace

Family<Counter>& Metrics::Impl::Counters(const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry);
}
Family<Gauge>& Metrics::Impl::Gauges(const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry);
}
Family<Histogram>& Metrics::Impl::Histograms(const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(*registry);
}

Metrics::Impl::Impl()
    : accepted(Counters(names::kRowsAccepted, "Rows taken into the log.")),
      rejected(Counters(names::kRowsRejected, "Rows refused, for whatever reason.")),
      learned(Counters(names::kRowsLearned, "Rows learned, those replayed at the start included.")),
      steps(Counters(names::kSteps, "Mini-batches learned.")),
      checkpoint_failures(
          Counters(names::kCheckpointFailures, "Checkpoints that could not be written.")),
      drift(Counters(names::kDriftReports,
                     "Times the served model's errors rose suddenly against their own history.")),
      predict_rows(Counters(names::kPredictRows, "Rows predicted.")),
      pending(Gauges(names::kPendingRows, "Rows logged and not learned yet.")),
      phase(Gauges(names::kModelPhase, "0 loading, 1 warming up, 2 learning, 3 frozen, 4 failed.")),
      step(Histograms(names::kStepSeconds, "Learning of one mini-batch.")),
      publish(Histograms(names::kPublishSeconds, "Making and publishing a snapshot.")),
      checkpoint(Histograms(names::kCheckpointSeconds, "Writing a checkpoint.")),
      predict_queue(Histograms(names::kPredictQueueSeconds, "Predict: waiting for evaluation.")),
      predict_compute(Histograms(names::kPredictComputeSeconds, "Predict: evaluation.")),
      commit_seconds(Histograms(names::kCommitSeconds, "One synchronous write of the log.")
                         .Add({}, kSecondsBuckets)),
      commit_appends(Histograms(names::kCommitAppends, "Appends that shared one write of the log.")
                         .Add({}, kGroupBuckets)),
      commit_failures(Counters(names::kCommitFailures, "Writes of the log that failed.").Add({})),
      rpc_started(Counters(names::kRpcStarted, "RPCs started.")),
      rpc_handled(Counters(names::kRpcHandled, "RPCs ended, by status code.")),
      rpc_seconds(Histograms(names::kRpcSeconds, "From the start of an RPC to its status.")) {}

ModelSeries Metrics::Impl::AddSeries(const std::string& model) {
  const prometheus::Labels labels = {{"model", model}};
  ModelSeries s;
  s.accepted = &accepted.Add(labels);
  s.rejected = &rejected.Add(labels);
  s.learned = &learned.Add(labels);
  s.steps = &steps.Add(labels);
  s.checkpoint_failures = &checkpoint_failures.Add(labels);
  s.drift = &drift.Add(labels);
  s.predict_rows = &predict_rows.Add(labels);
  s.pending = &pending.Add(labels);
  s.phase = &phase.Add(labels);
  s.step = &step.Add(labels, kSecondsBuckets);
  s.publish = &publish.Add(labels, kSecondsBuckets);
  s.checkpoint = &checkpoint.Add(labels, kSecondsBuckets);
  s.predict_queue = &predict_queue.Add(labels, kSecondsBuckets);
  s.predict_compute = &predict_compute.Add(labels, kSecondsBuckets);
  return s;
}

void Metrics::Impl::RemoveSeries(const ModelSeries& s) {
  accepted.Remove(s.accepted);
  rejected.Remove(s.rejected);
  learned.Remove(s.learned);
  steps.Remove(s.steps);
  checkpoint_failures.Remove(s.checkpoint_failures);
  drift.Remove(s.drift);
  predict_rows.Remove(s.predict_rows);
  pending.Remove(s.pending);
  phase.Remove(s.phase);
  step.Remove(s.step);
  publish.Remove(s.publish);
  checkpoint.Remove(s.checkpoint);
  predict_queue.Remove(s.predict_queue);
  predict_compute.Remove(s.predict_compute);
}

Metrics::Metrics() : impl_(std::make_shared<Impl>()) {}

Metrics::~Metrics() { Stop(); }

std::shared_ptr<ModelMetrics> Metrics::ForModel(const std::string& name) {
  absl::MutexLock lock(&impl_->mutex);
  Impl::Entry& entry = impl_->models[name];
  if (std::shared_ptr<ModelMetrics> existing = entry.metrics.lock()) return existing;
  // Left by a reference that is just ending: a model made anew starts from zero.
  if (entry.generation != 0) impl_->RemoveSeries(entry.series);
  entry.series = impl_->AddSeries(name);
  entry.generation = ++impl_->generations;
  const auto metrics = std::make_shared<ModelMetricsImpl>(
      entry.series, [impl = impl_, name, generation = entry.generation] {
        absl::MutexLock relock(&impl->mutex);
        const auto it = impl->models.find(name);
        if (it == impl->models.end() || it->second.generation != generation) return;
        impl->RemoveSeries(it->second.series);
        impl->models.erase(it);
      });
  entry.metrics = metrics;
  return metrics;
}

void Metrics::Committed(absl::Duration took, uint64_t appends) {
  impl_->commit_seconds.Observe(Seconds(took));
  impl_->commit_appends.Observe(static_cast<double>(appends));
}

void Metrics::CommitFailed() { impl_->commit_failures.Increment(); }

void Metrics::ObserveFeatureCache(std::function<double()> bytes) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->feature_cache = std::make_shared<ObservedGauge>(std::move(bytes));
  if (impl_->exposer) impl_->exposer->RegisterCollectable(impl_->feature_cache);
}

RpcMetrics& Metrics::ForRpc(absl::string_view service, absl::string_view method) {
  absl::MutexLock lock(&impl_->mutex);
  std::unique_ptr<RpcSeries>& series = impl_->rpcs[{std::string(service), std::string(method)}];
  if (series) return *series;
  series = std::make_unique<RpcSeries>();
  prometheus::Labels labels = {{"grpc_service", std::string(service)},
                               {"grpc_method", std::string(method)}};
  series->started = &impl_->rpc_started.Add(labels);
  series->seconds = &impl_->rpc_seconds.Add(labels, kSecondsBuckets);
  for (int code = 0; code < kNumCodes; ++code) {
    labels["grpc_code"] = CodeName(code);
    series->handled[code] = &impl_->rpc_handled.Add(labels);
  }
  return *series;
}

absl::StatusOr<int> Metrics::Serve(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", address,
        "\" is not an address to serve metrics on; expected HOST:PORT, for example 0.0.0.0:9464"));
  }
  absl::MutexLock lock(&impl_->mutex);
  try {
    impl_->exposer = std::make_unique<prometheus::Exposer>(address, 2);
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("metrics cannot be served on ", address, ": ", error.what(),
                     ". Is the port taken? Choose another --metrics_listen"));
  }
  impl_->exposer->RegisterCollectable(impl_->registry);
  if (impl_->feature_cache) impl_->exposer->RegisterCollectable(impl_->feature_cache);
  const std::vector<int> ports = impl_->exposer->GetListeningPorts();
  return ports.empty() ? port : ports.front();
}

void Metrics::Stop() {
  std::unique_ptr<prometheus::Exposer> exposer;
  {
    absl::MutexLock lock(&impl_->mutex);
    exposer = std::move(impl_->exposer);
  }
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families = impl_->registry->Collect();
  absl::MutexLock lock(&impl_->mutex);
  if (impl_->feature_cache) {
    for (prometheus::MetricFamily& family : impl_->feature_cache->Collect()) {
      families.push_back(std::move(family));
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace kernelstream::server
