// A model that does not race, for tests and benchmarks of everything around learning.
#ifndef KERNELSTREAM_TESTS_SUPPORT_ONE_LEARNER_H_
#define KERNELSTREAM_TESTS_SUPPORT_ONE_LEARNER_H_

#include <cstdint>

#include "kernelstream/v1/model.pb.h"

namespace kernelstream::support {

// Logistic, a Gaussian kernel of this bandwidth; all of its features from the first step on, one
// step constant, no learned metric and no replay.
inline v1::ModelConfig OneLearner(uint32_t features, double bandwidth) {
  v1::ModelConfig config;
  config.mutable_loss()->set_name("logistic");
  config.mutable_kernel()->set_name("gaussian");
  (*config.mutable_kernel()->mutable_parameters())["bandwidth"] = bandwidth;
  config.mutable_update_rule()->set_name("proximal");
  (*config.mutable_update_rule()->mutable_parameters())["step_constant"] = 1;
  config.set_input_metric(v1::INPUT_METRIC_OFF);
  config.mutable_replay()->set_ratio(0);
  config.set_max_features(features);
  config.set_block_features(features);
  config.set_warmup_rows(32);
  return config;
}

}  // namespace kernelstream::support

#endif  // KERNELSTREAM_TESTS_SUPPORT_ONE_LEARNER_H_
