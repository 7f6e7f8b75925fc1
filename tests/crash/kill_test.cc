// One model with default settings under kill -9.
#include "tests/crash/kills.h"

namespace kernelstream::support {
namespace {

uint64_t RowsFor(uint64_t kills) { return kBatchRows * (100 + 20 * kills); }

// Only full mini-batches are cut, so the model is a function of the rows alone.
TEST_F(KillTest, NoAcknowledgedRowIsLostNoneIsLearnedTwiceAndTheModelIsTheUndisturbedOne) {
  const std::vector<Subject> subjects = {{"m", SmallConfig("logistic"), NumberedRow, {}}};
  const KillPlan plan = {kills_, seed_, RowsFor(kills_)};
  const std::vector<Outcome> outcomes = StreamThroughKills(subjects, plan);
  ExpectEqual(outcomes[0], StreamUndisturbed(subjects, plan.rows)[0]);
}

// Cuts come by time too and are log records of their own: each row is still learned once.
TEST_F(KillTest, TimedCutsLoseAndDoubleNothingEither) {
  v1::ModelConfig config = SmallConfig("logistic");
  config.mutable_max_batch_delay()->set_seconds(0);
  config.mutable_max_batch_delay()->set_nanos(2'000'000);
  StreamThroughKills({{"m", config, NumberedRow, {}}}, {kills_, seed_, RowsFor(kills_)});
}

}  // namespace
}  // namespace kernelstream::support
