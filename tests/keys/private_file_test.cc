#include "lib/keys/private_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "lib/keys/key_encryption_key.h"

namespace tally::keys {
namespace {

class PrivateFile : public ::testing::Test {
 protected:
  PrivateFile() {
    char name[] = "/tmp/tally-keys-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~PrivateFile() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& content, mode_t mode) const {
    std::ofstream(Path(name)) << content;
    chmod(Path(name).c_str(), mode);
    return Path(name);
  }

  std::string folder_;
};

TEST_F(PrivateFile, IsReadWhenOnlyItsOwnerCan) {
  EXPECT_EQ(ReadPrivateFile(Write("a", "secret", 0600))->Expose(), "secret");
  EXPECT_EQ(ReadPrivateFile(Write("b", "secret", 0400))->Expose(), "secret");
  EXPECT_TRUE(ReadPrivateFile(Write("c", "", 0600))->empty());
}

TEST_F(PrivateFile, IsRefusedWhenOthersCanReadOrWriteItWithTheCommandThatHelps) {
  for (mode_t mode : {0640, 0604, 0660, 0602, 0610, 0644, 0777}) {
    const auto read = ReadPrivateFile(Write("a", "secret", mode));
    ASSERT_EQ(read.status().code(), absl::StatusCode::kFailedPrecondition) << std::oct << mode;
    const std::string message(read.status().message());
    EXPECT_NE(message.find("chmod 600 " + Path("a")), std::string::npos) << message;
    EXPECT_EQ(message.find("secret\n"), std::string::npos);
  }
}

TEST_F(PrivateFile, IsRefusedWhenItIsNoRegularFileOrMissingOrTooLarge) {
  EXPECT_EQ(ReadPrivateFile(folder_).status().code(), absl::StatusCode::kFailedPrecondition);
  mkfifo(Path("fifo").c_str(), 0600);
  EXPECT_EQ(ReadPrivateFile(Path("fifo")).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadPrivateFile(Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadPrivateFile(Write("big", std::string(kMaxPrivateFileSize + 1, 'x'), 0600)).ok());
}

TEST_F(PrivateFile, LinksAreJudgedByWhatTheyLeadTo) {
  Write("open", "secret", 0644);
  std::filesystem::create_symlink("open", Path("link"));
  EXPECT_FALSE(ReadPrivateFile(Path("link")).ok());
}

TEST_F(PrivateFile, IsWrittenWithMode0600AndNeverOver) {
  ASSERT_TRUE(WritePrivateFile(Path("new"), "first").ok());
  struct stat found {};
  ASSERT_EQ(stat(Path("new").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  EXPECT_EQ(WritePrivateFile(Path("new"), "second").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadPrivateFile(Path("new"))->Expose(), "first");
}

TEST_F(PrivateFile, KeyEncryptionKeyComesBackFromItsFile) {
  const Secret key = Secret::Random(32);
  ASSERT_TRUE(WritePrivateFile(Path("kek"), KeyEncryptionKeyText(key).Expose()).ok());
  const auto read = KeyEncryptionKeyFromFile(Path("kek"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == key);
  EXPECT_TRUE(*KeyEncryptionKeyFromFile(Write("raw", std::string(key.Expose()), 0600)) == key);
}

TEST_F(PrivateFile, AKeyEncryptionKeyOfAnotherShapeIsRefusedAndNotShown) {
  for (const std::string& text : {std::string("hunter2"), std::string(63, 'a'), std::string(64, 'x')}) {
    const auto read = KeyEncryptionKeyFromFile(Write("kek", text, 0600));
    ASSERT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(read.status().message()).find(text), std::string::npos);
  }
}

TEST_F(PrivateFile, KeyEncryptionKeyFromTheEnvironmentIsWipedThere) {
  setenv("TALLY_TEST_KEK", std::string(64, 'a').c_str(), 1);
  const char* where = getenv("TALLY_TEST_KEK");
  EXPECT_TRUE(KeyEncryptionKeyFromEnvironment("TALLY_TEST_KEK")->Equals(std::string(32, '\xaa')));
  EXPECT_EQ(getenv("TALLY_TEST_KEK"), nullptr);
  EXPECT_EQ(*where, '\0');
  EXPECT_EQ(KeyEncryptionKeyFromEnvironment("TALLY_TEST_KEK").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PrivateFile, KeyEncryptionKeyComesFromSystemdsCredentialFolder) {
  unsetenv("CREDENTIALS_DIRECTORY");
  EXPECT_EQ(KeyEncryptionKeyFromCredential("kek").status().code(), absl::StatusCode::kNotFound);
  setenv("CREDENTIALS_DIRECTORY", folder_.c_str(), 1);
  Write("kek", std::string(64, 'a') + "\n", 0400);
  EXPECT_TRUE(KeyEncryptionKeyFromCredential("kek").ok());
  EXPECT_EQ(KeyEncryptionKeyFromCredential("../kek").status().code(), absl::StatusCode::kInvalidArgument);
  unsetenv("CREDENTIALS_DIRECTORY");
}

}  // namespace
}  // namespace tally::keys
