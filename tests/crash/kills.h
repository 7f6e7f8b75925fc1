// Models of a server that is killed again and again while rows stream into them with DURABLE acks,
// and the same models undisturbed.
#ifndef KERNELSTREAM_TESTS_CRASH_KILLS_H_
#define KERNELSTREAM_TESTS_CRASH_KILLS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/include/kernelstream/client.h"
#include "gtest/gtest.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {

// Rows of one mini-batch of SmallConfig.
inline constexpr uint64_t kBatchRows = 16;

// A model and its stream.
struct Subject {
  std::string name;
  v1::ModelConfig config;
  // Row `number`, from 1 on; the same whenever it is asked for.
  std::function<client::Row(uint64_t number)> row;
  // What is predicted at the end; empty: the default outputs.
  std::vector<v1::PredictionOutput> outputs;
};

// A model after all rows.
struct Outcome {
  v1::ModelState state;
  v1::PredictResponse predictions;  // of 64 inputs
};

struct KillPlan {
  uint64_t kills = 0;  // servers that SIGKILL ended
  uint64_t seed = 0;   // of the moments, and of the sizes of what is sent
  uint64_t rows = 0;   // of each subject; full mini-batches
};

// Two inputs from NumberedSample, with its class as target.
client::Row NumberedRow(uint64_t number);

// Streams all rows into all subjects of one server at once, through kill -9 at random moments. One
// stop in four begins with SIGTERM: half of these are killed soon after, so that some kills come
// while state is saved, and half may end, so that some starts are from saved state. What ended by
// itself is no kill, and another one is made for it. Fails the test if a row is lost, refused or
// learned twice, or if another restart at the end changes anything.
std::vector<Outcome> StreamThroughKills(const std::vector<Subject>& subjects, const KillPlan& plan);

// The same rows into a server that runs on.
std::vector<Outcome> StreamUndisturbed(const std::vector<Subject>& subjects, uint64_t rows);

// Bits of coefficients, and everything that is reported and predicted.
void ExpectEqual(const Outcome& outcome, const Outcome& expected);

// KERNELSTREAM_KILLS: kills per test, 20 by default. KERNELSTREAM_SEED: of the moments; printed.
class KillTest : public testing::Test {
 protected:
  void SetUp() override;
  uint64_t kills_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace kernelstream::support

#endif  // KERNELSTREAM_TESTS_CRASH_KILLS_H_
