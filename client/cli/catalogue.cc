#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/globals.h"
#include "client/cli/print.h"
#include "client/src/convert.h"

namespace kernelstream::client {
namespace {

using Infos = std::vector<ComponentInfo>;

// A kind of parts that can be listed.
struct Catalogue {
  const char* command;
  const char* help;
  const char* kind;
  const char* about;
  absl::StatusOr<Infos> (Client::*list)();
  std::string (*json)(const Infos& infos);
};

constexpr Catalogue kKernels = {.command = "kernels",
                                .help = "List the kernels, their inputs and their parameters",
                                .kind = "kernel",
                                .about = "k(x, x')",
                                .list = &Client::ListKernels,
                                .json = [](const Infos& infos) {
                                  v1::ListKernelsResponse response;
                                  for (const ComponentInfo& info : infos) {
                                    *response.add_kernels() = ToProto(info);
                                  }
                                  return ToJson(response);
                                }};
constexpr Catalogue kLosses = {.command = "losses",
                               .help = "List the losses and their parameters",
                               .kind = "loss",
                               .about = "what it is",
                               .list = &Client::ListLosses,
                               .json = [](const Infos& infos) {
                                 v1::ListLossesResponse response;
                                 for (const ComponentInfo& info : infos) {
                                   *response.add_losses() = ToProto(info);
                                 }
                                 return ToJson(response);
                               }};

constexpr Catalogue kSamplers = {.command = "samplers",
                                 .help = "List the samplers and the kernels they draw for",
                                 .kind = "sampler",
                                 .about = "how frequencies are drawn",
                                 .list = &Client::ListSamplers,
                                 .json = [](const Infos& infos) {
                                   v1::ListSamplersResponse response;
                                   for (const ComponentInfo& info : infos) {
                                     *response.add_samplers() = ToProto(info);
                                   }
                                   return ToJson(response);
                                 }};

struct CatalogueFlags {
  std::string name;
  bool markdown = false;
};

// Only the part that is named, if one is.
absl::StatusOr<Infos> Selected(Infos infos, absl::string_view kind, const std::string& name) {
  if (name.empty()) return infos;
  std::vector<std::string> known;
  for (ComponentInfo& info : infos) {
    if (info.name == name) return Infos{std::move(info)};
    known.push_back(info.name);
  }
  return absl::NotFoundError(
      absl::StrCat("unknown ", kind, " \"", name, "\"; known: ", absl::StrJoin(known, ", ")));
}

int Run(const Globals& globals, const Catalogue& catalogue, const CatalogueFlags& flags) {
  absl::StatusOr<std::unique_ptr<Client>> client = globals.Connect();
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<Infos> infos = ((**client).*catalogue.list)();
  if (infos.ok()) infos = Selected(*std::move(infos), catalogue.kind, flags.name);
  if (!infos.ok()) return Fail(infos.status());
  if (globals.json) {
    std::cout << catalogue.json(*infos);
  } else if (flags.markdown) {
    std::cout << CatalogueMarkdown(catalogue.kind, catalogue.about, *infos);
  } else {
    std::cout << CatalogueText(*infos);
  }
  return kExitOk;
}

}  // namespace

void AddCatalogue(CLI::App* app, Globals* globals) {
  for (const Catalogue& catalogue : {kKernels, kLosses, kSamplers}) {
    auto flags = std::make_shared<CatalogueFlags>();
    CLI::App* command = AddCommand(app, catalogue.command, catalogue.help);
    command->add_option("NAME", flags->name, "Only this one; default: all");
    command->add_flag("--markdown", flags->markdown, "As a table in Markdown, as in README.md");
    command->callback([globals, flags, catalogue] {
      globals->run = [globals, flags, catalogue] { return Run(*globals, catalogue, *flags); };
    });
  }
}

}  // namespace kernelstream::client
