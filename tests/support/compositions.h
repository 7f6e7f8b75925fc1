// Sums and products of kernels for tests.
#ifndef KERNELSTREAM_TESTS_SUPPORT_COMPOSITIONS_H_
#define KERNELSTREAM_TESTS_SUPPORT_COMPOSITIONS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/component.h"

namespace kernelstream {

// bandwidth 0: left to the data.
inline ComponentConfig Leaf(const std::string& name, double bandwidth = 0) {
  ComponentConfig config = {name, {}};
  if (bandwidth != 0) config.parameters["bandwidth"] = bandwidth;
  return config;
}

// The part by its name alone, with terms where it takes some.
inline ComponentConfig Named(absl::string_view name) {
  ComponentConfig config = Leaf(std::string(name));
  const bool is_sum = name == "sum";
  if (!is_sum && name != "product") return config;
  config.terms = {{is_sum ? 0.5 : 1.0, Leaf("gaussian")},
                  {is_sum ? 2.0 : 1.0, Leaf(is_sum ? "polynomial" : "laplacian")}};
  return config;
}

// Compositions under one name with every way to make their features: cosines of the inputs or not,
// weights that add up to 1 or not, nested, of inputs with a domain.
inline std::vector<ComponentConfig> Compositions(absl::string_view name) {
  ComponentConfig nested = {"sum", {}, {{2, Leaf("gaussian", 0.7)}, {1, Leaf("cauchy", 2)}}};
  nested.parameters["bandwidth"] = 1.5;
  ComponentConfig smooth = Leaf("matern", 3);
  smooth.parameters["nu"] = 6;
  std::vector<TermList<ComponentTerm>> all;
  if (name == "sum") {
    all = {{{0.5, Leaf("gaussian", 1)}, {2, Leaf("polynomial", 2)}},
           {{1.5, Leaf("gaussian", 0.5)}, {0.25, Leaf("gaussian", 2)}, {0.7, Leaf("laplacian", 3)}},
           {{0.3, Leaf("gaussian", 1)}, {0.7, Leaf("cauchy", 2)}},
           {{0.6, nested}, {1, Leaf("arc_cosine", 1.2)}},
           {{3, Leaf("chi2", 1)}, {1, Leaf("skewed_chi2", 1)}}};
  } else {
    all = {{{1, Leaf("gaussian", 1.3)}, {1, Leaf("laplacian", 4)}},
           {{1, smooth}, {1, smooth}},
           {{1, Leaf("gaussian", 1.3)}, {1, Leaf("polynomial", 2)}, {1, Leaf("cauchy", 3)}},
           {{1, nested}, {1, Leaf("gaussian", 2)}},
           {{1, nested}, {1, Leaf("arc_cosine", 1.2)}},
           {{1, Leaf("intersection", 1)}, {1, Leaf("skewed_chi2", 1)}}};
  }
  std::vector<ComponentConfig> configs;
  for (auto& terms : all) configs.push_back({std::string(name), {}, std::move(terms)});
  return configs;
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_SUPPORT_COMPOSITIONS_H_
