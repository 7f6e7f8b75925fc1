// Every kernel of the running server's catalogue learns over a real connection, and refuses rows
// that it is not defined for one by one.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/service/wire_model.h"
#include "tests/support/kernel_rows.h"
#include "tests/support/kernel_settings.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 15;
constexpr size_t kDim = 5, kBatches = 12, kBatchRows = 200;
// In every batch, if the kernel refuses any row.
constexpr uint64_t kRefusedPlace = 7;
// Rows of the unary call.
constexpr size_t kFurtherRows = 32;

void ToWire(const ComponentConfig& kernel, v1::Component* wire) {
  wire->set_name(kernel.name);
  wire->mutable_parameters()->insert(kernel.parameters.begin(), kernel.parameters.end());
  for (const ComponentTerm& term : kernel.terms) {
    v1::Component::Term* added = wire->add_terms();
    if (kernel.name == "sum") added->set_weight(term.weight);
    ToWire(term.component, added->mutable_component());
  }
}

v1::ModelConfig ConfigOf(const ComponentConfig& kernel) {
  v1::ModelConfig config = SmallConfig("square");
  ToWire(kernel, config.mutable_kernel());
  config.mutable_input()->set_dimension(kDim);
  config.set_batch_rows(32);
  return config;
}

v1::Sample SampleOf(const SampleBatch& rows, size_t row) {
  const std::span<const float> x = rows.row(row).values;
  return DenseSample({x.begin(), x.end()}, rows.target(row).value);
}

void ExpectRefused(const v1::RejectedSample& rejected, const std::string& kernel,
                   const std::vector<float>& row) {
  EXPECT_EQ(rejected.status().code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_THAT(rejected.status().message(),
              AllOf(HasSubstr(absl::StrCat("features.dense.values[", kDim - 1, "]")),
                    HasSubstr(absl::StrCat("is ", row.back())),
                    HasSubstr(absl::StrCat("kernel \"", kernel, "\" takes values "))));
}

// Streams rows of the kernel's domain with a refused one in every batch, then sends some more with
// one call. Returns the validation errors of the model over those of the best constant.
double LearnAndRefuse(Connection& server, const std::string& model, const std::string& kernel,
                      const KernelRows& made, const std::vector<float>& refused) {
  StreamSession stream(server, OpenStream(model, "p"));
  stream.Opened();
  size_t row = 0;
  for (size_t b = 0; b < kBatches; ++b) {
    v1::StreamUpdateRequest::Batch batch;
    for (size_t i = 0; i < kBatchRows; ++i) {
      if (i == kRefusedPlace && !refused.empty()) *batch.add_samples() = DenseSample(refused, 1);
      *batch.add_samples() = SampleOf(made.rows, row++);
    }
    EXPECT_TRUE(stream.Send(batch));
  }
  EXPECT_TRUE(stream.Finish().ok());
  uint64_t first = 1;
  for (const v1::StreamUpdateResponse::Ack& ack : stream.acks()) {
    EXPECT_EQ(ack.rejected_size(), refused.empty() ? 0 : 1);
    for (const v1::RejectedSample& rejected : ack.rejected()) {
      EXPECT_EQ(rejected.producer_sequence(), first + kRefusedPlace);
      ExpectRefused(rejected, kernel, refused);
    }
    first = ack.next_producer_sequence();
  }

  v1::UpdateRequest request;
  request.set_model(model);
  request.set_ack(v1::ACK_LEVEL_APPLIED);
  if (!refused.empty()) *request.add_samples() = DenseSample(refused, 1);
  for (size_t i = 0; i < kFurtherRows; ++i) *request.add_samples() = SampleOf(made.rows, row++);
  if (!refused.empty()) *request.add_samples() = DenseSample(refused, 1);
  v1::UpdateResponse response;
  EXPECT_TRUE(server.Update(request, &response).ok());
  EXPECT_EQ(response.rows_accepted(), kFurtherRows);
  if (refused.empty()) {
    EXPECT_EQ(response.rejected_size(), 0);
  } else {
    std::vector<uint64_t> places;
    for (const v1::RejectedSample& rejected : response.rejected()) {
      places.push_back(rejected.producer_sequence());
      ExpectRefused(rejected, kernel, refused);
    }
    EXPECT_THAT(places, ElementsAre(0, kFurtherRows + 1));
  }

  const v1::ModelState state = server.Get(model).state();
  EXPECT_EQ(state.rows_learned(), row);
  EXPECT_EQ(state.rows_rejected(), refused.empty() ? 0 : kBatches + 2);
  return state.validation().recent_squared_error() / made.target_variance;
}

TEST(EveryKernel, LearnsOverRpcAndRefusesRowsOneByOne) {
  InProcessServer server;
  grpc::ClientContext context;
  v1::ListKernelsResponse catalogue;
  ASSERT_TRUE(server->models->ListKernels(&context, v1::ListKernelsRequest(), &catalogue).ok());
  ASSERT_GE(catalogue.kernels_size(), 15);
  int number = 0;
  for (const v1::ComponentInfo& info : catalogue.kernels()) {
    for (const ComponentConfig& setting : KernelSettings(info.name())) {
      SCOPED_TRACE(absl::StrCat(SettingText(setting), ", seed ", kSeed));
      const v1::ModelConfig wire = ConfigOf(setting);
      const std::string model = absl::StrCat("m", ++number);
      const grpc::Status status = server->TryCreate(model, wire);
      ASSERT_TRUE(status.ok())
          << status.error_message()
          << "\nif it needs more than its name, add a setting to tests/support/kernel_settings.h";
      auto config = server::ConfigFromWire(wire);
      ASSERT_TRUE(config.ok() && CompleteConfig(*config).ok());
      const auto kernel = MakeUnitKernel(config->kernel);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const bool terms_decide = !setting.terms.empty();
      EXPECT_TRUE(terms_decide || (info.inputs() == "any") == (*kernel)->takes_any_input());
      const double share = LearnAndRefuse(
          *server.operator->(), model, terms_decide ? setting.terms[0].component.name : info.name(),
          RowsFor(**kernel, kBatches * kBatchRows + kFurtherRows, kDim, kSeed),
          RefusedRow(**kernel, kDim));
      EXPECT_LE(share, 0.5);
      RecordProperty(SettingText(setting), std::to_string(share));
    }
  }
}

TEST(TestPoints, LieInTheDomainOfTheKernel) {
  InProcessServer server;
  v1::ModelConfig config = SmallConfig("square");
  config.mutable_kernel()->set_name("chi2");
  config.mutable_variance()->set_method(v1::VARIANCE_METHOD_TEST_POINTS);
  for (const float value : {1.0f, -3.0f}) {
    v1::TestPoint* point = config.mutable_variance()->add_test_points();
    point->add_values(2);
    point->add_values(value);
  }
  const grpc::Status status = server->TryCreate("m", config);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "config.variance.test_points[1].values[1]");
  EXPECT_THAT(status.error_message(), HasSubstr("kernel \"chi2\" takes values >= 0"));
}

}  // namespace
}  // namespace kernelstream::support
