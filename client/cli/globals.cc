#include "client/cli/globals.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>

#include "absl/strings/str_cat.h"

namespace kernelstream::client {

std::atomic<int> interrupts{0};

void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    if (interrupts.fetch_add(1) > 0) _exit(kExitInterrupted);
  };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

ConnectOptions Globals::Options() const {
  ConnectOptions options;
  options.call_timeout = timeout;
  options.connect_timeout = std::min(timeout, options.connect_timeout);
  return options;
}

absl::StatusOr<std::unique_ptr<Client>> Globals::Connect() const {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(address, Options());
  if (absl::IsUnavailable(client.status())) {
    return absl::UnavailableError(absl::StrCat(
        client.status().message(), " (the address comes from --address or KERNELSTREAM_ADDRESS)"));
  }
  return client;
}

void PrintError(absl::string_view message) {
  std::cerr << absl::StrCat("kernelstream: ", message, "\n") << std::flush;
}

int Fail(const absl::Status& status) {
  PrintError(status.message().empty() ? status.ToString() : std::string(status.message()));
  return kExitFailed;
}

CLI::Option* AddDuration(CLI::App* app, const std::string& name, absl::Duration* value,
                         const std::string& description) {
  return app
      ->add_option_function<std::string>(
          name,
          [name, value](const std::string& text) {
            if (!absl::ParseDuration(text, value) || *value < absl::ZeroDuration()) {
              throw CLI::ValidationError(
                  name, absl::StrCat(text, " is not a duration; write 20ms, 1.5s or 2m"));
            }
          },
          description)
      ->type_name("DURATION");
}

CLI::Validator OneOfWords(std::vector<std::pair<std::string, std::string>> values_of_words) {
  return CLI::Validator(
      [words = std::move(values_of_words)](std::string& text) {
        std::string known;
        for (size_t i = 0; i < words.size(); ++i) {
          if (words[i].first == text) {
            text = words[i].second;
            return std::string();
          }
          const bool last = i + 1 == words.size();
          absl::StrAppend(&known, i == 0 ? "" : last ? " or " : ", ", words[i].first);
        }
        return absl::StrCat("expected ", known, "; got \"", text, "\"");
      },
      "");
}

CLI::App* AddCommand(CLI::App* app, const std::string& name, const std::string& description) {
  CLI::App* command = app->add_subcommand(name, description);
  command->fallthrough();
  return command;
}

}  // namespace kernelstream::client
