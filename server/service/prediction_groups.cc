#include "server/service/prediction_groups.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace kernelstream::server {
namespace {

// Of a group, however many wait. With fewer, they are shared out among the threads, but a group
// smaller than the second number wastes what the frequencies cost to read.
constexpr size_t kMostGroupRows = 256, kFewGroupRows = 16;

}  // namespace

bool PredictionGroups::Score(const void* model, Ref<Snapshot> snapshot, const SampleBatch* rows,
                             std::shared_ptr<GroupedRequest> request) {
  absl::MutexLock lock(&mutex_);
  if (waiting_ >= max_waiting_) return false;
  Queue& queue = queues_[model];
  if (queue.running < threads_) {
    if (pool_->Submit([this, model] { Run(model); })) {
      ++queue.running;
    } else if (queue.running == 0) {
      queues_.erase(model);
      return false;
    }
  }
  ++waiting_;
  queue.rows += rows->size();
  queue.waiting.push_back({std::move(snapshot), rows, std::move(request)});
  return true;
}

std::vector<PredictionGroups::Member> PredictionGroups::Take(const void* model) {
  std::vector<Member> unwanted;  // let go of without the lock
  absl::MutexLock lock(&mutex_);
  const auto found = queues_.find(model);
  Queue& queue = found->second;
  const size_t share = (queue.rows + threads_ - 1) / threads_;
  const size_t most = std::clamp(share, kFewGroupRows, kMostGroupRows);
  std::vector<Member> members;
  size_t rows = 0;
  while (!queue.waiting.empty()) {
    Member& first = queue.waiting.front();
    const size_t more = first.rows->size();
    const bool wanted = first.request->Wanted();
    if (wanted && rows + more > most && !members.empty()) break;
    if (wanted) rows += more;
    (wanted ? members : unwanted).push_back(std::move(first));
    queue.waiting.pop_front();
    queue.rows -= more;
    --waiting_;
  }
  if (members.empty() && --queue.running == 0) queues_.erase(found);
  return members;
}

void PredictionGroups::Run(const void* model) {
  std::vector<Member> members = Take(model);
  while (!members.empty()) {
    Evaluate(members);
    members.clear();
    if (pool_->Requeue([this, model] { Run(model); })) return;
    members = Take(model);  // the pool is ending
  }
}

void PredictionGroups::Evaluate(const std::vector<Member>& members) {
  const absl::Time begun = absl::Now();
  const Ref<Snapshot> snapshot = std::ranges::max_element(members, {}, [](const Member& m) {
                                   return m.snapshot->step();
                                 })->snapshot;
  SampleBatch together;
  if (members.size() > 1) {
    size_t rows = 0, values = 0;
    for (const Member& member : members) {
      rows += member.rows->size();
      for (size_t i = 0; i < member.rows->size(); ++i) values += member.rows->row(i).values.size();
    }
    together.Reserve(rows, values);
    for (const Member& member : members) {
      for (size_t i = 0; i < member.rows->size(); ++i) together.AppendRow(*member.rows, i);
    }
  }
  const SampleBatch& rows = members.size() > 1 ? together : *members[0].rows;
  const size_t outputs = snapshot->num_outputs();
  std::vector<double> scores(rows.size() * outputs);
  snapshot->Score(rows, *pool_, scores.data());
  const absl::Duration each = (absl::Now() - begun) / static_cast<int64_t>(members.size());
  size_t begin = 0;
  for (const Member& member : members) {
    const size_t count = member.rows->size() * outputs;
    member.request->Scored({snapshot, std::span(scores).subspan(begin, count), begun, each});
    begin += count;
  }
}

}  // namespace kernelstream::server
