#include "gateway/authority/permit_view.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace tally::gateway {
namespace {

using std::chrono::milliseconds;

v1::PermitInfo Granting(const std::vector<std::string>& tools) {
  v1::PermitInfo permit;
  for (const std::string& tool : tools) permit.add_grants()->mutable_terms()->set_tool(tool);
  return permit;
}

std::string Grant(const v1::PermitInfo& permit, std::string_view tool) {
  const v1::GrantUsage* grant = GrantFor(permit, tool);
  return grant == nullptr ? "" : grant->terms().tool();
}

TEST(GrantFor, TakesTheExactNameElseTheLongestPrefix) {
  const v1::PermitInfo permit = Granting({"files__*", "files__write*", "files__write_file", "*"});
  EXPECT_EQ(Grant(permit, "files__write_file"), "files__write_file");
  EXPECT_EQ(Grant(permit, "files__write_files"), "files__write*");
  EXPECT_EQ(Grant(permit, "files__read"), "files__*");
  EXPECT_EQ(Grant(permit, "other"), "*");
  EXPECT_EQ(Grant(Granting({"files__*"}), "other"), "");
  EXPECT_EQ(Grant(Granting({}), "other"), "");
  // A star is one at the end only.
  EXPECT_EQ(Grant(Granting({"a*b"}), "axb"), "");
}

// By trying every name that a tool could be granted under, most specific first.
RC_GTEST_PROP(GrantFor, AgreesWithTryingEveryPrefix, ()) {
  const auto word = rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab_")));
  const auto tools = *rc::gen::container<std::vector<std::string>>(
      rc::gen::map(rc::gen::pair(word, rc::gen::arbitrary<bool>()),
                   [](const std::pair<std::string, bool>& made) { return made.first + (made.second ? "*" : ""); }));
  const std::string tool = *word;
  const auto granted = [&](const std::string& name) {
    return std::find(tools.begin(), tools.end(), name) != tools.end();
  };
  std::string expected = granted(tool) ? tool : "";
  bool found = granted(tool);
  for (size_t size = tool.size() + 1; !found && size-- > 0;) {
    const std::string pattern = tool.substr(0, size) + "*";
    if ((found = granted(pattern))) expected = pattern;
  }
  const v1::PermitInfo permit = Granting(tools);
  RC_ASSERT((GrantFor(permit, tool) != nullptr) == found);
  RC_ASSERT(Grant(permit, tool) == expected);
}

const PermitViews::Clock::time_point kStart{std::chrono::hours(1)};

client::Answer<PermitView> View() { return PermitView(std::make_shared<const v1::PermitInfo>(Granting({"t"}))); }

client::Answer<PermitView> Refused(v1::Kind kind) {
  client::Failure failure;
  failure.kind = kind;
  return failure;
}

TEST(PermitViews, AreForgottenWhenTheirTimeIsOver) {
  PermitViews views(milliseconds(100), 10);
  views.Put(keys::Sha256("t"), View(), kStart);
  EXPECT_TRUE(views.Find(keys::Sha256("t"), kStart + milliseconds(99)));
  EXPECT_FALSE(views.Find(keys::Sha256("t"), kStart + milliseconds(100)));
  EXPECT_FALSE(views.Find(keys::Sha256("u"), kStart));
  views.Forget(keys::Sha256("t"));
  EXPECT_FALSE(views.Find(keys::Sha256("t"), kStart));
}

TEST(PermitViews, OfFailuresOnlyATokenThatIsUnknownIsRemembered) {
  PermitViews views(milliseconds(100), 10);
  views.Put(keys::Sha256("t"), Refused(v1::KIND_UNAUTHORIZED), kStart);
  ASSERT_TRUE(views.Find(keys::Sha256("t"), kStart));
  EXPECT_FALSE(views.Find(keys::Sha256("t"), kStart)->ok());
  // And tallyd's absence does not leave an older view standing.
  views.Put(keys::Sha256("t"), Refused(v1::KIND_UNAVAILABLE), kStart);
  EXPECT_FALSE(views.Find(keys::Sha256("t"), kStart));
}

TEST(PermitViews, WithoutATimeNothingIsKept) {
  PermitViews views(milliseconds(0), 10);
  views.Put(keys::Sha256("t"), View(), kStart);
  EXPECT_EQ(views.size(), 0u);
}

TEST(PermitViews, AreBoundedWhateverTokensAreTried) {
  PermitViews views(milliseconds(100), 10);
  for (int i = 0; i < 1000; ++i) {
    views.Put(keys::Sha256(std::to_string(i)), Refused(v1::KIND_UNAUTHORIZED), kStart + milliseconds(i));
    ASSERT_LE(views.size(), 10u);
    ASSERT_TRUE(views.Find(keys::Sha256(std::to_string(i)), kStart + milliseconds(i)));
  }
}

}  // namespace
}  // namespace tally::gateway
