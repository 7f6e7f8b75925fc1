// Predictions of a model so large that requests are evaluated together: each is answered as if it
// were alone.
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/one_learner.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

// One row is too much work for the thread that its call came on (IsSmall).
v1::ModelConfig LargeConfig() { return OneLearner(1 << 19, 1); }

v1::PredictRequest RequestOf(uint64_t number) {
  v1::PredictRequest request;
  request.set_model("m");
  for (uint64_t i = 0; i <= number % 3; ++i) {
    *request.add_instances() = NumberedSample(1000 + 3 * number + i).features();
  }
  for (const auto output : {v1::PREDICTION_OUTPUT_SCORE, v1::PREDICTION_OUTPUT_LABEL,
                            v1::PREDICTION_OUTPUT_PROBABILITIES}) {
    request.add_outputs(output);
  }
  return request;
}

TEST(LargeModel, RequestsAtOnceAreAnsweredAsIfAlone) {
  constexpr uint64_t kThreads = 8, kCalls = 12;
  InProcessServer server;
  server->Create("m", LargeConfig());
  v1::UpdateRequest update;
  update.set_model("m");
  for (const v1::Sample& row : NumberedSamples(1, 96)) *update.add_samples() = row;
  v1::UpdateResponse updated;
  ASSERT_TRUE(server->Update(update, &updated).ok());
  server->WaitForSequence("m", 96);

  std::vector<std::string> expected;
  for (uint64_t i = 0; i < kThreads * kCalls; ++i) {
    v1::PredictResponse response;
    ASSERT_TRUE(server->Predict(RequestOf(i), &response).ok());
    EXPECT_EQ(response.predictions_size(), static_cast<int>(1 + i % 3));
    expected.push_back(response.SerializeAsString());
  }
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = t * kCalls; i < (t + 1) * kCalls; ++i) {
        v1::PredictResponse response;
        if (i % 4 == 3) {  // a caller that does not wait for it
          grpc::ClientContext context;
          context.set_deadline(std::chrono::system_clock::now() + std::chrono::microseconds(300));
          server->predictions->Predict(&context, RequestOf(i), &response);
        }
        v1::PredictRequest request = RequestOf(i);
        const bool bad = i % 5 == 4;
        if (bad) request.mutable_instances(0)->mutable_dense()->add_values(7);
        const grpc::Status status = server->Predict(request, &response);
        EXPECT_EQ(status.error_code(),
                  bad ? grpc::StatusCode::INVALID_ARGUMENT : grpc::StatusCode::OK)
            << status.error_message();
        if (!bad) {
          EXPECT_EQ(response.SerializeAsString(), expected[i]);
        }
      }
    });
  }
  // Columns, beside them.
  std::vector<v1::Sample> rows;
  for (uint64_t i = 0; i < 3; ++i) rows.push_back(NumberedSample(1000 + 3 * 2 + i));
  v1::PredictResponse alone;
  ASSERT_TRUE(alone.ParseFromString(expected[2]));
  for (int i = 0; i < 20; ++i) {
    PredictSession stream(*server.operator->());
    v1::StreamPredictRequest request;
    request.set_model("m");
    *request.mutable_matrix() = AsMatrix(rows, /*with_targets=*/false);
    stream.Send(request);
    const auto response = stream.Read();
    ASSERT_TRUE(response.has_value());
    ASSERT_EQ(response->matrix().scores_size(), 3);
    for (int row = 0; row < 3; ++row) {
      EXPECT_EQ(response->matrix().scores(row), alone.predictions(row).scores(0));
    }
    EXPECT_TRUE(stream.Finish().ok());
  }
  for (std::thread& thread : threads) thread.join();
}

// Inputs far beyond the dimension make a row costly; those beside it do not pay for it, and it does
// not change them.
TEST(LargeModel, AWideRowIsAnsweredBesideOthers) {
  const auto row = [](uint64_t number, uint64_t index) {
    v1::Sample sample;
    v1::SparseVector& sparse = *sample.mutable_features()->mutable_sparse();
    sparse.add_indices(number % 4);
    sparse.add_values(1);
    sparse.add_indices(index);
    sparse.add_values(0.5f);
    sample.set_value(number % 2 == 0 ? 1 : -1);
    return sample;
  };
  const auto request_of = [&](uint64_t number, bool wide) {
    v1::PredictRequest request;
    request.set_model("m");
    *request.add_instances() = row(number, wide ? 60000 : 5).features();
    request.add_outputs(v1::PREDICTION_OUTPUT_SCORE);
    return request;
  };
  InProcessServer server;
  server->Create("m", LargeConfig());
  v1::UpdateRequest update;
  update.set_model("m");
  for (uint64_t i = 0; i < 96; ++i) *update.add_samples() = row(i, 5);
  v1::UpdateResponse updated;
  const grpc::Status taken = server->Update(update, &updated);
  ASSERT_TRUE(taken.ok()) << taken.error_message();
  server->WaitForSequence("m", 96);
  std::vector<std::string> expected;
  for (uint64_t i = 0; i < 8; ++i) {
    v1::PredictResponse response;
    ASSERT_TRUE(server->Predict(request_of(i % 4, i >= 4), &response).ok());
    expected.push_back(response.SerializeAsString());
  }
  EXPECT_NE(expected[0], expected[4]);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const bool wide = t >= 6;
      for (uint64_t i = 0; i < (wide ? 3 : 12); ++i) {
        v1::PredictResponse response;
        const grpc::Status status = server->Predict(request_of(i % 4, wide), &response);
        EXPECT_TRUE(status.ok()) << status.error_message();
        EXPECT_EQ(response.SerializeAsString(), expected[i % 4 + (wide ? 4 : 0)]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace kernelstream::support
