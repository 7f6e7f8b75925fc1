// Files to read, and what was read.
#ifndef KERNELSTREAM_TESTS_UNIT_CLIENT_READERS_SUPPORT_H_
#define KERNELSTREAM_TESTS_UNIT_CLIENT_READERS_SUPPORT_H_

#include <zlib.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/src/readers/row_reader.h"
#include "gtest/gtest.h"

namespace kernelstream::client {

class Readers : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "/" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".txt";
  }
  void TearDown() override { std::remove(path_.c_str()); }

  absl::StatusOr<std::unique_ptr<RowReader>> Open(const std::string& text, ReaderOptions options,
                                                  bool gzip = false) {
    if (gzip) {
      gzFile file = gzopen(path_.c_str(), "wb");
      gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
      gzclose(file);
    } else {
      std::FILE* file = std::fopen(path_.c_str(), "wb");
      std::fwrite(text.data(), 1, text.size(), file);
      std::fclose(file);
    }
    return OpenRowReader(path_, options);
  }

  // All rows, or the first error.
  absl::StatusOr<std::vector<SourceRow>> Read(const std::string& text, ReaderOptions options,
                                              bool gzip = false) {
    auto reader = Open(text, options, gzip);
    if (!reader.ok()) return reader.status();
    std::vector<SourceRow> rows;
    while (true) {
      SourceRow row;
      const absl::StatusOr<bool> more = (*reader)->Next(&row);
      if (!more.ok()) return more.status();
      if (!*more) break;
      rows.push_back(std::move(row));
    }
    notes_ = (*reader)->TakeNotes();
    skipped_ = (*reader)->skipped_rows();
    return rows;
  }

  std::string path_;
  std::vector<std::string> notes_;
  uint64_t skipped_ = 0;
};

inline const std::vector<float>& Dense(const SourceRow& row) {
  return std::get<DenseFeatures>(row.row.features).values;
}
inline const SparseFeatures& Sparse(const SourceRow& row) {
  return std::get<SparseFeatures>(row.row.features);
}
inline double Number(const SourceRow& row) { return std::get<double>(row.row.target); }
inline std::string Label(const SourceRow& row) { return std::get<std::string>(row.row.target); }

inline ReaderOptions Of(Format format) {
  ReaderOptions options;
  options.format = format;
  return options;
}

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_TESTS_UNIT_CLIENT_READERS_SUPPORT_H_
