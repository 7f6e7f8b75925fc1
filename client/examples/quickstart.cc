// Five minutes with the C++ client: create a model, stream rows into it, ask it for predictions.
// Run against a server: quickstart --address localhost:50051
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernelstream/client.h"

namespace ks = kernelstream::client;

namespace {

constexpr char kModel[] = "quickstart";
constexpr int kRows = 20000;
constexpr int kRowsPerSend = 100;

// Two inputs from -1 to 1; the target is 1 inside a ring that no straight line can cut out. A Weyl
// sequence: evenly spread, the same in every run.
ks::Row MakeRow(int i) {
  const float x = static_cast<float>(2 * std::fmod(0.754877666 * i, 1.0) - 1);
  const float y = static_cast<float>(2 * std::fmod(0.569840291 * i, 1.0) - 1);
  const double radius = std::hypot(x, y);
  ks::Row row;
  row.features = ks::DenseFeatures{{x, y}};
  row.target = radius > 0.4 && radius < 0.8 ? 1.0 : -1.0;
  return row;
}

absl::Status Run(const std::string& address) {
  // 1. Connect. Every call says what went wrong in its status.
  absl::StatusOr<std::unique_ptr<ks::Client>> client = ks::Client::Connect(address);
  if (!client.ok()) return client.status();

  // 2. A model needs a name and a loss; the server chooses the rest from the first rows.
  ks::ModelConfig config;
  config.loss.name = "logistic";
  absl::StatusOr<ks::CreatedModel> created = (*client)->CreateModel(kModel, config);
  if (!created.ok()) return created.status();
  std::printf("model %s is %s\n", kModel, created->created ? "new" : "there already");

  // 3. Stream labelled rows. The stream reconnects by itself and learns every row once. Under a
  // producer id a second run goes on where the first one ended.
  ks::StreamOptions options;
  options.producer_id = "quickstart";
  options.ack = ks::AckLevel::kApplied;
  absl::StatusOr<std::unique_ptr<ks::UpdateStream>> stream =
      (*client)->OpenUpdateStream(kModel, options);
  if (!stream.ok()) return stream.status();
  for (int first = static_cast<int>((*stream)->next_row()); first <= kRows; first += kRowsPerSend) {
    std::vector<ks::Row> rows;
    for (int i = first; i < first + kRowsPerSend && i <= kRows; ++i) rows.push_back(MakeRow(i));
    if (absl::Status status = (*stream)->Send(rows); !status.ok()) return status;
  }
  const ks::UpdateSummary summary = (*stream)->Close();
  if (!summary.status.ok()) return summary.status;
  std::printf("learned %llu rows in this run\n",
              static_cast<unsigned long long>(summary.rows_accepted));

  // 4. Predict. The points lie in the middle, in the ring, and outside.
  const std::vector<float> points = {0.0f, 0.0f, 0.6f, 0.0f, 0.95f, 0.9f};
  ks::PredictOptions wanted;
  wanted.outputs = {ks::PredictionOutput::kLabel, ks::PredictionOutput::kProbabilities};
  absl::StatusOr<ks::PredictResult> result =
      (*client)->Predict(kModel, ks::Matrix{.rows = 3, .dimension = 2, .values = points}, wanted);
  if (!result.ok()) return result.status();
  for (size_t i = 0; i < result->predictions.size(); ++i) {
    const ks::Prediction& prediction = result->predictions[i];
    std::printf("(%5.2f, %5.2f) -> label %s", points[2 * i], points[2 * i + 1],
                prediction.label.c_str());
    for (const ks::ClassProbability& probability : prediction.probabilities) {
      std::printf("  P(%s) = %.3f", probability.label.c_str(), probability.value);
    }
    std::printf("\n");
  }
  std::printf("predicted by step %llu with %llu random features\n",
              static_cast<unsigned long long>(result->step),
              static_cast<unsigned long long>(result->num_features));
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  std::string address = "localhost:50051";
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--address") == 0) address = argv[i + 1];
  }
  const absl::Status status = Run(address);
  if (!status.ok()) std::fprintf(stderr, "quickstart: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
