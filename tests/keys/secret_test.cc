#include "lib/keys/secret.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <type_traits>

namespace tally::keys {
namespace {

template <typename T>
concept Printable = requires(std::ostream& out, const T& value) {
  out << value;
};

static_assert(!std::is_copy_constructible_v<Secret> && !std::is_copy_assignable_v<Secret>);
static_assert(!std::is_convertible_v<Secret, std::string> && !std::is_convertible_v<Secret, std::string_view>);
static_assert(!Printable<Secret>);

TEST(Secret, TakeWipesItsSource) {
  std::string source = "a long enough secret to live on the heap";
  const char* at = source.data();
  const size_t size = source.size();
  const Secret secret = Secret::Take(source);
  EXPECT_EQ(secret.Expose(), "a long enough secret to live on the heap");
  EXPECT_TRUE(source.empty());
  EXPECT_EQ(std::string(at, size), std::string(size, '\0'));
}

TEST(Secret, MovingLeavesNothingBehind) {
  Secret a = Secret::Copy("one");
  Secret b = std::move(a);
  EXPECT_TRUE(a.empty());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(b.Expose(), "one");
  b = Secret::Copy("two");
  EXPECT_EQ(b.Expose(), "two");
}

TEST(Secret, ComparesByContent) {
  EXPECT_TRUE(Secret::Copy("x") == Secret::Copy("x"));
  EXPECT_FALSE(Secret::Copy("x") == Secret::Copy("y"));
  EXPECT_FALSE(Secret::Copy("x") == Secret::Copy("xx"));
  EXPECT_TRUE(Secret() == Secret::Copy(""));
  EXPECT_FALSE(Secret::Random(32) == Secret::Random(32));
}

TEST(SecretDeathTest, CannotBeOverwrittenThroughAStrayPointer) {
  const Secret secret = Secret::Copy("read only");
  EXPECT_DEATH(const_cast<char*>(secret.Expose().data())[0] = 'x', "");
}

TEST(DisableCoreDumpsDeathTest, LeavesNeitherLimitNorDumpability) {
  EXPECT_EXIT(
      {
        if (!DisableCoreDumps()) _exit(1);
        rlimit limit{};
        getrlimit(RLIMIT_CORE, &limit);
        _exit(limit.rlim_cur == 0 && limit.rlim_max == 0 && prctl(PR_GET_DUMPABLE) == 0 ? 0 : 2);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tally::keys
