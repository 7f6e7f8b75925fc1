#include <algorithm>
#include <cctype>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/print.h"

namespace kernelstream::client {
namespace {

constexpr size_t kColumns = 100;

// Neighbours that differ in their names only.
std::vector<std::span<const ParameterInfo>> Groups(const std::vector<ParameterInfo>& parameters) {
  std::vector<std::span<const ParameterInfo>> groups;
  const auto alike = [](const ParameterInfo& a, const ParameterInfo& b) {
    return a.documentation == b.documentation && a.min == b.min && a.max == b.max &&
           a.default_value == b.default_value;
  };
  for (size_t first = 0, i = 1; i <= parameters.size(); ++i) {
    if (i < parameters.size() && alike(parameters[first], parameters[i])) continue;
    groups.push_back(std::span(parameters).subspan(first, i - first));
    first = i;
  }
  return groups;
}

// `text` between a margin and the last column, broken at spaces.
std::string Wrapped(absl::string_view text, size_t margin) {
  std::string out;
  size_t column = kColumns + 1;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (column + 1 + word.size() > kColumns) {
      absl::StrAppend(&out, out.empty() ? "" : "\n", std::string(margin, ' '), word);
      column = margin + word.size();
    } else {
      absl::StrAppend(&out, " ", word);
      column += 1 + word.size();
    }
  }
  return out.empty() ? out : out + "\n";
}

// For a cell of a table.
std::string Escaped(absl::string_view text) {
  std::string out;
  const auto in_word = [&](size_t i) { return i < text.size() && std::isalnum(text[i]) != 0; };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool underscore = c == '_' && !(i > 0 && in_word(i - 1) && in_word(i + 1));
    if (underscore || c == '|' || c == '<' || c == '*') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string ParametersCell(const ComponentInfo& info) {
  std::vector<std::string> cells;
  for (const std::span<const ParameterInfo> group : Groups(info.parameters)) {
    std::vector<std::string> names;
    for (const ParameterInfo& parameter : group) {
      names.push_back(absl::StrCat("`", parameter.name, "`"));
    }
    const std::optional<double> value = group[0].default_value;
    cells.push_back(absl::StrCat(absl::StrJoin(names, " "), " (",
                                 value ? Number(*value) : "from the data", ")"));
  }
  return absl::StrJoin(cells, ", ");
}

}  // namespace

std::string CatalogueText(const std::vector<ComponentInfo>& infos) {
  std::string text;
  std::set<std::pair<std::string, std::string>> explained;
  for (const ComponentInfo& info : infos) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", info.name, "\n",
                    Wrapped(info.documentation, 2));
    if (!info.inputs.empty()) absl::StrAppend(&text, "  inputs: ", info.inputs, "\n");
    if (!info.kernels.empty()) {
      absl::StrAppend(&text, Wrapped("kernels: " + absl::StrJoin(info.kernels, ", "), 2));
    }
    for (const std::span<const ParameterInfo> group : Groups(info.parameters)) {
      const ParameterInfo& parameter = group[0];
      const std::string names = absl::StrJoin(
          group, ", ",
          [](std::string* out, const ParameterInfo& one) { absl::StrAppend(out, one.name); });
      absl::StrAppend(&text, "  ", names, " (", Number(parameter.min), " to ",
                      Number(parameter.max), ", default: ",
                      parameter.default_value ? Number(*parameter.default_value)
                                              : "chosen from the warm-up rows",
                      ")\n");
      if (explained.emplace(names, parameter.documentation).second) {
        absl::StrAppend(&text, Wrapped(parameter.documentation, 6));
      }
    }
  }
  return text;
}

std::string CatalogueMarkdown(absl::string_view head, absl::string_view about,
                              const std::vector<ComponentInfo>& infos) {
  struct Column {
    std::string head;
    std::string (*cell)(const ComponentInfo& info);
  };
  const Column columns[] = {
      {std::string(head), [](const ComponentInfo& info) { return "`" + info.name + "`"; }},
      {std::string(about), [](const ComponentInfo& info) { return Escaped(info.documentation); }},
      {"inputs", [](const ComponentInfo& info) { return Escaped(info.inputs); }},
      {"kernels",
       [](const ComponentInfo& info) { return Escaped(absl::StrJoin(info.kernels, ", ")); }},
      {"parameters (default)", &ParametersCell}};
  std::string first = "|", second = "|";
  std::vector<std::string> lines(infos.size(), "|");
  for (const Column& column : columns) {
    const auto is_empty = [&](const ComponentInfo& info) { return column.cell(info).empty(); };
    if (std::all_of(infos.begin(), infos.end(), is_empty)) continue;
    absl::StrAppend(&first, " ", column.head, " |");
    absl::StrAppend(&second, "---|");
    for (size_t i = 0; i < infos.size(); ++i) {
      const std::string cell = column.cell(infos[i]);
      absl::StrAppend(&lines[i], " ", cell.empty() ? "none" : cell, " |");
    }
  }
  return absl::StrCat(first, "\n", second, "\n", absl::StrJoin(lines, "\n"), "\n");
}

}  // namespace kernelstream::client
