#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/globals.h"
#include "client/cli/print.h"
#include "client/src/convert.h"

namespace kernelstream::client {
namespace {

struct ModelFlags {
  std::string name;
  bool yes = false;
  uint64_t count = 0;
  absl::Duration interval = absl::Seconds(1);
};

int RunList(const Globals& globals) {
  absl::StatusOr<std::unique_ptr<Client>> client = globals.Connect();
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<std::vector<ModelInfo>> models = (*client)->ListModels();
  if (!models.ok()) return Fail(models.status());
  v1::ListModelsResponse response;
  for (const ModelInfo& model : *models) {
    if (globals.json) *response.add_models() = ToProto(model);
    if (!globals.json) std::cout << StateLine(model) << "\n";
  }
  if (globals.json) std::cout << ToJson(response);
  if (models->empty() && !globals.json) {
    std::cout << "no models; make one with: kernelstream create NAME --loss logistic\n";
  }
  return kExitOk;
}

int RunDescribe(const Globals& globals, const ModelFlags& flags) {
  absl::StatusOr<std::unique_ptr<Client>> client = globals.Connect();
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<ModelInfo> model = (*client)->GetModel(flags.name);
  if (!model.ok()) return Fail(model.status());
  std::cout << (globals.json ? ToJson(ToProto(*model)) : DescribeText(*model));
  return kExitOk;
}

int RunWatch(const Globals& globals, const ModelFlags& flags) {
  absl::StatusOr<std::unique_ptr<Client>> client = globals.Connect();
  if (!client.ok()) return Fail(client.status());
  const bool redraw = isatty(STDOUT_FILENO) != 0 && !globals.json;
  for (uint64_t shown = 0; flags.count == 0 || shown < flags.count; ++shown) {
    if (shown > 0) absl::SleepFor(flags.interval);
    absl::StatusOr<ModelInfo> model = (*client)->GetModel(flags.name);
    if (!model.ok()) {
      if (redraw && shown > 0) std::cout << "\n";
      return Fail(model.status());
    }
    const std::string line =
        globals.json ? ToJson(ToProto(*model), /*compact=*/true) : StateLine(*model);
    if (redraw) {
      std::cout << "\r\033[K" << line << std::flush;
    } else {
      std::cout << line << std::endl;
    }
  }
  if (redraw) std::cout << "\n";
  return kExitOk;
}

int RunDelete(const Globals& globals, const ModelFlags& flags) {
  if (!flags.yes) {
    if (isatty(STDIN_FILENO) == 0) {
      PrintError(
          absl::StrCat("deleting ", flags.name,
                       " loses what it has learned; add --yes to do it without being asked"));
      return kExitUsage;
    }
    std::cerr << "Delete model " << flags.name << " and all it has learned? [y/N] " << std::flush;
    std::string answer;
    std::getline(std::cin, answer);
    if (answer != "y" && answer != "Y" && answer != "yes") {
      PrintError("nothing was deleted");
      return kExitFailed;
    }
  }
  absl::StatusOr<std::unique_ptr<Client>> client = globals.Connect();
  if (!client.ok()) return Fail(client.status());
  if (absl::Status status = (*client)->DeleteModel(flags.name); !status.ok()) return Fail(status);
  std::cout << (globals.json ? "{}\n" : absl::StrCat("deleted model ", flags.name, "\n"));
  return kExitOk;
}

int RunHealth(const Globals& globals, const ModelFlags& flags) {
  absl::StatusOr<std::unique_ptr<Client>> client = globals.Connect();
  if (!client.ok()) return Fail(client.status());
  if (absl::Status status = (*client)->CheckHealth(flags.name); !status.ok()) return Fail(status);
  std::cout << (globals.json ? "{\"status\": \"SERVING\"}\n" : "SERVING\n");
  return kExitOk;
}

}  // namespace

void AddModels(CLI::App* app, Globals* globals) {
  auto flags = std::make_shared<ModelFlags>();
  AddCommand(app, "list", "List the models")->callback([globals] {
    globals->run = [globals] { return RunList(*globals); };
  });

  CLI::App* describe = AddCommand(app, "describe", "Show everything about a model");
  describe->add_option("NAME", flags->name, "Name of the model")->required();
  describe->callback([globals, flags] {
    globals->run = [globals, flags] { return RunDescribe(*globals, *flags); };
  });

  CLI::App* watch = AddCommand(app, "watch", "Follow a model while it learns");
  watch->add_option("NAME", flags->name, "Name of the model")->required();
  watch->add_option("--count", flags->count, "End after this many looks; default: never");
  AddDuration(watch, "--interval", &flags->interval, "Time between two looks; default 1s");
  watch->callback(
      [globals, flags] { globals->run = [globals, flags] { return RunWatch(*globals, *flags); }; });

  CLI::App* health = AddCommand(app, "health", "Ask whether the server, or one model, is serving");
  health->add_option("--model", flags->name, "Name of the model; default: the server as a whole");
  health->callback([globals, flags] {
    globals->run = [globals, flags] { return RunHealth(*globals, *flags); };
  });

  CLI::App* remove = AddCommand(app, "delete", "Delete a model and all it has learned");
  remove->add_option("NAME", flags->name, "Name of the model")->required();
  remove->add_flag("--yes,-y", flags->yes, "Do not ask");
  remove->callback([globals, flags] {
    globals->run = [globals, flags] { return RunDelete(*globals, *flags); };
  });
}

}  // namespace kernelstream::client
