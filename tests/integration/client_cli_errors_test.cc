// What `kernelstream` says about a row that a real server refuses: in the terms of its file.
#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/server_fixture.h"

namespace kernelstream::support {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RefusedRows : public testing::Test {
 protected:
  void SetUp() override { server_->Create("m", SmallConfig("logistic")); }

  // What `command m --input FILE`, and flags, prints about a file with this text.
  std::string Say(const std::string& command, const std::string& text,
                  const std::string& flags = "") const {
    const std::string file = dir_.path() + "/rows";
    std::ofstream(file, std::ios::binary) << text;
    FILE* pipe = popen(absl::StrCat("'", KERNELSTREAM_BINARY, "' --address ", server_.address(),
                                    " ", command, " m --input ", file, " ", flags, " 2>&1")
                           .c_str(),
                       "r");
    std::string said;
    char buffer[4096];
    for (size_t read = 0; (read = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
      said.append(buffer, read);
    }
    EXPECT_NE(pclose(pipe), 0);
    return said;
  }

  TempDir dir_;
  InProcessServer server_;
};

TEST_F(RefusedRows, AreNamedByTheColumnsOfACsvFile) {
  const std::string rows = "age,y,income\n1,1,2\n1,0,2\n1,0,5e30\n";
  EXPECT_THAT(Say("update", rows),
              HasSubstr("line 4, column \"income\" was rejected: model \"m\": value is 5e+30"));
  EXPECT_THAT(Say("predict", rows, "--target y"), HasSubstr("(line 4, column \"income\")"));
  // An error about something else than an input names none.
  const std::string said = Say("update", "a,b,weight,y\n1,2,-3,1\n", "--weight weight");
  EXPECT_THAT(said, HasSubstr("line 2 was rejected: "));
  EXPECT_THAT(said, HasSubstr("weight is -3"));
}

TEST_F(RefusedRows, AreNamedByTheIndicesOfALibsvmFile) {
  std::string said = Say("update", "1 1:1 2:2\n1 2:1 3:1\n1 2:5e30\n", "--format libsvm");
  EXPECT_THAT(said, HasSubstr("line 2, index 3 (2 counting from 0) was rejected: model \"m\": "
                              "index 2 is out of range"));
  EXPECT_THAT(
      said,
      HasSubstr("line 3, index 2 (1 counting from 0) was rejected: model \"m\": value is 5e+30"));
  said = Say("predict", "1 1:1\n1 2:1 3:1\n", "--format libsvm");
  EXPECT_THAT(said, HasSubstr("(line 2, index 3 (2 counting from 0))"));
}

TEST_F(RefusedRows, OfJsonLinesAreNamedByLineAlone) {
  const std::string said =
      Say("update", "{\"features\": [1, 5e30], \"target\": 1}\n", "--format jsonl");
  EXPECT_THAT(said, HasSubstr("line 1 was rejected: "));
  EXPECT_THAT(said, Not(HasSubstr("column")));
}

}  // namespace
}  // namespace kernelstream::support
