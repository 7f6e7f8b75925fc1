// What people read about update rules names every rule and parameter that there is.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/model/update_rule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kernelstream {
namespace {

using ::testing::HasSubstr;

// The help of `create` from the option to the end of the next one's text.
std::string Help() {
  FILE* pipe = popen("'" KERNELSTREAM_BINARY "' create --help", "r");
  std::string text;
  char buffer[4096];
  for (size_t read = 0; (read = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    text.append(buffer, read);
  }
  EXPECT_EQ(pclose(pipe), 0);
  const size_t begin = text.find("--update-rule"), end = text.find("--max-features");
  EXPECT_LT(begin, end);
  return text.substr(begin, end - begin);
}

// The comment above ModelConfig.update_rule.
std::string ProtoComment() {
  std::stringstream text;
  text << std::ifstream(KERNELSTREAM_MODEL_PROTO).rdbuf();
  const std::string proto = text.str();
  const size_t begin = proto.find("// How coefficients move"), end = proto.find("update_rule = 7");
  EXPECT_LT(begin, end);
  return proto.substr(begin, end - begin);
}

TEST(UpdateRules, AreAllInTheHelpAndTheProto) {
  const std::string help = Help(), proto = ProtoComment();
  for (const UpdateRuleEntry& rule : UpdateRuleRegistry()) {
    const std::string name(rule.doc.name);
    EXPECT_THAT(help, HasSubstr(name));
    EXPECT_THAT(proto, HasSubstr(absl::StrCat("\"", name, "\"")));
    for (const ParameterDoc& parameter : rule.doc.parameters) {
      SCOPED_TRACE(name);
      const size_t help_at = help.find(absl::StrCat(name, ": "));
      const size_t proto_at = proto.find(absl::StrCat(name, " parameters: "));
      ASSERT_NE(help_at, std::string::npos);
      ASSERT_NE(proto_at, std::string::npos);
      EXPECT_THAT(help.substr(help_at), HasSubstr(std::string(parameter.name)));
      EXPECT_THAT(proto.substr(proto_at), HasSubstr(std::string(parameter.name)));
    }
  }
}

}  // namespace
}  // namespace kernelstream
