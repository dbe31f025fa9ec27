#include "gateway/config/secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tally::gateway {
namespace {

using testing::HasSubstr;
using testing::Not;

class GatewaySecrets : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "tally_secrets_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    chmod(path.c_str(), mode);
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(GatewaySecrets, FilesThatOthersCanReadAreRefused) {
  Config config;
  UpstreamConfig upstream;
  config.tallyd.credential_file = Write("credential", "tally_hunter2\n", 0640);
  config.permit.stdio = "file:" + Write("token", "hunter2\n", 0604);
  upstream.env_files["K"] = Write("env", "hunter2", 0660);
  upstream.headers_file = Write("headers", "Authorization: Bearer hunter2\n", 0644);
  for (const absl::Status& status : {ReadCredential(config).status(), ReadStdioPermitToken(config).status(),
                                     ReadEnvironmentFiles(upstream).status(), ReadHeaders(upstream).status()}) {
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("hunter2")));
  }
}

TEST_F(GatewaySecrets, ACredentialIsOneToken) {
  Config config;
  config.tallyd.credential_file = Write("credential", "tally_abc\n");
  auto read = ReadCredential(config);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->Expose(), "tally_abc");
  for (const char* text : {"", "\n", "two tokens\n", "a\nb\n", "\x01\n"}) {
    config.tallyd.credential_file = Write("credential", text);
    EXPECT_FALSE(ReadCredential(config).ok()) << text;
  }
  config.tallyd.credential_file = "";
  read = ReadCredential(config);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->empty());
}

TEST_F(GatewaySecrets, ThePermitTokenIsTakenOutOfTheEnvironment) {
  const Config config;
  ASSERT_EQ(setenv("TALLY_PERMIT_TOKEN", "token", 1), 0);
  auto token = ReadStdioPermitToken(config);
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->Expose(), "token");
  EXPECT_EQ(std::getenv("TALLY_PERMIT_TOKEN"), nullptr);
  token = ReadStdioPermitToken(config);
  EXPECT_TRUE(absl::IsNotFound(token.status()));
  EXPECT_THAT(std::string(token.status().message()), HasSubstr("TALLY_PERMIT_TOKEN"));
}

TEST_F(GatewaySecrets, HeadersAreReadLineByLineAndNeverQuoted) {
  UpstreamConfig upstream;
  EXPECT_TRUE(ReadHeaders(upstream)->empty());
  upstream.headers_file = Write("headers", "# a comment\r\n\nAuthorization: Bearer a:b c\r\n  X-Tenant :acme\n");
  EXPECT_FALSE(ReadHeaders(upstream).ok()) << "a space before the colon is no part of a name";
  upstream.headers_file = Write("headers", "# a comment\r\n\nAuthorization: Bearer a:b c\r\nX-Tenant:acme");
  const auto headers = ReadHeaders(upstream);
  ASSERT_TRUE(headers.ok()) << headers.status();
  ASSERT_EQ(headers->size(), 2u);
  EXPECT_EQ((*headers)[0].first, "Authorization");
  EXPECT_EQ((*headers)[0].second.Expose(), "Bearer a:b c");
  EXPECT_EQ((*headers)[1].second.Expose(), "acme");
  for (const char* text : {"hunter2\n", "Bad Name: hunter2\n", "Idempotency-Key: hunter2\n",
                           "Mcp-Session-Id: hunter2\n", "A: hunter2\x01\n", ": hunter2\n"}) {
    upstream.headers_file = Write("headers", text);
    const auto refused = ReadHeaders(upstream);
    EXPECT_FALSE(refused.ok()) << text;
    EXPECT_THAT(std::string(refused.status().message()), Not(HasSubstr("hunter2")));
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("headers:1: "));
  }
}

TEST_F(GatewaySecrets, AVariablesFileLosesOneLineEndOnly) {
  UpstreamConfig upstream;
  upstream.env_files["K"] = Write("k", " two words \n\n");
  const auto variables = ReadEnvironmentFiles(upstream);
  ASSERT_TRUE(variables.ok());
  EXPECT_EQ((*variables)[0].first, "K");
  EXPECT_EQ((*variables)[0].second.Expose(), " two words \n");
  upstream.env_files["K"] = Write("k", std::string("a\0b", 3));
  EXPECT_FALSE(ReadEnvironmentFiles(upstream).ok());
}

}  // namespace
}  // namespace tally::gateway
