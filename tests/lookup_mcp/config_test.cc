// [tool.mcp], [tool.replay] and [audit] in a reconciler's configuration.
#include "reconciler/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/json/canonical.h"

namespace tally::reconciler {
namespace {

using ::testing::HasSubstr;

constexpr char kProvider[] = "[[provider]]\nname = \"notes\"\n";
constexpr char kMcp[] = R"([[tool]]
tool = "notes__note"
look_up = "mcp"
provider = "notes"
absent_is_final_after = "5m"
[tool.mcp]
gateway_config = "gateway.toml"
tool = "find_note"
arguments = '{"reference": "{reference}", "customer": "{argument:/customer}"}'
[tool.answer]
records = "/notes"
match = { pointer = "/reference", equals = "{reference}" }
record_is = "happened"
)";
constexpr char kReplay[] = R"([[tool]]
tool = "notes__note"
look_up = "replay"
provider = "notes"
[tool.replay]
gateway_config = "gateway.toml"
)";

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, text.npos) << what;
  return text.replace(at, what.size(), by);
}

std::string ErrorOf(const std::string& text) {
  const auto config = ParseConfig(kProvider + text, "r.toml");
  return config.ok() ? "" : std::string(config.status().message());
}

TEST(McpConfigTest, IsReadWithItsArgumentsAsATemplate) {
  const auto config = ParseConfig(std::string(kProvider) + kMcp, "r.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  const ToolConfig& tool = config->ForTool("notes__note");
  EXPECT_EQ(tool.kind, Kind::kMcp);
  EXPECT_EQ(tool.mcp.tool, "find_note");
  Values values;
  values.reference = "abc";
  json::Object arguments;
  arguments.Set("customer", json::Value(R"(a"}{)"));
  values.arguments = json::Value(std::move(arguments));
  EXPECT_EQ(json::Canonical(*tool.mcp.arguments.Fill(values)), R"({"customer":"a\"}{","reference":"abc"})");
}

TEST(McpConfigTest, SaysWhatIsMissingOrStandsInTheWrongPlace) {
  EXPECT_EQ(ErrorOf(kMcp), "");
  EXPECT_THAT(ErrorOf(Replaced(kMcp, "gateway_config = \"gateway.toml\"\n", "")), HasSubstr("gateway_config"));
  EXPECT_THAT(ErrorOf(Replaced(kMcp, "tool = \"find_note\"\n", "")), HasSubstr("mcp.tool must be written"));
  EXPECT_THAT(ErrorOf(Replaced(kMcp, "arguments = '{", "arguments = '[1] {")), HasSubstr("arguments"));
  EXPECT_THAT(ErrorOf(Replaced(kMcp, R"('{"reference": "{reference}", "customer": "{argument:/customer}"}')", "'[]'")),
              HasSubstr("JSON object"));
  EXPECT_THAT(ErrorOf(Replaced(kMcp, "{argument:/customer}", "x {argument:/customer}")), HasSubstr("arguments"));
  EXPECT_THAT(ErrorOf(Replaced(kMcp, "absent_is_final_after = \"5m\"\n", "")), HasSubstr("absent_is_final_after"));
  EXPECT_THAT(ErrorOf(Replaced(kMcp, "look_up = \"mcp\"", "look_up = \"exec\"")), HasSubstr("belongs to"));
  EXPECT_THAT(ErrorOf(std::string(kMcp) + "[tool.replay]\ngateway_config = \"x\"\n"), HasSubstr("belongs to"));
}

TEST(ReplayConfigTest, NeedsTheGatewaysConfigAndOneToolByItsName) {
  EXPECT_EQ(ErrorOf(kReplay), "");
  EXPECT_THAT(ErrorOf(Replaced(kReplay, "gateway_config = \"gateway.toml\"\n", "")), HasSubstr("gateway_config"));
  EXPECT_THAT(ErrorOf(Replaced(kReplay, "notes__note", "notes__*")), HasSubstr("exact name"));
  EXPECT_THAT(ErrorOf(Replaced(kReplay, "provider =", "absent_is_final_after = \"5m\"\nprovider =")),
              HasSubstr("no meaning for a replay"));
  // Where the key is put stands in the gateway's config and nowhere else.
  EXPECT_THAT(ErrorOf(std::string(kReplay) + "key = { argument = \"key\" }\n"), HasSubstr("key"));
}

TEST(AuditConfigTest, HasTheGatewaysBounds) {
  EXPECT_EQ(ErrorOf("[audit]\npath = \"a.jsonl\"\nfile_bytes_max = 65536\nfiles_max = 1000\n"), "");
  EXPECT_THAT(ErrorOf("[audit]\npath = \"\"\n"), HasSubstr("audit.path"));
  EXPECT_THAT(ErrorOf("[audit]\nfile_bytes_max = 65535\n"), HasSubstr("audit.file_bytes_max"));
  EXPECT_THAT(ErrorOf("[audit]\nfiles_max = 1001\n"), HasSubstr("audit.files_max"));
}

}  // namespace
}  // namespace tally::reconciler
