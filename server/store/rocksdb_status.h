// What went wrong in RocksDB, for those who run the server.
#ifndef KERNELSTREAM_SERVER_STORE_ROCKSDB_STATUS_H_
#define KERNELSTREAM_SERVER_STORE_ROCKSDB_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rocksdb/status.h"

namespace kernelstream::server {

// `doing`: "write the log". RESOURCE_EXHAUSTED: disk full. DATA_LOSS: damaged. UNAVAILABLE:
// anything else.
absl::Status FromRocksDb(absl::string_view doing, const rocksdb::Status& status);

// The same about opening `directory`: FAILED_PRECONDITION if another process has it, named if it
// can be found.
absl::Status FromRocksDbOpen(const std::string& directory, const rocksdb::Status& status);

}  // namespace kernelstream::server

#endif  // KERNELSTREAM_SERVER_STORE_ROCKSDB_STATUS_H_
