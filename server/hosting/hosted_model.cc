// Taking rows in: door, room, log, acknowledgement; and the life of a model.
#include "server/hosting/hosted_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/field_error.h"
#include "server/telemetry/log.h"

namespace kernelstream::server {

HostedModel::HostedModel(StoredModel stored, const HostingEnvironment& environment,
                         const HostingOptions& options)
    : stored_(std::move(stored)),
      environment_(environment),
      options_(options),
      metrics_(environment.metrics->ForModel(stored_.name)),
      room_({options.max_pending_rows, options.max_pending_bytes}),
      ledger_(environment.store, stored_.uid, stored_.name) {}

HostedModel::~HostedModel() = default;

absl::StatusOr<std::shared_ptr<HostedModel>> HostedModel::Make(
    StoredModel stored, bool is_new, const HostingEnvironment& environment,
    const HostingOptions& options) {
  auto rules = RowRules::Create(stored.config);
  if (!rules.ok()) return rules.status();
  std::shared_ptr<HostedModel> model(new HostedModel(std::move(stored), environment, options));
  model->rules_ = *std::move(rules);
  if (!is_new) return model;
  auto trainer = Trainer::Create(model->config(), {environment.pool, environment.feature_cache});
  if (!trainer.ok()) return trainer.status();
  model->trainer_ = *std::move(trainer);
  model->OpenDoor(nullptr);
  {
    absl::MutexLock lock(&model->mutex_);
    model->life_ = Life::kServing;
  }
  model->Publish(Digest::kFresh);
  return model;
}

std::shared_ptr<HostedModel> HostedModel::MakeFailed(StoredModel stored, std::string failure,
                                                     const HostingEnvironment& environment,
                                                     const HostingOptions& options) {
  std::shared_ptr<HostedModel> model(new HostedModel(std::move(stored), environment, options));
  model->Fail(std::move(failure));
  return model;
}

void HostedModel::Start() { environment_.pool->Schedule(shared_from_this()); }

absl::StatusOr<Ref<Snapshot>> HostedModel::ServingSnapshot() const {
  if (Ref<Snapshot> snapshot = published_.Get()) return snapshot;
  absl::MutexLock lock(&mutex_);
  absl::Status why = WhyNoRows();
  if (!why.ok()) return why;
  return absl::UnavailableError(
      absl::StrCat("model \"", name(), "\" is being loaded; try again soon"));
}

ModelStatus HostedModel::status() const {
  ModelStatus status;
  status.rows_rejected = rows_rejected_.load(std::memory_order_relaxed);
  absl::MutexLock lock(&mutex_);
  status.snapshot = published_.Get();  // the last one, if the model is frozen
  const uint64_t learned = status.snapshot ? status.snapshot->sequence() : 0;
  status.rows_pending = logged_sequence_ > learned ? logged_sequence_ - learned : 0;
  status.failure = failure_;
  if (life_ == Life::kFailed) {
    status.phase = ModelStatus::Phase::kFailed;
  } else if (life_ != Life::kLoading && status.snapshot) {
    switch (status.snapshot->phase()) {
      case ModelPhase::kWarmingUp:
        status.phase = ModelStatus::Phase::kWarmingUp;
        break;
      case ModelPhase::kLearning:
        status.phase = ModelStatus::Phase::kLearning;
        break;
      case ModelPhase::kFrozen:
        status.phase = frozen_ ? ModelStatus::Phase::kFrozen : ModelStatus::Phase::kLearning;
        break;
    }
  }
  return status;
}

uint64_t HostedModel::logged_sequence() const {
  absl::MutexLock lock(&mutex_);
  return logged_sequence_;
}

absl::Status HostedModel::WhyNoRows() const {
  switch (life_) {
    case Life::kServing:
      if (!draining_) return absl::OkStatus();
      [[fallthrough]];
    case Life::kStopped:
      return absl::UnavailableError("the server is stopping; send again when it is back");
    case Life::kLoading:
      return absl::UnavailableError(
          absl::StrCat("model \"", name(), "\" is being loaded; try again soon"));
    case Life::kFailed:
      return absl::FailedPreconditionError(
          absl::StrCat("model \"", name(), "\" has failed and does not learn: ", failure_));
    case Life::kDeleting:
      return absl::UnavailableError(absl::StrCat("model \"", name(), "\" is being deleted"));
    case Life::kDeleted:
      return absl::NotFoundError(absl::StrCat("model \"", name(), "\" has been deleted"));
  }
  return absl::InternalError("a model is in no known state");
}

absl::Status HostedModel::FrozenError() const {
  const Ref<Snapshot> snapshot = published_.Get();
  if (!snapshot || snapshot->phase() != ModelPhase::kFrozen) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("model \"", name(), "\" is frozen: it has all of its ", snapshot->num_features(),
                   " features and was created with when_full FREEZE. It goes on predicting. To "
                   "learn more rows, create a model with "
                   "a larger max_features or with when_full KEEP_LEARNING"));
}

void HostedModel::NoteFrozen() {
  // Rows are reserved from before the door looks whether the model is full until they are learned.
  if (frozen_ || room_.taken_rows() > 0 || FrozenError().ok()) return;
  frozen_ = true;
  metrics_->Phase(PhaseMetric::kFrozen);
}

absl::Status HostedModel::CheckRow(const SampleBatch& rows, size_t i, const Snapshot* snapshot) {
  const RowView row = rows.row(i);
  if (absl::Status status = rules_->CheckInput(name(), door_.width, row); !status.ok()) {
    return status;
  }
  std::span<const TargetScaling> scales;
  if (snapshot != nullptr && snapshot->phase() != ModelPhase::kWarmingUp) {
    scales = snapshot->resolved().targets;
  }
  const TargetView target = rows.target(i);
  if (absl::Status status =
          rules_->CheckTarget(name(), target, rows.weight(i), door_.targets, scales);
      !status.ok()) {
    return status;
  }
  if (HasLabels(rules_->task())) {
    if (absl::Status status = door_.labels->Add(target).status(); !status.ok()) return status;
  }
  door_.width = rules_->WidthWith(door_.width, row);
  if (door_.targets == 0) door_.targets = RowRules::NumTargets(target);
  return absl::OkStatus();
}

void HostedModel::CheckRows(AppendRequest& request) {
  const Ref<Snapshot> snapshot = published_.Get();
  SampleBatch good;
  std::vector<uint64_t> good_numbers;
  bool all_good = true;
  for (size_t i = 0; i < request.rows.size(); ++i) {
    absl::Status status = CheckRow(request.rows, i, snapshot.get());
    if (status.ok()) {
      if (all_good) continue;
      good.AppendRow(request.rows, i);
      good_numbers.push_back(request.numbers[i]);
      continue;
    }
    if (std::exchange(all_good, false)) {  // the first bad one: copy those before it
      for (size_t j = 0; j < i; ++j) good.AppendRow(request.rows, j);
      good_numbers.assign(request.numbers.begin(), request.numbers.begin() + i);
    }
    request.rejected.push_back({request.numbers[i], std::move(status)});
  }
  if (!all_good) {
    request.rows = std::move(good);
    request.numbers = std::move(good_numbers);
  }
  std::stable_sort(request.rejected.begin(), request.rejected.end(),
                   [](const RejectedRow& a, const RejectedRow& b) { return a.number < b.number; });
}

absl::Status HostedModel::Reserve(const AppendRequest& request) {
  const QueueRoom::Space space = {request.rows.size(), request.rows.bytes()};
  absl::MutexLock lock(&mutex_);
  const absl::Status why = WhyNoRows();
  if (!why.ok() || room_.IsTooLarge(space)) {
    if (request.granted.has_value()) room_.Return(*request.granted);
    if (!why.ok()) return why;
    return absl::InvalidArgumentError(absl::StrCat(
        "model \"", name(), "\": the batch has ", space.rows, " rows (", space.bytes,
        " bytes in memory), more than its queue holds: ", options_.max_pending_rows, " rows and ",
        options_.max_pending_bytes, " bytes. Nothing of it was learned. Send smaller batches"));
  }
  const bool taken = request.granted.has_value() ? room_.TakeGranted(*request.granted, space)
                     : request.waits_for_room    ? room_.TakeInTurn(space)
                                                 : room_.Take(space);
  if (taken) return absl::OkStatus();
  WantRoom();
  return absl::ResourceExhaustedError(
      absl::StrCat("model \"", name(), "\": the queue is full, ", room_.taken_rows(),
                   " rows wait to be learned (at most ", options_.max_pending_rows, " rows and ",
                   options_.max_pending_bytes,
                   " bytes). Nothing of the batch was learned. Send it again a little later"));
}

bool HostedModel::QueueStalls() const {
  return room_wanted_ && room_.taken_rows() == pending_.size() &&
         pending_.size() < config().batch_rows;
}

void HostedModel::WantRoom() {
  room_wanted_ = true;
  if (QueueStalls()) environment_.pool->Schedule(shared_from_this());
}

std::vector<QueueRoom::Grant> HostedModel::RoomForWaiters() {
  std::vector<QueueRoom::Grant> grants = room_.Grants();
  room_wanted_ = false;
  if (room_.AnyWaits()) WantRoom();
  return grants;
}

void HostedModel::CallBack(std::vector<QueueRoom::Grant> grants) {
  for (QueueRoom::Grant& grant : grants) grant.callback(grant.space);
}

void HostedModel::GiveBack(uint64_t rows, uint64_t bytes) {
  std::vector<QueueRoom::Grant> grants;
  {
    absl::MutexLock lock(&mutex_);
    room_.GiveBack({rows, bytes});
    NoteFrozen();
    grants = RoomForWaiters();
  }
  CallBack(std::move(grants));
}

void HostedModel::ReturnSpace(QueueRoom::Space granted) {
  std::vector<QueueRoom::Grant> grants;
  {
    absl::MutexLock lock(&mutex_);
    room_.Return(granted);
    grants = RoomForWaiters();
  }
  CallBack(std::move(grants));
}

bool HostedModel::CancelSpaceWait(QueueRoom::WaitId id) {
  std::vector<QueueRoom::Grant> grants;
  {
    absl::MutexLock lock(&mutex_);
    if (!room_.Cancel(id)) return false;
    grants = RoomForWaiters();  // those behind it
  }
  CallBack(std::move(grants));
  return true;
}

void HostedModel::NoteAtDoor(const SampleBatch& rows, Door& door) const {
  for (size_t i = 0; i < rows.size(); ++i) {
    door.width = rules_->WidthWith(door.width, rows.row(i));
    if (door.targets == 0) door.targets = RowRules::NumTargets(rows.target(i));
    // A label for which there is no room is left out by the trainer too.
    if (HasLabels(rules_->task())) door.labels->Add(rows.target(i)).status().IgnoreError();
  }
}

void HostedModel::ForgetDoorIfEmpty() {
  if (at_door_ != 0 || !door_dirty_) return;
  door_ = logged_;
  door_dirty_ = false;
}

void HostedModel::LeaveDoor(const LogItem& item) {
  absl::MutexLock lock(&door_mutex_);
  if (item.log && item.log->rows) {
    NoteAtDoor(item.log->rows->rows, logged_);
  } else {
    door_dirty_ = true;
  }
  --at_door_;
  ForgetDoorIfEmpty();
}

void HostedModel::Append(AppendRequest request, AppendCallback callback) {
  LogItem item;
  item.kind = LogItem::Kind::kAppend;
  item.client = shared_from_this();
  item.arrival = environment_.clock->Now();
  item.reserved_rows = request.rows.size();
  item.reserved_bytes = request.rows.bytes();
  absl::Status status = Reserve(request);
  // What may be a repetition is decided where the log is written.
  if (status.ok() && request.producer_id.empty() && request.request_id.empty()) {
    status = FrozenError();
    if (!status.ok()) GiveBack(item.reserved_rows, item.reserved_bytes);
  }
  if (!status.ok()) return callback(status);

  AppendResult refused;
  {
    // Held until the item is in line: the log has to have the rows in the order in which they
    // passed.
    absl::MutexLock lock(&door_mutex_);
    CheckRows(request);
    rows_rejected_.fetch_add(request.rejected.size(), std::memory_order_relaxed);
    metrics_->RowsRejected(request.rejected.size());
    const bool nothing_left = request.rows.empty() && request.producer_id.empty();
    refused.refused = !request.rejected.empty() && (request.all_or_nothing || nothing_left);
    if (refused.refused) {
      refused.rejected = std::move(request.rejected);
      refused.next_producer_sequence = request.producer_sequence;
    } else {
      item.append = std::move(request);
      item.callback = std::move(callback);
      if (environment_.log->Submit(std::move(item))) {
        ++at_door_;
        return;
      }
      callback = std::move(item.callback);
      status = absl::UnavailableError("the server is stopping; send again when it is back");
    }
    door_dirty_ = true;
    ForgetDoorIfEmpty();
  }
  GiveBack(item.reserved_rows, item.reserved_bytes);
  if (refused.refused) {
    callback(std::move(refused));
  } else {
    callback(status);
  }
}

QueueRoom::WaitId HostedModel::WaitForSpace(QueueRoom::Space space, QueueRoom::Callback callback) {
  QueueRoom::WaitId id = 0;
  std::vector<QueueRoom::Grant> grants;
  {
    absl::MutexLock lock(&mutex_);
    if (!room_.IsTooLarge(space) && WhyNoRows().ok()) {
      id = room_.Wait(space, std::move(callback));
      grants = RoomForWaiters();  // there may be room by now
    }
  }
  if (id == 0) callback(std::nullopt);
  CallBack(std::move(grants));
  return id;
}

void HostedModel::GetProducerPosition(std::string producer_id, PositionCallback callback) {
  absl::Status why;
  {
    absl::MutexLock lock(&mutex_);
    why = WhyNoRows();
  }
  if (!why.ok()) return callback(why);
  LogItem item;
  item.kind = LogItem::Kind::kPosition;
  item.client = shared_from_this();
  item.producer_id = std::move(producer_id);
  item.position_callback = std::move(callback);
  if (environment_.log->Submit(std::move(item))) return;
  item.position_callback(absl::UnavailableError("the server is stopping"));
}

std::optional<LogAppend> HostedModel::Stage(LogItem& item) {
  {
    absl::MutexLock lock(&mutex_);
    // Rows that were let in before draining began are still logged.
    if (life_ != Life::kServing) {
      item.error = WhyNoRows();
      return std::nullopt;
    }
  }
  if (item.kind == LogItem::Kind::kCut) {
    LogAppend append;
    append.uid = uid();
    append.cut = CutRecord{item.cut_sequence};
    return append;
  }
  if (item.kind == LogItem::Kind::kPosition) {
    const auto position = ledger_.Position(item.producer_id);
    if (position.ok()) {
      item.position = *position;
    } else {
      item.error = position.status();
    }
    return std::nullopt;
  }
  auto staged = ledger_.Stage(item.append, FrozenError(), item.result);
  if (!staged.ok()) {
    item.error = staged.status();
    return std::nullopt;
  }
  if (item.append.ack == AckLevel::kAccepted) {
    std::exchange(item.callback, nullptr)(item.result);
  }
  return *std::move(staged);
}

void HostedModel::Committed(LogItem& item) {
  ledger_.Commit();
  if (item.kind == LogItem::Kind::kCut) return CutDecided(item.error);
  if (item.kind == LogItem::Kind::kPosition) {
    if (item.error.ok()) return item.position_callback(item.position);
    return item.position_callback(item.error);
  }
  LeaveDoor(item);
  if (!item.log || !item.log->rows) {
    GiveBack(item.reserved_rows, item.reserved_bytes);
    return FinishAppend(item, item.error);
  }
  RowsRecord& record = *item.log->rows;
  const uint64_t rows = record.rows.size(), last_sequence = record.last_sequence();
  const uint64_t repeated = item.reserved_rows - rows;
  metrics_->RowsAccepted(rows);
  {
    absl::MutexLock lock(&mutex_);
    pending_.Push(std::move(record.rows), 0, record.first_sequence, item.arrival,
                  item.reserved_bytes);
    logged_sequence_ = last_sequence;
    metrics_->PendingRows(pending_.size());
  }
  if (repeated > 0) GiveBack(repeated, 0);
  environment_.pool->Schedule(shared_from_this());
  FinishAppend(item, item.error);
}

void HostedModel::NotCommitted(LogItem& item, const absl::Status& status) {
  ledger_.Rollback();
  const absl::Status& error = item.error.ok() ? status : item.error;
  if (item.kind == LogItem::Kind::kCut) return CutDecided(error);
  if (item.kind == LogItem::Kind::kPosition) return item.position_callback(error);
  item.log.reset();
  LeaveDoor(item);
  GiveBack(item.reserved_rows, item.reserved_bytes);
  if (!item.callback) {
    Log(LogLevel::kError, "accepted_rows_lost",
        {{"model", name()}, {"rows", item.result.rows_accepted}, {"error", error.ToString()}});
  }
  FinishAppend(item, error);
}

void HostedModel::FinishAppend(LogItem& item, const absl::Status& status) {
  if (!item.callback) return;  // acknowledged when it was accepted
  if (!status.ok()) return item.callback(status);
  if (item.append.ack != AckLevel::kApplied || item.result.sequence == 0) {
    return item.callback(std::move(item.result));
  }
  const uint64_t sequence = item.result.sequence;
  WaitForSequence(sequence, [callback = std::move(item.callback),
                             result = std::move(item.result)](absl::Status applied) mutable {
    if (applied.ok()) {
      callback(std::move(result));
    } else {
      callback(std::move(applied));
    }
  });
}

HostedModel::WaitId HostedModel::WaitForSequence(uint64_t sequence, WaitCallback callback) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    const Ref<Snapshot> snapshot = published_.Get();
    if (!snapshot || snapshot->sequence() < sequence) {
      // Who waits is still served while the server drains.
      if (life_ == Life::kServing || life_ == Life::kDeleting) {
        return waiters_.Add(sequence, std::move(callback));
      }
      status = WhyNoRows();
    }
  }
  callback(status);
  return 0;
}

bool HostedModel::CancelWait(WaitId id) {
  absl::MutexLock lock(&mutex_);
  return waiters_.Cancel(id);
}

void HostedModel::EndWaiters(const absl::Status& status) {
  std::vector<SequenceWaiters::Callback> waiters;
  std::vector<QueueRoom::Callback> space_waiters;
  {
    absl::MutexLock lock(&mutex_);
    waiters = waiters_.TakeAll();
    space_waiters = room_.EndWaits();
  }
  for (auto& waiter : waiters) waiter(status);
  for (auto& waiter : space_waiters) waiter(std::nullopt);
}

void HostedModel::BeginDrain() {
  std::vector<QueueRoom::Callback> space_waiters;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    space_waiters = room_.EndWaits();
  }
  for (auto& waiter : space_waiters) waiter(std::nullopt);
}

bool HostedModel::Drained() const {
  absl::MutexLock lock(&mutex_);
  if (life_ != Life::kServing) return true;
  return pending_.size() < config().batch_rows && cut_state_ == CutState::kNone &&
         !waiters_.AnyUpTo(logged_sequence_);
}

void HostedModel::Stop() {
  Life before;
  {
    absl::MutexLock lock(&mutex_);
    if (life_ == Life::kDeleted || life_ == Life::kStopped) return;
    before = std::exchange(life_, Life::kStopped);
  }
  environment_.pool->Remove(this);
  if (before == Life::kServing && trainer_->sequence() != saved_sequence_) Checkpoint();
  EndWaiters(absl::UnavailableError("the server is stopping; ask again when it is back"));
}

absl::Status HostedModel::Delete() {
  Life before;
  {
    absl::MutexLock lock(&mutex_);
    if (life_ == Life::kDeleted) {
      return absl::NotFoundError(absl::StrCat("model \"", name(), "\" has been deleted"));
    }
    before = std::exchange(life_, Life::kDeleting);
  }
  environment_.pool->Remove(this);
  // After all that is in line for the log: nothing is written about the model afterwards.
  absl::Status status =
      environment_.log->RunAndWait([this] { return environment_.store->DeleteModel(uid()); });
  {
    absl::MutexLock lock(&mutex_);
    life_ = status.ok() ? Life::kDeleted : before;
    if (status.ok()) pending_.Clear();
  }
  if (!status.ok()) {
    Start();
    return status;
  }
  EndWaiters(absl::NotFoundError(absl::StrCat("model \"", name(), "\" has been deleted")));
  // Rows that were being written when the first call came have put the model in line again.
  environment_.pool->Remove(this);
  return absl::OkStatus();
}

}  // namespace kernelstream::server
