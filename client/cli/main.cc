// The `kernelstream` command. One file of this folder per group of sub-commands.
#include <algorithm>
#include <csignal>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
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

// The name that is most like `name`, if it is at all: short of a few letters, or its beginning.
std::string Nearest(const std::string& name, const std::vector<std::string>& known) {
  const auto unlike = [&name](const std::string& candidate) {
    return absl::StartsWith(candidate, name) ? 0 : Distance(candidate, name);
  };
  const auto nearest = std::min_element(
      known.begin(), known.end(),
      [&](const std::string& a, const std::string& b) { return unlike(a) < unlike(b); });
  return nearest != known.end() && 2 * unlike(*nearest) <= name.size() ? *nearest : "";
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

// The first argument that looks like an option and is neither one of `command` nor of the program.
std::string UnknownOption(const CLI::App& app, const CLI::App& command, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string option = argument.substr(0, argument.find('='));
    if (option == "--") break;
    if (!absl::StartsWith(option, "--") || option.size() < 3) continue;
    if (command.get_option_no_throw(option) == nullptr &&
        app.get_option_no_throw(option) == nullptr) {
      return option;
    }
  }
  return "";
}

std::string ExplainOption(const CLI::App& app, const CLI::App& command,
                          const std::string& unknown) {
  std::vector<std::string> known;
  for (const CLI::App* part : {&command, &app}) {
    for (const CLI::Option* option : part->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back(name);
    }
  }
  const std::string nearest = Nearest(unknown.substr(2), known);
  return absl::StrCat("there is no option ", unknown,
                      nearest.empty() ? "" : absl::StrCat("; did you mean --", nearest, "?"));
}

int ExplainUsage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const std::string word = FirstWord(argc, argv);
  std::vector<std::string> names;
  const CLI::App* command = nullptr;
  for (const CLI::App* one : app.get_subcommands({})) {
    names.push_back(one->get_name());
    if (one->get_name() == word) command = one;
  }
  if (command != nullptr) {
    // What is required is missed first, though a slip in its name may be why.
    const int code = error.get_exit_code();
    const bool may_be_unknown = code == static_cast<int>(CLI::ExitCodes::ExtrasError) ||
                                code == static_cast<int>(CLI::ExitCodes::RequiredError);
    const std::string unknown =
        may_be_unknown ? UnknownOption(app, *command, argc, argv) : std::string();
    const std::string wrong =
        unknown.empty() ? error.what() : ExplainOption(app, *command, unknown);
    PrintError(absl::StrCat(wrong, "; kernelstream ", word, " --help shows what it takes"));
    return kExitUsage;
  }
  if (word.empty()) {
    PrintError(absl::StrCat(
        app.get_subcommands().empty() && argc == 1 ? "no command is given" : error.what(),
        "; known commands: ", absl::StrJoin(names, ", "), " (kernelstream --help)"));
    return kExitUsage;
  }
  const std::string nearest = Nearest(word, names);
  PrintError(absl::StrCat("there is no command \"", word, "\"; ",
                          nearest.empty() ? "" : absl::StrCat("did you mean ", nearest, "? "),
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
