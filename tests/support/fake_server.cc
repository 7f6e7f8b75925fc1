#include "tests/support/fake_server.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace kernelstream::support {
namespace {

google::rpc::Status Details(grpc::StatusCode code, const std::string& message,
                            const std::string& reason) {
  google::rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("kernelstream");
  details.add_details()->PackFrom(info);
  return details;
}

grpc::Status Error(grpc::StatusCode code, const std::string& message, const std::string& reason) {
  return grpc::Status(code, message, Details(code, message, reason).SerializeAsString());
}

template <typename Message>
std::vector<v1::Sample> Samples(const Message& message) {
  if (!message.has_matrix()) {
    return std::vector<v1::Sample>(message.samples().begin(), message.samples().end());
  }
  const v1::SampleMatrix& matrix = message.matrix();
  std::vector<v1::Sample> samples(matrix.rows());
  for (uint32_t i = 0; i < matrix.rows(); ++i) {
    for (uint32_t j = 0; j < matrix.dimension(); ++j) {
      float value = 0;
      std::memcpy(&value, matrix.values().data() + (i * matrix.dimension() + j) * sizeof(float),
                  sizeof(float));
      samples[i].mutable_features()->mutable_dense()->add_values(value);
    }
    const uint32_t targets = matrix.target_dimension();
    for (uint32_t k = 0; k < targets; ++k) {
      samples[i].mutable_vector()->add_values(matrix.targets(i * targets + k));
    }
    if (targets == 0 && matrix.targets_size() > 0) samples[i].set_value(matrix.targets(i));
    if (matrix.populations_size() > 0) samples[i].set_population(matrix.populations(i));
    if (matrix.labels_size() > 0) samples[i].set_label(matrix.labels(i));
  }
  return samples;
}

double Sum(const v1::Features& features) {
  double sum = 0;
  for (const float value : features.dense().values()) sum += value;
  for (const float value : features.sparse().values()) sum += value;
  return sum;
}

std::string Problem(const v1::Sample& sample, uint32_t dimension) {
  const auto& dense = sample.features().dense().values();
  if (sample.features().has_dense() && static_cast<uint32_t>(dense.size()) != dimension) {
    return absl::StrCat("takes ", dimension, " values per row; this one has ", dense.size());
  }
  for (const float value : dense) {
    if (!(std::abs(value) <= 1e30f)) return "a value is not finite or above 1e30";
  }
  return "";
}

// The columns of a logistic or square model's predictions, in place of them.
void FillColumns(const v1::PredictResponse& answer, v1::StreamPredictResponse* response) {
  response->clear_predictions();
  v1::PredictionMatrix& matrix = *response->mutable_matrix();
  constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
  matrix.set_rows(static_cast<uint32_t>(answer.predictions_size()));
  for (const char* label : {"-1", "1"}) matrix.add_labels(label);
  for (const v1::Prediction& row : answer.predictions()) {
    matrix.add_scores(row.scores(0));
    for (const auto& probability : row.probabilities()) {
      matrix.add_probabilities(probability.value());
    }
    if (!row.label().empty()) {
      matrix.add_label_indices(row.label() == "1" ? 1 : 0);
      continue;
    }
    matrix.add_values(row.value());
    matrix.add_variances(row.has_variance() ? row.variance() : kAbsent);
    matrix.add_interval_lows(row.has_interval() ? row.interval().low() : kAbsent);
    matrix.add_interval_highs(row.has_interval() ? row.interval().high() : kAbsent);
  }
}

}  // namespace

FakeServer::FakeServer(FakeServerOptions options) : options_(options) { Start(); }

FakeServer::~FakeServer() { Stop(); }

std::string FakeServer::address() const { return absl::StrCat("127.0.0.1:", port_); }

void FakeServer::Start() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = false;
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_), grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(static_cast<v1::ModelService::Service*>(this));
  builder.RegisterService(static_cast<v1::OnlineUpdateService::Service*>(this));
  builder.RegisterService(static_cast<v1::PredictionService::Service*>(this));
  server_ = builder.BuildAndStart();
}

void FakeServer::Stop() {
  if (server_ == nullptr) return;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

void FakeServer::Inject(FaultPoint point, int skip, grpc::StatusCode code) {
  absl::MutexLock lock(&mu_);
  faults_.push_back({point, skip, code});
}

size_t FakeServer::faults_left() const {
  absl::MutexLock lock(&mu_);
  return faults_.size();
}

bool FakeServer::Hit(FaultPoint point, grpc::Status* status) {
  for (auto fault = faults_.begin(); fault != faults_.end(); ++fault) {
    if (fault->point != point) continue;
    if (fault->skip-- > 0) return false;
    *status = fault->code == grpc::StatusCode::OK
                  ? grpc::Status::OK
                  : Error(fault->code, "scripted failure; try again", "SCRIPTED");
    faults_.erase(fault);
    return true;
  }
  return false;
}

void FakeServer::HoldAcks(bool hold) {
  absl::MutexLock lock(&mu_);
  hold_acks_ = hold;
}

void FakeServer::AddModel(const std::string& name, const std::string& loss) {
  absl::MutexLock lock(&mu_);
  models_[name].config.mutable_loss()->set_name(loss);
}

std::vector<LoggedRow> FakeServer::Log(const std::string& model) const {
  absl::MutexLock lock(&mu_);
  const auto found = models_.find(model);
  return found == models_.end() ? std::vector<LoggedRow>() : found->second.log;
}

void FakeServer::AwaitRows(const std::string& model, size_t rows) const {
  absl::MutexLock lock(&mu_);
  auto there = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    const auto found = models_.find(model);
    return found != models_.end() && found->second.log.size() >= rows;
  };
  mu_.Await(absl::Condition(&there));
}

void FakeServer::LoseNewestRows(const std::string& model, size_t rows) {
  absl::MutexLock lock(&mu_);
  Entry& entry = models_[model];
  for (; rows > 0 && !entry.log.empty(); --rows) {
    entry.next_sequence[entry.log.back().producer_id] = entry.log.back().producer_sequence;
    entry.log.pop_back();
  }
}

std::vector<size_t> FakeServer::batches() const {
  absl::MutexLock lock(&mu_);
  return batches_;
}

size_t FakeServer::matrix_batches() const {
  absl::MutexLock lock(&mu_);
  return matrix_batches_;
}

grpc::Status FakeServer::Find(const std::string& name, Entry** entry) {
  const auto found = models_.find(name);
  if (found == models_.end()) {
    std::string known;
    for (const auto& [known_name, unused] : models_) absl::StrAppend(&known, " ", known_name);
    return Error(grpc::StatusCode::NOT_FOUND,
                 absl::StrCat("no model \"", name, "\"; existing:", known), "MODEL_NOT_FOUND");
  }
  *entry = &found->second;
  return grpc::Status::OK;
}

v1::Model FakeServer::Describe(const std::string& name, const Entry& entry) const {
  v1::Model model;
  model.set_name(name);
  model.set_uid(absl::StrCat("uid-", name));
  *model.mutable_config() = entry.config;
  model.mutable_create_time()->set_seconds(1'700'000'000);
  v1::ModelState& state = *model.mutable_state();
  const uint64_t rows = entry.log.size();
  const bool warm = rows < entry.config.warmup_rows();
  state.set_phase(warm ? v1::PHASE_WARMING_UP : v1::PHASE_LEARNING);
  state.set_step(rows);
  state.set_num_features(rows);
  state.set_rows_learned(rows);
  state.set_rows_rejected(entry.rejected);
  state.set_sequence(rows);
  state.set_fingerprint("0123456789abcdef0123456789abcdef");
  if (!warm) {
    v1::ResolvedConfig& resolved = *state.mutable_resolved();
    resolved.set_dimension(entry.dimension);
    resolved.set_kernel("gaussian");
    (*resolved.mutable_kernel_parameters())["bandwidth"] = 0.5;
    resolved.set_loss(entry.config.loss().name());
    resolved.set_update_rule("proximal");
    (*resolved.mutable_update_rule_parameters())["step_constant"] = 1;
    resolved.set_serving(v1::AVERAGING_POLYNOMIAL);
    resolved.set_max_features(8192);
    resolved.set_batch_rows(64);
    resolved.set_seed(42);
    for (int i = 0; i < 10; ++i) {
      resolved.add_input_offsets(i);
      resolved.add_input_scales(i + 0.5);
      resolved.add_input_relevance(i == 3 ? 1 : 0.125 * (i % 4));
    }
    state.mutable_frequencies()->set_bytes(uint64_t{3} << 20);
    state.mutable_frequencies()->set_kept_bytes(uint64_t{512} << 10);
    for (const double target : {0.5, -3.0}) {
      resolved.add_target_offsets(target);
      resolved.add_target_scales(2 * std::abs(target));
    }
    v1::CandidateReport& served = *resolved.add_candidates();
    served.set_metric(v1::INPUT_METRIC_DIAGONAL);
    served.set_bandwidth(1.25);
    served.set_step_constant(0.1);
    served.set_served(true);
    state.mutable_validation()->set_recent_loss(0.25);
    state.mutable_validation()->set_recent_error_rate(0.125);
    state.mutable_validation()->set_rows(rows);
    for (v1::Metrics* metrics : {state.mutable_validation()->mutable_recent(),
                                 state.mutable_validation()->mutable_total()}) {
      (*metrics->mutable_values())["loss"] = 0.25;
      (*metrics->mutable_values())["error_rate"] = 0.125;
      (*metrics->mutable_values())["auc"] = 0.9;
      v1::ClassMetrics* yes = metrics->add_classes();
      yes->set_label("yes");
      yes->set_f1(0.75);
      metrics->set_rows(rows);
    }
  }
  return model;
}

grpc::Status FakeServer::CreateModel(grpc::ServerContext*, const v1::CreateModelRequest* request,
                                     v1::CreateModelResponse* response) {
  absl::MutexLock lock(&mu_);
  grpc::Status status;
  if (Hit(FaultPoint::kCall, &status)) return status;
  const std::string& loss = request->config().loss().name();
  if (loss != "logistic" && loss != "square") {
    return Error(grpc::StatusCode::INVALID_ARGUMENT,
                 absl::StrCat("unknown loss \"", loss, "\"; known: logistic, square"),
                 "UNKNOWN_COMPONENT");
  }
  const auto [found, created] = models_.try_emplace(request->name());
  if (created) {
    found->second.config = request->config();
    found->second.dimension = request->config().input().dimension();
  } else if (!google::protobuf::util::MessageDifferencer::Equals(found->second.config,
                                                                 request->config())) {
    return Error(grpc::StatusCode::ALREADY_EXISTS,
                 absl::StrCat("model \"", request->name(), "\" exists with another config"),
                 "MODEL_EXISTS");
  }
  *response->mutable_model() = Describe(request->name(), found->second);
  response->set_created(created);
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetModel(grpc::ServerContext*, const v1::GetModelRequest* request,
                                  v1::GetModelResponse* response) {
  absl::MutexLock lock(&mu_);
  grpc::Status status;
  if (Hit(FaultPoint::kCall, &status)) return status;
  Entry* entry = nullptr;
  status = Find(request->name(), &entry);
  if (status.ok()) *response->mutable_model() = Describe(request->name(), *entry);
  return status;
}

grpc::Status FakeServer::ListModels(grpc::ServerContext*, const v1::ListModelsRequest* request,
                                    v1::ListModelsResponse* response) {
  // One model per page, so that every client that lists two follows a token.
  absl::MutexLock lock(&mu_);
  auto next = models_.upper_bound(request->page_token());
  if (next == models_.end()) return grpc::Status::OK;
  *response->add_models() = Describe(next->first, next->second);
  if (std::next(next) != models_.end()) response->set_next_page_token(next->first);
  return grpc::Status::OK;
}

grpc::Status FakeServer::DeleteModel(grpc::ServerContext*, const v1::DeleteModelRequest* request,
                                     v1::DeleteModelResponse*) {
  absl::MutexLock lock(&mu_);
  Entry* entry = nullptr;
  grpc::Status status = Find(request->name(), &entry);
  if (!status.ok()) return status;
  models_.erase(request->name());
  // The deletion is done, the answer may be lost.
  return Hit(FaultPoint::kCall, &status) ? status : grpc::Status::OK;
}

grpc::Status FakeServer::ListKernels(grpc::ServerContext*, const v1::ListKernelsRequest*,
                                     v1::ListKernelsResponse* response) {
  v1::ComponentInfo* kernel = response->add_kernels();
  kernel->set_name("gaussian");
  kernel->set_documentation("exp(-|x - x'|^2 / (2 bandwidth^2))");
  kernel->set_inputs("any");
  v1::ParameterInfo* bandwidth = kernel->add_parameters();
  bandwidth->set_name("bandwidth");
  bandwidth->set_documentation("distance scale");
  bandwidth->set_min(1e-6);
  bandwidth->set_max(1e6);
  return grpc::Status::OK;
}

grpc::Status FakeServer::ListLosses(grpc::ServerContext*, const v1::ListLossesRequest*,
                                    v1::ListLossesResponse* response) {
  for (const char* name : {"logistic", "square"}) response->add_losses()->set_name(name);
  return grpc::Status::OK;
}

grpc::Status FakeServer::ListSamplers(grpc::ServerContext*, const v1::ListSamplersRequest*,
                                      v1::ListSamplersResponse* response) {
  v1::ComponentInfo* sampler = response->add_samplers();
  sampler->set_name("iid");
  sampler->set_documentation("one by one");
  for (const char* kernel : {"gaussian", "matern"}) sampler->add_kernels(kernel);
  return grpc::Status::OK;
}

void FakeServer::Append(Entry& entry, const std::string& producer, uint64_t first,
                        const std::vector<v1::Sample>& samples,
                        google::protobuf::RepeatedPtrField<v1::RejectedSample>* rejected) {
  uint64_t& next = entry.next_sequence.try_emplace(producer, 1).first->second;
  for (size_t i = 0; i < samples.size(); ++i) {
    const uint64_t number = first + i;
    if (number < next) continue;
    next = number + 1;
    if (entry.dimension == 0 && samples[i].features().has_dense()) {
      entry.dimension = static_cast<uint32_t>(samples[i].features().dense().values_size());
    }
    const std::string problem = Problem(samples[i], entry.dimension);
    if (problem.empty()) {
      entry.log.push_back({producer, number, samples[i]});
      continue;
    }
    ++entry.rejected;
    v1::RejectedSample* added = rejected->Add();
    added->set_producer_sequence(number);
    *added->mutable_status() = Details(grpc::StatusCode::INVALID_ARGUMENT, problem, "BAD_SAMPLE");
  }
}

grpc::Status FakeServer::Update(grpc::ServerContext*, const v1::UpdateRequest* request,
                                v1::UpdateResponse* response) {
  absl::MutexLock lock(&mu_);
  Entry* entry = nullptr;
  grpc::Status status = Find(request->model(), &entry);
  if (!status.ok()) return status;
  if (Hit(FaultPoint::kBeforeLog, &status)) return status;
  const auto known = entry->requests.find(request->request_id());
  if (!request->request_id().empty() && known != entry->requests.end()) {
    *response = known->second;
    response->set_duplicate(true);
    return grpc::Status::OK;
  }
  const std::vector<v1::Sample> samples = Samples(*request);
  const size_t before = entry->log.size();
  const std::string& producer =
      request->producer_id().empty() ? request->request_id() : request->producer_id();
  const uint64_t first = request->producer_id().empty() ? 1 : request->producer_sequence();
  Append(*entry, producer, first, samples, response->mutable_rejected());
  if (request->producer_id().empty()) {
    for (v1::RejectedSample& rejected : *response->mutable_rejected()) {
      rejected.set_producer_sequence(rejected.producer_sequence() - 1);
    }
  }
  response->set_rows_accepted(entry->log.size() - before);
  response->set_sequence(entry->log.size());
  response->set_step(entry->log.size());
  response->set_next_producer_sequence(entry->next_sequence[producer]);
  entry->requests[request->request_id()] = *response;
  return Hit(FaultPoint::kAfterLog, &status) ? status : grpc::Status::OK;
}

grpc::Status FakeServer::StreamUpdate(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::StreamUpdateResponse, v1::StreamUpdateRequest>* stream) {
  v1::StreamUpdateRequest request;
  if (!stream->Read(&request) || !request.has_open()) {
    return Error(grpc::StatusCode::INVALID_ARGUMENT, "open has to come first", "NO_OPEN");
  }
  const v1::StreamUpdateRequest::Open open = request.open();
  v1::StreamUpdateResponse response;
  {
    absl::MutexLock lock(&mu_);
    Entry* entry = nullptr;
    grpc::Status status = Find(open.model(), &entry);
    if (!status.ok() || Hit(FaultPoint::kBeforeOpened, &status)) return status;
    response.mutable_opened()->set_next_producer_sequence(
        entry->next_sequence.try_emplace(open.producer_id(), 1).first->second);
    response.mutable_opened()->set_max_message_bytes(options_.max_message_bytes);
    response.mutable_opened()->set_max_in_flight_rows(options_.max_in_flight_rows);
  }
  stream->Write(response);
  while (stream->Read(&request)) {
    response.Clear();
    v1::StreamUpdateResponse::Ack& ack = *response.mutable_ack();
    {
      absl::MutexLock lock(&mu_);
      Entry* entry = nullptr;
      grpc::Status status = Find(open.model(), &entry);
      if (!status.ok()) return status;
      if (stopping_) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "stopped");
      const std::vector<v1::Sample> samples = Samples(request.batch());
      batches_.push_back(samples.size());
      matrix_batches_ += request.batch().has_matrix() ? 1 : 0;
      if (Hit(FaultPoint::kBeforeLog, &status)) return status;
      const uint64_t next = entry->next_sequence[open.producer_id()];
      if (request.batch().producer_sequence() > next) {
        return Error(grpc::StatusCode::FAILED_PRECONDITION,
                     absl::StrCat("row ", next, " is expected next"), "SEQUENCE_GAP");
      }
      Append(*entry, open.producer_id(), request.batch().producer_sequence(), samples,
             ack.mutable_rejected());
      if (Hit(FaultPoint::kAfterLog, &status)) return status;
      ack.set_next_producer_sequence(request.batch().producer_sequence() + samples.size());
      ack.set_sequence(entry->log.size());
      ack.set_step(entry->log.size());
      ack.set_num_features(entry->log.size());
      ack.mutable_validation()->set_recent_loss(0.25);
      ack.mutable_validation()->set_recent_error_rate(0.125);
      ack.mutable_validation()->set_rows(entry->log.size());
      auto released = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !hold_acks_ || stopping_; };
      mu_.Await(absl::Condition(&released));
      if (stopping_) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "stopped");
    }
    if (!stream->Write(response)) break;
    absl::MutexLock lock(&mu_);
    grpc::Status status;
    if (Hit(FaultPoint::kAfterAck, &status)) return status;
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::Predict(grpc::ServerContext*, const v1::PredictRequest* request,
                                 v1::PredictResponse* response) {
  absl::MutexLock lock(&mu_);
  grpc::Status status;
  if (Hit(FaultPoint::kCall, &status)) return status;
  return Answer(*request, response);
}

grpc::Status FakeServer::StreamPredict(
    grpc::ServerContext*,
    grpc::ServerReaderWriter<v1::StreamPredictResponse, v1::StreamPredictRequest>* stream) {
  v1::StreamPredictRequest request;
  while (stream->Read(&request)) {
    v1::PredictRequest same;
    same.ParseFromString(request.SerializeAsString());  // the fields have the same numbers
    v1::PredictResponse answer;
    {
      absl::MutexLock lock(&mu_);
      grpc::Status status;
      if (Hit(FaultPoint::kBeforeLog, &status)) return status;
      if (status = Answer(same, &answer); !status.ok()) return status;
    }
    v1::StreamPredictResponse response;
    response.ParseFromString(answer.SerializeAsString());
    if (request.has_matrix()) FillColumns(answer, &response);
    if (!stream->Write(response)) break;
    absl::MutexLock lock(&mu_);
    grpc::Status status;
    if (Hit(FaultPoint::kAfterAck, &status)) return status;
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::Answer(const v1::PredictRequest& request, v1::PredictResponse* response) {
  Entry* entry = nullptr;
  if (const grpc::Status status = Find(request.model(), &entry); !status.ok()) return status;
  std::vector<v1::Features> rows(request.instances().begin(), request.instances().end());
  if (request.has_matrix()) {
    v1::UpdateRequest as_update;
    *as_update.mutable_matrix() = request.matrix();
    for (v1::Sample& sample : Samples(as_update)) rows.push_back(sample.features());
  }
  const auto asked = [&](v1::PredictionOutput output) {
    return std::find(request.outputs().begin(), request.outputs().end(), output) !=
           request.outputs().end();
  };
  for (const v1::Features& row : rows) {
    const double score = Sum(row);
    v1::Prediction* prediction = response->add_predictions();
    prediction->add_scores(score);
    if (entry->config.loss().name() == "square") {
      prediction->set_value(2 * score);
      // As if row sums above 10 had no variance.
      if (asked(v1::PREDICTION_OUTPUT_VARIANCE) && score < 10) prediction->set_variance(0.25);
      if (asked(v1::PREDICTION_OUTPUT_PREDICTION_INTERVAL)) {
        prediction->mutable_interval()->set_low(2 * score - 1);
        prediction->mutable_interval()->set_high(2 * score + 1);
      }
      continue;
    }
    prediction->set_label(score > 0 ? "1" : "-1");
    if (!asked(v1::PREDICTION_OUTPUT_PROBABILITIES)) continue;
    const double positive = 1 / (1 + std::exp(-score));
    for (const bool sign : {false, true}) {
      v1::ClassProbability* added = prediction->add_probabilities();
      added->set_label(sign ? "1" : "-1");
      added->set_value(sign ? positive : 1 - positive);
    }
  }
  response->set_step(entry->log.size());
  response->set_sequence(entry->log.size());
  response->set_num_features(entry->log.size());
  response->set_model_uid(absl::StrCat("uid-", request.model()));
  return grpc::Status::OK;
}

grpc::Status FakeServer::Evaluate(grpc::ServerContext*,
                                  grpc::ServerReader<v1::EvaluateRequest>* reader,
                                  v1::EvaluateResponse* response) {
  v1::EvaluateRequest request;
  std::string model;
  uint64_t rows = 0;
  double wrong = 0;
  while (reader->Read(&request)) {
    if (!request.model().empty()) model = request.model();
    for (const v1::Sample& sample : Samples(request)) {
      ++rows;
      wrong += (Sum(sample.features()) > 0) == (sample.value() > 0) ? 0 : 1;
    }
  }
  absl::MutexLock lock(&mu_);
  Entry* entry = nullptr;
  const grpc::Status status = Find(model, &entry);
  if (!status.ok()) return status;
  (*response->mutable_metrics())["error_rate"] = rows > 0 ? wrong / static_cast<double>(rows) : 0;
  v1::ClassMetrics* metrics = response->add_classes();
  metrics->set_label("1");
  metrics->set_weight(static_cast<double>(rows));
  metrics->set_recall(rows > 0 ? 1 - wrong / static_cast<double>(rows) : 0);
  response->set_rows(rows);
  response->set_step(entry->log.size());
  response->set_sequence(entry->log.size());
  return grpc::Status::OK;
}

}  // namespace kernelstream::support
