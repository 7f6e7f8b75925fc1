#include "server/hosting/model_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/field_error.h"
#include "server/telemetry/log.h"

namespace kernelstream::server {
namespace {

constexpr size_t kMostNameBytes = 128;
constexpr size_t kMostNamesListed = 10;
// Longer names are compared by their beginnings: a message has to be quick to make.
constexpr size_t kComparedBytes = 32;
constexpr absl::Duration kDrainPoll = absl::Milliseconds(5);

// Levenshtein distance of the beginnings.
size_t Distance(absl::string_view a, absl::string_view b) {
  a = a.substr(0, kComparedBytes);
  b = b.substr(0, kComparedBytes);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// What `config` leaves open is as the model has it: defaults may have been others when it was made.
bool IsConfigOf(ModelConfig config, const HostedModel& model) {
  ModelConfig known = model.config();
  if (!config.replay.ratio.has_value()) config.replay.ratio = known.replay.ratio;
  if (config.block_features == 0) config.block_features = known.block_features;
  return CompleteConfig(config).ok() && CompleteConfig(known).ok() && config == known;
}

}  // namespace

absl::Status CheckModelName(absl::string_view name) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  };
  const bool good = !name.empty() && name.size() <= kMostNameBytes &&
                    absl::ascii_isalnum(static_cast<unsigned char>(name[0])) &&
                    std::all_of(name.begin(), name.end(), allowed);
  if (good) return absl::OkStatus();
  return InvalidField(
      "name",
      absl::StrCat("a model cannot be named \"", absl::CHexEscape(name.substr(0, kMostNameBytes)),
                   "\"; expected 1 to ", kMostNameBytes,
                   " characters of a-z, A-Z, 0-9, '.', '_' and '-', a letter or digit first"));
}

ModelRegistry::ModelRegistry(const HostingEnvironment& environment, const HostingOptions& options)
    : environment_(environment), options_(options), map_(Ref<ModelMap>::Adopt(new ModelMap)) {}

ModelRegistry::~ModelRegistry() { Stop(); }

void ModelRegistry::Publish(Models models) {
  auto* map = new ModelMap;
  map->models = std::move(models);
  map_.Set(Ref<ModelMap>::Adopt(map));
}

absl::Status ModelRegistry::LoadAll() {
  absl::MutexLock lock(&mutex_);
  std::vector<DamagedModel> damaged;
  auto stored = environment_.store->ListModels(&damaged);
  if (!stored.ok()) return stored.status();
  Models models;
  for (StoredModel& model : *stored) {
    auto made = HostedModel::Make(model, /*is_new=*/false, environment_, options_);
    models[model.name] =
        made.ok()
            ? *std::move(made)
            : HostedModel::MakeFailed(
                  model,
                  absl::StrCat("its stored config cannot be used: ", made.status().message(),
                               ". Start the server version that wrote it, or delete the model"),
                  environment_, options_);
  }
  for (const DamagedModel& model : damaged) {
    StoredModel known;
    known.uid = model.uid;
    known.name = model.name;
    models.emplace(model.name,
                   HostedModel::MakeFailed(known, model.message, environment_, options_));
  }
  for (const auto& [name, model] : models) model->Start();
  Publish(std::move(models));
  return absl::OkStatus();
}

bool ModelRegistry::AllLoaded() const {
  for (const auto& [name, model] : map_.Get()->models) {
    if (model->status().phase == ModelStatus::Phase::kLoading) return false;
  }
  return true;
}

absl::StatusOr<ModelRegistry::Created> ModelRegistry::Create(absl::string_view name,
                                                             const ModelConfig& config) {
  if (absl::Status status = CheckModelName(name); !status.ok()) return status;
  StoredModel stored;
  stored.name = std::string(name);
  stored.config = config;
  if (absl::Status status = CompleteConfig(stored.config); !status.ok()) return status;

  absl::MutexLock lock(&mutex_);
  if (stopped_) return absl::UnavailableError("the server is stopping");
  Models models = map_.Get()->models;
  if (const auto it = models.find(stored.name); it != models.end()) {
    if (IsConfigOf(config, *it->second)) return Created{it->second, false};
    return absl::AlreadyExistsError(absl::StrCat(
        "model \"", name,
        "\" exists with another config, and configs cannot be changed. Use it as it is, "
        "delete it first, or choose another name"));
  }
  if (absl::Status status = CheckNewConfig(stored.config); !status.ok()) return status;
  if (models.size() >= options_.max_models) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "model \"", name, "\" was not created: there are ", models.size(),
        " models, and --max_models is ", options_.max_models, ". Delete one, or raise the limit"));
  }
  const auto uid = environment_.store->NextUid();
  if (!uid.ok()) return uid.status();
  stored.uid = *uid;
  stored.create_time = absl::Now();
  auto model = HostedModel::Make(stored, /*is_new=*/true, environment_, options_);
  if (!model.ok()) return model.status();
  if (absl::Status status = environment_.store->PutModel(stored); !status.ok()) return status;
  (*model)->Start();
  models[stored.name] = *model;
  Publish(std::move(models));
  Log(LogLevel::kInfo, "created",
      {{"model", name}, {"loss", stored.config.loss.name}, {"kernel", stored.config.kernel.name}});
  return Created{*model, true};
}

absl::Status ModelRegistry::NotFound(absl::string_view name) const {
  const Ref<ModelMap> map = map_.Get();
  std::vector<std::pair<size_t, std::string>> known;
  for (const auto& [other, model] : map->models) known.emplace_back(Distance(name, other), other);
  std::sort(known.begin(), known.end());
  const size_t listed = std::min(known.size(), kMostNamesListed);
  std::string names;
  for (size_t i = 0; i < listed; ++i) absl::StrAppend(&names, i == 0 ? "" : ", ", known[i].second);
  const std::string shown = absl::CHexEscape(name.substr(0, kMostNameBytes));
  if (known.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no model \"", shown, "\", nor any other. Create one first"));
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no model \"", shown, "\". Known: ", names,
      known.size() > listed ? absl::StrCat(" (", listed, " of ", known.size(), ")") : ""));
}

absl::StatusOr<std::shared_ptr<HostedModel>> ModelRegistry::Get(absl::string_view name) const {
  const Ref<ModelMap> map = map_.Get();
  const auto it = map->models.find(name);
  if (it == map->models.end()) return NotFound(name);
  return it->second;
}

std::vector<std::shared_ptr<HostedModel>> ModelRegistry::List() const {
  std::vector<std::shared_ptr<HostedModel>> models;
  for (const auto& [name, model] : map_.Get()->models) models.push_back(model);
  return models;
}

absl::Status ModelRegistry::Delete(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  if (stopped_) return absl::UnavailableError("the server is stopping");
  Models models = map_.Get()->models;
  const auto it = models.find(name);
  if (it == models.end()) return NotFound(name);
  if (absl::Status status = it->second->Delete(); !status.ok()) return status;
  models.erase(it);
  Publish(std::move(models));
  Log(LogLevel::kInfo, "deleted", {{"model", name}});
  return absl::OkStatus();
}

void ModelRegistry::Drain(absl::Duration grace) {
  const std::vector<std::shared_ptr<HostedModel>> models = List();
  for (const auto& model : models) model->BeginDrain();
  environment_.log->Flush();
  const absl::Time deadline = environment_.clock->Now() + grace;
  const auto drained = [](const std::shared_ptr<HostedModel>& model) { return model->Drained(); };
  absl::MutexLock lock(&drain_mutex_);
  for (absl::Time now = environment_.clock->Now();
       now < deadline && !std::all_of(models.begin(), models.end(), drained);
       now = environment_.clock->Now()) {
    environment_.clock->Wait(drain_poll_, drain_mutex_, std::min(deadline, now + kDrainPoll));
  }
}

void ModelRegistry::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  for (const auto& model : List()) model->Stop();
}

}  // namespace kernelstream::server
