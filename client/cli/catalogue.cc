#include <iostream>

#include "client/cli/globals.h"
#include "client/cli/print.h"
#include "client/src/convert.h"

namespace kernelstream::client {
namespace {

int RunKernels(const Globals& globals) {
  absl::StatusOr<std::unique_ptr<Client>> client = globals.Connect();
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<std::vector<ComponentInfo>> kernels = (*client)->ListKernels();
  if (!kernels.ok()) return Fail(kernels.status());
  v1::ListKernelsResponse response;
  for (const ComponentInfo& info : *kernels) {
    if (globals.json) *response.add_kernels() = ToProto(info);
    if (!globals.json) std::cout << ComponentText(info);
  }
  if (globals.json) std::cout << ToJson(response);
  return kExitOk;
}

int RunLosses(const Globals& globals) {
  absl::StatusOr<std::unique_ptr<Client>> client = globals.Connect();
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<std::vector<ComponentInfo>> losses = (*client)->ListLosses();
  if (!losses.ok()) return Fail(losses.status());
  v1::ListLossesResponse response;
  for (const ComponentInfo& info : *losses) {
    if (globals.json) *response.add_losses() = ToProto(info);
    if (!globals.json) std::cout << ComponentText(info);
  }
  if (globals.json) std::cout << ToJson(response);
  return kExitOk;
}

}  // namespace

void AddCatalogue(CLI::App* app, Globals* globals) {
  AddCommand(app, "kernels", "List the kernels and their parameters")->callback([globals] {
    globals->run = [globals] { return RunKernels(*globals); };
  });
  AddCommand(app, "losses", "List the losses and their parameters")->callback([globals] {
    globals->run = [globals] { return RunLosses(*globals); };
  });
}

}  // namespace kernelstream::client
