// The flags that say what rows to read, shared by update, predict, evaluate and bench.
#ifndef KERNELSTREAM_CLIENT_CLI_INPUT_FLAGS_H_
#define KERNELSTREAM_CLIENT_CLI_INPUT_FLAGS_H_

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "client/src/readers/row_reader.h"

namespace kernelstream::client {

struct InputFlags {
  std::string path;
  ReaderOptions reader;
  std::string separator;

  void AddTo(CLI::App* app, bool input_required = true);
  // Reads what such a model learns from, where the flags are silent: no target, populations, or
  // named inputs.
  void FitTo(const ModelConfig& config);
  // Also prints the reader's notes to standard error.
  absl::StatusOr<std::unique_ptr<RowReader>> Open() const;
};

// Prints what the reader has noted since.
void PrintNotes(RowReader* reader);

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_CLI_INPUT_FLAGS_H_
