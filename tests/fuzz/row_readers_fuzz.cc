// Files of rows: any bytes end in rows or in errors that name a line. The first byte chooses format
// and options.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "client/src/readers/row_reader.h"
#include "tests/fuzz/fuzz.h"

namespace kernelstream {

std::vector<std::string> FuzzSeeds() {
  return {
      std::string(1, '\0') + "a,b,target\n1,2,3\n\"4\",5.5e3,-6\n",
      std::string(1, '\1') + "+1 1:0.5 7:1 # comment\n-1 qid:3 2:4\n",
      std::string(1, '\2') +
          "{\"features\":[1,2],\"target\":\"x\"}\n{\"features\":{\"3\":1.0},\"target\":2,"
          "\"weight\":0.5}\n",
      std::string(1, '\3') + "a;b;y\n1;;3\n",
  };
}

}  // namespace kernelstream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kernelstream::client;  // NOLINT
  if (size == 0) return 0;
  ReaderOptions options;
  options.format = static_cast<Format>(data[0] % 3);
  options.missing = static_cast<Missing>(data[0] / 3 % 3);
  options.header = data[0] / 9 % 2 == 0;
  options.target_required = data[0] / 18 % 2 == 0;
  const int file = memfd_create("rows", 0);
  if (file < 0 || write(file, data + 1, size - 1) != static_cast<ssize_t>(size - 1)) std::abort();
  auto reader = OpenRowReader("/proc/self/fd/" + std::to_string(file), options);
  if (reader.ok()) {
    SourceRow row;
    for (size_t steps = 0;; ++steps) {
      if (steps > 2 * size + 16) std::abort();  // it must get on
      const auto more = (*reader)->Next(&row);
      if (more.ok()) {
        if (!*more) break;
        if (row.line == 0) std::abort();
      } else if (absl::IsInvalidArgument(more.status())) {
        if (!absl::StrContains(more.status().message(), "line")) std::abort();
      } else {
        break;
      }
    }
  }
  close(file);
  return 0;
}
