// How often a request allocates, from its bytes to the bytes of its answer. In a program of its
// own: it counts every operator new.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "kernelstream/v1/online_update_service.pb.h"
#include "kernelstream/v1/prediction_service.pb.h"
#include "server/service/append_wire.h"
#include "server/service/predict_job.h"
#include "server/service/wire_bytes.h"
#include "tests/unit/hosting_support.h"

namespace {
std::atomic<size_t> news{0};
}  // namespace

// Not inline: the compiler would see memory of malloc in places where it expects that of new.
[[gnu::noinline]] void* operator new(size_t size) {
  news.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace kernelstream::server {
namespace {

constexpr uint32_t kFewRows = 64, kManyRows = 4096, kDimension = 2;
// Blocks of an arena and columns of text double until they are large enough.
constexpr size_t kDoublings = 12;

v1::SampleMatrix Matrix(uint32_t rows) {
  v1::SampleMatrix matrix;
  matrix.set_rows(rows);
  matrix.set_dimension(kDimension);
  std::vector<float> values(size_t{rows} * kDimension);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.01f * static_cast<float>(i % 97);
  matrix.set_values(values.data(), values.size() * sizeof(float));
  return matrix;
}

grpc::ByteBuffer Bytes(const google::protobuf::Message& message) {
  return SerializeMessage(message);
}

// A host with a regression "m" and a classifier "labels" whose labels are long.
class Allocations : public testing::Test {
 protected:
  Allocations() {
    AppendRequest rows = NumberedRows(1, 64);
    const std::shared_ptr<HostedModel> regression = host_.Create("m");
    EXPECT_TRUE(AppendAndWait(*regression, std::move(rows)).ok());
    host_.Settle(*regression);
    ModelConfig config = SmallConfig();
    config.loss.name = "logistic";
    const std::shared_ptr<HostedModel> classifier = host_.Create("labels", config);
    AppendRequest labelled = NumberedRows(1, 64);
    SampleBatch batch;
    for (size_t i = 0; i < labelled.rows.size(); ++i) {
      batch.AddDense(labelled.rows.row(i).values);
      batch.SetLabel(Label(i));
    }
    labelled.rows = std::move(batch);
    EXPECT_TRUE(AppendAndWait(*classifier, std::move(labelled)).ok());
    host_.Settle(*classifier);
    context_.registry = &host_.registry;
    context_.metrics = &host_.metrics;
    context_.serving = &serving_;
    context_.max_message_bytes = 64 << 20;
    context_.max_pending_rows = 1 << 20;
  }
  ~Allocations() override { serving_.Shutdown(); }

  static std::string Label(size_t i) {
    return absl::StrCat("a label that no short string holds, number ", i % 2);
  }

  // Of one Predict or StreamPredict.
  template <typename Request, typename Response>
  size_t Predict(const std::string& model, uint32_t rows) {
    Request request;
    request.set_model(model);
    *request.mutable_matrix() = Matrix(rows);
    const grpc::ByteBuffer bytes = Bytes(request);
    absl::Status status = absl::UnknownError("no answer");
    size_t answer_bytes = 0;
    absl::Notification done;
    const size_t before = news;
    {
      auto job = std::make_shared<PredictJob<Request, Response>>(
          context_, absl::InfiniteFuture(), [&](absl::StatusOr<grpc::ByteBuffer> answer) {
            status = answer.status();
            if (answer.ok()) answer_bytes = answer->Length();
            done.Notify();
          });
      job->Start(bytes);
      done.WaitForNotification();
    }
    const size_t count = news - before;
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_GT(answer_bytes, rows);
    return count;
  }

  // Of an Update, until its rows are handed to the log.
  size_t Decode(const v1::SampleMatrix& matrix) {
    v1::UpdateRequest request;
    request.set_model("m");
    *request.mutable_matrix() = matrix;
    const grpc::ByteBuffer bytes = Bytes(request);
    const size_t before = news;
    google::protobuf::Arena arena(GrowingBlocks());
    auto& read = *google::protobuf::Arena::CreateMessage<v1::UpdateRequest>(&arena);
    std::vector<uint64_t> bad_labels;
    EXPECT_TRUE(ParseMessage(bytes, 64 << 20, &read, &bad_labels).ok());
    auto rows = DecodeSamples(read.samples(), &read.matrix(), bad_labels, 1 << 20);
    EXPECT_TRUE(rows.ok()) << rows.status();
    BatchShape shape;
    AppendRequest append;
    FillAppend(*std::move(rows), shape, append);
    const size_t count = news - before;
    EXPECT_EQ(append.rows.size(), matrix.rows());
    return count;
  }

  MemoryStore store_;
  Host host_{&store_};
  WorkerPool serving_{1, 16};
  ServiceContext context_;
};

TEST_F(Allocations, OfAPredictDoNotGrowWithItsRows) {
  for (const char* model : {"m", "labels"}) {
    const auto count = [&](uint32_t rows) {
      Predict<v1::PredictRequest, v1::PredictResponse>(model, rows);  // scratch of the threads
      return Predict<v1::PredictRequest, v1::PredictResponse>(model, rows);
    };
    const size_t few = count(kFewRows), many = count(kManyRows);
    // A message holds the text of a long label of its own.
    const size_t texts = std::string(model) == "labels" ? kManyRows - kFewRows : 0;
    EXPECT_LE(many, few + texts + kDoublings) << model;
  }
}

TEST_F(Allocations, OfAStreamPredictDoNotGrowWithItsRows) {
  for (const char* model : {"m", "labels"}) {
    const auto count = [&](uint32_t rows) {
      Predict<v1::StreamPredictRequest, v1::StreamPredictResponse>(model, rows);
      return Predict<v1::StreamPredictRequest, v1::StreamPredictResponse>(model, rows);
    };
    const size_t few = count(kFewRows), many = count(kManyRows);
    EXPECT_LE(many, few + kDoublings) << model;
  }
}

TEST_F(Allocations, OfDecodingAnUpdateDoNotGrowWithItsRows) {
  const auto count = [&](uint32_t rows, bool labels) {
    v1::SampleMatrix matrix = Matrix(rows);
    for (uint32_t i = 0; i < rows; ++i) {
      if (labels) {
        matrix.add_labels(i % 2 == 0 ? "yes" : "no");
      } else {
        matrix.add_targets(i % 7);
      }
    }
    return Decode(matrix);
  };
  EXPECT_LE(count(kManyRows, false), count(kFewRows, false) + kDoublings);
  // The text of labels is in the message one by one, and in the batch all in one.
  EXPECT_LE(count(kManyRows, true), count(kFewRows, true) + 2 * kDoublings);
}

}  // namespace
}  // namespace kernelstream::server
