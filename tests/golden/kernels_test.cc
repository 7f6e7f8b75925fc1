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

// Our parameters for those of the file.
ComponentConfig Config(const std::string& kernel, const Json& from) {
  ComponentConfig config = {.name = kernel, .parameters = {}};
  ParameterMap& to = config.parameters;
  for (const auto& [name, value] : from.items()) {
    if (name == "sigma" || name == "ell" || name == "lambda") {
      to["bandwidth"] = value;
    } else if (name == "beta") {
      to["bandwidth"] = 1 / (value.get<double>() * value.get<double>());
    } else if (name == "weight") {
      to["bandwidth"] = 1 / value.get<double>();
    } else if (name == "n") {
      to["order"] = value;
    } else if (name == "p") {
      to["degree"] = value;
    } else if (name == "c") {
      to["offset"] = value;
    } else if (name == "f") {
      to["function"] = value == "exp" ? 0 : value == "geometric" ? 1 : 2;
      to["radius"] = 0.999;
    } else if (name == "arg" && value.is_array()) {
      for (size_t n = 0; n < value.size(); ++n) to["a" + std::to_string(n)] = value[n];
    } else if (name == "arg") {
      to["bandwidth"] = std::sqrt(value.get<double>());
    } else if (name != "taylor") {
      to[name] = value;
    }
  }
  to.emplace("bandwidth", 1.0);
  const auto complete = CompleteKernel(config);
  EXPECT_TRUE(complete.ok()) << complete.status();
  return *complete;
}

TEST(Kernels, EqualTheTableWithinTwelveDigits) {
  std::ifstream file(KERNELSTREAM_GOLDEN_DATA "/kernels.json");
  const Json data = Json::parse(file);
  int compared = 0;
  for (const KernelEntry& entry : KernelRegistry()) {
    const std::string name(entry.doc.name);
    if (!data.at("kernels").contains(name)) continue;
    ++compared;
    const Json& table = data.at("kernels").at(name);
    const Json& points = data.at("points").at(table.at("domain").get<std::string>());
    for (const Json& setting : table.at("settings")) {
      const auto kernel = MakeKernel(Config(name, setting.at("params")));
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      for (const auto& [dimension, values] : setting.at("k").items()) {
        ASSERT_EQ(values.size(), 5u);
        for (size_t i = 0; i < values.size(); ++i) {
          const std::vector<double> x = points.at(dimension)[i][0], y = points.at(dimension)[i][1];
          const double expected = values[i];
          // Opposite directions: the arc-cosine kernel vanishes, its error does not.
          const double absolute = name == "arc_cosine" ? 1e-14 * (1 + std::abs(expected)) : 0;
          EXPECT_NEAR((*kernel)->Evaluate(x, y), expected, 1e-12 * std::abs(expected) + absolute)
              << name << " " << setting.at("params") << " d = " << dimension << " pair " << i;
        }
      }
    }
  }
  EXPECT_EQ(compared, 15);
}

// Where s^nu underflows the kernel is not 1 yet. Values of 1 - k computed in 60 digits; s is
// sqrt(2 nu) |x - x'| / bandwidth.
TEST(Matern, IsSmoothDownToTheSmallestDistances) {
  struct Row {
    double nu, s, rest;
  };
  const Row rows[] = {
      {31.25, 0x1p-32, 4.4801742664690265868e-22}, {31.25, 0x1p-20, 7.5164851386192124211e-15},
      {100, 1e-3, 2.5252525220315399966e-9},       {100, 1e-2, 2.5252522031540166451e-7},
      {100, 0.03125, 2.4660638474234813007e-6},    {1000, 1e-3, 2.5025025021890629145e-10},
      {1000, 0.25, 0.000015640518203900487125},    {1000, 0.4375, 0.000047898313651626989713},
      {1000, 0.5, 0.000062560603605420953562},     {1000, 0.5625, 0.000079177605390101627452},
      {1000, 4, 0.0039959906680526783656},         {1000, 60, 0.59363144715153572985},
  };
  for (const auto& [nu, s, rest] : rows) {
    const auto kernel = MakeKernel({"matern", {{"nu", nu}, {"bandwidth", std::sqrt(2 * nu)}}});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const double k = (*kernel)->Evaluate(std::vector<double>{0}, std::vector<double>{s});
    EXPECT_NEAR(k, 1 - rest, 1e-11 * (1 - rest)) << nu << " " << s;
  }
}

}  // namespace
}  // namespace kernelstream
