#include <cstdio>

#include "server/app/options.h"
#include "server/app/server.h"

int main(int argc, char** argv) {
  const auto options = kernelstream::server::ReadOptions(argc, argv);
  if (!options.ok()) {
    std::fprintf(stderr, "kernelstream-server: %s\n",
                 std::string(options.status().message()).c_str());
    return 1;
  }
  if (options->check_config) {
    std::puts("kernelstream-server: the configuration is good");
    return 0;
  }
  return kernelstream::server::Run(*options);
}
