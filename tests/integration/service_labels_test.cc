// Labels that a model has no room for are refused at the door, over a real connection.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

using ::testing::HasSubstr;

v1::Sample LabelledSample(uint64_t number, const std::string& label) {
  v1::Sample sample = NumberedSample(number);
  sample.set_label(label);
  return sample;
}

// Labels are discovered as they appear, and there is room for three.
TEST(MaxLabels, ALabelTooManyHarmsItsRowOnly) {
  InProcessServer server;
  v1::ModelConfig config = SmallConfig("softmax");
  config.set_max_labels(3);
  const char* labels[] = {"a", "b", "c"};
  constexpr uint64_t kRows = 320;
  v1::UpdateRequest clean, poisoned;
  clean.set_model("clean");
  poisoned.set_model("poisoned");
  for (v1::UpdateRequest* request : {&clean, &poisoned}) {
    request->set_ack(v1::ACK_LEVEL_APPLIED);
    server->Create(request->model(), config);
  }
  std::vector<uint64_t> refused;
  for (uint64_t i = 0; i < kRows; ++i) {
    if (i % 80 == 7) {  // among the rows of the warm-up, and later
      refused.push_back(static_cast<uint64_t>(poisoned.samples_size()));
      *poisoned.add_samples() = LabelledSample(1000 + i, "d");
    }
    *clean.add_samples() = LabelledSample(1 + i, labels[i % 3]);
    *poisoned.add_samples() = LabelledSample(1 + i, labels[i % 3]);
  }
  ASSERT_EQ(refused.size(), 4u);
  v1::UpdateResponse response;
  ASSERT_EQ(server->Update(clean, &response).error_message(), "");
  EXPECT_EQ(response.rejected_size(), 0);
  ASSERT_EQ(server->Update(poisoned, &response).error_message(), "");
  EXPECT_EQ(response.rows_accepted(), kRows);
  ASSERT_EQ(static_cast<size_t>(response.rejected_size()), refused.size());
  for (int i = 0; i < response.rejected_size(); ++i) {
    const v1::RejectedSample& rejected = response.rejected(i);
    const uint64_t row = refused[static_cast<size_t>(i)];
    EXPECT_EQ(rejected.producer_sequence(), row);
    EXPECT_EQ(rejected.status().code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(rejected.status()), absl::StrCat("samples[", row, "].label"));
    EXPECT_THAT(rejected.status().message(),
                HasSubstr("label \"d\" would be number 4; the model has room for max_labels = 3"));
  }

  // Alone, after everything is learned.
  v1::UpdateRequest alone;
  alone.set_model("poisoned");
  *alone.add_samples() = LabelledSample(1, "d");
  const grpc::Status status = server->Update(alone, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "samples[0].label");
  EXPECT_THAT(status.error_message(), HasSubstr("would be number 4; the model has room for"));

  const v1::ModelState want = server->Get("clean").state();
  const v1::ModelState got = server->Get("poisoned").state();
  EXPECT_EQ(got.rows_learned(), kRows);
  EXPECT_EQ(got.rows_rejected(), refused.size() + 1);
  EXPECT_EQ(got.fingerprint(), want.fingerprint());
}

}  // namespace
}  // namespace kernelstream::support
