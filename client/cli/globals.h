// What every sub-command shares: the flags that go before or after its name, and how it ends.
#ifndef KERNELSTREAM_CLIENT_CLI_GLOBALS_H_
#define KERNELSTREAM_CLIENT_CLI_GLOBALS_H_

#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/include/kernelstream/client.h"

namespace kernelstream::client {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

// How often Ctrl-C (or SIGTERM) came since CatchInterrupts(); the second time ends the process.
extern std::atomic<int> interrupts;
void CatchInterrupts();

struct Globals {
  std::string address = "localhost:50051";
  bool json = false;
  absl::Duration timeout = absl::Seconds(60);
  // Set by the sub-command that was named; the exit status.
  std::function<int()> run;

  ConnectOptions Options() const;
  absl::StatusOr<std::unique_ptr<Client>> Connect() const;
};

// Prints "kernelstream: message" to standard error.
void PrintError(absl::string_view message);
// The same for a status; returns kExitFailed.
int Fail(const absl::Status& status);

// A flag that takes a duration like 20ms or 1.5s.
CLI::Option* AddDuration(CLI::App* app, const std::string& name, absl::Duration* value,
                         const std::string& description);

// What a flag of words does with the word it is given (Option::transform).
CLI::Validator OneOfWords(std::vector<std::pair<std::string, std::string>> values_of_words);

// For a flag whose value is one of an enum's, or a bool; each has a word.
template <typename T>
CLI::Validator OneOf(std::initializer_list<std::pair<const char*, T>> words) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [word, value] : words) {
    values.emplace_back(word, absl::StrCat(static_cast<int>(value)));
  }
  return OneOfWords(std::move(values));
}

// A sub-command of which --address and its like may also follow the name.
CLI::App* AddCommand(CLI::App* app, const std::string& name, const std::string& description);

// One per file of this folder.
void AddCreate(CLI::App* app, Globals* globals);
void AddUpdate(CLI::App* app, Globals* globals);
void AddPredictAndEvaluate(CLI::App* app, Globals* globals);
void AddBench(CLI::App* app, Globals* globals);
void AddModels(CLI::App* app, Globals* globals);
void AddCatalogue(CLI::App* app, Globals* globals);

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_CLI_GLOBALS_H_
