// From the store back to where the model was: checkpoint, then the log, cut for cut.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "server/hosting/hosted_model.h"
#include "server/telemetry/log.h"

namespace kernelstream::server {

void HostedModel::Load() {
  const absl::Time begin = environment_.clock->Now();
  {
    absl::MutexLock lock(&mutex_);
    pending_.Clear();
    room_.SetTaken({});
  }
  absl::Status status = LoadState();
  uint64_t checkpoint_step = 0;
  if (status.ok()) {
    checkpoint_step = trainer_->step();
    status = Replay();
  }
  if (!status.ok()) return Fail(std::string(status.message()));
  // In this order: who sees the model serve sees a snapshot.
  Publish(Digest::kFresh);
  {
    absl::MutexLock lock(&mutex_);
    if (life_ == Life::kLoading) life_ = Life::kServing;
    NoteFrozen();
  }
  Log(LogLevel::kInfo, "recovered",
      {{"model", name()},
       {"checkpoint_step", checkpoint_step},
       {"step", trainer_->step()},
       {"replayed_rows", replayed_rows_},
       {"skipped_rows", trainer_->rows_skipped()},
       {"seconds", absl::ToDoubleSeconds(environment_.clock->Now() - begin)}});
}

absl::Status HostedModel::LoadState() {
  trainer_.reset();
  const Trainer::Options options = {environment_.pool, environment_.feature_cache};
  auto state = environment_.store->LoadCheckpoint(uid());
  if (!state.ok()) return state.status();
  auto trainer = state->has_value() ? Trainer::Restore(config(), **state, options)
                                    : Trainer::Create(config(), options);
  if (!trainer.ok()) return trainer.status();
  trainer_ = *std::move(trainer);
  saved_sequence_ = trainer_->sequence();
  OpenDoor(state->has_value() ? &**state : nullptr);
  return ledger_.Load();
}

void HostedModel::OpenDoor(const TrainerState* state) {
  absl::MutexLock lock(&door_mutex_);
  logged_.width = config().dimension;
  logged_.labels.emplace(rules_->task(), config());
  if (state != nullptr) {
    if (config().dimension == 0) logged_.width = {state->dimension, state->sparse_dim};
    if (!state->labels.empty()) {
      logged_.labels->Restore(state->labels, state->labels_are_numbers);
    }
    if (rules_->task() == Task::kRegression && state->warm) logged_.targets = state->num_outputs;
    NoteAtDoor(state->waiting, logged_);
  }
  door_ = logged_;
}

absl::Status HostedModel::Replay() {
  const uint64_t from = trainer_->sequence();
  const uint64_t batch_rows = config().batch_rows;
  PendingRows rows;
  uint64_t last_sequence = from;
  replayed_rows_ = 0;
  const auto learn = [&](uint64_t count) {
    const PendingRows::Taken taken = rows.Take(count);
    trained_since_checkpoint_ += Step(taken);
    replayed_rows_ += taken.rows;
  };
  const auto apply = [&](LogEntry entry) -> absl::Status {
    if (const auto* cut = std::get_if<CutRecord>(&entry)) {
      uint64_t count = rows.CountUpTo(cut->sequence);
      for (; count > batch_rows; count -= batch_rows) learn(batch_rows);
      if (count > 0) learn(count);
      return absl::OkStatus();
    }
    // A cut inside the rows so far would have come by now: full mini-batches among them are
    // certain.
    while (rows.size() >= batch_rows) learn(batch_rows);
    RowsRecord& record = std::get<RowsRecord>(entry);
    if (record.first_sequence > last_sequence + 1) {
      return absl::DataLossError(
          absl::StrCat("the stored log lacks the rows after sequence ", last_sequence,
                       ". Restore the data directory from a backup, or delete the model"));
    }
    // A record that straddles the checkpoint: its first rows are in the state.
    const uint64_t skip = last_sequence + 1 - record.first_sequence;
    {
      absl::MutexLock lock(&door_mutex_);
      NoteAtDoor(record.rows, logged_);
    }
    last_sequence = std::max(last_sequence, record.last_sequence());
    if (skip >= record.rows.size()) return absl::OkStatus();
    const uint64_t bytes = record.rows.bytes();
    rows.Push(std::move(record.rows), skip, record.first_sequence + skip, environment_.clock->Now(),
              bytes);
    return absl::OkStatus();
  };
  if (absl::Status status = environment_.store->ReadLog(uid(), from, apply); !status.ok()) {
    return status;
  }
  while (rows.size() >= batch_rows) learn(batch_rows);
  if (last_sequence != ledger_.last_sequence()) {
    return absl::DataLossError(
        absl::StrCat("the stored log ends at sequence ", last_sequence, " and was written up to ",
                     ledger_.last_sequence(),
                     ". Restore the data directory from a backup, or delete the model"));
  }
  last_learned_ = environment_.clock->Now();
  {
    absl::MutexLock lock(&door_mutex_);
    door_ = logged_;
  }
  absl::MutexLock lock(&mutex_);
  logged_sequence_ = last_sequence;
  room_.SetTaken({rows.size(), rows.bytes()});
  pending_ = std::move(rows);
  metrics_->PendingRows(pending_.size());
  return absl::OkStatus();
}

void HostedModel::Fail(std::string failure) {
  Log(LogLevel::kError, "model_failed", {{"model", name()}, {"error", failure}});
  // What was read before the damage is a good model of that time.
  if (trainer_) Publish(Digest::kFresh);
  metrics_->Phase(PhaseMetric::kFailed);
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    failure_ = std::move(failure);
    if (life_ == Life::kLoading) life_ = Life::kFailed;
    status = absl::FailedPreconditionError(
        absl::StrCat("model \"", name(), "\" has failed and does not learn: ", failure_));
  }
  EndWaiters(status);
}

}  // namespace kernelstream::server
