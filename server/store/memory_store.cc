#include "server/store/memory_store.h"

namespace kernelstream::server {

void MemoryStore::SetHook(std::function<absl::Status(Op, ModelUid)> hook) {
  absl::MutexLock lock(&mutex_);
  hook_ = std::move(hook);
}

void MemoryStore::AddDamaged(DamagedModel model) {
  absl::MutexLock lock(&mutex_);
  damaged_.push_back(std::move(model));
}

absl::Status MemoryStore::Enter(Op op, ModelUid uid) {
  std::function<absl::Status(Op, ModelUid)> hook;
  {
    absl::MutexLock lock(&mutex_);
    hook = hook_;
  }
  return hook ? hook(op, uid) : absl::OkStatus();
}

absl::StatusOr<ModelUid> MemoryStore::NextUid() {
  if (absl::Status status = Enter(Op::kNextUid, 0); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  return ++last_uid_;
}

absl::Status MemoryStore::PutModel(const StoredModel& model) {
  if (absl::Status status = Enter(Op::kPutModel, model.uid); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  models_[model.uid].stored = model;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StoredModel>> MemoryStore::ListModels(
    std::vector<DamagedModel>* damaged) {
  if (absl::Status status = Enter(Op::kListModels, 0); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  std::vector<StoredModel> models;
  for (const auto& [uid, model] : models_) {
    if (model.stored) models.push_back(*model.stored);
  }
  if (damaged != nullptr) damaged->insert(damaged->end(), damaged_.begin(), damaged_.end());
  return models;
}

absl::Status MemoryStore::DeleteModel(ModelUid uid) {
  if (absl::Status status = Enter(Op::kDeleteModel, uid); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  models_.erase(uid);
  std::erase_if(damaged_, [uid](const DamagedModel& model) { return model.uid == uid; });
  return absl::OkStatus();
}

absl::Status MemoryStore::Commit(const std::vector<LogAppend>& appends) {
  if (absl::Status status = Enter(Op::kCommit, appends.empty() ? 0 : appends.front().uid);
      !status.ok()) {
    return status;
  }
  absl::MutexLock lock(&mutex_);
  for (const LogAppend& append : appends) {
    Model& model = models_[append.uid];
    if (append.rows) {
      model.log.insert_or_assign({append.rows->first_sequence, 0}, *append.rows);
      model.last_sequence = append.rows->last_sequence();
    }
    if (append.cut) model.log.insert_or_assign({append.cut->sequence, 1}, *append.cut);
    if (append.producer) model.producers[append.producer_id] = *append.producer;
    if (append.request) {
      model.requests[append.request->request_id] = *append.request;
      model.last_request = append.request->number;
      std::erase_if(model.requests, [&model](const auto& entry) {
        return entry.second.number + kRememberedRequests <= model.last_request;
      });
    }
  }
  return absl::OkStatus();
}

absl::Status MemoryStore::ReadLog(ModelUid uid, uint64_t after_sequence,
                                  const std::function<absl::Status(LogEntry)>& apply) {
  if (absl::Status status = Enter(Op::kReadLog, uid); !status.ok()) return status;
  std::vector<LogEntry> entries;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [key, entry] : models_[uid].log) {
      const auto* rows = std::get_if<RowsRecord>(&entry);
      const uint64_t last = rows != nullptr ? rows->last_sequence() : key.first;
      if (last > after_sequence) entries.push_back(entry);
    }
  }
  for (LogEntry& entry : entries) {
    if (absl::Status status = apply(std::move(entry)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> MemoryStore::LastSequence(ModelUid uid) {
  absl::MutexLock lock(&mutex_);
  return models_[uid].last_sequence;
}

absl::StatusOr<std::optional<ProducerPosition>> MemoryStore::GetProducer(
    ModelUid uid, const std::string& producer_id) {
  if (absl::Status status = Enter(Op::kGetProducer, uid); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  const Model& model = models_[uid];
  const auto it = model.producers.find(producer_id);
  if (it == model.producers.end()) return std::nullopt;
  return it->second;
}

absl::StatusOr<std::optional<RequestRecord>> MemoryStore::GetRequest(
    ModelUid uid, const std::string& request_id) {
  if (absl::Status status = Enter(Op::kGetRequest, uid); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  const Model& model = models_[uid];
  const auto it = model.requests.find(request_id);
  if (it == model.requests.end()) return std::nullopt;
  return it->second;
}

absl::StatusOr<uint64_t> MemoryStore::LastRequestNumber(ModelUid uid) {
  absl::MutexLock lock(&mutex_);
  return models_[uid].last_request;
}

absl::Status MemoryStore::SaveCheckpoint(ModelUid uid, const TrainerState& state) {
  if (absl::Status status = Enter(Op::kSaveCheckpoint, uid); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  Model& model = models_[uid];
  model.checkpoint = state;
  std::erase_if(model.log, [&state](const auto& item) {
    const auto* rows = std::get_if<RowsRecord>(&item.second);
    return (rows != nullptr ? rows->last_sequence() : item.first.first) <= state.sequence;
  });
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TrainerState>> MemoryStore::LoadCheckpoint(ModelUid uid) {
  if (absl::Status status = Enter(Op::kLoadCheckpoint, uid); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  return models_[uid].checkpoint;
}

}  // namespace kernelstream::server
