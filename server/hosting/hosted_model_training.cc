// Learning and publishing, in slices.
#include <algorithm>
#include <utility>

#include "server/hosting/hosted_model.h"
#include "server/telemetry/log.h"

namespace kernelstream::server {
namespace {

// A slice ends after this long, so that other models get their turn.
constexpr absl::Duration kSliceTime = absl::Milliseconds(5);
// Publishing and checkpoints each take at most one part in this many of the time of training.
constexpr int kOverheadRatio = 20;
// While full batches wait, a published model has a new fingerprint this often.
constexpr absl::Duration kDigestInterval = absl::Seconds(1);
// After an early cut or a checkpoint could not be written.
constexpr absl::Duration kCutRetry = absl::Seconds(1);
constexpr absl::Duration kCheckpointRetry = absl::Seconds(10);

// What the log calls it.
const char* EventOf(WarningKind kind) {
  switch (kind) {
    case WarningKind::kDrift:
      return "drift";
    case WarningKind::kOrdered:
      return "ordered_stream";
    case WarningKind::kOneLabel:
      return "one_label";
    case WarningKind::kConstantTarget:
      return "constant_target";
    case WarningKind::kConstantInputs:
      return "constant_inputs";
    case WarningKind::kDiverged:
      return "diverged";
    case WarningKind::kNoMetric:
      return "no_metric";
    case WarningKind::kFarTargets:
      return "far_targets";
  }
  return "warning";
}

}  // namespace

absl::Time HostedModel::RunSlice() {
  Life life;
  {
    absl::MutexLock lock(&mutex_);
    life = life_;
  }
  if (life == Life::kLoading) {
    Load();
    return absl::InfinitePast();
  }
  return life == Life::kServing ? TrainSlice() : absl::InfiniteFuture();
}

uint64_t HostedModel::NextBatch(absl::Time now, absl::Time& wake, bool& cut) {
  wake = absl::InfiniteFuture();
  cut = false;
  if (life_ != Life::kServing || pending_.empty()) return 0;
  if (cut_state_ == CutState::kDurable) return pending_.CountUpTo(cut_sequence_);
  if (cut_state_ == CutState::kRequested) return 0;  // CutDecided schedules the next slice
  if (pending_.size() >= config().batch_rows) return config().batch_rows;
  const absl::Time due =
      QueueStalls()
          ? cut_retry_
          : std::max(pending_.oldest_arrival() + absl::Seconds(*config().max_batch_delay_seconds),
                     cut_retry_);
  cut = now >= due;
  if (!cut) wake = due;
  return 0;
}

absl::Time HostedModel::TrainSlice() {
  const absl::Time end = environment_.clock->Now() + kSliceTime;
  absl::Time now, wake;
  bool more = true;
  while (more) {
    now = environment_.clock->Now();
    if (now >= end) break;
    bool cut = false;
    uint64_t cut_sequence = 0;
    PendingRows::Taken taken;
    {
      absl::MutexLock lock(&mutex_);
      const uint64_t count = NextBatch(now, wake, cut);
      if (count > 0) {
        taken = pending_.Take(count);
        cut_state_ = CutState::kNone;
        metrics_->PendingRows(pending_.size());
      } else if (cut) {
        cut_state_ = CutState::kRequested;
        cut_sequence = cut_sequence_ = pending_.last_sequence();
      }
    }
    if (taken.rows == 0) {
      if (cut) RequestCut(cut_sequence);
      more = false;
      break;
    }
    const absl::Duration took = Step(taken);
    trained_since_publish_ += took;
    trained_since_checkpoint_ += took;
    last_learned_ = environment_.clock->Now();
    bool next_cut = false, full = false, waited = false;
    {
      absl::MutexLock lock(&mutex_);
      // An early cut has to be logged first: until then there is nothing to learn.
      full = NextBatch(last_learned_, wake, next_cut) > 0;
      more = full || next_cut;
      waited = !full || waiters_.AnyUpTo(trainer_->sequence());
    }
    const bool publish = waited || trained_since_publish_ >= kOverheadRatio * publish_cost_;
    const bool digest = !full || last_learned_ - digest_time_ >= kDigestInterval;
    if (publish) Publish(digest ? Digest::kFresh : Digest::kOlder);
    // After publishing, so that whoever waits for room and then predicts sees the rows; before
    // anybody hears of the last row, so that a frozen model says so by then.
    GiveBack(taken.rows, taken.bytes);
    if (publish) EndWaitsForPublished();
  }
  if (CheckpointTime() <= environment_.clock->Now()) Checkpoint();
  return more ? absl::InfinitePast() : std::min(wake, CheckpointTime());
}

void HostedModel::RequestCut(uint64_t sequence) {
  LogItem item;
  item.kind = LogItem::Kind::kCut;
  item.client = shared_from_this();
  item.cut_sequence = sequence;
  if (!environment_.log->Submit(std::move(item))) {
    CutDecided(absl::UnavailableError("the server is stopping"));
  }
}

void HostedModel::CutDecided(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    cut_state_ = status.ok() ? CutState::kDurable : CutState::kNone;
    // The rows stay where they are; more of them may have come when the next try is due.
    if (!status.ok()) cut_retry_ = environment_.clock->Now() + kCutRetry;
    if (life_ != Life::kServing) return;
  }
  environment_.pool->Schedule(shared_from_this());
}

absl::Duration HostedModel::Step(const PendingRows::Taken& taken) {
  const absl::Time begin = environment_.clock->Now();
  if (taken.slices.size() == 1) {
    const PendingRows::Slice& slice = taken.slices.front();
    trainer_->Step(*slice.rows, slice.first, slice.count, taken.last_sequence);
  } else {
    work_.Clear();
    for (const PendingRows::Slice& slice : taken.slices) {
      for (size_t i = 0; i < slice.count; ++i) work_.AppendRow(*slice.rows, slice.first + i);
    }
    trainer_->Step(work_, 0, work_.size(), taken.last_sequence);
  }
  const absl::Duration took = environment_.clock->Now() - begin;
  metrics_->Learned(taken.rows, 1, took);
  return took;
}

void HostedModel::Publish(Digest digest) {
  const absl::Time begin = environment_.clock->Now();
  const Ref<Snapshot> older = digest == Digest::kOlder ? published_.Get() : Ref<Snapshot>();
  Ref<Snapshot> snapshot = trainer_->MakeSnapshot(older.get());
  if (!older) digest_time_ = begin;
  ReportWarnings(*snapshot);
  published_.Set(std::move(snapshot));
  publish_cost_ = environment_.clock->Now() - begin;
  trained_since_publish_ = absl::ZeroDuration();
  metrics_->Published(publish_cost_);
  ReportPhase();
}

void HostedModel::EndWaitsForPublished() {
  std::vector<SequenceWaiters::Callback> waiters;
  {
    absl::MutexLock lock(&mutex_);
    waiters = waiters_.TakeUpTo(trainer_->sequence());
  }
  for (auto& waiter : waiters) waiter(absl::OkStatus());
}

void HostedModel::ReportWarnings(const Snapshot& snapshot) {
  const uint64_t drifts = snapshot.drift_reports();
  // What a recovered model reported before the start is not counted again.
  const uint64_t known = drift_reports_.value_or(drifts);
  if (drifts > known) metrics_->Drifted(drifts - known);
  std::set<WarningKind> kinds;
  for (const ModelWarning& warning : snapshot.warnings()) {
    kinds.insert(warning.kind);
    const bool again = warning.kind == WarningKind::kDrift && drifts > known;
    if (!again && warned_.contains(warning.kind)) continue;
    Log(LogLevel::kWarning, EventOf(warning.kind),
        {{"model", name()}, {"step", snapshot.step()}, {"what", warning.text}});
  }
  drift_reports_ = drifts;
  warned_ = std::move(kinds);
}

void HostedModel::ReportPhase() {
  switch (trainer_->phase()) {
    case ModelPhase::kWarmingUp:
      return metrics_->Phase(PhaseMetric::kWarmingUp);
    case ModelPhase::kLearning:
    case ModelPhase::kFrozen:  // NoteFrozen says when there is nothing left to learn
      return metrics_->Phase(PhaseMetric::kLearning);
  }
}

absl::Time HostedModel::CheckpointTime() const {
  if (trainer_->sequence() == saved_sequence_) return absl::InfiniteFuture();
  const bool enough = trained_since_checkpoint_ >=
                      std::max(options_.checkpoint_interval, kOverheadRatio * checkpoint_cost_);
  const absl::Time due = enough ? absl::InfinitePast() : last_learned_ + options_.checkpoint_idle;
  return std::max(due, checkpoint_retry_);
}

void HostedModel::Checkpoint() {
  const absl::Time begin = environment_.clock->Now();
  const TrainerState state = trainer_->Save();
  const absl::Status status = environment_.store->SaveCheckpoint(uid(), state);
  const absl::Time end = environment_.clock->Now();
  if (!status.ok()) {
    // Nothing is lost: the log goes further back for longer.
    checkpoint_retry_ = end + kCheckpointRetry;
    metrics_->CheckpointFailed();
    Log(LogLevel::kError, "checkpoint_failed", {{"model", name()}, {"error", status.ToString()}});
    return;
  }
  saved_sequence_ = state.sequence;
  checkpoint_cost_ = end - begin;
  trained_since_checkpoint_ = absl::ZeroDuration();
  metrics_->CheckpointWritten(checkpoint_cost_);
  Log(LogLevel::kDebug, "checkpoint",
      {{"model", name()},
       {"step", state.step},
       {"sequence", state.sequence},
       {"seconds", absl::ToDoubleSeconds(checkpoint_cost_)}});
}

}  // namespace kernelstream::server
