#include "lib/client/endpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tally::client {
namespace {

class EndpointFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "tally_endpoint_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::filesystem::path folder_;
};

TEST_F(EndpointFiles, ACredentialIsReadWithoutItsLineEnd) {
  for (const char* text : {"tly_abc", "tly_abc\n", "tly_abc\r\n", "  tly_abc\n\n"}) {
    auto credential = ReadCredentialFile(Write("c", text));
    ASSERT_TRUE(credential.ok()) << credential.status();
    EXPECT_EQ(credential->Expose(), "tly_abc");
  }
}

TEST_F(EndpointFiles, WhatIsNotOneCredentialIsRefusedWithoutQuotingIt) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("secret one\n"), std::string("secret\nsecret2\n"),
        std::string("secret\0x", 8), std::string(5000, 's'), std::string("secr\xc3\xa9t")}) {
    auto credential = ReadCredentialFile(Write("c", text));
    ASSERT_FALSE(credential.ok());
    EXPECT_EQ(credential.status().message().find("secr"), std::string::npos);
  }
  EXPECT_EQ(ReadCredentialFile(folder_ / "absent").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadCredentialFile(folder_).ok());
}

TEST_F(EndpointFiles, EndpointsThatCannotBeAreRefused) {
  for (const char* server : {"", "unix:", "localhost", ":443", "localhost:", "https://localhost:443"}) {
    EXPECT_EQ(OpenChannel({.server = server}).status().code(), absl::StatusCode::kInvalidArgument) << server;
  }
  EXPECT_FALSE(OpenChannel({.server = "localhost:1", .certificate_file = Write("cert", "x")}).ok());
  EXPECT_FALSE(OpenChannel({.server = "localhost:1", .key_file = Write("key", "x")}).ok());
  EXPECT_FALSE(OpenChannel({.server = "localhost:1", .ca_file = folder_ / "absent"}).ok());
}

TEST_F(EndpointFiles, AServerThatIsNotThereIsNoErrorYet) {
  EXPECT_TRUE(OpenChannel({.server = "unix:" + (folder_ / "absent.sock").string()}).ok());
  EXPECT_TRUE(OpenChannel({.server = "localhost:1"}).ok());
}

}  // namespace
}  // namespace tally::client
