// Row readers: every error names line and column, and what to do.
#include <cstdio>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client_readers_support.h"

namespace kernelstream::client {
namespace {

using ::testing::HasSubstr;

struct BadInput {
  const char* what;
  Format format;
  std::string text;
  std::vector<std::string> message;
};

class BadInputs : public Readers, public ::testing::WithParamInterface<BadInput> {
  void SetUp() override { path_ = ::testing::TempDir() + "/bad_" + GetParam().what + ".txt"; }
};

TEST_P(BadInputs, NameThePlaceAndTheTrouble) {
  const auto rows = Read(GetParam().text, Of(GetParam().format));
  ASSERT_FALSE(rows.ok());
  for (const std::string& part : GetParam().message) {
    EXPECT_THAT(std::string(rows.status().message()), HasSubstr(part));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadInputs,
    ::testing::Values(
        BadInput{"libsvm_index",
                 Format::kLibsvm,
                 "1 18446744073709551616:1\n",
                 {"line 1", "is 2^64 or more"}},
        BadInput{"csv_empty", Format::kCsv, "", {"is empty"}},
        BadInput{"csv_text",
                 Format::kCsv,
                 "a,b,y\n1,2,3\n1,red,3\n",
                 {"line 3", "column \"b\"", "\"red\" is not a number", "--drop b"}},
        BadInput{"csv_that_is_libsvm",
                 Format::kCsv,
                 "+1 3:1 11:0.5 # first\n-1 2:1\n",
                 {"line 1", "\"3:1\"", "give --format libsvm"}},
        BadInput{"csv_that_is_libsvm_with_tabs",
                 Format::kCsv,
                 "yes\tqid:3\t3:-1e-3\n",
                 {"line 1", "give --format libsvm"}},
        BadInput{"csv_that_is_libsvm_below_a_header",
                 Format::kCsv,
                 "a,y\n1 1:2 2:1\n",
                 {"line 2", "give --format libsvm"}},
        BadInput{"csv_that_is_jsonl",
                 Format::kCsv,
                 "{\"features\": [1, 2], \"target\": 1}\n",
                 {"line 1", "give --format jsonl"}},
        BadInput{"csv_with_times_of_day",
                 Format::kCsv,
                 "a,b,y\n1,12:30,2\n",
                 {"line 2", "column \"b\"", "--drop b"}},
        BadInput{"csv_missing",
                 Format::kCsv,
                 "a,b,y\n1,,3\n",
                 {"line 2", "column \"b\"", "no value", "--missing skip"}},
        BadInput{"csv_missing_target", Format::kCsv, "a,y\n1,\n", {"line 2", "column \"y\""}},
        BadInput{"csv_short_row", Format::kCsv, "a,b,y\n1,2\n", {"line 2", "2 cells", "3"}},
        BadInput{"csv_long_row", Format::kCsv, "a,y\n1,2,3\n", {"line 2", "3 cells"}},
        BadInput{"csv_open_quote", Format::kCsv, "a,y\n\"1,2\n3,4\n", {"line 2", "never closed"}},
        BadInput{"csv_after_quote",
                 Format::kCsv,
                 "a,y\n\"1\"2,3\n",
                 {"line 2", "column \"a\"", "after the closing quote"}},
        BadInput{"csv_twice", Format::kCsv, "a,a,y\n1,2,3\n", {"\"a\" occurs twice"}},
        BadInput{"csv_no_header", Format::kCsv, "1,2,3\n4,5,6\n", {"line 1", "--no-header"}},
        BadInput{"csv_overflow",
                 Format::kCsv,
                 "a,y\n1e400,1\n",
                 {"line 2", "column \"a\"", "too large"}},
        BadInput{"csv_float_overflow", Format::kCsv, "a,y\n1e39,1\n", {"line 2", "too large"}},
        BadInput{"csv_infinity", Format::kCsv, "a,y\n-inf,1\n", {"line 2", "not a finite number"}},
        BadInput{"csv_label_after_numbers",
                 Format::kCsv,
                 "a,y\n1,2\n1,red\n",
                 {"line 3", "column \"y\"", "--target-type label"}},
        BadInput{"csv_bytes", Format::kCsv, "a,y\n\xFF\xFE,1\n", {"line 2", "column \"a\""}},
        BadInput{"csv_label_bytes", Format::kCsv, "a,y\n1,\xE9t\xE9\n", {"line 2", "not UTF-8"}},
        BadInput{"csv_header_bytes", Format::kCsv, "a,\xE9\n1,2\n", {"line 1", "not UTF-8"}},
        BadInput{"csv_utf16",
                 Format::kCsv,
                 std::string("\xFF\xFE"
                             "a\0,\0",
                             6),
                 {"UTF-16"}},
        BadInput{"csv_only_target", Format::kCsv, "y\n1\n", {"no column left", "--separator"}},
        BadInput{
            "csv_nul", Format::kCsv, std::string("a,y\n1\0,2\n", 9), {"line 2", "column \"a\""}},
        BadInput{"libsvm_order", Format::kLibsvm, "1 2:1\n1 3:1 2:1\n", {"line 2", "increase"}},
        BadInput{"libsvm_repeat", Format::kLibsvm, "1 2:1 2:1\n", {"line 1", "increase"}},
        BadInput{"libsvm_zero", Format::kLibsvm, "1 0:1\n", {"line 1", "--zero-based"}},
        BadInput{"libsvm_no_target", Format::kLibsvm, "1:1 2:1\n", {"line 1", "target"}},
        BadInput{
            "libsvm_words", Format::kLibsvm, "1 hello\n", {"line 1", "\"hello\"", "index:value"}},
        BadInput{"libsvm_negative", Format::kLibsvm, "1 -3:1\n", {"line 1", "whole number"}},
        BadInput{"libsvm_huge_index", Format::kLibsvm, "1 99999999999999999999:1\n", {"line 1"}},
        BadInput{"libsvm_value", Format::kLibsvm, "1 2:abc\n", {"line 1", "input 2"}},
        BadInput{"libsvm_nan", Format::kLibsvm, "1 2:nan\n", {"line 1", "input 2", "no value"}},
        BadInput{"libsvm_nan_target", Format::kLibsvm, "nan 2:1\n", {"line 1", "target"}},
        BadInput{"libsvm_many_labels", Format::kLibsvm, "1,2 3:1\n", {"line 1", "several labels"}},
        BadInput{"jsonl_syntax",
                 Format::kJsonLines,
                 "{\"features\": [1], \"target\": 1}\n{nope\n",
                 {"line 2", "not JSON at byte 3"}},
        BadInput{"jsonl_array", Format::kJsonLines, "[1,2]\n", {"line 1", "not an object"}},
        BadInput{"jsonl_deep", Format::kJsonLines, std::string(100000, '['), {"line 1"}},
        BadInput{"jsonl_no_features",
                 Format::kJsonLines,
                 "{\"target\": 1}\n",
                 {"line 1", "\"features\""}},
        BadInput{"jsonl_no_target",
                 Format::kJsonLines,
                 "{\"features\": [1]}\n",
                 {"line 1", "\"target\""}},
        BadInput{"jsonl_string_value",
                 Format::kJsonLines,
                 "{\"features\": [1, \"2\"], \"target\": 1}\n",
                 {"line 1", "features[1] is string"}},
        BadInput{"jsonl_null",
                 Format::kJsonLines,
                 "{\"features\": [null], \"target\": 1}\n",
                 {"line 1", "features[0]", "--missing"}},
        BadInput{"jsonl_overflow",
                 Format::kJsonLines,
                 "{\"features\": [1e400], \"target\": 1}\n",
                 {"line 1", "too large"}},
        BadInput{"jsonl_float_overflow",
                 Format::kJsonLines,
                 "{\"features\": [1e39], \"target\": 1}\n",
                 {"line 1", "features[0]", "1e30"}},
        BadInput{"jsonl_nan",
                 Format::kJsonLines,
                 "{\"features\": [NaN], \"target\": 1}\n",
                 {"line 1", "not JSON"}},
        BadInput{"jsonl_repeated_index",
                 Format::kJsonLines,
                 "{\"features\": {\"3\": 1, \"3\": 2}, \"target\": 1}\n",
                 {"line 1", "twice"}},
        BadInput{"jsonl_same_index",
                 Format::kJsonLines,
                 "{\"features\": {\"3\": 1, \"03\": 2}, \"target\": 1}\n",
                 {"line 1", "twice"}},
        BadInput{"jsonl_repeated_key",
                 Format::kJsonLines,
                 "{\"features\": [1], \"target\": 1, \"target\": 2}\n",
                 {"line 1", "twice"}},
        BadInput{"jsonl_bool_target",
                 Format::kJsonLines,
                 "{\"features\": [1], \"target\": true}\n",
                 {"line 1", "boolean"}},
        BadInput{"jsonl_unknown_key",
                 Format::kJsonLines,
                 "{\"features\": [1], \"target\": 1, \"wieght\": 1}\n",
                 {"line 1", "wieght"}},
        BadInput{"jsonl_bytes",
                 Format::kJsonLines,
                 "{\"features\": [1], \"target\": \"\xFF\"}\n",
                 {"line 1", "not JSON"}}),
    [](const ::testing::TestParamInfo<BadInput>& bad) { return std::string(bad.param.what); });

TEST_F(Readers, NameInputsAsTheFileDoes) {
  ReaderOptions options = Of(Format::kCsv);
  options.drop = {"b"};
  options.target = "y";
  auto csv = Open("a,y,b,c\n1,2,3,4\n", options).value();
  EXPECT_EQ(csv->num_inputs(), 2u);
  EXPECT_EQ(csv->InputName({}, 0), "column \"a\"");
  EXPECT_EQ(csv->InputName({}, 1), "column \"c\"");
  EXPECT_EQ(csv->InputName({}, 2), "");
  auto libsvm = Open("1 3:1 7:1\n", Of(Format::kLibsvm)).value();
  SourceRow row;
  ASSERT_TRUE(libsvm->Next(&row).value());
  EXPECT_EQ(libsvm->InputName(Sparse(row).indices, 1), "index 7 (6 counting from 0)");
  EXPECT_EQ(libsvm->InputName(Sparse(row).indices, 2), "");
  auto jsonl = Open("{\"features\": [1], \"target\": 1}\n", Of(Format::kJsonLines)).value();
  EXPECT_EQ(jsonl->InputName({}, 0), "");  // counts as the server does
}

TEST_F(Readers, GoOnAfterABadLine) {
  auto reader = Open("a,y\n1,2\nx,3\n4,5\n", Of(Format::kCsv)).value();
  SourceRow row;
  EXPECT_TRUE(reader->Next(&row).value());
  EXPECT_TRUE(absl::IsInvalidArgument(reader->Next(&row).status()));
  EXPECT_TRUE(reader->Next(&row).value());
  EXPECT_EQ(Number(row), 5);
  EXPECT_FALSE(reader->Next(&row).value());
}

TEST_F(Readers, LineOverTheLimitIsNamedAndPassedOver) {
  const std::string text = "1 1:1\n" + std::string((64u << 20) + 1, '1') + "\n2 1:1\n";
  auto reader = Open(text, Of(Format::kLibsvm)).value();
  SourceRow row;
  EXPECT_TRUE(reader->Next(&row).value());
  const absl::Status status = reader->Next(&row).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("line 2"));
  EXPECT_TRUE(reader->Next(&row).value());
  EXPECT_EQ(row.line, 3u);
}

TEST_F(Readers, MissingFileAndUnknownTargetAreFinal) {
  const auto missing = OpenRowReader(path_ + ".none", Of(Format::kCsv));
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr(".none"));
  ReaderOptions options = Of(Format::kCsv);
  options.target = "price";
  const auto unknown = Open("a,b\n1,2\n", options);
  EXPECT_TRUE(absl::IsNotFound(unknown.status()));
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("it has a, b"));
  EXPECT_TRUE(
      absl::IsInvalidArgument(OpenRowReader(::testing::TempDir(), Of(Format::kCsv)).status()));
}

}  // namespace
}  // namespace kernelstream::client
