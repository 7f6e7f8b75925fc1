// Exact kernels against values computed in high precision (data/kernels.json).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/kernel/kernel.h"

namespace kernelstream {
namespace {

using Json = nlohmann::json;

// Our parameter names for those of the file.
ParameterMap Parameters(const Json& from) {
  ParameterMap parameters;
  for (const auto& [name, value] : from.items()) {
    parameters[name == "sigma" ? "bandwidth" : name] = value;
  }
  return parameters;
}

TEST(Kernels, EqualTheTableWithinTwelveDigits) {
  std::ifstream file(KERNELSTREAM_GOLDEN_DATA "/kernels.json");
  const Json data = Json::parse(file);
  for (const KernelEntry& entry : KernelRegistry()) {
    const std::string name(entry.doc.name);
    const Json& table = data.at("kernels").at(name);
    const Json& points = data.at("points").at(table.at("domain").get<std::string>());
    for (const Json& setting : table.at("settings")) {
      const auto kernel = MakeKernel({name, Parameters(setting.at("params"))});
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      for (const auto& [dimension, values] : setting.at("k").items()) {
        ASSERT_EQ(values.size(), 5u);
        for (size_t i = 0; i < values.size(); ++i) {
          const std::vector<double> x = points.at(dimension)[i][0], y = points.at(dimension)[i][1];
          const double expected = values[i];
          EXPECT_NEAR((*kernel)->Evaluate(x, y), expected, 1e-12 * std::abs(expected))
              << name << " " << setting.at("params") << " d = " << dimension << " pair " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kernelstream
