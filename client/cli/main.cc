// The `kernelstream` command. One file of this folder per group of sub-commands.
#include <algorithm>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/globals.h"

namespace kernelstream::client {
namespace {

// Edit distance.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({replaced, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

// The first argument that is neither a flag nor the value of a global one.
std::string FirstWord(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--address" || argument == "--timeout") {
      ++i;
    } else if (argument.empty() || argument[0] != '-') {
      return argument;
    }
  }
  return "";
}

int ExplainUsage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::string word = FirstWord(argc, argv);
  if (std::find(names.begin(), names.end(), word) != names.end()) {
    PrintError(absl::StrCat(error.what(), "; kernelstream ", word, " --help shows what it takes"));
    return kExitUsage;
  }
  if (word.empty()) {
    PrintError(absl::StrCat(
        app.get_subcommands().empty() && argc == 1 ? "no command is given" : error.what(),
        "; known commands: ", absl::StrJoin(names, ", "), " (kernelstream --help)"));
    return kExitUsage;
  }
  const std::string nearest = *std::min_element(
      names.begin(), names.end(), [&word](const std::string& a, const std::string& b) {
        return Distance(a, word) < Distance(b, word);
      });
  PrintError(
      absl::StrCat("there is no command \"", word, "\"; ",
                   Distance(nearest, word) <= 3 ? absl::StrCat("did you mean ", nearest, "? ") : "",
                   "known commands: ", absl::StrJoin(names, ", ")));
  return kExitUsage;
}

int Main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  Globals globals;
  CLI::App app("Kernel machines that keep learning while they serve.", "kernelstream");
  app.require_subcommand(1);
  app.add_option("--address", globals.address, "host:port of the server")
      ->envname("KERNELSTREAM_ADDRESS")
      ->capture_default_str();
  app.add_flag("--json", globals.json, "Print JSON for machines");
  AddDuration(&app, "--timeout", &globals.timeout, "Longest a call may take; default 60s");
  AddCreate(&app, &globals);
  AddUpdate(&app, &globals);
  AddPredictAndEvaluate(&app, &globals);
  AddBench(&app, &globals);
  AddModels(&app, &globals);
  AddCatalogue(&app, &globals);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return ExplainUsage(app, error, argc, argv);
  }
  const int exit_status = globals.run();
  if (!std::cout.flush()) {
    PrintError("cannot write to standard output; is the disk full or the reader gone?");
    return kExitFailed;
  }
  return exit_status;
}

}  // namespace
}  // namespace kernelstream::client

int main(int argc, char** argv) { return kernelstream::client::Main(argc, argv); }
