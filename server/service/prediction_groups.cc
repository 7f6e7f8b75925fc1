#include "server/service/prediction_groups.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace kernelstream::server {
namespace {

constexpr size_t kRowsPerGroup = 256;
// Of one model.
constexpr size_t kMaxWaiting = 4096;

}  // namespace

bool PredictionGroups::Score(const void* model, Ref<Snapshot> snapshot, const SampleBatch* rows,
                             Done done) {
  absl::MutexLock lock(&mutex_);
  Queue& queue = queues_[model];
  if (queue.waiting.size() >= kMaxWaiting) return false;
  queue.waiting.push_back({std::move(snapshot), rows, std::move(done)});
  if (queue.running >= threads_) return true;
  if (pool_->Submit([this, model] { Run(model); })) {
    ++queue.running;
    return true;
  }
  if (queue.running > 0) return true;  // that task will come to it
  queues_.erase(model);
  return false;
}

std::vector<PredictionGroups::Member> PredictionGroups::Take(const void* model) {
  absl::MutexLock lock(&mutex_);
  const auto found = queues_.find(model);
  Queue& queue = found->second;
  std::vector<Member> members;
  for (size_t rows = 0; !queue.waiting.empty(); queue.waiting.pop_front()) {
    rows += queue.waiting.front().rows->size();
    if (rows > kRowsPerGroup && !members.empty()) break;
    members.push_back(std::move(queue.waiting.front()));
  }
  if (members.empty() && --queue.running == 0) queues_.erase(found);
  return members;
}

void PredictionGroups::Run(const void* model) {
  std::vector<Member> members = Take(model);
  while (!members.empty()) {
    Evaluate(std::move(members));
    // Other models come in between, if they wait.
    if (pool_->Submit([this, model] { Run(model); })) return;
    members = Take(model);
  }
}

void PredictionGroups::Evaluate(std::vector<Member> members) {
  const absl::Time begun = absl::Now();
  const Ref<Snapshot> snapshot = std::ranges::max_element(members, {}, [](const Member& m) {
                                   return m.snapshot->step();
                                 })->snapshot;
  SampleBatch together;
  if (members.size() > 1) {
    for (const Member& member : members) {
      for (size_t i = 0; i < member.rows->size(); ++i) together.AppendRow(*member.rows, i);
    }
  }
  const SampleBatch& rows = members.size() > 1 ? together : *members[0].rows;
  const size_t outputs = snapshot->num_outputs();
  std::vector<double> scores(rows.size() * outputs);
  snapshot->Score(rows, *pool_, scores.data());
  size_t begin = 0;
  for (Member& member : members) {
    const size_t count = member.rows->size() * outputs;
    member.done({snapshot, std::span(scores).subspan(begin, count), begun});
    begin += count;
  }
}

}  // namespace kernelstream::server
