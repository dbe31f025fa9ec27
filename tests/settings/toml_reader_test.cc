#include "lib/settings/toml_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/settings/toml_file.h"

namespace tally::settings {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Reads `text` by `read` and says what was wrong.
std::vector<std::string> Wrong(std::string_view text, const std::function<void(TomlReader&)>& read) {
  const auto document = ParseToml(text, "f", {});
  if (!document.ok()) return {std::string(document.status().message())};
  Complaints complaints("f");
  TomlReader reader(*document, complaints);
  read(reader);
  reader.RefuseUnknown();
  return complaints.Lines();
}

TEST(TomlReader, WhatIsAbsentOrWrongLeavesTheDefault) {
  int number = 7;
  bool flag = true;
  std::string text = "t";
  milliseconds duration{5};
  const auto wrong = Wrong("flag = 1\nduration = \"soon\"\n", [&](TomlReader& reader) {
    reader.Whole("number", number, 0, 9);
    reader.Flag("flag", flag);
    reader.Text("text", text);
    reader.Duration("duration", duration, milliseconds(0), milliseconds(10));
  });
  EXPECT_THAT(wrong, ElementsAre("f:1: flag must be true or false, without quotes",
                                 HasSubstr("f:2: duration must be a duration in quotes")));
  EXPECT_EQ(number, 7);
  EXPECT_TRUE(flag);
  EXPECT_EQ(text, "t");
  EXPECT_EQ(duration.count(), 5);
}

TEST(TomlReader, NumbersAndListsOfThemAreBoundedAtTheirEdges) {
  double number = 3;
  std::vector<int> list = {9};
  const auto read = [&](TomlReader& reader) {
    reader.Number("number", number, 0.5, 2);
    reader.Wholes("list", list, 200, 299, 2);
  };
  EXPECT_THAT(Wrong("number = 0.5\nlist = [200, 299]\n", read), ElementsAre());
  EXPECT_EQ(number, 0.5);
  EXPECT_THAT(list, ElementsAre(200, 299));
  EXPECT_THAT(Wrong("number = 2\nlist = []\n", read), ElementsAre());
  EXPECT_EQ(number, 2);
  EXPECT_THAT(list, ElementsAre());
  for (const char* text : {"0.49", "2.01", "nan", "inf", "\"1\"", "true"}) {
    EXPECT_THAT(Wrong(std::string("number = ") + text + "\n", read),
                ElementsAre(HasSubstr("must be a number from 0.5 to 2")))
        << text;
  }
  for (const char* text : {"200", "[199]", "[300]", "[200.0]", "[\"200\"]", "[200, 201, 202]"}) {
    EXPECT_THAT(Wrong(std::string("list = ") + text + "\n", read),
                ElementsAre(HasSubstr("at most 2 whole numbers from 200 to 299")))
        << text;
  }
  EXPECT_EQ(number, 2);
  EXPECT_THAT(list, ElementsAre());
}

TEST(TomlReader, EveryUnknownSettingIsNamedWithItsLineHoweverDeepItStands) {
  const auto wrong = Wrong(
      "known = 1\nstray = 2\n[t]\nin = 3\nout = 4\n[many.a]\nx = 1\ny = 2\n[many.\"b.c\"]\nz = 3\n[[list]]\nx = 1\nw = "
      "2\n",
      [](TomlReader& reader) {
        int number = 0;
        reader.Whole("known", number, 0, 9);
        reader.Whole("t.in", number, 0, 9);
        reader.Tables("many", 9, [&](const std::string&, TomlReader& table) { table.Whole("x", number, 0, 9); });
        reader.TableArray("list", 9, [&](TomlReader& table) { table.Whole("x", number, 0, 9); });
      });
  EXPECT_THAT(wrong, ElementsAre("f:2: there is no setting \"stray\"", "f:5: there is no setting \"t.out\"",
                                 "f:8: there is no setting \"many.a.y\"", "f:10: there is no setting \"many.b.c.z\"",
                                 "f:13: there is no setting \"list[0].w\""));
}

TEST(TomlReader, TablesAreReadInTheOrderOfTheirLines) {
  std::vector<std::string> names;
  EXPECT_THAT(Wrong("[m.z]\n[m.a]\n[m.k]\n",
                    [&](TomlReader& reader) {
                      reader.Tables("m", 3, [&](const std::string& name, TomlReader&) { names.push_back(name); });
                    }),
              ElementsAre());
  EXPECT_THAT(names, ElementsAre("z", "a", "k"));
}

TEST(TomlReader, WrongKindsAndTooManyAreRefused) {
  std::vector<std::string> texts;
  std::map<std::string, std::string> by_name;
  int choice = 0;
  const auto read = [&](TomlReader& reader) {
    reader.Texts("texts", texts, 2);
    reader.TextByName("by_name", by_name, 1);
    reader.Choice<int>("choice", choice, {{"one", 1}, {"two", 2}, {"three", 3}});
    reader.Tables("tables", 1, [](const std::string&, TomlReader&) {});
    reader.TableArray("array", 1, [](TomlReader&) {});
    reader.Table("table", [](TomlReader&) {});
  };
  EXPECT_THAT(
      Wrong("texts = [\"a\", 1]\nby_name = { a = 1 }\nchoice = \"four\"\ntables = 1\narray = [1]\ntable = []\n", read),
      ElementsAre("f:1: texts[1] must be a text in quotes", "f:2: by_name.a must be a text in quotes",
                  "f:3: choice must be \"one\", \"two\" or \"three\"", HasSubstr("f:4: tables must be a table"),
                  "f:5: array[0] must be a table: { … }", "f:6: table must be a table: { … }"));
  EXPECT_THAT(
      Wrong("texts = [\"a\", \"b\", \"c\"]\nby_name = { a = \"1\", b = \"2\" }\narray = [{}, {}]\n", read).size(), 3);
  EXPECT_TRUE(texts.empty());
  EXPECT_TRUE(by_name.empty());
  EXPECT_THAT(Wrong("texts = [\"a\\u0000b\"]\n", read), ElementsAre("f:1: texts[0] must not contain a NUL character"));
}

TEST(ParseToml, AMistakeNearASecretIsNotQuoted) {
  const auto open = ParseToml("a = hunter2\n", "f", {"password"});
  const auto secret = ParseToml("password = hunter2\n", "f", {"password"});
  ASSERT_FALSE(open.ok());
  ASSERT_FALSE(secret.ok());
  EXPECT_THAT(std::string(open.status().message()), HasSubstr("f:1: not valid TOML: "));
  EXPECT_THAT(std::string(secret.status().message()), HasSubstr("f:1: not valid TOML"));
  EXPECT_THAT(std::string(secret.status().message()), Not(HasSubstr("hunt")));
}

TEST(ParseToml, WhatIsTooLargeIsRefused) { EXPECT_FALSE(ParseToml(std::string(kFileBytesMax + 1, '#'), "f", {}).ok()); }

}  // namespace
}  // namespace tally::settings
