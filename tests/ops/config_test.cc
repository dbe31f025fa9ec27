#include "server/ops/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tally::ops {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Whoever reads it at a start that failed must learn what is missing, that nothing was started, and what to do.
TEST(KeyEncryptionKey, WhereItCannotBeHadTheErrorSaysWhatThatMeans) {
  for (const std::string source : {"file:/nonexistent/kek", "env:TALLY_TEST_NO_SUCH_VARIABLE"}) {
    Config config;
    config.key_encryption_key = source;
    const auto key = ReadKeyEncryptionKey(config);
    ASSERT_FALSE(key.ok()) << source;
    EXPECT_THAT(std::string(key.status().message()),
                AllOf(HasSubstr("key-encryption key cannot be had"), HasSubstr(source.substr(source.find(':') + 1)),
                      HasSubstr("Nothing was started"), HasSubstr("key_encryption_key in tallyd.toml")));
  }
}

}  // namespace
}  // namespace tally::ops
