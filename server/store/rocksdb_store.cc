#include "server/store/rocksdb_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "rocksdb/cache.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/table.h"
#include "server/store/codec.h"
#include "server/store/keys.h"
#include "server/store/rocksdb_status.h"

namespace kernelstream::server {
namespace {

// Sized for a few hundred models on one machine: logs are short because checkpoints trim them.
rocksdb::DBOptions DatabaseOptions() {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  // A write that a crash cut off was never acknowledged; anything else that is wrong is an error.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.max_total_wal_size = uint64_t{64} << 20;
  options.max_background_jobs = 2;
  options.max_open_files = 256;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.max_log_file_size = size_t{1} << 20;
  options.keep_log_file_num = 3;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

rocksdb::ColumnFamilyOptions FamilyOptions(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options;
  options.write_buffer_size = size_t{4} << 20;
  options.max_write_buffer_number = 2;
  options.arena_block_size = size_t{128} << 10;
  options.target_file_size_base = uint64_t{16} << 20;
  options.max_bytes_for_level_base = uint64_t{64} << 20;
  options.compression =
      rocksdb::kNoCompression;  // floats do not shrink, and files stay readable by any build
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

absl::string_view View(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// All keys of a model, in one column family.
class ModelIterator {
 public:
  ModelIterator(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, ModelUid uid)
      : lower_(keys::OfModel(uid)),
        upper_(keys::OfModel(uid + 1)),
        lower_slice_(lower_),
        upper_slice_(upper_) {
    rocksdb::ReadOptions options;
    options.iterate_lower_bound = &lower_slice_;
    options.iterate_upper_bound = &upper_slice_;
    options.fill_cache = false;
    iterator_.reset(db->NewIterator(options, family));
  }
  rocksdb::Iterator* operator->() const { return iterator_.get(); }

 private:
  const std::string lower_, upper_;
  const rocksdb::Slice lower_slice_, upper_slice_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenRocksDbStore(const std::string& directory) {
  return RocksDbStore::Open(directory);
}

absl::StatusOr<std::unique_ptr<RocksDbStore>> RocksDbStore::Open(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat(
        "data directory ", directory, " cannot be created: ", error.message(),
        ". Create it, owned by the server's user, or name another one with --data_dir."));
  }
  const rocksdb::DBOptions options = DatabaseOptions();
  const auto cache = rocksdb::NewLRUCache(size_t{8} << 20);
  std::vector<std::string> names(kFamilyNames.begin(), kFamilyNames.end());
  // Families of a newer format have to be opened too, or its version could not be read.
  std::vector<std::string> existing;
  if (rocksdb::DB::ListColumnFamilies(options, directory, &existing).ok()) {
    for (const std::string& name : existing) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : names) descriptors.emplace_back(name, FamilyOptions(cache));
  std::unique_ptr<RocksDbStore> store(new RocksDbStore);
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      rocksdb::DB::Open(options, directory, descriptors, &store->families_, &db);
  if (!opened.ok()) return FromRocksDbOpen(directory, opened);
  store->db_.reset(db);
  store->reclaimer_ = std::make_unique<SpaceReclaimer>(
      db,
      std::vector<rocksdb::ColumnFamilyHandle*>{store->family(kLog), store->family(kCheckpoints)});
  if (absl::Status status = store->CheckFormat(); !status.ok()) return status;
  return store;
}

RocksDbStore::~RocksDbStore() {
  reclaimer_.reset();
  for (rocksdb::ColumnFamilyHandle* handle : families_) db_->DestroyColumnFamilyHandle(handle);
}

absl::Status RocksDbStore::CheckFormat() {
  const auto bytes = Get(kDefault, keys::kFormat, 0, "format record", {});
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<uint32_t> version =
      bytes->has_value() ? codec::DecodeFormat(**bytes) : absl::StatusOr<uint32_t>(0);
  if (!version.ok()) return version.status();
  if (*version > codec::kFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the data directory has format ", *version,
                     ", and this server knows formats up to ", codec::kFormatVersion,
                     "; start the newer server again, or give this one its own --data_dir"));
  }
  if (*version == codec::kFormatVersion) return absl::OkStatus();
  // New, or older: from here on it may hold what older servers do not know.
  rocksdb::WriteBatch batch;
  Put(batch, kDefault, keys::kFormat, codec::EncodeFormat(codec::kFormatVersion));
  return Write("write the format record", batch);
}

void RocksDbStore::Put(rocksdb::WriteBatch& batch, Family f, const std::string& key,
                       absl::string_view payload) const {
  batch.Put(family(f), key, keys::Seal(key, payload));
}

absl::Status RocksDbStore::Write(absl::string_view doing, rocksdb::WriteBatch& batch) {
  // If going on is not possible yet, the write itself says why. A full disk is looked at every few
  // seconds by RocksDB too.
  if (write_failed_.load() && db_->Resume().ok()) write_failed_.store(false);
  rocksdb::WriteOptions options;
  options.sync = true;
  const rocksdb::Status written = db_->Write(options, &batch);
  if (written.ok()) return absl::OkStatus();
  // Going on at once also takes what the failed write may have left in the write-ahead log out of
  // the way.
  write_failed_.store(!db_->Resume().ok());
  return FromRocksDb(doing, written);
}

absl::StatusOr<std::optional<std::string>> RocksDbStore::Get(
    Family f, const std::string& key, ModelUid uid, absl::string_view what,
    const rocksdb::ReadOptions& options) const {
  std::string value;
  const rocksdb::Status status = db_->Get(options, family(f), key, &value);
  if (status.IsNotFound()) return std::nullopt;
  if (status.IsCorruption()) return Damaged(uid, what, status.ToString());
  if (!status.ok()) return FromRocksDb(absl::StrCat("read the ", what), status);
  const auto payload = keys::Unseal(key, value);
  if (!payload.ok()) return Damaged(uid, what, payload.status().message());
  return std::string(*payload);
}

absl::StatusOr<uint64_t> RocksDbStore::GetCounter(Family f, const std::string& key,
                                                  ModelUid uid) const {
  const auto bytes = Get(f, key, uid, "counter", {});
  if (!bytes.ok()) return bytes.status();
  if (!bytes->has_value()) return 0;
  return codec::DecodeCounter(**bytes);
}

absl::Status RocksDbStore::Damaged(ModelUid uid, absl::string_view what,
                                   absl::string_view why) const {
  if (uid == 0) return absl::DataLossError(absl::StrCat("the stored ", what, " is damaged: ", why));
  std::string name = "?";
  {
    absl::MutexLock lock(&names_mutex_);
    if (const auto it = names_.find(uid); it != names_.end()) name = it->second;
  }
  return absl::DataLossError(absl::StrFormat(
      "model \"%s\" (uid %016x): the stored %s is damaged: %s. Other models are not "
      "affected; restore the data directory from a backup, or delete the model",
      name, uid, what, why));
}

absl::StatusOr<ModelUid> RocksDbStore::NextUid() {
  absl::MutexLock lock(&uid_mutex_);
  const auto last = GetCounter(kDefault, keys::kLastUid, 0);
  if (!last.ok()) return last.status();
  rocksdb::WriteBatch batch;
  Put(batch, kDefault, keys::kLastUid, codec::EncodeCounter(*last + 1));
  if (absl::Status status = Write("reserve a model number", batch); !status.ok()) return status;
  return *last + 1;
}

absl::Status RocksDbStore::PutModel(const StoredModel& model) {
  rocksdb::WriteBatch batch;
  Put(batch, kModels, keys::OfModelRecord(model.uid, model.name), codec::EncodeModel(model));
  if (absl::Status status = Write("write the model", batch); !status.ok()) return status;
  absl::MutexLock lock(&names_mutex_);
  names_[model.uid] = model.name;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StoredModel>> RocksDbStore::ListModels(
    std::vector<DamagedModel>* damaged) {
  std::vector<StoredModel> models;
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options, family(kModels)));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const absl::string_view key = View(it->key());
    if (key.size() < 8) continue;
    const ModelUid uid = keys::UidOf(key);
    const std::string name(key.substr(8));
    {
      absl::MutexLock lock(&names_mutex_);
      names_[uid] = name;
    }
    const auto payload = keys::Unseal(key, View(it->value()));
    auto model = payload.ok() ? codec::DecodeModel(uid, *payload)
                              : absl::StatusOr<StoredModel>(payload.status());
    if (model.ok()) {
      models.push_back(*std::move(model));
    } else if (damaged != nullptr) {
      damaged->push_back(
          {uid, name, std::string(Damaged(uid, "config", model.status().message()).message())});
    }
  }
  if (absl::Status status = FromRocksDb("list the models", it->status()); !status.ok())
    return status;
  return models;
}

absl::Status RocksDbStore::DeleteModel(ModelUid uid) {
  rocksdb::WriteBatch batch;
  const std::string begin = keys::OfModel(uid), end = keys::OfModel(uid + 1);
  for (Family f : {kModels, kLog, kPositions, kProducers, kRequests, kCheckpoints}) {
    batch.DeleteRange(family(f), begin, end);
  }
  if (absl::Status status = Write("delete the model", batch); !status.ok()) return status;
  reclaimer_->Reclaim(begin, end);
  absl::MutexLock lock(&names_mutex_);
  names_.erase(uid);
  return absl::OkStatus();
}

void RocksDbStore::StageAppend(const LogAppend& append, rocksdb::WriteBatch& batch) {
  if (append.rows) {
    const RowsRecord& record = *append.rows;
    Put(batch, kLog, keys::OfLog(append.uid, record.first_sequence, keys::kRows),
        codec::EncodeRows(record));
    Put(batch, kPositions, keys::OfLastSequence(append.uid),
        codec::EncodeCounter(record.last_sequence()));
  }
  if (append.cut) {
    Put(batch, kLog, keys::OfLog(append.uid, append.cut->sequence, keys::kCut), codec::EncodeCut());
  }
  if (append.producer) {
    Put(batch, kProducers, keys::OfProducer(append.uid, append.producer_id),
        codec::EncodeProducer(*append.producer));
  }
  if (append.request) {
    const RequestRecord& request = *append.request;
    Put(batch, kRequests, keys::OfRequest(append.uid, request.request_id),
        codec::EncodeRequest(request));
    Put(batch, kRequests, keys::OfRequestNumber(append.uid, request.number),
        codec::EncodeRequestNumber(request.request_id));
    Put(batch, kPositions, keys::OfLastRequest(append.uid), codec::EncodeCounter(request.number));
  }
}

absl::Status RocksDbStore::ForgetRequests(ModelUid uid, uint64_t up_to,
                                          rocksdb::WriteBatch& batch) {
  // Numbers are given out without gaps, so one has to go for each that comes; look at a few more in
  // case a server with a larger memory wrote before.
  constexpr uint64_t kLookBack = 4;
  for (uint64_t number = up_to; number > 0 && number + kLookBack > up_to; --number) {
    const std::string number_key = keys::OfRequestNumber(uid, number);
    const auto bytes = Get(kRequests, number_key, uid, "request number", {});
    if (!bytes.ok()) return bytes.status();
    if (!bytes->has_value()) continue;
    const auto request_id = codec::DecodeRequestNumber(**bytes);
    if (!request_id.ok()) return request_id.status();
    batch.Delete(family(kRequests), number_key);
    // The id may have come again since it was forgotten: then it has a later number, and stays.
    const auto request = GetRequest(uid, *request_id);
    if (!request.ok()) return request.status();
    if (request->has_value() && (*request)->number == number) {
      batch.Delete(family(kRequests), keys::OfRequest(uid, *request_id));
    }
  }
  return absl::OkStatus();
}

absl::Status RocksDbStore::Commit(const std::vector<LogAppend>& appends) {
  rocksdb::WriteBatch batch;
  for (const LogAppend& append : appends) {
    if (append.request && append.request->number > kRememberedRequests) {
      // A damaged memory of old requests must not stop learning: what cannot be read stays.
      ForgetRequests(append.uid, append.request->number - kRememberedRequests, batch).IgnoreError();
    }
    StageAppend(append, batch);
  }
  return Write("write the log", batch);
}

absl::Status RocksDbStore::ReadLog(ModelUid uid, uint64_t after_sequence,
                                   const std::function<absl::Status(LogEntry)>& apply) {
  ModelIterator it(db_.get(), family(kLog), uid);
  uint64_t next_sequence = 0;  // where the next rows record has to begin; 0: anywhere
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const absl::string_view key = View(it->key());
    const auto parsed = keys::ParseLog(key);
    if (!parsed) return Damaged(uid, "log", "a key is not one of the log's");
    const std::string what = absl::StrCat("log at sequence ", parsed->sequence);
    const auto payload = keys::Unseal(key, View(it->value()));
    if (!payload.ok()) return Damaged(uid, what, payload.status().message());
    if (parsed->kind == keys::kCut) {
      if (parsed->sequence <= after_sequence) continue;
      const auto cut = codec::DecodeCut(parsed->sequence, *payload);
      if (!cut.ok()) return Damaged(uid, what, cut.status().message());
      if (absl::Status status = apply(*cut); !status.ok()) return status;
      continue;
    }
    auto rows = codec::DecodeRows(parsed->sequence, *payload);
    if (!rows.ok()) return Damaged(uid, what, rows.status().message());
    if (next_sequence != 0 && parsed->sequence != next_sequence) {
      return Damaged(uid, what, "rows before it are missing");
    }
    next_sequence = rows->last_sequence() + 1;
    if (rows->last_sequence() <= after_sequence) continue;
    if (absl::Status status = apply(*std::move(rows)); !status.ok()) return status;
  }
  if (it->status().IsCorruption()) return Damaged(uid, "log", it->status().ToString());
  return FromRocksDb("read the log", it->status());
}

absl::StatusOr<uint64_t> RocksDbStore::LastSequence(ModelUid uid) {
  return GetCounter(kPositions, keys::OfLastSequence(uid), uid);
}

absl::StatusOr<std::optional<ProducerPosition>> RocksDbStore::GetProducer(
    ModelUid uid, const std::string& producer_id) {
  const auto bytes =
      Get(kProducers, keys::OfProducer(uid, producer_id), uid, "producer position", {});
  if (!bytes.ok()) return bytes.status();
  if (!bytes->has_value()) return std::nullopt;
  const auto position = codec::DecodeProducer(**bytes);
  if (!position.ok()) return Damaged(uid, "producer position", position.status().message());
  return *position;
}

absl::StatusOr<std::optional<RequestRecord>> RocksDbStore::GetRequest(
    ModelUid uid, const std::string& request_id) {
  const auto bytes =
      Get(kRequests, keys::OfRequest(uid, request_id), uid, "answer to a request", {});
  if (!bytes.ok()) return bytes.status();
  if (!bytes->has_value()) return std::nullopt;
  const auto request = codec::DecodeRequest(request_id, **bytes);
  if (!request.ok()) return Damaged(uid, "answer to a request", request.status().message());
  return *request;
}

absl::StatusOr<uint64_t> RocksDbStore::LastRequestNumber(ModelUid uid) {
  return GetCounter(kPositions, keys::OfLastRequest(uid), uid);
}

absl::Status RocksDbStore::TrimLog(ModelUid uid, uint64_t sequence, rocksdb::WriteBatch& batch) {
  const std::string begin = keys::OfModel(uid);
  ModelIterator it(db_.get(), family(kLog), uid);
  // The last rows record that begins at or before `sequence` may go on behind it: then it stays,
  // and only what is before it goes, and cuts after it.
  it->SeekForPrev(keys::OfLog(uid, sequence, keys::kCut));
  for (; it->Valid(); it->Prev()) {
    const auto parsed = keys::ParseLog(View(it->key()));
    if (!parsed) return Damaged(uid, "log", "a key is not one of the log's");
    if (parsed->kind == keys::kCut) {
      batch.Delete(family(kLog), it->key());
      continue;
    }
    const auto payload = keys::Unseal(View(it->key()), View(it->value()));
    // Damaged rows that the state has learned are not needed any more, unless it is unknown how far
    // they reach.
    const auto rows = payload.ok() ? codec::DecodeRows(parsed->sequence, *payload)
                                   : absl::StatusOr<RowsRecord>(payload.status());
    if (!rows.ok()) {
      return Damaged(uid, absl::StrCat("log at sequence ", parsed->sequence),
                     rows.status().message());
    }
    const bool straddles = rows->last_sequence() > sequence;
    batch.DeleteRange(family(kLog), begin,
                      keys::OfLog(uid, parsed->sequence + (straddles ? 0 : 1), keys::kRows));
    break;
  }
  return FromRocksDb("read the log", it->status());
}

absl::Status RocksDbStore::SaveCheckpoint(ModelUid uid, const TrainerState& state) {
  rocksdb::WriteBatch batch;
  // Chunks of a larger state before this one go too.
  batch.DeleteRange(family(kCheckpoints), keys::OfModel(uid), keys::OfModel(uid + 1));
  Put(batch, kCheckpoints, keys::OfCheckpoint(uid), codec::EncodeCheckpoint(state));
  for (size_t i = 0; i < state.candidates.size(); ++i) {
    const CandidateState& candidate = state.candidates[i];
    for (const bool average : {false, true}) {
      const std::vector<float>& values = average ? candidate.average.values : candidate.last.values;
      for (size_t chunk = 0; chunk < codec::NumChunks(values.size()); ++chunk) {
        const std::string key = keys::OfChunk(uid, static_cast<uint32_t>(2 * i + (average ? 1 : 0)),
                                              static_cast<uint32_t>(chunk));
        Put(batch, kCheckpoints, key, codec::ChunkBytes(values, chunk));
      }
    }
  }
  const auto row_sets = codec::RowSetsOf(state);
  for (uint32_t set = 0; set < row_sets.size(); ++set) {
    uint32_t chunk = 0;
    for (const std::string& bytes : codec::EncodeRowChunks(*row_sets[set])) {
      Put(batch, kCheckpoints, keys::OfRowsChunk(uid, set, chunk++), bytes);
    }
  }
  if (absl::Status status = TrimLog(uid, state.sequence, batch); !status.ok()) return status;
  return Write("write the checkpoint", batch);
}

absl::Status RocksDbStore::LoadChunks(ModelUid uid, uint32_t set,
                                      const rocksdb::ReadOptions& options,
                                      std::vector<float>& values) const {
  for (size_t chunk = 0; chunk < codec::NumChunks(values.size()); ++chunk) {
    const std::string key = keys::OfChunk(uid, set, static_cast<uint32_t>(chunk));
    const auto bytes = Get(kCheckpoints, key, uid, "checkpoint (coefficients)", options);
    if (!bytes.ok()) return bytes.status();
    if (!bytes->has_value()) return Damaged(uid, "checkpoint", "a coefficient chunk is missing");
    if (absl::Status status = codec::FillChunk(**bytes, chunk, values); !status.ok()) {
      return Damaged(uid, "checkpoint", status.message());
    }
  }
  return absl::OkStatus();
}

absl::Status RocksDbStore::LoadRows(ModelUid uid, uint32_t set, uint64_t count,
                                    const rocksdb::ReadOptions& options, SampleBatch& rows) const {
  for (uint32_t chunk = 0; rows.size() < count; ++chunk) {
    const std::string key = keys::OfRowsChunk(uid, set, chunk);
    const auto bytes = Get(kCheckpoints, key, uid, "checkpoint (rows)", options);
    if (!bytes.ok()) return bytes.status();
    if (!bytes->has_value()) return Damaged(uid, "checkpoint", "a chunk of rows is missing");
    if (absl::Status status = codec::AppendRowChunk(**bytes, rows); !status.ok()) {
      return Damaged(uid, "checkpoint", status.message());
    }
  }
  if (rows.size() != count) return Damaged(uid, "checkpoint", "it has more rows than it says");
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TrainerState>> RocksDbStore::LoadCheckpoint(ModelUid uid) {
  rocksdb::ManagedSnapshot snapshot(db_.get());
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.snapshot();
  options.fill_cache = false;
  const auto bytes = Get(kCheckpoints, keys::OfCheckpoint(uid), uid, "checkpoint", options);
  if (!bytes.ok()) return bytes.status();
  if (!bytes->has_value()) return std::nullopt;
  codec::RowCounts row_counts;
  auto state = codec::DecodeCheckpoint(**bytes, &row_counts);
  if (!state.ok()) return Damaged(uid, "checkpoint", state.status().message());
  for (size_t i = 0; i < state->candidates.size(); ++i) {
    CandidateState& candidate = state->candidates[i];
    const auto set = static_cast<uint32_t>(2 * i);
    if (absl::Status status = LoadChunks(uid, set, options, candidate.last.values); !status.ok()) {
      return status;
    }
    if (absl::Status status = LoadChunks(uid, set + 1, options, candidate.average.values);
        !status.ok()) {
      return status;
    }
  }
  const auto row_sets = codec::RowSetsOf(*state);
  for (uint32_t set = 0; set < row_sets.size(); ++set) {
    const absl::Status status = LoadRows(uid, set, row_counts[set], options, *row_sets[set]);
    if (!status.ok()) return status;
  }
  return *std::move(state);
}

}  // namespace kernelstream::server
