#include "lib/json/projection.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/json/parse.h"

namespace tally::json {
namespace {

std::vector<Pointer> Pointers(const std::vector<std::string>& texts) {
  std::vector<Pointer> pointers;
  for (const std::string& text : texts) pointers.push_back(*Pointer::Parse(text));
  return pointers;
}

std::string Without(std::string_view text, const std::vector<std::string>& pointers) {
  return Projection::Without(Pointers(pointers))->Canonical(*Parse(text));
}

std::string Only(std::string_view text, const std::vector<std::string>& pointers) {
  return Projection::Only(Pointers(pointers))->Canonical(*Parse(text));
}

TEST(ProjectionTest, WithoutLeavesTheRestInCanonicalForm) {
  EXPECT_EQ(Without(R"({"z":1.0,"request_id":"x","a":{"nonce":1,"b":2}})", {"/request_id", "/a/nonce"}),
            R"({"a":{"b":2},"z":1})");
  EXPECT_EQ(Without(R"({"a":1})", {}), R"({"a":1})");
  EXPECT_EQ(Without(R"({"a":{"b":1}})", {"/a", "/a/b"}), "{}");
  EXPECT_EQ(Without(R"({"a":{"b":1}})", {"/a/b"}), R"({"a":{}})");
}

TEST(ProjectionTest, WithoutAnAbsentPlaceChangesNothing) {
  const char* text = R"({"a":{"b":null},"c":[1,2]})";
  for (const char* pointer : {"/x", "/a/x", "/a/b/x", "/c/2", "/c/00", "/c/x", "/A"}) {
    EXPECT_EQ(Without(text, {pointer}), text) << pointer;
  }
  EXPECT_EQ(Without("5", {"/a"}), "5");
}

TEST(ProjectionTest, WithoutCountsArrayElementsAsTheyStandInTheWhole) {
  EXPECT_EQ(Without("[0,1,2,3]", {"/0", "/2"}), "[1,3]");
  EXPECT_EQ(Without("[[0,1],{\"id\":5,\"x\":6}]", {"/0/1", "/1/id"}), "[[0],{\"x\":6}]");
  EXPECT_EQ(Without("[0]", {"/0"}), "[]");
  EXPECT_EQ(Without(R"({"0":1,"1":2})", {"/0"}), R"({"1":2})");
}

TEST(ProjectionTest, WithoutTheWholeIsRefused) {
  EXPECT_FALSE(Projection::Without(Pointers({"/a", ""})).ok());
  EXPECT_TRUE(Projection::Only(Pointers({""})).ok());
}

TEST(ProjectionTest, OnlyKeepsTheNamedPlacesAndWhatLeadsThere) {
  const char* text = R"({"customer":"c","amount":1.50,"note":"n","to":{"iban":"I","name":"N"}})";
  EXPECT_EQ(Only(text, {"/customer", "/amount", "/to/iban"}), R"({"amount":1.5,"customer":"c","to":{"iban":"I"}})");
  EXPECT_EQ(Only(text, {"/to", "/to/iban"}), R"({"to":{"iban":"I","name":"N"}})");
  EXPECT_EQ(Only(text, {""}), R"({"amount":1.5,"customer":"c","note":"n","to":{"iban":"I","name":"N"}})");
}

TEST(ProjectionTest, OnlyIsBlindToEverythingNotNamed) {
  const std::string plain = Only(R"({"a":1})", {"/a", "/x/y"});
  for (const char* text :
       {R"({"a":1,"n":0})", R"({"a":1,"x":{}})", R"({"a":1,"x":[]})", R"({"a":1,"x":{"z":1}})", R"({"x":"y","a":1})"}) {
    EXPECT_EQ(Only(text, {"/a", "/x/y"}), plain) << text;
  }
  EXPECT_NE(Only(R"({"a":1,"x":{"y":null}})", {"/a", "/x/y"}), plain);  // null is not absent
}

TEST(ProjectionTest, OnlyKeepsThePositionsOfArrayElements) {
  EXPECT_EQ(Only("[0,1,2,3]", {"/1", "/3"}), "[null,1,null,3]");
  EXPECT_EQ(Only("[0,1,2,3]", {"/0", "/1"}), "[0,1]");
  EXPECT_EQ(Only("[{\"id\":1},{}]", {"/0/id", "/1/id"}), "[{\"id\":1}]");
  EXPECT_EQ(Only("[{},{\"id\":1}]", {"/0/id", "/1/id"}), "[null,{\"id\":1}]");
  EXPECT_EQ(Only("[[5],[6],[7]]", {"/2/0", "/0/1", "/1/0"}), "[null,[6],[7]]");
  EXPECT_EQ(Only("{\"a\":[0,1]}", {"/a/999999999", "/a/00"}), "{}");
}

TEST(ProjectionTest, OnlyOfNothingIsAnEmptyObject) {
  for (const char* text : {"{}", "[]", "[1]", "5", "null", R"({"b":1})"}) {
    EXPECT_EQ(Only(text, {"/a"}), "{}") << text;
    EXPECT_EQ(Only(text, {}), "{}") << text;
  }
}

}  // namespace
}  // namespace tally::json
