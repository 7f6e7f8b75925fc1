#include "core/model/trainer.h"

#include "core/model/fingerprint.h"
#include "core/model/trainer_impl.h"

namespace kernelstream {

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::~Trainer() = default;

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const ModelConfig& config,
                                                         const Options& options) {
  TrainerState state;
  state.dimension = state.input_dim = config.dimension;
  auto impl = Impl::Make(config, std::move(state), options);
  if (!impl.ok()) return impl.status();
  return std::unique_ptr<Trainer>(new Trainer(*std::move(impl)));
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Restore(const ModelConfig& config,
                                                          const TrainerState& state,
                                                          const Options& options) {
  auto impl = Impl::Make(config, state, options);
  if (!impl.ok()) return impl.status();
  if ((*impl)->CurrentFingerprint() != state.fingerprint &&
      FingerprintWithoutVariance(config, state) != state.fingerprint &&
      FirstFingerprint(config, state) != state.fingerprint) {
    return absl::DataLossError(
        "the stored coefficients do not give the stored fingerprint: the checkpoint is damaged or "
        "belongs to another "
        "config. Restore the data directory from a backup, or delete the model and stream its rows "
        "again");
  }
  return std::unique_ptr<Trainer>(new Trainer(*std::move(impl)));
}

void Trainer::Step(const SampleBatch& batch, size_t first, size_t count, uint64_t sequence) {
  impl_->Step(batch, first, count, sequence);
}
Ref<Snapshot> Trainer::MakeSnapshot(const Snapshot* older) const {
  const std::unique_ptr<Impl> with_waiting = impl_->WithWaitingRows();
  const Impl* provisional = impl_->Provisional();
  const Impl& shown = with_waiting != nullptr  ? *with_waiting
                      : provisional != nullptr ? *provisional
                                               : *impl_;
  std::unique_ptr<Snapshot> snapshot(new Snapshot(shown.loss(), shown.label_table()));
  const TrainerState& state = impl_->state();
  snapshot->phase_ = impl_->phase();
  snapshot->step_ = state.step;
  snapshot->sequence_ = state.sequence;
  snapshot->rows_learned_ = state.rows_learned;
  snapshot->num_features_ = shown.state().num_features;
  snapshot->num_outputs_ = shown.state().num_outputs;
  snapshot->fingerprint_ = older != nullptr ? older->fingerprint_ : impl_->CurrentFingerprint();
  snapshot->fingerprint_step_ = older != nullptr ? older->fingerprint_step_ : state.step;
  snapshot->scaling_ = shown.scaling();
  snapshot->hashed_ = impl_->hashed();
  Impl::Served served = shown.ServedModel();
  if (with_waiting != nullptr) impl_->AddNotServed(served);
  snapshot->features_ = std::move(served.features);
  snapshot->metric_ = std::move(served.metric);
  snapshot->warnings_ = impl_->Warnings(shown);
  snapshot->drift_reports_ = state.drift.reports;
  snapshot->resolved_.candidates = std::move(served.candidates);
  snapshot->num_scored_ = served.num_features;
  snapshot->coefficients_ = std::move(served.values);
  snapshot->coefficient_scale_ = served.scale;
  snapshot->inverse_bandwidth_ = served.inverse_bandwidth;
  snapshot->constant_ = std::move(served.constant);
  snapshot->validation_ = served.validation;
  snapshot->resolved_.serving = served.serving;
  snapshot->resolved_.dimension = shown.state().dimension;
  snapshot->sparse_dim_ = state.sparse_dim;
  snapshot->resolved_.kernel_parameters = state.kernel_parameters;
  snapshot->resolved_.rule_parameters = state.rule_parameters;
  snapshot->resolved_.standardized_inputs = shown.scaling()->num_standardized();
  if (!served.targets.empty()) {
    snapshot->resolved_.target_offset = served.targets[0].offset;
    snapshot->resolved_.target_scale = served.targets[0].scale;
  }
  snapshot->resolved_.targets = std::move(served.targets);
  snapshot->threshold_ = served.threshold;
  snapshot->resolved_.variance = served.variance_report;
  snapshot->variance_ = std::move(served.variance);
  snapshot->variance_metric_ = std::move(served.variance_stream.metric);
  snapshot->variance_features_ = std::move(served.variance_stream.features);
  snapshot->second_features_ = std::move(served.second_stream.features);
  snapshot->variance_inverse_bandwidth_ = served.variance_inverse_bandwidth;
  if (impl_->loss()->task() == Task::kNovelty && state.warm) {
    snapshot->threshold_ = impl_->NoveltyThresholdOf(*snapshot);
  }
  return Ref<Snapshot>::Adopt(snapshot.release());
}

TrainerState Trainer::Save() const { return impl_->Save(); }

ModelPhase Trainer::phase() const { return impl_->phase(); }
uint64_t Trainer::step() const { return impl_->state().step; }
uint64_t Trainer::sequence() const { return impl_->state().sequence; }
uint64_t Trainer::rows_learned() const { return impl_->state().rows_learned; }
uint64_t Trainer::rows_skipped() const { return impl_->state().rows_skipped; }
uint64_t Trainer::divergences() const { return impl_->state().divergences; }

}  // namespace kernelstream
