#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lib/json/parse.h"
#include "lib/schema/schema.h"

namespace tally::schema {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// "compiled", or the refusal.
std::string Says(std::string_view text) {
  const auto document = json::Parse(text, {.case_variants = json::CaseVariants::kAdmit});
  EXPECT_TRUE(document.ok()) << text << document.status();
  const auto schema = Compile(*document);
  if (schema.ok()) return "compiled";
  EXPECT_EQ(schema.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(schema.status().message());
}

bool Allows(std::string_view schema, std::string_view instance) {
  return (*Compile(*json::Parse(schema)))->Validate(*json::Parse(instance)).outcome == Outcome::kOk;
}

TEST(CompileTest, KeywordsThatCannotBeEnforcedAreRefusedByNameAndPlace) {
  EXPECT_EQ(Says(R"({"properties":{"a/b":{"format":"email"}}})"),
            "schema refused at \"/properties/a~1b/format\": the keyword format cannot be enforced; leave it out");
  for (const char* keyword : {"format", "contentEncoding", "contentMediaType", "$id"}) {
    EXPECT_THAT(Says(std::string("{\"") + keyword + "\":\"x\"}"),
                AllOf(HasSubstr(keyword), HasSubstr("cannot be enforced")));
  }
  for (const char* keyword :
       {"unevaluatedProperties", "dependentRequired", "prefixItems", "minContains", "nullable", "id", "$anchor",
        "divisibleBy", "Type", "maxlength", "x-note", "deprecated", "$recursiveRef"}) {
    EXPECT_THAT(Says(std::string("{\"items\":[{\"") + keyword + "\":1}]}"),
                AllOf(HasSubstr(keyword), HasSubstr("/items/0/"), HasSubstr("not one of draft 7")));
  }
}

TEST(CompileTest, RefusalReachesIntoEveryPlaceThatHoldsASchema) {
  for (const char* place :
       {R"({"items":#})", R"({"items":[true,#]})", R"({"additionalItems":#})", R"({"contains":#})",
        R"({"properties":{"a":#}})", R"({"patternProperties":{"a":#}})", R"({"additionalProperties":#})",
        R"({"propertyNames":#})", R"({"dependencies":{"a":#}})", R"({"allOf":[#]})", R"({"anyOf":[true,#]})",
        R"({"oneOf":[#]})", R"({"not":#})", R"({"if":#})", R"({"then":#})", R"({"else":#})",
        R"({"definitions":{"unused":#}})", R"({"$defs":{"unused":#}})",
        R"({"$ref":"#/definitions/a","definitions":{"a":true,"b":#}})"}) {
    std::string text = place;
    text.replace(text.rfind('#'), 1, R"({"format":"email"})");
    EXPECT_THAT(Says(text), HasSubstr("format cannot be enforced")) << text;
    text = place;
    text.replace(text.rfind('#'), 1, "true");
    EXPECT_EQ(Says(text), "compiled") << text;
    text = place;
    text.replace(text.rfind('#'), 1, "5");
    EXPECT_NE(Says(text), "compiled") << text;
  }
}

TEST(CompileTest, AnnotationsMeanNothingWhateverTheyHold) {
  EXPECT_EQ(Says(R"({"title":1,"description":{},"$comment":[],"default":{"format":1},"examples":[{"$ref":5}],
                     "readOnly":true,"writeOnly":"x","$schema":"http://json-schema.org/draft-07/schema#"})"),
            "compiled");
  EXPECT_EQ(Says(R"({"enum":[{"format":1}],"const":{"$id":2}})"), "compiled");
  EXPECT_EQ(Says(R"({"properties":{"format":{},"$ref":{},"$id":{}}})"), "compiled");
}

TEST(CompileTest, OtherDialectsAreRefused) {
  for (const char* uri :
       {"\"http://json-schema.org/draft-04/schema#\"", "\"https://json-schema.org/draft/2020-12/schema\"", "7"}) {
    EXPECT_THAT(Says(std::string("{\"$schema\":") + uri + "}"), HasSubstr("draft-07")) << uri;
  }
}

TEST(CompileTest, ReferencesStayInsideTheDocument) {
  for (const char* reference : {"other.json", "http://example.com/s", "other.json#/definitions/a", "", "/definitions/a",
                                "urn:x:y", "//host/x", "?q"}) {
    EXPECT_THAT(Says(std::string("{\"$ref\":\"") + reference + "\",\"definitions\":{\"a\":true}}"),
                HasSubstr("leads out of the document"))
        << reference;
  }
  EXPECT_THAT(Says(R"({"$ref":"#a"})"), HasSubstr("$id"));
  EXPECT_THAT(Says(R"({"$ref":"#/definitions/b","definitions":{"a":true}})"), HasSubstr("leads to no schema"));
  EXPECT_THAT(Says(R"({"properties":{"a":{"$ref":"#/properties"}}})"), HasSubstr("leads to no schema"));
  EXPECT_THAT(Says(R"({"properties":{"a":{"$ref":"#/const"}},"const":{}})"), HasSubstr("leads to no schema"));
  EXPECT_THAT(Says(R"({"$ref":"#/definitions/%zz"})"), HasSubstr("hexadecimal"));
  EXPECT_THAT(Says(R"({"$ref":"#/definitions/~2"})"), HasSubstr("~0"));
  EXPECT_THAT(Says(R"({"$ref":5})"), HasSubstr("must be a string"));
}

TEST(CompileTest, ReferencesAreEscapedAsPointersAndAsFragments) {
  const char* schema = R"({"definitions":{"a~b":{"type":"integer"},"a/b":{"type":"integer"},"a%b":{"type":"integer"},
      "\u00e9 \"":{"type":"integer"}},
      "properties":{"tilde":{"$ref":"#/definitions/a~0b"},"slash":{"$ref":"#/definitions/a~1b"},
      "percent":{"$ref":"#/definitions/a%25b"},"e":{"$ref":"#/definitions/%C3%A9%20%22"}}})";
  for (const char* name : {"tilde", "slash", "percent", "e"}) {
    EXPECT_TRUE(Allows(schema, std::string("{\"") + name + "\":1}")) << name;
    EXPECT_FALSE(Allows(schema, std::string("{\"") + name + "\":\"x\"}")) << name;
  }
}

TEST(CompileTest, ConstraintsBesideAReferenceAreRefusedSinceTheyWouldBeIgnored) {
  EXPECT_THAT(Says(R"({"$ref":"#/definitions/a","maximum":5,"definitions":{"a":true}})"), HasSubstr("beside $ref"));
  EXPECT_EQ(Says(R"({"$ref":"#/definitions/a","title":"t","default":1,"$comment":"c","definitions":{"a":true}})"),
            "compiled");
}

TEST(CompileTest, ReferencesThatNeverGoIntoTheInstanceAreRefused) {
  for (const char* text :
       {R"({"$ref":"#"})", R"({"allOf":[{"$ref":"#"}]})", R"({"not":{"$ref":"#"}})",
        R"({"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}}})",
        R"({"anyOf":[{"type":"integer"},{"oneOf":[{"$ref":"#"}]}]})", R"({"if":true,"then":{"$ref":"#"}})",
        R"({"dependencies":{"a":{"$ref":"#"}}})", R"({"definitions":{"a":{"allOf":[{"$ref":"#/definitions/a"}]}}})"}) {
    EXPECT_THAT(Says(text), HasSubstr("goes round")) << text;
  }
  for (const char* text :
       {R"({"properties":{"a":{"$ref":"#"}}})", R"({"items":{"$ref":"#"}})", R"({"contains":{"$ref":"#"}})",
        R"({"additionalProperties":{"$ref":"#"}})", R"({"propertyNames":{"type":"string"}})"}) {
    EXPECT_EQ(Says(text), "compiled") << text;
  }
}

TEST(CompileTest, KeywordsOfTheWrongFormAreRefused) {
  for (const char* text : {R"({"type":"float"})",
                           R"({"type":[]})",
                           R"({"type":["string",5]})",
                           R"({"type":5})",
                           R"({"enum":[]})",
                           R"({"enum":5})",
                           R"({"multipleOf":0})",
                           R"({"multipleOf":-1})",
                           R"({"multipleOf":"1"})",
                           R"({"multipleOf":1234567890123456789})",
                           R"({"maximum":"5"})",
                           R"({"exclusiveMaximum":true})",
                           R"({"minLength":-1})",
                           R"({"minLength":1.5})",
                           R"({"maxItems":"1"})",
                           R"({"pattern":5})",
                           R"({"pattern":"("})",
                           R"({"patternProperties":{"(?=a)b":true}})",
                           R"({"uniqueItems":1})",
                           R"({"required":"a"})",
                           R"({"required":["a","a"]})",
                           R"({"required":[1]})",
                           R"({"properties":[]})",
                           R"({"dependencies":{"a":5}})",
                           R"({"dependencies":{"a":[1]}})",
                           R"({"allOf":[]})",
                           R"({"allOf":{}})",
                           R"({"anyOf":[]})",
                           R"({"oneOf":[]})",
                           R"({"definitions":[]})",
                           "5",
                           "null",
                           "\"x\"",
                           "[]"}) {
    EXPECT_NE(Says(text), "compiled") << text;
  }
  EXPECT_EQ(Says(R"({"minLength":2.0,"maxLength":1e2,"maxItems":1e400,"multipleOf":123456789012345678})"), "compiled");
}

TEST(CompileTest, NestingInPlaceDepthAndPatternsAreLimited) {
  const auto nested = [](int count) {
    std::string text = "true";
    for (int i = 0; i < count; ++i) text = "{\"not\":" + text + "}";
    return text;
  };
  EXPECT_EQ(Says(nested(kNestingMax - 1)), "compiled");
  EXPECT_THAT(Says(nested(kNestingMax)), HasSubstr("64 deep"));

  const auto chain = [](int count) {
    std::string text = R"({"$ref":"#/definitions/0","definitions":{)";
    for (int i = 0; i < count; ++i) {
      text += "\"" + std::to_string(i) + "\":{\"$ref\":\"#/definitions/" + std::to_string(i + 1) + "\"},";
    }
    return text + "\"" + std::to_string(count) + "\":true}}";
  };
  EXPECT_EQ(Says(chain(kInPlaceMax - 2)), "compiled");
  EXPECT_THAT(Says(chain(kInPlaceMax - 1)), HasSubstr("over 64 schemas"));
  EXPECT_THAT(Says(chain(3000)), HasSubstr("over 64 schemas"));

  std::string patterns = "{\"allOf\":[";
  for (size_t i = 0; i < kPatternsMax; ++i) patterns += "{\"pattern\":\"a\"},";
  EXPECT_EQ(Says(patterns + "true]}"), "compiled");
  EXPECT_THAT(Says(patterns + "{\"pattern\":\"a\"}]}"), HasSubstr("256 patterns"));
}

TEST(CompileTest, CompiledSchemasOutliveTheDocument) {
  std::shared_ptr<const Schema> schema;
  {
    const auto document = json::Parse(R"({"enum":[{"a":[1]}],"pattern":"x","required":["a"]})");
    schema = *Compile(*document);
  }
  EXPECT_EQ(schema->Validate(*json::Parse(R"({"a":[1.0]})")).outcome, Outcome::kOk);
}

}  // namespace
}  // namespace tally::schema
