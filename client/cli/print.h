// How results look: to people and, as protobuf JSON, to machines.
#ifndef KERNELSTREAM_CLIENT_CLI_PRINT_H_
#define KERNELSTREAM_CLIENT_CLI_PRINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/include/kernelstream/client.h"
#include "google/protobuf/message.h"

namespace kernelstream::client {

// Zero values included; compact is one line.
std::string ToJson(const google::protobuf::Message& message, bool compact = false);

// 1234567 as 1,234,567.
std::string WithCommas(uint64_t number);
// Shortest text that reads back equal for features, scores and metrics.
std::string Number(double value);

std::string PhaseName(Phase phase);
// Everything there is to know, a line each.
std::string DescribeText(const ModelInfo& model);
// The state in one line, no line end.
std::string StateLine(const ModelInfo& model);
// A line per label, the first 20, under a line of column names; empty without classes.
std::string ClassesText(const std::vector<ClassMetrics>& classes);
// "loss 0.341, error 14.9 %, auc 0.91" of recent rows, as the task has it; empty before any.
std::string RecentText(const ValidationMetrics& metrics);
// Name, documentation, inputs, kernels and parameters of each. A parameter that several have is
// explained at the first of them.
std::string CatalogueText(const std::vector<ComponentInfo>& infos);
// A table in Markdown, a line each. `head` and `about` are the first two columns' names; a column
// for which no part has anything is left out.
std::string CatalogueMarkdown(absl::string_view head, absl::string_view about,
                              const std::vector<ComponentInfo>& infos);

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_CLI_PRINT_H_
