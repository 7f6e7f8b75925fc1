// Named rows over the wire, from a client to a hashed model and back.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/include/kernelstream/client.h"
#include "core/base/named_input.h"
#include "gtest/gtest.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

// Sunny days are good, rain is bad, and every day has a name of its own.
client::Row Day(int i) {
  const bool sunny = i % 3 != 0;
  client::NamedFeatures named;
  named.numbers = {{"temperature", 0.1 * (i % 7)}, {absl::StrCat("day ", i), 0.1}};
  named.categories = {{"weather", sunny ? "sun" : "rain"}};
  client::Row row;
  row.features = named;
  row.target = sunny ? 1.0 : -1.0;
  return row;
}

client::SparseFeatures AsSparse(const client::Row& row) {
  const auto& named = std::get<client::NamedFeatures>(row.features);
  std::map<uint64_t, float> inputs;
  for (const auto& [name, number] : named.numbers) {
    inputs[NumberIndex(name)] = static_cast<float>(number);
  }
  for (const auto& [name, category] : named.categories) inputs[CategoryIndex(name, category)] = 1;
  client::SparseFeatures sparse;
  for (const auto& [index, value] : inputs) {
    sparse.indices.push_back(index);
    sparse.values.push_back(value);
  }
  return sparse;
}

TEST(HashedModel, LearnsNamedRowsAndPredictsThemAsTheSparseRowsTheyAre) {
  InProcessServer server;
  auto client = client::Client::Connect(server.address());
  ASSERT_TRUE(client.ok()) << client.status();
  client::ModelConfig config;
  config.loss.name = "logistic";
  config.hashed = true;
  config.max_features = 256;
  config.warmup_rows = 64;
  const auto created = (*client)->CreateModel("days", config);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_TRUE(created->model.config.hashed);
  std::vector<client::Row> rows;
  for (int i = 0; i < 512; ++i) rows.push_back(Day(i));
  rows[7].features = client::NamedFeatures{.numbers = {{"temperature", 1e31}}, .categories = {}};
  client::UpdateOptions applied;
  applied.ack = client::AckLevel::kApplied;
  const auto updated = (*client)->Update("days", rows, applied);
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ(updated->rows_accepted, 511u);
  ASSERT_EQ(updated->rejected.size(), 1u);
  EXPECT_TRUE(absl::StrContains(updated->rejected[0].status.message(), "1e+31"))
      << updated->rejected[0].status;

  std::vector<client::Row> named, sparse;
  for (int i = 600; i < 632; ++i) {
    named.push_back(Day(i));
    sparse.push_back(Day(i));
    sparse.back().features = AsSparse(named.back());
  }
  const auto of_named = (*client)->Predict("days", named);
  const auto of_sparse = (*client)->Predict("days", sparse);
  ASSERT_TRUE(of_named.ok() && of_sparse.ok()) << of_named.status() << of_sparse.status();
  for (size_t i = 0; i < named.size(); ++i) {
    EXPECT_EQ(of_named->predictions[i].scores, of_sparse->predictions[i].scores);
    EXPECT_EQ(of_named->predictions[i].label, i % 3 == 0 ? "-1" : "1") << i;
  }
  const std::vector<double> before = of_named->predictions[0].scores;
  server.Restart();
  auto again = client::Client::Connect(server.address());
  const auto after = (*again)->Predict("days", named);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->predictions[0].scores, before);
}

TEST(HashedModel, IsWhatNamedRowsNeed) {
  InProcessServer server;
  auto client = client::Client::Connect(server.address());
  ASSERT_TRUE(client.ok()) << client.status();
  client::ModelConfig config;
  config.loss.name = "logistic";
  ASSERT_TRUE((*client)->CreateModel("dense", config).ok());
  const std::vector<client::Row> rows = {Day(1)};
  const auto predicted = (*client)->Predict("dense", rows);
  EXPECT_TRUE(absl::IsInvalidArgument(predicted.status())) << predicted.status();
  EXPECT_TRUE(absl::StrContains(predicted.status().message(), "input.hashed"))
      << predicted.status();
  config.hashed = true;
  config.dimension = 3;
  const auto both = (*client)->CreateModel("both", config);
  EXPECT_TRUE(absl::IsInvalidArgument(both.status())) << both.status();
}

}  // namespace
}  // namespace kernelstream::support
