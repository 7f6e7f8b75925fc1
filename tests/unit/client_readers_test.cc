// Row readers: what tricky files become.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/src/readers/numbers.h"
#include "client/src/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client_readers_support.h"

namespace kernelstream::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(Readers, CsvWithNamedTargetAnywhere) {
  const auto rows = Read("a,y,b\n1,10,2\r\n\n3,20,4", Of(Format::kCsv)).value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(Dense(rows[0]), ElementsAre(1, 2));
  EXPECT_EQ(Number(rows[0]), 10);
  EXPECT_EQ(rows[0].line, 2u);
  EXPECT_THAT(Dense(rows[1]), ElementsAre(3, 4));
  EXPECT_EQ(rows[1].line, 4u);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("the target is column \"y\"")));
}

TEST_F(Readers, CsvTakesTheLastColumnWhenNoneIsNamedLikeATarget) {
  const auto rows = Read("a,b,income\n1,2,<=50K\n3,4,>50K\n", Of(Format::kCsv)).value();
  EXPECT_EQ(Label(rows[0]), "<=50K");
  EXPECT_EQ(Label(rows[1]), ">50K");
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("\"income\"")));
}

TEST_F(Readers, CsvQuotesHoldSeparatorsQuotesAndLineEnds) {
  const auto rows =
      Read("x,\"the \"\"label\"\"\"\n\"1.5\",\"a,b\"\n2,\"two\nlines\"\n3,\"\"\"q\"\"\"\n",
           Of(Format::kCsv))
          .value();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(Label(rows[0]), "a,b");
  EXPECT_EQ(Label(rows[1]), "two\nlines");
  EXPECT_EQ(Label(rows[2]), "\"q\"");
  EXPECT_EQ(rows[1].line, 3u);
  EXPECT_EQ(rows[2].line, 5u);
}

TEST_F(Readers, CsvFindsOutTheSeparator) {
  EXPECT_THAT(Dense(Read("a;b;y\n1;2;3\n", Of(Format::kCsv)).value()[0]), ElementsAre(1, 2));
  EXPECT_THAT(Dense(Read("a\tb\ty\n1\t2\t3\n", Of(Format::kCsv)).value()[0]), ElementsAre(1, 2));
}

TEST_F(Readers, CsvWithoutHeaderHasTheTargetLast) {
  ReaderOptions options = Of(Format::kCsv);
  options.header = false;
  const auto rows = Read("1,2,3\n4,5,6\n", options).value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(Dense(rows[0]), ElementsAre(1, 2));
  EXPECT_EQ(Number(rows[1]), 6);
  options.target = "1";
  EXPECT_EQ(Number(Read("1,2,3\n", options).value()[0]), 1);
}

TEST_F(Readers, CsvByteOrderMarkIsLeftOut) {
  ReaderOptions options = Of(Format::kCsv);
  options.target = "y";
  EXPECT_EQ(Number(Read("\xEF\xBB\xBFy,a\n1,2\n", options).value()[0]), 1);
}

TEST_F(Readers, CsvColumnsAreListedEscapedAndCut) {
  ReaderOptions options = Of(Format::kCsv);
  options.target = "y";
  const absl::Status status =
      Read(absl::StrCat(std::string(100'000, '\0'), ",\x1b[2J\n1,2\n"), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_LT(status.message().size(), 1000u);
  EXPECT_EQ(status.message().find('\0'), absl::string_view::npos);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\\033[2J"));
}

TEST_F(Readers, CsvWeightAndDroppedColumns) {
  ReaderOptions options = Of(Format::kCsv);
  options.weight = "w";
  options.drop = {"id"};
  const auto rows = Read("id,a,w,y\nx7,1,2.5,3\n", options).value();
  EXPECT_THAT(Dense(rows[0]), ElementsAre(1));
  EXPECT_EQ(rows[0].row.weight, 2.5);
}

TEST_F(Readers, CsvMissingCellsAreSkippedOrZeroWhenAsked) {
  ReaderOptions options = Of(Format::kCsv);
  options.missing = Missing::kSkip;
  const std::string text = "a,b,y\n1,,3\n4,NaN,6\n7,8,9\n?,1,2\n";
  EXPECT_EQ(Read(text, options).value().size(), 1u);
  EXPECT_EQ(skipped_, 3u);
  options.missing = Missing::kZero;
  const auto rows = Read(text, options).value();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_THAT(Dense(rows[1]), ElementsAre(4, 0));
}

TEST_F(Readers, CsvToPredictMayHaveATargetOrNot) {
  ReaderOptions options = Of(Format::kCsv);
  options.target_required = false;
  options.dimension = 2;
  EXPECT_THAT(Dense(Read("a,b\n1,2\n", options).value()[0]), ElementsAre(1, 2));
  EXPECT_THAT(Dense(Read("a,b,income\n1,2,x\n", options).value()[0]), ElementsAre(1, 2));
  EXPECT_THAT(Dense(Read("a,y\n1,2\n", options).value()[0]), ElementsAre(1, 2));
  options.target = "income";
  EXPECT_THAT(Dense(Read("a,b\n1,2\n", options).value()[0]), ElementsAre(1, 2));
  options.target.clear();
  options.dimension = 0;
  EXPECT_THAT(Dense(Read("a,y,b\n1,x,2\n", options).value()[0]), ElementsAre(1, 2));
}

TEST_F(Readers, CsvTargetsMayBeSeveral) {
  ReaderOptions options = Of(Format::kCsv);
  options.target = "z,x";
  const std::string text = "x,a,z\n1,2,3\n4,5,6\n";
  const auto rows = Read(text, options).value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(Dense(rows[1]), ElementsAre(5));
  EXPECT_THAT(std::get<std::vector<double>>(rows[1].row.target), ElementsAre(6, 4));
  EXPECT_THAT(std::string(Read("x,a,z\n1,2,q\n", options).status().message()),
              HasSubstr("column \"z\""));
  options.target = "z,b";
  EXPECT_THAT(std::string(Read(text, options).status().message()), HasSubstr("no column \"b\""));
  options.target = "z,z";
  EXPECT_THAT(std::string(Read(text, options).status().message()), HasSubstr("twice"));
  options.target = "z,x";
  options.target_type = TargetType::kLabel;
  EXPECT_TRUE(absl::IsFailedPrecondition(Read(text, options).status()));
  options.target_type = TargetType::kAuto;
  options.target_required = false;
  const auto bare = Read(text, options).value();
  EXPECT_THAT(Dense(bare[0]), ElementsAre(2));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(bare[0].row.target));
  // A name that holds a comma is one column.
  options = Of(Format::kCsv);
  options.target = "low,high";
  EXPECT_EQ(Number(Read("a,\"low,high\"\n1,2\n", options).value()[0]), 2);
}

TEST_F(Readers, JsonTargetsMayBeSeveral) {
  const ReaderOptions options = Of(Format::kJsonLines);
  const auto rows = Read("{\"features\": [1], \"target\": [2, -3.5]}\n", options).value();
  EXPECT_THAT(std::get<std::vector<double>>(rows[0].row.target), ElementsAre(2, -3.5));
  EXPECT_THAT(
      std::string(
          Read("{\"features\": [1], \"target\": [2, \"x\"]}\n", options).status().message()),
      HasSubstr("target[1]"));
}

TEST_F(Readers, PopulationsHaveNamesAndNumbers) {
  ReaderOptions options = Of(Format::kCsv);
  options.target_type = TargetType::kPopulation;
  const auto rows = Read("a,y\n1,numerator\n2,Denominator\n3,1\n4,0\n5,-1\n", options).value();
  ASSERT_EQ(rows.size(), 5u);
  const bool numerator[] = {true, false, true, false, false};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(std::get<Population>(rows[i].row.target) == Population::kNumerator, numerator[i]);
  }
  EXPECT_THAT(std::string(Read("a,y\n1,2\n", options).status().message()),
              HasSubstr("give numerator (or 1)"));
  options.format = Format::kJsonLines;
  const auto lines = Read(
                         "{\"features\": [1], \"target\": \"denominator\"}\n"
                         "{\"features\": [1], \"target\": 1}\n",
                         options)
                         .value();
  EXPECT_EQ(std::get<Population>(lines[0].row.target), Population::kDenominator);
  EXPECT_EQ(std::get<Population>(lines[1].row.target), Population::kNumerator);
  options.format = Format::kLibsvm;
  EXPECT_EQ(std::get<Population>(Read("-1 3:1\n", options).value()[0].row.target),
            Population::kDenominator);
}

TEST_F(Readers, GzipIsToldByContent) {
  const auto rows = Read("a,y\n1,2\n", Of(Format::kCsv), /*gzip=*/true).value();
  EXPECT_EQ(Number(rows[0]), 2);
}

TEST_F(Readers, TruncatedGzipIsDataLoss) {
  std::string text = "a,y\n";
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919 % 10007) + ",1\n";
  ASSERT_TRUE(Open(text, Of(Format::kCsv), /*gzip=*/true).ok());
  std::FILE* file = std::fopen(path_.c_str(), "rb");
  std::string bytes(1 << 20, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  const auto rows = Read(bytes.substr(0, bytes.size() / 2), Of(Format::kCsv));
  EXPECT_TRUE(absl::IsDataLoss(rows.status())) << rows.status();
  EXPECT_THAT(std::string(rows.status().message()), HasSubstr("compressed data"));
}

TEST_F(Readers, LibsvmIndicesStartFromOneOnDiskAndZeroOnTheWire) {
  const auto rows = Read("+1 1:0.5 4:-2e1 # comment 9:9\n\n# only a comment\n-1 qid:3 2:1\r\n0\n",
                         Of(Format::kLibsvm))
                        .value();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(Number(rows[0]), 1);
  EXPECT_THAT(Sparse(rows[0]).indices, ElementsAre(0, 3));
  EXPECT_THAT(Sparse(rows[0]).values, ElementsAre(0.5f, -20.0f));
  EXPECT_EQ(Number(rows[1]), -1);
  EXPECT_EQ(rows[1].line, 4u);
  EXPECT_THAT(Sparse(rows[2]).indices, IsEmpty());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("qid is ignored")));
}

TEST_F(Readers, LibsvmToPredictNeedsNoTarget) {
  ReaderOptions options = Of(Format::kLibsvm);
  options.target_required = false;
  const auto rows = Read("1:2 3:4\n+1 1:5\n", options).value();
  EXPECT_THAT(Sparse(rows[0]).indices, ElementsAre(0, 2));
  EXPECT_THAT(Sparse(rows[1]).values, ElementsAre(5));
}

TEST_F(Readers, LibsvmZeroBasedWhenAsked) {
  ReaderOptions options = Of(Format::kLibsvm);
  options.index_base = 0;
  EXPECT_THAT(Sparse(Read("1 0:1 7:2\n", options).value()[0]).indices, ElementsAre(0, 7));
}

TEST_F(Readers, JsonLinesDenseSparseNumbersAndLabels) {
  const auto rows = Read(
                        "{\"features\": [0.5, 2], \"target\": 1, \"weight\": 3}\n\n"
                        "{\"target\": \"yes\", \"features\": {\"10\": 1, \"3\": 0.25}}\r\n"
                        "{\"features\": {}, \"target\": 0}\n",
                        Of(Format::kJsonLines))
                        .value();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_THAT(Dense(rows[0]), ElementsAre(0.5f, 2.0f));
  EXPECT_EQ(rows[0].row.weight, 3.0);
  EXPECT_EQ(Label(rows[1]), "yes");
  EXPECT_THAT(Sparse(rows[1]).indices, ElementsAre(3, 10));
  EXPECT_EQ(rows[1].line, 3u);
}

const NamedFeatures& Named(const SourceRow& row) {
  return std::get<NamedFeatures>(row.row.features);
}

TEST_F(Readers, JsonLinesNameNumbersAndCategories) {
  const auto rows =
      Read(
          "{\"features\": {\"height\": 1.5, \"colour\": \"red\", \"gone\": null}, \"target\": 1}\n"
          "{\"features\": {\"colour\": \"blue\"}, \"target\": 0}\n"
          "{\"features\": {\"18446744073709551615\": 1}, \"target\": 0}\n",
          [] {
            ReaderOptions options = Of(Format::kJsonLines);
            options.missing = Missing::kZero;
            return options;
          }())
          .value();
  EXPECT_THAT(Named(rows[0]).numbers,
              ElementsAre(std::pair<const std::string, double>("height", 1.5)));
  EXPECT_EQ(Named(rows[0]).categories.at("colour"), "red");
  EXPECT_THAT(Named(rows[1]).numbers, IsEmpty());
  EXPECT_THAT(Sparse(rows[2]).indices, ElementsAre(~uint64_t{0}));
  const auto mixed =
      Read("{\"features\": {\"3\": 1, \"x\": 2}, \"target\": 1}\n", Of(Format::kJsonLines));
  EXPECT_THAT(std::string(mixed.status().message()), HasSubstr("\"3\" among names"));
}

TEST_F(Readers, CsvNamesInputsAfterTheirColumns) {
  ReaderOptions options = Of(Format::kCsv);
  options.named = true;
  options.categories = {"zip"};
  options.missing = Missing::kZero;
  const auto rows = Read("size,colour,zip,y\n1.5,red,1234,1\n,2,K1A,0\n", options).value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(Named(rows[0]).numbers, (std::map<std::string, double>{{"size", 1.5}}));
  EXPECT_EQ(Named(rows[0]).categories,
            (std::map<std::string, std::string>{{"colour", "red"}, {"zip", "1234"}}));
  EXPECT_EQ(Named(rows[1]).numbers, (std::map<std::string, double>{{"colour", 2}}));
  EXPECT_EQ(Named(rows[1]).categories, (std::map<std::string, std::string>{{"zip", "K1A"}}));
  options.missing = Missing::kError;
  EXPECT_THAT(std::string(Read("size,y\n,1\n", options).status().message()),
              HasSubstr("no column \"zip\""));
  options.categories.clear();
  EXPECT_THAT(std::string(Read("size,y\n,1\n", options).status().message()),
              HasSubstr("--missing"));
  EXPECT_THAT(std::string(Read("size,y\n1e99,1\n", options).status().message()),
              HasSubstr("column \"size\""));
}

// In JSON such a key is an index: the same name must not be a number's hash in CSV.
TEST_F(Readers, CsvRefusesInputsNamedByDigitsAlone) {
  ReaderOptions options = Of(Format::kCsv);
  options.named = true;
  const std::string text = "a,3,y\n1,2,0\n";
  const auto refused = Read(text, options);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("column \"3\""));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("name it \"x3\""));
  options.drop = {"3"};
  EXPECT_TRUE(Read(text, options).ok());
  options.drop.clear();
  options.target = "3";
  EXPECT_TRUE(Read(text, options).ok());
  EXPECT_TRUE(Read(text, Of(Format::kCsv)).ok()) << "places, not names";
}

// The texts that stand for no value in CSV do so in JSON, and are no categories.
TEST_F(Readers, JsonLinesTakeTextsOfMissingValuesForMissing) {
  const std::string text =
      "{\"features\": {\"height\": \"NaN\", \"colour\": \"red\"}, \"target\": 1}\n"
      "{\"features\": {\"3\": \"nan\"}, \"target\": 1}\n";
  ReaderOptions options = Of(Format::kJsonLines);
  EXPECT_THAT(std::string(Read(text, options).status().message()),
              HasSubstr("features[height] has no value (\"NaN\")"));
  options.missing = Missing::kZero;
  const auto rows = Read(text, options).value();
  EXPECT_THAT(Named(rows[0]).numbers, IsEmpty());
  EXPECT_EQ(Named(rows[0]).categories, (std::map<std::string, std::string>{{"colour", "red"}}));
  EXPECT_THAT(Sparse(rows[1]).indices, ElementsAre(3));
  options.missing = Missing::kSkip;
  EXPECT_THAT(Read(text, options).value(), IsEmpty());
  EXPECT_EQ(skipped_, 2u);
}

TEST(Utf8, OnlyShortestFormsWithoutSurrogates) {
  EXPECT_TRUE(IsUtf8("plain, \xC3\xA9, \xE2\x82\xAC, \xF0\x9F\x98\x80"));
  for (const std::string bad : {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                                "\xF4\x90\x80\x80", "\xE2\x82", "\xFF"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST(Quote, ShortensAndShowsOddBytes) {
  EXPECT_EQ(Quote("a"), "\"a\"");
  EXPECT_EQ(Quote("\n"), "\"\\n\"");
  EXPECT_THAT(Quote(std::string(100, 'x')), HasSubstr("..."));
}

}  // namespace
}  // namespace kernelstream::client
