#include "lib/outbound/url.h"

#include <gtest/gtest.h>

namespace tally::outbound {
namespace {

TEST(Url, OneThatNamesAHostOverHttpsIsTaken) {
  for (const char* url :
       {"https://a.example", "https://a.example/", "https://a.example:8443/p?q=1&r=%20", "https://a?q",
        "https://[2606:4700::1111]/", "https://[2606:4700::1111]:65535/", "https://1.2.3.4:1/x@y"}) {
    EXPECT_TRUE(CheckUrl(url, false).ok()) << url << CheckUrl(url, false);
  }
}

TEST(Url, WhatCannotBeSentIsRefusedAndNotRepeated) {
  for (const char* url : {"",
                          "a.example",
                          "ftp://a.example/secret",
                          "HTTPS://a.example/secret",
                          "file:///etc/secret",
                          "https:a.example",
                          "https:/a.example",
                          "https://",
                          "https:///secret",
                          "https://:443/secret",
                          "https://u@a.example/secret",
                          "https://u:secret@a.example/",
                          "https://@a.example/secret",
                          "https://a.example/#secret",
                          "https://a.example/a secret",
                          "https://a.example/\r\nsecret",
                          "https://a.example/\x01secret",
                          "https://a.example\\secret",
                          "https://ä.example/secret",
                          "https://a.example:0/secret",
                          "https://a.example:65536/secret",
                          "https://a.example:/secret",
                          "https://a.example:x/secret",
                          "https://a.example:+1/secret",
                          "https://[::1/secret",
                          "https://[::1]x/secret",
                          "https://a:1:2/secret",
                          "https://[fe80::1%25eth0]/secret",
                          "https://%61.example/secret",
                          "http://a.example/secret"}) {
    const absl::Status status = CheckUrl(url, false);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_EQ(status.message().find("secret"), absl::string_view::npos) << status;
  }
}

TEST(Url, PlainHttpOnlyWhereItIsAllowed) {
  EXPECT_FALSE(CheckUrl("http://a.example/", false).ok());
  EXPECT_TRUE(CheckUrl("http://a.example/", true).ok());
}

TEST(Url, ItsLengthIsLimited) {
  std::string url = "https://a.example/";
  url.resize(kUrlBytesMax, 'a');
  EXPECT_TRUE(CheckUrl(url, false).ok());
  url.push_back('a');
  EXPECT_FALSE(CheckUrl(url, false).ok());
}

TEST(Url, ItsOriginHoldsNoPathAndNoQuery) {
  EXPECT_EQ(Origin("https://a.example:8443/secret?secret"), "https://a.example:8443");
  EXPECT_EQ(Origin("https://a.example?secret"), "https://a.example");
  EXPECT_EQ(Origin("http://[::1]/"), "http://[::1]");
}

TEST(Url, AnAddressInItIsJudgedHoweverItIsWritten) {
  for (const char* url :
       {"https://127.0.0.1/", "https://127.1:80/", "https://0x7f000001/", "https://2130706433/",
        "https://017700000001/", "https://10.0.0.1?q", "https://[::1]/", "https://[::ffff:8.8.8.8]:1/",
        "https://localhost/", "https://LOCALHOST:1/", "https://a.localhost/"}) {
    EXPECT_FALSE(MayBePublic(url)) << url;
  }
  for (const char* url :
       {"https://8.8.8.8/", "https://[2606:4700::1111]/", "https://a.example/", "https://mylocalhost/"}) {
    EXPECT_TRUE(MayBePublic(url)) << url;
  }
}

}  // namespace
}  // namespace tally::outbound
