// The settings of each kernel of the registry that tests go through.
#ifndef KERNELSTREAM_TESTS_SUPPORT_KERNEL_SETTINGS_H_
#define KERNELSTREAM_TESTS_SUPPORT_KERNEL_SETTINGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/component.h"
#include "tests/support/compositions.h"

namespace kernelstream {

// Models with nothing but these learn what RowsFor() (kernel_rows.h) makes. A kernel by its name
// alone unless it is listed here; one that needs more than a name has to be. Bandwidths are left
// to the data.
inline std::vector<ComponentConfig> KernelSettings(absl::string_view kernel) {
  const std::string name(kernel);
  if (name == "matern") {
    return {Leaf(name), {name, {{"nu", 0.5}}}, {name, {{"nu", 0.15}}}, {name, {{"nu", 30}}}};
  }
  if (name == "dot_product") {
    return {Leaf(name),
            {name, {{"function", 1}}},
            {name, {{"function", 2}}},
            {name, {{"function", 2}, {"a0", 0.5}, {"a2", 0}, {"a3", 0.25}}}};
  }
  if (name == "polynomial") {
    return {Leaf(name), {name, {{"degree", 3}}}, {name, {{"degree", 2}, {"sketch", 1}}}};
  }
  if (name == "skewed_chi2" || name == "skewed_intersection") {
    return {Leaf(name), {name, {{"offset", 0.5}}}};
  }
  if (name == "arc_cosine") {
    return {Leaf(name), {name, {{"order", 0}}}, {name, {{"order", 2}}}};
  }
  if (name == "sum") {
    const ComponentConfig product = {
        "product", {}, {{1, Leaf("gaussian")}, {1, Leaf("polynomial")}}};
    return {Named(name),
            {name, {}, {{1, Leaf("laplacian")}, {0.5, product}}},
            {name, {}, {{2, Leaf("chi2")}, {1, Leaf("skewed_chi2")}}}};
  }
  if (name == "product") {
    const ComponentConfig sum = {
        "sum", {}, {{1, Leaf("gaussian")}, {0.5, {"arc_cosine", {{"order", 1}}}}}};
    return {Named(name),
            {name, {}, {{1, sum}, {1, Leaf("laplacian")}}},
            {name, {}, {{1, Leaf("intersection")}, {1, Leaf("skewed_chi2")}}}};
  }
  return {Named(name)};
}

// Settings whose features vary more than a model with nothing but these can learn from.
inline std::vector<ComponentConfig> WildKernelSettings(absl::string_view kernel) {
  const std::string name(kernel);
  if (name == "dot_product") {
    return {{name, {{"function", 2}, {"a0", 0.1}, {"a1", 0}, {"a4", 0.5}, {"a5", 0.25}}}};
  }
  if (name == "polynomial") {
    return {{name, {{"degree", 4}}},
            {name, {{"degree", 4}, {"sketch", 0}}},
            {name, {{"degree", 5}}},
            {name, {{"degree", 7}, {"offset", 0.25}}},
            {name, {{"degree", 8}}}};
  }
  if (name == "arc_cosine") return {{name, {{"order", 3}}}};
  return {};
}

// For tests of values and features: both of these, and compositions with every way to make their
// features.
inline std::vector<ComponentConfig> FeatureSettings(absl::string_view kernel) {
  std::vector<ComponentConfig> settings = KernelSettings(kernel);
  for (ComponentConfig& wild : WildKernelSettings(kernel)) settings.push_back(std::move(wild));
  if (kernel != "sum" && kernel != "product") return settings;
  for (ComponentConfig& config : Compositions(kernel)) settings.push_back(std::move(config));
  return settings;
}

// "dot_product function=1".
inline std::string SettingText(const ComponentConfig& kernel) {
  std::string text = kernel.name;
  for (const auto& [name, value] : kernel.parameters) absl::StrAppend(&text, " ", name, "=", value);
  if (kernel.terms.empty()) return text;
  absl::StrAppend(&text, " (");
  for (size_t i = 0; i < kernel.terms.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : " + ", kernel.terms[i].weight, " ",
                    SettingText(kernel.terms[i].component));
  }
  return text + ")";
}

}  // namespace kernelstream

#endif  // KERNELSTREAM_TESTS_SUPPORT_KERNEL_SETTINGS_H_
